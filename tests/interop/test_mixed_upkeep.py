"""A cluster half of whose servers and daemons are OpenStack's, while each is exchanged for the other make, forth and back.

Nothing is lost, no client sees an error, and when the load has gone the replicas become equal by themselves: objects on
their primaries and nowhere else, the same rows in every database, counters that tell the truth.
"""

import os
import sqlite3
from collections import defaultdict

import pytest
from swift.common.ring import RingBuilder

from harness import daemons, disk
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import ROLES, Layout, hash_path
from harness.load import Load
from harness.memcached import Memcached
from harness.waiting import until

NODES = range(2)
# A proxy leaves nodes alone for a while that have refused it; with two of them that are exchanged in turn, none would be left.
NEVER_SHUN = {"error_suppression_limit": 1000000}


@pytest.fixture
def half(tmp_path, ours):
    """Node 0 is OpenStack's, node 1 ours; so is the upkeep of each, of those daemons that we have."""
    memcached, rsync = Memcached().start(), daemons.Rsync()
    layout = Layout(tmp_path / "c", nodes=2, devices=4, memcached_port=memcached.port, policies=("gold",), part_power=4,
                    overrides={**daemons.overrides(rsync.port), "proxy": {"app:proxy-server": NEVER_SHUN}}).write()
    rsync.start(layout)
    cluster = Cluster(layout, "openstack")
    cluster.start()
    for role in ROLES:
        cluster.stop_service(role, 1)
        cluster.start_service(role, 1, ours)
    upkeep = daemons.Upkeep(cluster)
    for daemon in daemons.DAEMONS:
        for node, kind in zip(NODES, ("openstack", of(ours, daemon))):
            upkeep.start(daemon, node, kind)
    cluster.upkeep = upkeep
    yield cluster
    upkeep.stop_all()
    cluster.stop()
    rsync.stop()
    memcached.stop()


def of(ours, daemon):
    """Ours, where we have that daemon."""
    return ours if ours == "openstack" or daemons.has(daemon) else "openstack"


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_everything_is_exchanged_forth_and_back_under_load(half, ours):
    with Load(half.auth_url, threads=3, container="load", rewrites=False) as load:
        for kinds in ((ours, "openstack"), ("openstack", ours)):
            for daemon in daemons.DAEMONS:
                for node in NODES:
                    half.upkeep.exchange(daemon, node, of(kinds[node], daemon) if kinds[node] == ours else "openstack")
                going_on(load)
            for role in ROLES:
                for node in NODES:
                    half.shut_down_service(role, node)  # OpenStack's closes every connection on SIGTERM
                    going_on(load)
                    half.start_service(role, node, kinds[node])
                    await_copies(half, list(load.expected))
    assert load.failed == [] and load.wrong == []
    client = Client(half.auth_url)
    gone = sorted(load.expected)[::7]
    half.stop_service("object", 1)  # whose tombstones come by replication
    for name in gone:
        client.delete("load", name)
    half.start_service("object", 1, ours)
    names = sorted(set(load.expected) - set(gone))
    until(lambda: at_rest(half, names, gone), within=400, every=2, what="all replicas equal")
    for name in gone:
        assert client.do("GET", "load", name).status == 404
    assert load.failed == [] and all(load.read(client, name) for name in names), load.wrong
    listing = client.get("load").decode().split("\n")[:-1]
    assert listing == names
    reply = client.do("HEAD", "load")
    assert int(reply["X-Container-Object-Count"]) == len(names)
    for (daemon, node), process in half.upkeep.running.items():
        assert process.alive(), f"{daemon} of node {node} has ended:\n{process.tail()}"
        assert "Traceback" not in process.text() and "panicked" not in process.text(), f"{daemon} of node {node}"


def going_on(load):
    before = load.acknowledged
    until(lambda: load.acknowledged > before + 5, within=120, what="the load going on")


def await_copies(cluster, names):
    """Until every node has each of the objects: while it was away they were written to the other one alone, and that is next."""
    def everywhere():
        kept, _ = objects_on(cluster.srv)
        for name in names:
            nodes = {cluster.layout.node_of(cluster.layout.devices.index(device)) for device, _ in kept[f"/AUTH_test/load/{name}"]}
            assert nodes == set(NODES), f"{name} is on nodes {nodes} alone"
        return True
    until(everywhere, within=240, every=1, what="every node having each object")


def at_rest(cluster, names, gone):
    """Asserts that every replica is where it belongs, and equal; True, for `until`."""
    rings = {role: RingBuilder.load(str(cluster.etc / f"{role}.builder")) for role in ROLES}
    kept, away = objects_on(cluster.srv)
    for name in names:
        _, primaries, _ = place(rings["object"], f"/AUTH_test/load/{name}")
        found = kept[f"/AUTH_test/load/{name}"]
        assert {device for device, _ in found} == primaries, f"{name}: {found} instead of {primaries}"
        assert len({content for _, content in found}) == 1 and len(found) == 3, f"{name}: replicas differ: {found}"
    for name in gone:
        assert not kept[f"/AUTH_test/load/{name}"], f"{name} has come back"
    assert set(kept) == {f"/AUTH_test/load/{name}" for name in [*names, *gone]}, "objects that were never written"
    containers = rows_of(cluster, rings["container"], "containers", "/AUTH_test/load",
                         "SELECT name, created_at, size, etag FROM object WHERE deleted = 0 ORDER BY name")
    assert [row[0] for row in containers] == names, f"{len(containers)} rows, {len(names)} objects"
    accounts = rows_of(cluster, rings["account"], "accounts", "/AUTH_test",
                       "SELECT name, object_count, bytes_used FROM container WHERE deleted = 0 ORDER BY name")
    assert [(row[0], int(row[1])) for row in accounts] == [("load", len(names))], accounts
    assert int(accounts[0][2]) == sum(row[2] for row in containers)
    assert not away, f"{away} wait to be sent to their containers"
    return True


def objects_on(srv):
    """Name → (device, what identifies the replica) of every object file; updates that still wait."""
    found, waiting = defaultdict(list), []
    for path in disk.files(srv):
        if not path.exists():
            continue  # it has been moved meanwhile
        kind = path.relative_to(srv).parts[1].split("-")[0]
        if kind == "async_pending":
            waiting.append(path)
        elif path.suffix == ".data" and kind == "objects":
            metadata = disk.metadata(path)
            name = metadata.get("name", metadata.get(b"name", b""))
            text = name.decode() if isinstance(name, bytes) else name
            found[text].append((path.relative_to(srv).parts[0], (path.name, path.stat().st_size, str(sorted(metadata.items())))))
    return found, waiting


def place(ring, name):
    """The partition, the devices and the hash of a name."""
    hashed = hash_path(name)
    partition = int(hashed[:8], 16) >> (32 - ring.part_power)
    return partition, {device["device"] for device in ring.get_part_devices(partition)}, hashed


def rows_of(cluster, ring, kind, name, query):
    """What the database of `name` holds: the same on all its primaries, and it is nowhere else."""
    partition, primaries, hashed = place(ring, name)
    found = {}
    for device in os.listdir(cluster.srv):
        path = cluster.srv / device / kind / str(partition) / hashed[-3:] / hashed / f"{hashed}.db"
        if path.exists():
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as database:
                found[device] = [tuple(row) for row in database.execute(query)]
    assert set(found) == primaries, f"{kind} of {name} on {sorted(found)} instead of {sorted(primaries)}"
    first, *others = found.values()
    assert all(other == first for other in others), f"{kind} of {name} differ: {[len(rows) for rows in found.values()]} rows"
    return first
