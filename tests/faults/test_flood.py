"""Connections that do nothing and clients that crawl take nothing from those that work (`make flood` has the large numbers)."""

import contextlib
import socket
import time

from harness.client import Client
from harness.cluster import healthy
from harness.flood import Clients, connects, idle, message, ordinary, percentile, slow
from harness.layout import ROLES

SEATS = 32  # max_clients
CONNECTIONS = 1000  # max_connections
SECONDS = 4  # of the flood
LARGE = b"x" * 2**22  # more than sockets hold
CRAWLING = 150  # slow uploads, and as many slow downloads
PER_SLOW = 96 * 1024  # bytes of memory
SLACK = 16 * 2**20  # bytes that are not theirs


def start(make_system, kind):
    options = {"DEFAULT": {"max_clients": SEATS, "max_connections": CONNECTIONS}}
    return make_system(kind, overrides={role: options for role in ("proxy", *ROLES)}).start()


def test_ordinary_clients_do_not_notice(make_system):
    system = start(make_system, "up")
    client = Client(system.auth_url, timeout=120)
    client.put("flood")
    client.put("flood", "small", body=b"small")
    client.put("flood", "large", body=LARGE)
    large, small = client.path("flood", "large"), client.path("flood", "small")
    write = message("PUT", client.path("flood", "slow"), client.token, length=2**20, stay=True)
    read = message("GET", large, client.token, stay=True)
    requests = [
        ("healthcheck", message("GET", "/healthcheck", "")),
        ("get", message("GET", small, client.token)),
        ("put", message("PUT", client.path("flood", "other"), client.token, length=4) + b"body"),
    ]
    began = time.monotonic()
    with contextlib.ExitStack() as flood:
        for clients in [
            Clients(idle, system.port, CONNECTIONS + 500),
            Clients(slow, system.port, write, SEATS + 16),
            Clients(slow, system.port, read, SEATS + 16, receive_buffer=4096),
            Clients(connects, system.port, 100),
        ]:
            flood.enter_context(clients)
        with Clients(ordinary, system.port, requests, 20) as asked:
            time.sleep(SECONDS)
            answers = asked.finish()
    for name, seen in answers.items():
        assert {status for _, status in seen} == {201 if name == "put" else 200}, name
    assert Client(system.auth_url).get("flood", "small") == b"small"
    warnings = [line for line in system.log().splitlines() if "connections closed to make room" in line]
    lasted = time.monotonic() - began
    assert 1 <= len(warnings) <= 2 + lasted / 10, "one line for ten seconds"


def test_a_slow_client_takes_little_memory(make_system):
    system = make_system("up").start()
    client = Client(system.auth_url, timeout=120)
    client.put("slow")
    client.put("slow", "large", body=LARGE)
    write = message("PUT", client.path("slow", "object"), client.token, length=2**20, stay=True)
    read = message("GET", client.path("slow", "large"), client.token, stay=True)

    def crawl(count, seconds):
        """Memory beside so many of each: the median of some looks, as what is under way at first is freed."""
        with Clients(slow, system.port, write, count), Clients(slow, system.port, read, count, receive_buffer=4096):
            looks = []
            for _ in range(seconds * 10):
                time.sleep(0.1)
                looks.append(system.rss())
        return percentile(looks, 0.5)

    before = crawl(8, 1)  # threads, pools and caches are there
    each = (crawl(CRAWLING, 8) - before - SLACK) // (2 * CRAWLING)
    assert each < PER_SLOW, f"{each} bytes for each slow client"


def test_storage_servers_do_not_notice(make_system):
    system = start(make_system, "separate")
    client = Client(system.auth_url, timeout=120)
    client.put("flood")
    with contextlib.ExitStack() as flood:
        for port in system.layout.ports.values():
            flood.enter_context(Clients(idle, port, SEATS + 16))
        client.put("flood", "object", body=b"body")
        assert client.get("flood", "object") == b"body"
        for port in system.layout.ports.values():
            assert healthy(port, timeout=30), port


def test_a_slow_upload_goes_on_where_a_storage_server_waits_for_bytes(make_system):
    """The gateway sends on what came after a second, so that no server takes a slow client for one that has gone.

    It asks servers when it has a whole piece (64 KiB): a client that is slow before that costs them nothing."""
    system = make_system("separate", overrides={"object": {"app:object-server": {"client_timeout": 10}}}).start()
    client = Client(system.auth_url)
    client.put("slow")
    body, begun = b"x" * 200_000, 70_000
    head = message("PUT", client.path("slow", "object"), client.token, length=len(body))
    with socket.create_connection(("127.0.0.1", system.port), timeout=60) as upload:
        upload.sendall(head + body[:begun])
        for at in range(begun, begun + 30):  # half as long again as the storage server waits
            upload.sendall(body[at:at + 1])
            time.sleep(0.5)
        upload.sendall(body[begun + 30:])
        assert upload.recv(65536).split()[1] == b"201"
    assert client.get("slow", "object") == body
