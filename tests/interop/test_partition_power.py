"""The partition power of an object ring grows by OpenStack's procedure, with OpenStack's relinker, while clients write.

What is written between the relinking and the increase is in both partitions: nothing is lost, and nothing that was
deleted comes back.
"""

import subprocess

import pytest
from swift.common.ring import RingBuilder

from harness.client import Client
from harness.places import openstack_command


class Ring:
    """The object ring, and the gateway that is to have each version of it at once."""

    def __init__(self, cluster):
        self.cluster, self.builder = cluster, str(cluster.etc / "object.builder")

    def change(self, step):
        builder = RingBuilder.load(self.builder)
        assert getattr(builder, f"{step}_partition_power")()
        builder.save(self.builder)
        RingBuilder.load(self.builder).get_ring().save(str(self.cluster.etc / "object.ring.gz"))
        self.cluster.stop_service("proxy")
        self.cluster.start_service("proxy")

    def relinker(self, action):
        command = openstack_command(self.cluster.etc, "swift-object-relinker", action, "--swift-dir", self.cluster.etc, "--devices",
                                    self.cluster.srv, "--skip-mount-check", "--policy", "0")
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("gateway, objects", [("ours", "ours"), ("openstack", "ours"), pytest.param("ours", "openstack", marks=pytest.mark.extra)])
def test_what_is_written_meanwhile_is_found_afterwards(cluster, ours, gateway, objects):
    def make(of):
        return ours if of == "ours" else "openstack"

    running = cluster({"proxy": make(gateway), "object": make(objects), "container": ours, "account": ours}, part_power=3, policies=("gold",))
    ring = Ring(running)
    client = Client(running.auth_url)
    client.do("PUT", "c", expect=201)
    old, new = [[f"{kind}{number}" for number in range(30)] for kind in ("old", "new")]
    for name in old:
        client.put("c", name, body=name.encode())
    ring.change("prepare_increase")
    ring.relinker("relink")
    client = Client(running.auth_url)
    for name in new:
        client.put("c", name, body=name.encode())
    deleted, posted = old[:10], old[10:20]
    for name in deleted:
        client.delete("c", name)
    for name in posted:
        client.do("POST", "c", name, headers={"X-Object-Meta-Colour": "red"}, expect=202)

    def check():
        client = Client(running.auth_url)
        for name in old[10:] + new:
            assert client.get("c", name) == name.encode()
        for name in posted:
            assert client.do("HEAD", "c", name)["X-Object-Meta-Colour"] == "red"
        for name in deleted:
            assert client.do("GET", "c", name).status == 404

    check()
    ring.change("increase")
    check()
    ring.relinker("cleanup")
    check()
    ring.change("finish_increase")
    check()
    for path in running.srv.glob("*/objects/*/*/*/*.data"):
        part, name = path.parts[-4], path.parts[-2]
        assert int(part) == int(name[:8], 16) >> 32 - 4, f"{path} is in the partition that it had before"
