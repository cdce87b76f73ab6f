"""Storage nodes that die or hang: reads go on from another replica even in mid-body, writes go to a handoff."""

import hashlib
import http.client
import signal

import pytest

from harness import disk
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.waiting import until

BODY = hashlib.shake_256(b"failover").digest(40 * 10**6)
# Who hangs is found out soon; who is dead refuses at once. Nobody else is to be taken for one of them on a busy machine.
READS = {"recoverable_node_timeout": 3}
WRITES = {"node_timeout": 5, "recoverable_node_timeout": 5}


@pytest.fixture
def nodes(tmp_path, request):
    """A cluster of four storage nodes of one device each, all of the make under test; its proxy's options may be the parameter."""
    kind = "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"
    memcached = Memcached().start()
    overrides = {"proxy": {"app:proxy-server": getattr(request, "param", {})}}
    cluster = Cluster(Layout(tmp_path / "nodes", nodes=4, memcached_port=memcached.port, overrides=overrides).write(), kind)
    yield cluster.start()
    cluster.stop()
    memcached.stop()


def holders(cluster, name):
    """Numbers of the nodes that hold a replica."""
    return sorted(int(path.relative_to(cluster.srv).parts[0].removeprefix("sdb")) - 1 for path in disk.find_object(cluster.srv, name))


@pytest.mark.parametrize("nodes", [READS], indirect=True, ids=["impatient"])
@pytest.mark.parametrize("range_header", [None, "bytes=1000000-39000000"])
@pytest.mark.parametrize("fault", ["dies", "hangs"])
def test_a_read_survives_its_nodes_in_mid_body(nodes, fault, range_header):
    """All replicas but one fail after the body has begun; the client gets all the right bytes."""
    client = Client(nodes.auth_url)
    client.put("c")
    client.put("c", "o", body=BODY)
    homes = holders(nodes, "/AUTH_test/c/o")
    assert len(homes) == 3
    wanted = BODY[1000000:39000001] if range_header else BODY

    connection = http.client.HTTPConnection("127.0.0.1", nodes.port, timeout=60)
    headers = {"X-Auth-Token": client.token, **({"Range": range_header} if range_header else {})}
    connection.request("GET", client.path("c", "o"), headers=headers)
    response = connection.getresponse()
    assert response.status == (206 if range_header else 200)
    got = response.read(2_000_000)  # buffers between us and the disk hold a few megabytes at most
    for node in homes[:2] if fault == "dies" else homes[:1]:
        nodes.services["object", node].signal(signal.SIGKILL if fault == "dies" else signal.SIGSTOP)
    got += response.read()
    for process in nodes.services.values():
        process.signal(signal.SIGCONT)
    assert hashlib.md5(got).hexdigest() == hashlib.md5(wanted).hexdigest(), f"{len(got)} of {len(wanted)} bytes"


def test_writes_go_to_a_handoff(nodes):
    client = Client(nodes.auth_url)
    client.put("c")
    client.put("c", "before", body=b"x")
    lost = holders(nodes, "/AUTH_test/c/before")[0]
    for role in ("object", "container", "account"):
        nodes.kill_service(role, lost)
    for number in range(30):
        client.put("c", f"o{number}", body=b"y" * number)
    for number in range(30):
        assert client.get("c", f"o{number}") == b"y" * number
        assert len(holders(nodes, f"/AUTH_test/c/o{number}")) == 3, "three replicas on the three nodes left"
    client.put("c", "before", body=b"rewritten")
    client.do("POST", "c", "before", headers={"X-Object-Meta-A": "b"}, expect=202)
    client.do("DELETE", "c", "o3", expect=204)
    client.put("while away")

    for role in ("object", "container", "account"):
        nodes.start_service(role, lost)
    assert client.do("GET", "c", "before", headers={"X-Newest": "true"}, expect=200).body == b"rewritten"
    client.do("HEAD", "while away", expect=204)


def test_two_of_three_replicas_are_no_quorum_when_two_are_gone(nodes):
    """With three of four nodes dead nothing is acknowledged that is not safe: 503, and no hang."""
    client = Client(nodes.auth_url)
    client.put("c")
    client.put("c", "o", body=b"x")
    for node in range(3):
        nodes.kill_service("object", node)
    assert client.do("PUT", "c", "new", body=b"y").status == 503
    homes = holders(nodes, "/AUTH_test/c/o")
    assert client.do("GET", "c", "o").status == (200 if 3 in homes else 503)


@pytest.mark.parametrize("nodes", [WRITES], indirect=True, ids=["impatient"])
def test_a_hung_node_does_not_stop_the_others(nodes):
    """SIGSTOP on one node's object server: requests take no longer than its deadline and succeed."""
    client = Client(nodes.auth_url)
    client.put("c")
    for number in range(10):
        client.put("c", f"o{number}", body=b"z" * 1000)
    nodes.services["object", 1].signal(signal.SIGSTOP)
    try:
        for number in range(10):
            assert client.get("c", f"o{number}") == b"z" * 1000
            client.put("c", f"n{number}", body=b"w")
    finally:
        nodes.services["object", 1].signal(signal.SIGCONT)


def test_a_listing_update_waits_for_its_container_servers(nodes):
    """With every container server gone a write is still acknowledged, and its row waits durably on disk."""
    client = Client(nodes.auth_url)
    client.put("c")
    client.put("c", "o", body=b"x")
    for node in range(4):
        nodes.services["container", node].kill()
    client.put("c", "p", body=b"y")  # the proxy knows the container from its cache
    waiting = until(lambda: [path for path in disk.files(nodes.srv) if "async_pending" in path.parts], what="updates waiting on disk")
    assert waiting
