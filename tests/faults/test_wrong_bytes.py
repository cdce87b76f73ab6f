"""Bytes that change between gateway and object server, as a faulty network card or memory changes them: no copy of them is kept."""

import socket
import threading

import pytest
from swift.common.ring import RingBuilder

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached

SENT, ARRIVED = b"good bytes", b"bad  bytes"


class Relay:
    """In front of a server: passes everything on, but for some bytes on their way to it."""

    def __init__(self, port):
        self.behind, self.listener = port, socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port = self.listener.getsockname()[1]
        self.changed = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.behind))
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, changes):
        try:
            while piece := source.recv(1 << 16):
                if changes:
                    self.changed += SENT in piece
                    piece = piece.replace(SENT, ARRIVED)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def cluster(tmp_path, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's proxies answer 500")
    memcached = Memcached().start()
    layout = Layout(tmp_path / "nodes", nodes=3, devices=3, policies=("gold",), memcached_port=memcached.port).write()
    cluster = Cluster(layout, "martlet")
    yield cluster
    cluster.kill()
    memcached.stop()


@pytest.mark.parametrize("size", [1, 100_000])
def test_no_replica_keeps_bytes_that_were_not_sent(cluster, size):
    layout = cluster.layout
    relay = Relay(layout.ports["object", 0])
    builder = RingBuilder.load(str(layout.etc / "object.builder"))
    for device in builder.devs:
        if device["port"] == relay.behind:
            device["port"] = relay.port
    builder.get_ring().save(str(layout.etc / "object.ring.gz"))
    cluster.start()
    client, body = Client(cluster.auth_url), SENT * size
    client.put("c")
    for name in ("o", "p", "q"):
        client.put("c", name, body=body)
        assert {client.get("c", name) for _ in range(6)} == {body}
    assert relay.changed >= 3
    stored = [path for path in layout.srv.rglob("*.data")]
    assert len(stored) == 6 and all(path.read_bytes() == body for path in stored)
