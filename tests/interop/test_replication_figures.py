"""What a pass of a replicator counts, as recon tells it: the same with either make."""

import json

import pytest

from interop import test_database_replicators as databases
from interop import test_object_replication as objects

TIMES = ("replication_time", "replication_last", "object_replication_time", "object_replication_last")
OWN = "martlet_passes"  # when each daemon of Martlet ended its last pass: nothing that OpenStack's programs look at


def figures(replicas, device, cache="object"):
    """Of one pass over this device: what is not a time."""
    for file in replicas.layout.root.rglob("*.recon"):
        file.unlink()
    replicas.replicate(replicas.layout.devices.index(device))
    (file,) = replicas.layout.root.rglob(f"{cache}.recon")
    stats_page = json.loads(file.read_text())
    stats_page.pop(OWN, None)
    for name in TIMES:
        assert isinstance(stats_page.pop(name, 0.0), float), name
    stats = stats_page["replication_stats"]
    # OpenStack's daemons leave out nodes without a failure, and count a daemon of their own.
    return {**stats_page, "replication_stats": {key: value for key, value in stats.items() if value and key not in ("start", "deferred")}}


def alike(stats_page):
    wrong = {key: (theirs, stats_page["ours"][key]) for key, theirs in stats_page["openstack"].items() if theirs != stats_page["ours"][key]}
    assert stats_page["openstack"].keys() == stats_page["ours"].keys() and not wrong, wrong


def away(replicas, role, device, look):
    """What `look` sees while the server of this device is not there."""
    node = replicas.layout.devices.index(device)
    replicas.cluster.kill_service(role, node)
    seen = look()
    replicas.cluster.launch(role, node, "martlet")
    replicas.cluster.await_service(role, node)
    return seen


@pytest.mark.parametrize("method", ["ssync", "rsync"])
def test_of_objects(tmp_path, ours, method):
    stats_page = {}
    for make in ("openstack", "ours"):
        kind = ours if make == "ours" else make
        replicas = objects.Replicas(tmp_path / make, ["martlet"] * objects.NODES, [kind] * objects.NODES, method)
        try:
            mine = stats_page[make] = {}
            for name in ("/a/c/one", "/a/c/two"):
                _, (home, second, _), other = replicas.place(name)
                replicas.put(home, name, 1)
                mine[name, "lacking"] = figures(replicas, home)
                mine[name, "same"] = figures(replicas, home)
                replicas.put(other, name, 2)
                mine[name, "handoff"] = figures(replicas, other)
                replicas.put(home, name, 3)
                mine[name, "one is away"] = away(replicas, "object", second, lambda: figures(replicas, home))
        finally:
            replicas.stop()
    alike(stats_page)


@pytest.mark.parametrize("role", ["account", "container"])
def test_of_databases(tmp_path, ours, role):
    stats_page, name = {}, "/AUTH_r/c" if role == "container" else "/AUTH_r"
    for make in ("openstack", "ours"):
        kind = ours if make == "ours" else make
        replicas = databases.Replicas(tmp_path / make, role, ["martlet"] * databases.NODES, [kind] * databases.NODES, **databases.FAR)
        look = lambda device: figures(replicas, device, role)  # noqa: E731
        try:
            mine = stats_page[make] = {}
            _, (home, second, third), other = replicas.place(name)
            replicas.make(home, name, 1)
            mine["lacking"] = look(home)
            mine["same"] = look(home)
            replicas.rows(home, name, 2, ["a", "b"])
            mine["a few rows"] = look(home)
            replicas.rows(home, name, 3, [f"o{number:03}" for number in range(90)])
            mine["many rows"] = away(replicas, role, second, lambda: look(home))
            mine["for one"] = look(home)
            replicas.make(other, name, 1)
            mine["handoff"] = look(other)
            replicas.make(other, name, 1)
            mine["handoff, one is away"] = away(replicas, role, third, lambda: look(other))
            replicas.file(home, name).write_bytes(b"no database " * 2000)
            mine["unreadable"] = look(home)
        finally:
            replicas.stop()
    alike(stats_page)
