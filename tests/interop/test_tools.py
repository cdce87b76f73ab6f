"""OpenStack's own tools find our objects, verify them, open our databases, and audit our devices in peace."""

import re
import sqlite3
from pathlib import Path

import pytest

from harness import disk, journey
from harness.client import Client
from harness.places import openstack_command
from harness.process import run


@pytest.fixture(scope="session")
def system(request, shared):
    """Not the one that other tests share: they leave behind what daemons move, delete or take down."""
    return shared.get(f"{request.param}-of-tools", request.param)


@pytest.fixture(scope="module")
def written(system):
    """A system with a stay in it, and what was kept."""
    client = Client(system.auth_url)
    kept = journey.write(client, "tools")
    journey.check(client, kept)
    yield system, kept
    journey.clean(client, kept)


def lasting(system):
    """Objects and databases of containers."""
    return {*disk.objects(system.srv), *disk.databases(system.srv, "containers")}


def tool(system, name, *arguments, **options):
    return run(openstack_command(system.etc, name, *arguments), **options)


def test_get_nodes_finds_our_objects(written):
    system, kept = written
    for (container, name), (body, _) in list(kept.items())[::4]:
        policy = container.split()[-1]
        printed = tool(system, "swift-get-nodes", "-d", system.etc, "-P", policy, "AUTH_test", container, name).stdout
        primaries = [Path(system.srv) / folder for folder in re.findall(r'^ssh .*\}/([^"\s]+)"$', printed, re.MULTILINE)]
        assert len(primaries) == 3
        suffix = ".ts" if body is None else ".data"
        assert all(any(path.suffix == suffix for path in folder.iterdir()) for folder in primaries), (container, name)


def test_object_info_verifies_our_objects(written):
    system, kept = written
    files = [path for path in disk.objects(system.srv) if disk.metadata(path)[b"name"].startswith(b"/AUTH_test/tools ")]
    assert len(files) == 3 * sum(body is not None for body, _ in kept.values())
    for path in files[::9]:
        printed = tool(system, "swift-object-info", "-d", system.etc, path).stdout
        assert "(valid)" in printed and "Content-Length: " in printed, printed
        assert "Path: /AUTH_test/tools " in printed
        assert "Metadata:\n" in printed


def named(databases, table, **columns):
    """The databases whose row in `table` says this."""
    found = []
    for path in databases:
        with sqlite3.connect(path, timeout=20) as connection:
            row = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchone()
        if row == tuple(columns.values()):
            found.append(path)
    return found


def test_container_info_and_account_info_open_our_databases(written):
    system, _ = written
    containers = named(disk.databases(system.srv, "containers"), "container_info", account="AUTH_test", container="tools silver")
    printed = [tool(system, "swift-container-info", "-d", system.etc, path).stdout for path in containers]
    assert len(printed) == 3
    assert all("Container: tools silver" in text and "Account: AUTH_test" in text and "(1)" in text and "Tag: tools" in text
               for text in printed), printed
    accounts = named(disk.databases(system.srv, "accounts"), "account_stat", account="AUTH_test")
    printed = [tool(system, "swift-account-info", "-d", system.etc, path).stdout for path in accounts]
    assert len(printed) == 3 and all("Account: AUTH_test\n" in text for text in printed)


@pytest.mark.parametrize("daemon", ["object-auditor", "container-auditor", "account-auditor", "object-replicator", "container-replicator",
                                    "account-replicator", "object-updater", "container-updater"])
def test_daemons_pass_over_our_devices_and_leave_all_in_place(written, daemon):
    system, kept = written
    role = daemon.split("-")[0]
    before = lasting(system)
    done = tool(system, f"swift-{daemon}", system.etc / f"{role}-server.conf", "once", "-v")
    output = done.stdout + done.stderr
    assert "Traceback" not in output and "quarantined" not in output.lower().replace("0 quarantined", "").replace("quarantined: 0", ""), output
    assert not [path for path in disk.files(system.srv) if "quarantined" in path.parts]
    after = lasting(system)
    assert (before - after, after - before) == (set(), set())
    journey.check(Client(system.auth_url), kept)
