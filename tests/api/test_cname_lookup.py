"""Hosts that are aliases of the cluster's in DNS, as at OpenStack's: both ask the same name server."""

import hashlib
import json
import socket

import dns.rcode
import pytest

from harness import filters
from harness.compare import Ask, Pair, Story
from harness.memcached import Memcached
from harness.nameserver import Nameserver
from harness.systems import make

ALIASES = {"photos.test-site.org": "site.AUTH-test.example.com", "account.test-site.org": "auth-test.example.com", "two.test-site.org": "photos.test-site.org",
           "three.test-site.org": "two.test-site.org", "self.test-site.org": "self.test-site.org", "none.test-site.org": None,
           "failing.test-site.org": dns.rcode.SERVFAIL, "upper.test-site.org": "site.AUTH-test.EXAMPLE.COM", "root.test-site.org": "example.com",
           "strange.test-site.org": "x.y.z.example.com"}
HOSTS = [*ALIASES, "unknown.test-site.org", "PHOTOS.test-site.org", "photos.test-site.org:8080", "photos.test-site.org:", "photos.test-site.org.",
         "none.test-site.org:8080", "example.com", "site.auth-test.example.com", "notexample.com", "127.0.0.1", "127.0.0.1:80", "localhost",
         "a..b", "x" * 64 + ".org", "-", "a b.org", "xn--bcher-kva.org", "%41.org"]
PIPELINE = filters.PIPELINE.replace("domain_remap", "cname_lookup domain_remap")


@pytest.fixture(scope="module", params=["1", "3"])
def aliased(request, tmp_path_factory):
    """A pair that follows so many aliases, and the name server."""
    kind = request.config.getoption("--sut").split(",")[0]
    started = []
    sides = []
    try:
        server = Nameserver(ALIASES).start()
        started.append(server)
        server.depth, server.caches = request.param, []
        options = {"storage_domain": "example.com, .martlet.test", "lookup_depth": request.param, "nameservers": server.address}
        for make_of in ("openstack", kind):
            memcached = Memcached().start()
            started.append(memcached)
            server.caches.append(memcached.port)
            system = make(make_of, tmp_path_factory.mktemp(f"cname-{make_of}"), memcached_port=memcached.port,
                          overrides=filters.overrides(pipeline=PIPELINE, cname_lookup=options))
            started.append(system)
            sides.append(system.start())
        yield Pair(*sides), server
    finally:
        for one in reversed(started):
            one.stop()


def output(port, key):
    """A memcached's answer about a key."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"get {key}\r\nquit\r\n".encode())
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_hosts_stand_for_others(aliased):
    pair, _ = aliased
    pair.check(Story("site", [
        Ask("POST", "{c}", {"X-Container-Read": ".r:*,.rlistings", "X-Container-Meta-Web-Index": "index.html"}),
        Ask("PUT", "{c}/index.html", {"Content-Length": "4"}, b"home", level="status"),
        Ask("PUT", "{c}/dir/index.html", {"Content-Length": "5"}, b"below", level="status"),
        *[Ask(method, target, {"Host": host}, user=None) for host in HOSTS for method, target in (("GET", "/"), ("GET", "/dir"), ("HEAD", "/index.html"), ("GET", "/healthcheck"))
          if "healthcheck" not in target or "photos" in host],
        Ask("GET", "/", {"Host": "account.test-site.org"}), Ask("GET", "/site", {"Host": "account.test-site.org"}),
        Ask("PUT", "/new", {"Host": "photos.test-site.org", "Content-Length": "1"}, b"x", level="status"),
        Ask("OPTIONS", "/new", {"Host": "none.test-site.org", "Origin": "http://x"}, user=None),
        Ask("GET", "{c}"),
    ]))


def test_info_tells_the_depth(aliased):
    pair, _ = aliased
    theirs, ours = [json.loads(side.ask(Ask("GET", "/info", user=None)).body)["cname_lookup"] for side in (pair.theirs, pair.ours)]
    assert theirs == ours


def test_answers_are_remembered(aliased):
    pair, server = aliased
    asks = [Ask("GET", "/info", {"Host": host}, user=None) for host in ("photos.test-site.org", "none.test-site.org")]
    first = [pair.ours.ask(ask).status for ask in asks]
    server.asked.clear()
    assert [pair.ours.ask(ask).status for ask in asks] == first
    assert server.asked == []
    # What one make leaves in memcached the other one finds there.
    key = hashlib.md5(b"cname-photos.test-site.org").hexdigest()
    if server.depth == "1":
        theirs, ours = [output(port, key) for port in server.caches]
        assert theirs == ours and b"site.AUTH-test.example.com" in ours
