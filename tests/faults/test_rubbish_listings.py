"""Container servers whose listings are rubbish: what a gateway reads of them has a bound, however many ask at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.client import Client
from harness.cluster import Cluster, healthy
from harness.layout import Layout
from harness.memory import Watch

ASKING = 6
MOST = 640 << 20  # the room of all listings, and as much again for those that have been read
DESCRIPTION = {"X-Container-Object-Count": "1", "X-Container-Bytes-Used": "1", "X-Backend-Storage-Policy-Index": "0",
               "X-Timestamp": "1700000000.00000", "X-Put-Timestamp": "1700000000.00000", "X-Backend-Timestamp": "1700000000.00000"}


class Rubbish(BaseHTTPRequestHandler):
    """Answers each GET with `piece`, so many times."""

    protocol_version = "HTTP/1.1"
    piece, count = b"", 0

    def describe(self, status, length):
        self.send_response(status)
        for name, value in {**DESCRIPTION, "Content-Type": "application/json; charset=utf-8", "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_HEAD(self):
        self.describe(204, 0)

    def do_GET(self):
        self.describe(200, len(self.piece) * self.count)
        try:
            for _ in range(self.count):
                self.wfile.write(self.piece)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def rubbish(tmp_path):
    """A cluster whose container servers are replaced by one that a test tells what to send."""
    cluster = Cluster(Layout(tmp_path / "c").write(), "martlet").start()
    Client(cluster.auth_url).put("c")
    cluster.stop_service("container")
    server = ThreadingHTTPServer(("127.0.0.1", cluster.layout.ports["container", 0]), Rubbish)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield cluster
    server.shutdown()
    server.server_close()
    cluster.stop()


@pytest.mark.parametrize("piece", [b'{"name": "x"},' * 75_000, b"{}," * 350_000, b" " * (1 << 20)], ids=["rows", "empty", "blank"])
def test_rubbish_listings_take_bounded_memory(rubbish, piece):
    Rubbish.piece, Rubbish.count = piece, 120
    gateway = rubbish.services["proxy", 0]

    def ask(query):
        return Client(rubbish.auth_url, timeout=120).do("GET", "c", query=query).status

    with Watch(gateway) as watch, ThreadPoolExecutor(ASKING) as askers:
        statuses = list(askers.map(ask, ["", "?format=json", "?format=xml"] * (ASKING // 3)))
        assert healthy(rubbish.port)
    assert watch.growth() < MOST, f"{watch.growth() >> 20} MiB"
    # Blanks are JSON as far as it is read, so that who asks for JSON gets them.
    assert set(statuses) <= {503, 500} | ({200} if piece.isspace() else set()), statuses
    assert gateway.alive()
