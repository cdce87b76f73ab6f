"""The trap of docs/operating/migration.md: an auditor that reads another swift.conf than the servers finds each object in a wrong place.

OpenStack's daemons read swift.conf in /etc/swift, whatever `swift_dir` says (here in the folder `elsewhere`); its servers, and all of Martlet's,
read it in `swift_dir`.
"""

import json
import os
import shlex
import shutil
import urllib.request

import pytest

from harness import page
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import AUDIT_FAST, Layout
from harness.places import REPOSITORY, martlet, openstack_command
from harness.process import run

PAGE = REPOSITORY / "docs/operating/migration.md"
OBJECTS = 5


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A layout with some objects, and the folder with another swift.conf."""
    layout = Layout(tmp_path_factory.mktemp("written"), devices=1, replicas=1, overrides={"object": {"object-auditor": AUDIT_FAST}}).write()
    cluster = Cluster(layout, "martlet").start()
    try:
        client = Client(cluster.auth_url)
        client.put("c")
        for number in range(OBJECTS):
            client.put("c", f"o{number}", body=b"x")
    finally:
        cluster.stop()
    elsewhere = layout.root / "elsewhere"
    elsewhere.mkdir()
    text = (layout.etc / "swift.conf").read_text()
    (elsewhere / "swift.conf").write_text(text.replace("swift_hash_path_prefix = ", "swift_hash_path_prefix = other"))
    assert (elsewhere / "swift.conf").read_text() != text
    return layout, elsewhere


@pytest.fixture
def devices(written):
    """They are afterwards what they were."""
    layout, _ = written
    kept = layout.root / "kept"
    run(["cp", "-a", layout.srv, kept])
    yield layout.srv
    shutil.rmtree(layout.srv)
    kept.rename(layout.srv)


def objects(devices):
    """How many are served, and how many are quarantined."""
    return len(list(devices.glob("*/objects/**/*.data"))), len(list(devices.glob("*/quarantined/objects/*/*.data")))


def test_openstacks_auditor_quarantines_everything(written, devices):
    layout, elsewhere = written
    conf = layout.etc / "object-server.conf"
    assert f"swift_dir = {layout.etc}" in conf.read_text(), "what the servers go by, and this auditor should"
    run(openstack_command(elsewhere, "swift-object-auditor", conf, "once", "-v"))
    assert objects(devices) == (0, OBJECTS)


def test_openstacks_server_reads_the_other_file(written):
    """So that its servers and its daemons may differ, without Martlet."""
    layout, elsewhere = written
    cluster = Cluster(layout)
    cluster.etc = elsewhere
    shutil.copy(layout.etc / "object-server.conf", elsewhere)
    try:
        cluster.start_service("object")
        with urllib.request.urlopen(f"http://127.0.0.1:{layout.ports['object', 0]}/recon/swiftconfmd5", timeout=60) as reply:
            assert list(json.load(reply)) == [str(layout.etc / "swift.conf")]
    finally:
        cluster.stop()


@pytest.mark.parametrize("arguments", [(), ("-z", "1000")], ids=["full", "zero-byte"])
def test_martlets_auditor_says_so_and_leaves_all_where_it_is(written, devices, arguments):
    layout, elsewhere = written
    conf = elsewhere / "object-server.conf"
    conf.write_text((layout.etc / "object-server.conf").read_text().replace(f"swift_dir = {layout.etc}", f"swift_dir = {elsewhere}"))
    done = run([martlet(), "object-auditor", conf, "once", *arguments])
    said = [line for line in done.stderr.splitlines() if " ERROR " in line]
    assert said and all("swift_hash_path_prefix" in line and "nothing was quarantined" in line for line in said), done.stderr
    assert objects(devices) == (OBJECTS, 0)
    # With the right one it has nothing to say.
    done = run([martlet(), "object-auditor", layout.etc / "object-server.conf", "once", *arguments])
    assert " ERROR " not in done.stderr and objects(devices) == (OBJECTS, 0), done.stderr


def page_check():
    """The commands of the page that compare the secrets in /etc/swift with the directories on the drives, and what they print."""
    [step] = [step for step in page.steps(PAGE) if "object-info" in step.commands[-1][0]]
    assert step.heading == "Look before you leap"
    return step.commands


def test_the_pages_check_tells_before_a_daemon_starts(written, devices, tmp_path):
    layout, elsewhere = written
    commands = page_check()
    programs = tmp_path / "bin"
    programs.mkdir()

    def check(etc):
        # As if `etc` were /etc/swift.
        program = programs / "swift-object-info"
        words = openstack_command(etc, program.name, "-d", etc)
        program.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        program.chmod(0o755)
        script = "\n".join(command for command, _ in commands).replace("/srv/node", str(devices))
        return run(["env", f"PATH={programs}:{os.environ['PATH']}", "bash", "-c", script], check=False)

    for ring in layout.etc.glob("*.ring.gz"):
        shutil.copy(ring, elsewhere)
    promised = [line for _, lines in commands for line in lines]
    done = check(layout.etc)
    assert done.returncode == 0 and not page.differs(promised, done.stdout.splitlines()), done.stdout + done.stderr
    done = check(elsewhere)
    assert done.returncode == 1 and not done.stdout, done.stdout + done.stderr
