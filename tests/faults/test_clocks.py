"""Two gateways of which one has a wrong clock: what the other writes later wins, or is refused; none is acknowledged and lost."""

import os
import struct
import subprocess
import time
from pathlib import Path

import pytest

from harness.client import Client
from harness.cluster import Cluster, healthy
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import Process
from harness.waiting import free_port, until

LARGE = b"large" * 100_000
FAR = 3600


class FastGateway:
    """A gateway beside the cluster's own; `ahead` puts its clock wrong, also while it runs."""

    def __init__(self, cluster):
        self.port, root = free_port(), cluster.root
        conf = cluster.etc / "fast-proxy-server.conf"
        own = (cluster.etc / "proxy-server.conf").read_text()
        conf.write_text(own.replace(f"bind_port = {cluster.port}\n", f"bind_port = {self.port}\n"))
        # A time that a client brings is written as it is: so a gateway has written that far ahead.
        conf.write_text(conf.read_text().replace("[filter:gatekeeper]\n", "[filter:gatekeeper]\nshunt_inbound_x_timestamp = false\n"))
        assert str(self.port) in conf.read_text() and "shunt_inbound" in conf.read_text()
        source, library, self.clock = Path(__file__).parents[1] / "storm/clock.c", root / "clock.so", root / "clock"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.clock.write_bytes(bytes(8))
        environment = {"LD_PRELOAD": str(library), "STORM_CLOCK": str(self.clock)}
        self.process = Process([martlet(), "proxy-server", conf], root / "log/fast-proxy.log", env={**os.environ, **environment})
        self.process.wait_for(lambda: healthy(self.port))

    def ahead(self, seconds):
        with open(self.clock, "r+b") as clock:
            clock.write(struct.pack("q", seconds * 10**9))

    @property
    def auth_url(self):
        return f"http://127.0.0.1:{self.port}/auth/v1.0"


@pytest.fixture(params=["martlet", "openstack"])
def gateways(tmp_path, request):
    """A gateway with the right time and one to put wrong, before storage servers of either make; and a client of each."""
    memcached = Memcached().start()
    kinds = {"proxy": "martlet", **dict.fromkeys(("account", "container", "object"), request.param)}
    cluster = Cluster(Layout(tmp_path / "nodes", memcached_port=memcached.port).write(), kinds).start()
    fast = FastGateway(cluster)
    yield cluster, fast, Client(cluster.auth_url), Client(fast.auth_url)
    fast.process.stop()
    cluster.stop()
    memcached.stop()


def test_the_later_write_wins_whatever_the_clocks(gateways):
    cluster, fast, right, wrong = gateways
    right.put("c")
    for name, body in (("small", b"new"), ("large", LARGE)):
        fast.ahead(30)
        wrong.put("c", name, body=b"old")
        right.do("PUT", "c", name, body=body, expect=201)
        assert right.get("c", name) == wrong.get("c", name) == body
        fast.ahead(33)
        wrong.put("c", name, body=b"old")
        right.do("POST", "c", name, headers={"X-Object-Meta-Colour": "red"}, expect=202)
        assert wrong.do("HEAD", "c", name, expect=200)["X-Object-Meta-Colour"] == "red"
        fast.ahead(36)
        wrong.put("c", name, body=b"old")
        right.do("DELETE", "c", name, expect=204)
        wrong.do("GET", "c", name, expect=404)
    fast.ahead(40)
    wrong.delete("c", "small")
    right.do("PUT", "c", "small", body=b"alive", expect=201)
    assert wrong.get("c", "small") == b"alive"


