"""Objects written near their writer first (`write_affinity`), tested on a whole cluster of either make."""

import pytest

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout, hash_path
from harness.memcached import Memcached
from swift.common.ring import Ring, RingData

DEVICES = 6


class Nearby:
    """A cluster of six zones; `local` of an object are its first primary and its first two handoffs."""

    def __init__(self, root, kind, count):
        self.memcached = Memcached().start()
        layout = Layout(root, devices=DEVICES, part_power=4, policies=("gold",), memcached_port=self.memcached.port).write()
        self.client = None
        ring = RingData.load(str(layout.etc / "object.ring.gz"))
        partition = self.partition_of(ring, "o0")
        primaries = [row[partition] for row in ring._replica2part2dev_id]
        handoffs = [node["id"] for node in Ring(str(layout.etc / "object.ring.gz")).get_more_nodes(partition)]
        self.near = [ring.devs[number] for number in (primaries[0], *handoffs[:2])]
        affinity = ", ".join(f"r1z{device['zone']}" for device in self.near)
        layout.overrides = {"proxy": {"app:proxy-server": {"write_affinity": affinity, "write_affinity_node_count": 3,
                                                           "write_affinity_handoff_delete_count": count}}}
        layout.write()
        self.layout, self.cluster = layout, Cluster(layout, kind).start()
        self.client = Client(self.cluster.auth_url)

    @staticmethod
    def partition_of(ring, name):
        return int(hash_path(f"/AUTH_test/c/{name}")[:8], 16) >> ring._part_shift

    def files(self):
        return {device["device"]: sorted(path.suffix for path in (self.layout.srv / device["device"] / "objects").rglob("1*.*"))
                for device in self.near}

    def stop(self):
        if self.client:
            self.client.close()
        self.cluster.stop()
        self.memcached.stop()


@pytest.mark.parametrize("count,status", [("auto", 204), ("2", 204), ("0", 404)])
@pytest.mark.parametrize("kind", ["openstack", "ours"])
def test_a_deletion_reaches_what_lies_on_local_handoffs(tmp_path, ours, kind, count, status):
    nearby = Nearby(tmp_path, ours if kind == "ours" else kind, count)
    try:
        client = nearby.client
        client.put("c")
        client.put("c", "o0", body=b"x")
        assert set(map(tuple, nearby.files().values())) == {(".data",)}
        assert client.do("DELETE", "c", "o0").status == status
        first, *handoffs = nearby.files().values()
        assert first == [".ts"]
        assert handoffs == [[".ts"] if status == 204 else [".data"]] * 2
        assert client.do("GET", "c", "o0").status == 404
    finally:
        nearby.stop()
