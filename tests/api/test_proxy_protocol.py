"""`require_proxy_protocol`: what a balancer says before the first request is believed as OpenStack believes it."""

import re
import socket

import pytest

from harness import cluster as clusters
from harness.memcached import Memcached
from harness.systems import make
from harness.waiting import until
from harness.wire import exchange, message, read_reply

PREAMBLE = b"PROXY TCP4 192.0.2.1 192.0.2.9 1111 80\r\n"
HEALTH = message("GET", "/healthcheck")
LOGIN = message("GET", "/auth/v1.0", {"Host": "store.test", "X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
V2 = b"\r\n\r\n\0\r\nQUIT\n"


@pytest.fixture(scope="module", params=["openstack", "ours"])
def proxied(request, tmp_path_factory):
    """A cluster behind a balancer; OpenStack's proves the tests."""
    kind = "openstack" if request.param == "openstack" or request.config.getoption("--sut") == "openstack" else "separate"
    plain, layout = clusters.healthy, {}

    def healthy(port):
        return exchange(port, PREAMBLE + HEALTH).status == 200 if port == layout["port"] else plain(port)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "healthy", healthy)
        root = tmp_path_factory.mktemp(kind)
        memcached = Memcached().start()
        system = make(kind, root, memcached_port=memcached.port, overrides={"proxy": {"DEFAULT": {"require_proxy_protocol": "true"}}})
        layout["port"] = system.port
        system.make = request.param
        yield system.start()
        system.stop()
        memcached.stop()


@pytest.mark.parametrize("preamble, scheme, client", [
    (PREAMBLE, "http", "192.0.2.1"), (b"PROXY TCP4 192.0.2.2 192.0.2.9 1111 443\r\n", "https", "192.0.2.2"),
    (b"PROXY TCP6 2001:db8::1 ::1 1111 8443\r\n", "http", "2001:db8::1"), (b"PROXY UNKNOWN\r\n", "http", "127.0.0.1"),
    (b"PROXY UNKNOWN a b c d\r\n", "http", "127.0.0.1"), (b"PROXY TCP4 192.0.2.3 192.0.2.9 1 2\n", "http", "192.0.2.3")])
def test_the_balancer_is_believed(proxied, preamble, scheme, client):
    reply = exchange(proxied.port, preamble + LOGIN)
    assert (reply.status, reply["X-Storage-Url"]) == (200, f"{scheme}://store.test/v1/AUTH_test")
    log = proxied.root / "log/proxy-0.log"
    line = until(lambda: re.search(rf"^.*{reply['X-Trans-Id']}.*$", log.read_text(), re.MULTILINE))
    assert f" {client} {client} " in line.group(0)


@pytest.mark.parametrize("preamble", [
    b"", b"\r\n", b"PROXY\r\n", b"PROXY TCP4 192.0.2.1\r\n", b"PROXY TCP4 192.0.2.1 192.0.2.9 1 2 3\r\n", b"proxy TCP4 192.0.2.1 192.0.2.9 1 2\r\n",
    b"PROXY  TCP4 192.0.2.1 192.0.2.9 1 2\r\n", b"PROXY UDP4 192.0.2.1 192.0.2.9 1 2\r\n", b"PROXY TCP4 " + b"1" * 300 + b"\r\n"])
def test_without_a_preamble_nothing_is_served(proxied, preamble):
    assert exchange(proxied.port, preamble + LOGIN).status == 400


def test_one_preamble_for_all_requests_of_a_connection(proxied):
    with socket.create_connection(("127.0.0.1", proxied.port), timeout=60) as connection:
        for part in (PREAMBLE[:7], PREAMBLE[7:] + HEALTH[:9], HEALTH[9:]):
            connection.sendall(part)
        assert read_reply(connection).status == 200
    with socket.create_connection(("127.0.0.1", proxied.port), timeout=60) as connection:
        connection.sendall(PREAMBLE)
        for _ in range(3):
            connection.sendall(LOGIN)
            assert read_reply(connection).status == 200


def test_version_two(proxied):
    """OpenStack knows version 1 only."""
    body = bytes([192, 0, 2, 77, 192, 0, 2, 9, 0x11, 0x11, 0x01, 0xBB]) + b"\4\0\1x"
    reply = exchange(proxied.port, V2 + bytes([0x21, 0x11, 0, len(body)]) + body + LOGIN)
    if proxied.make == "openstack":
        assert reply.status == 400
    else:
        assert (reply.status, reply["X-Storage-Url"]) == (200, "https://store.test/v1/AUTH_test")
