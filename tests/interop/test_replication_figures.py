"""What a pass of the object-replicator counts, as recon tells it: the same with either make, by either method."""

import json

import pytest

from interop.test_object_replication import NODES, Replicas

TIMES = ("replication_time", "replication_last", "object_replication_time", "object_replication_last")


def figures(replicas, node):
    """Of one pass: what is not a time."""
    for file in replicas.layout.root.rglob("object.recon"):
        file.unlink()
    replicas.replicate(node)
    (file,) = replicas.layout.root.rglob("object.recon")
    told = json.loads(file.read_text())
    assert all(isinstance(told.pop(name), float) for name in TIMES)
    return told


@pytest.mark.parametrize("method", ["ssync", "rsync"])
def test_a_pass_counts_alike(tmp_path, method):
    told = {}
    for make in ("openstack", "ours"):
        replicas = Replicas(tmp_path / make, ["ours"] * NODES, [make] * NODES, method)
        try:
            mine = told[make] = {}
            for name in ("/a/c/one", "/a/c/two"):
                _, primaries, other = replicas.place(name)
                first = replicas.layout.devices.index(primaries[0])
                replicas.put(primaries[0], name, 1)
                mine[name, "lacking"] = figures(replicas, first)
                mine[name, "same"] = figures(replicas, first)
                replicas.put(other, name, 2)
                mine[name, "handoff"] = figures(replicas, replicas.layout.devices.index(other))
                replicas.put(primaries[0], name, 3)
                replicas.cluster.kill_service("object", replicas.layout.devices.index(primaries[1]))
                mine[name, "one is away"] = figures(replicas, first)
                replicas.cluster.launch("object", replicas.layout.devices.index(primaries[1]), "ours")
                replicas.cluster.await_service("object", replicas.layout.devices.index(primaries[1]))
        finally:
            replicas.stop()
    for key, theirs in told["openstack"].items():
        print(key, "\n  theirs", theirs, "\n  ours  ", told["ours"][key])
    assert told["ours"] == told["openstack"]