def test_containers_come_and_go_whatever_the_clocks(gateways):
    cluster, fast, right, wrong = gateways
    fast.ahead(30)
    wrong.put("d")
    right.do("DELETE", "d", expect=204)
    wrong.do("HEAD", "d", headers={"X-Newest": "true"}, expect=404)
    fast.ahead(35)
    wrong.put("e")
    wrong.do("DELETE", "e", expect=204)
    right.do("PUT", "e", expect=201)
    right.do("GET", "e", expect=(200, 204))
    if cluster.kinds["container"] == "martlet":  # OpenStack's servers do not say that they have left something out
        fast.ahead(40)
        wrong.do("POST", "e", headers={"X-Container-Meta-Colour": "blue"}, expect=204)
        right.do("POST", "e", headers={"X-Container-Meta-Colour": "red"}, expect=204)
        assert wrong.do("HEAD", "e", headers={"X-Newest": "true"}, expect=204)["X-Container-Meta-Colour"] == "red"
        wrong.do("POST", headers={"X-Account-Meta-Colour": "blue"}, expect=204)
        right.do("POST", headers={"X-Account-Meta-Colour": "red"}, expect=204)
        assert right.do("HEAD", expect=204)["X-Account-Meta-Colour"] == "red"


def test_versions_follow_each_other_whatever_the_clocks(gateways):
    cluster, fast, right, wrong = gateways
    right.put("v", headers={"X-Versions-Enabled": "true"})
    fast.ahead(30)
    wrong.put("v", "o", body=b"old")
    right.do("PUT", "v", "o", body=b"new", expect=201)
    assert right.get("v", "o") == wrong.get("v", "o") == b"new"
    fast.ahead(35)
    wrong.put("v", "o", body=b"newer")
    right.do("DELETE", "v", "o", expect=204)
    wrong.do("GET", "v", "o", expect=404)


def test_what_is_too_far_ahead_is_refused_by_name_and_spoils_nothing_else(gateways):
    cluster, fast, right, wrong = gateways
    right.put("c")
    wrong.put("c", "far", body=b"old", headers={"X-Timestamp": f"{time.time() + FAR:.5f}"})
    for method, body in (("PUT", b"new"), ("PUT", LARGE), ("POST", None), ("DELETE", None)):
        reply = right.do(method, "c", "far", body=body, expect=503)
        assert b"max_clock_skew" in reply.body and int(reply["Retry-After"]) > FAR - 120
    assert right.get("c", "far") == b"old"
    cluster.services["proxy", 0].await_text("/AUTH_test/c/far holds a version from 3", "ahead of this gateway's clock")
    right.do("PUT", "c", "near", body=b"now", expect=201)
    near = float(right.do("HEAD", "c", "near")["X-Timestamp"])
    assert near < float(right.do("HEAD", "c", "far")["X-Timestamp"]) - FAR / 2, "the right clock stays where it is"


@pytest.mark.parametrize("ahead", [FAR, -40 * 24 * FAR])
def test_a_gateway_whose_clock_is_wrong_writes_nothing(gateways, ahead):
    """What it would write could not be overwritten for an hour, or would be due by rules for what is old at once."""
    cluster, fast, right, wrong = gateways
    right.put("c")
    right.put("c", "o", body=b"old")
    wrong.do("HEAD", "c", expect=204)  # so that it has to learn nothing before a write
    fast.ahead(ahead)
    for number, (method, names) in enumerate([("PUT", ("c", "new")), ("PUT", ("c", "o")), ("POST", ("c", "o")), ("DELETE", ("c", "o")), ("PUT", ("d",)),
                                              ("POST", ()), ("DELETE", ("c",))]):
        reply = wrong.do(method, *names, body=b"", headers={"X-Delete-After": "3600"} if number == 0 else {}, expect=503)
        assert b"max_clock_skew" in reply.body and reply["Retry-After"] == "5", reply.body
    assert wrong.get("c", "o") == b"old", "it can be read"
    fast.process.await_text("this machine's clock is", "those of most storage servers")
    # A gateway that is right is not kept from it, and the other is right in the next moment.
    right.put("c", "o", body=b"new")
    fast.ahead(0)
    until(lambda: wrong.do("PUT", "c", "o", body=b"newer").status == 201, what="the gateway writes again")
    assert right.get("c", "o") == b"newer"
