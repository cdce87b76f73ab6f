"""Rate limits, read-only accounts and container sync, each on a pair of clusters with these options."""

import hashlib
import hmac
import json
import re
import time

import pytest

from harness import filters
from harness.compare import Ask, Pair, Side, Story, shape
from harness.memcached import Memcached
from harness.systems import make

REALMS = "[US]\nkey = 9ff3\nkey2 = 1a0a\ncluster_dfw1 = http://dfw1.host/v1/\ncluster_B = http://b/v1/\n[empty]\n"
PATIENT = {"account_ratelimit": "2", "max_sleep_time_seconds": "30", "container_ratelimit_0": "2", "container_listing_ratelimit_0": "2"}


@pytest.fixture
def configured(request, tmp_path_factory):
    """A factory of pairs whose filters have the given options."""
    started = []

    def factory(**options):
        kind = request.config.getoption("--sut").split(",")[0]
        sides = []
        for make_of in ("openstack", kind):
            memcached = Memcached().start()
            system = make(make_of, tmp_path_factory.mktemp(f"configured-{make_of}"), memcached_port=memcached.port,
                          overrides=filters.overrides(**options))
            started.extend([memcached, system])
            (system.etc / "container-sync-realms.conf").write_text(REALMS)
            sides.append(system.start())
        return Pair(*sides)

    yield factory
    for one in reversed(started):
        one.stop()


def info(pair, section):
    return [json.loads(side.ask(Ask("GET", "/info", user=None)).body).get(section) for side in (pair.theirs, pair.ours)]


def test_rate_limits(configured):
    pair = configured(ratelimit={"account_ratelimit": "0.001", "max_sleep_time_seconds": "0.5", "container_ratelimit_0": "0.001",
                           "container_listing_ratelimit_0": "0.001", "container_listing_ratelimit_10": "0.0005",
                           "account_blacklist": "AUTH_test2, x", "account_whitelist": "AUTH_test5"})
    theirs, ours = info(pair, "ratelimit")
    assert theirs == ours
    pair.patient = False
    pair.check(Story("limited", [
        Ask("PUT", "{c}"), Ask("DELETE", "{c}"), Ask("POST", "{c}"), Ask("HEAD", "{c}"), Ask("GET", "{c}"), Ask("GET", "{c}"),
        Ask("PUT", "{c}/o", {"Content-Length": "0"}, level="status"), Ask("PUT", "{c}/o", {"Content-Length": "0"}), Ask("POST", "{c}/o"),
        Ask("DELETE", "{c}/o"), Ask("GET", "{c}/o", level="status"), Ask("HEAD", "{a}"), Ask("PUT", "/v1/AUTH_test2/c"), Ask("HEAD", "/v1/AUTH_test2/c"),
        *[Ask("PUT", "/v1/AUTH_test5/c", user="admin:admin", level="status") for _ in range(3)]]))


def test_turns_are_waited_for(configured):
    pair = configured(ratelimit=PATIENT)
    for side in (pair.theirs, pair.ours):
        took = []
        while not took or min(took) >= 6 and len(took) < 5:  # the machine may be busy with something else
            began = time.monotonic()
            assert [side.ask(Ask("PUT", f"{{a}}/c{len(took)}{number}")).status for number in range(4)] == [201] * 4
            took.append(time.monotonic() - began)
        # A turn that a busy machine did not take in time is a credit of later ones: only the first four surely wait.
        assert took[0] > 1.3 and min(took) < 6


def test_read_only(configured):
    pair = configured(read_only={"read_only": "true"})
    theirs, ours = info(pair, "read_only")
    assert theirs == ours == {}
    pair.check(Story("read only", [Ask(method, target) for target in ("{a}", "{c}", "{c}/o", "/v1", "/auth/v1.0")
                                  for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "COPY")], container=False))


def test_deletes_may_be_allowed(configured):
    pair = configured(read_only={"read_only": "true", "allow_deletes": "true"})
    pair.check(Story("read only", [Ask(method, target) for target in ("{c}", "{c}/o") for method in ("PUT", "DELETE")],
                    container=False))


def signed(method, path, timestamp="0", key="9ff3", user="abc", realm="US"):
    text = f"{method}\n{path}\n{timestamp}\nnonce\n{user}"
    headers = {"X-Container-Sync-Auth": f"{realm} nonce {hmac.new(key.encode(), text.encode(), hashlib.sha1).hexdigest()}"}
    return headers if timestamp == "0" else {**headers, "X-Timestamp": timestamp}


def test_container_sync(configured):
    pair = configured(container_sync={"allow_full_urls": "false", "current": "//us/dfw1"})
    theirs, ours = info(pair, "container_sync")
    assert theirs == ours
    path, early, late = "/v1/AUTH_test/synced", "1455221706.72699_0000000000000001", "1455221709.00000"
    pair.check(Story("synced", [
        *[Ask(method, "{c}", {"X-Container-Sync-To": to}) for method in ("POST", "PUT")
          for to in ("http://host/v1/a/c", "//uk/x/a/c", "//us/x/a/c", "//us/x/a", "//empty/x/a/c", "//us/dfw1/a/c", "")],
        Ask("POST", "{c}", {"X-Container-Sync-To": "//us/b/a/c", "X-Container-Sync-Key": "abc"}), Ask("HEAD", "{c}"),
        *[Ask(method, "{c}/o", {"X-Container-Sync-Auth": auth}) for auth in ("a", "a b c", "US b c", "empty b c", "a b c d")
          for method in ("GET", "HEAD")],
        Ask("PUT", "{c}/o%20x", signed("PUT", path + "/o%20x", early), b"xy", user=None),
        Ask("PUT", "{c}/o%20x", signed("PUT", path + "/o x", early), b"xy", user=None),
        Ask("PUT", "{c}/o%20x", signed("PUT", path + "/o%20x", early, key="bad"), b"xy", user=None),
        Ask("PUT", "{c}/o%20x", signed("PUT", path + "/o%20x", early, user="bad"), b"xy", user=None),
        Ask("GET", "{c}/o%20x"),
        Ask("DELETE", "{c}/o%20x", signed("DELETE", path + "/o%20x", "1455221700.00000"), user=None), Ask("GET", "{c}/o%20x"),
        Ask("PUT", "{c}/o%20x", signed("PUT", path + "/o%20x", late, key="1a0a"), b"later", user=None), Ask("GET", "{c}/o%20x"),
        Ask("DELETE", "{c}/o%20x", signed("DELETE", path + "/o%20x", "1455221710.00000", realm="us"), user=None), Ask("GET", "{c}/o%20x"),
        Ask("PUT", "{c}/o", signed("PUT", path + "/o", "garbage"), b"xy", user=None, level="status"),
        Ask("GET", "{c}", signed("GET", path), user=None, level="status"), Ask("GET", "{a}", signed("GET", "/v1/AUTH_test"), user=None),
        Ask("GET", "{a}/nosuch", signed("GET", "/v1/AUTH_test/nosuch"), user=None),
    ]))



ENDPOINTS = ["", "AUTH_test", "AUTH_test/", "AUTH_test/c", "AUTH_test/c/", "AUTH_test/c/o%20%C3%BC", "AUTH_test/c/o/p", "v1/AUTH_test/c/o",
             "v2/AUTH_test/c/o", "v2/AUTH_test/c", "v2/AUTH_test", "v3/AUTH_test", "v1.0/AUTH_test", "v1", "v2", "v1/", "AUTH_test//o",
             "AUTH_test/nosuch/o", "v2/AUTH_test/nosuch/o", "/c", "v5", "v1/v2/c", "AUTH_te%20st/c?x=y", "v-1/a", "vx/a", "v/a"]


def test_endpoints(request, tmp_path_factory):
    """The same rings on the same addresses, asked through a proxy of each make."""
    kind = request.config.getoption("--sut").split(",")[0]
    configured = filters.overrides(pipeline="list_endpoints " + filters.PIPELINE)
    answers = []
    for make_of in ("openstack", kind):
        memcached = Memcached().start()
        system = make(make_of, tmp_path_factory.mktemp(f"endpoints-{make_of}"), memcached_port=memcached.port, overrides=configured)
        try:
            side = Side(system.start())
            side.ask(Ask("PUT", "{a}/c", {"X-Storage-Policy": "silver"}))
            asks = [Ask("GET", "/endpoints/" + path, user=None) for path in ENDPOINTS] + [Ask("GET", "/endpoints", user=None)]
            asks += [Ask(method, "/endpoints/AUTH_test/c", user=None) for method in ("HEAD", "PUT", "POST", "DELETE", "OPTIONS")]
            answers.append([(str(ask), without_ports(shape(side.ask(ask), ask))) for ask in asks])
        finally:
            system.stop()
            memcached.stop()
    theirs, ours = answers
    assert theirs == ours


def without_ports(answer):
    body = re.sub(r"ADDRESS|127\.0\.0\.1:\d+", "ADDRESS", answer["body"])
    headers = {name: value for name, value in answer["headers"].items() if name != "content-length"}
    return {**answer, "body": body, "headers": headers}


OPTIONS = {"deny_host_headers": "bad.host, other", "allow_open_expired": "true", "max_containers_per_account": "1",
           "max_containers_whitelist": "AUTH_test2"}


def test_options_of_the_proxy(request, tmp_path_factory):
    kind = request.config.getoption("--sut").split(",")[0]
    configured = filters.overrides()
    configured["proxy"]["app:proxy-server"] = OPTIONS
    sides, started = [], []
    try:
        for make_of in ("openstack", kind):
            memcached = Memcached().start()
            system = make(make_of, tmp_path_factory.mktemp(f"options-{make_of}"), memcached_port=memcached.port, overrides=configured)
            started += [memcached, system]
            sides.append(system.start())
        pair = Pair(*sides)
        theirs, ours = info(pair, "swift")
        assert theirs["allow_open_expired"] is ours["allow_open_expired"] is True
        pair.check(Story("options", [
            *[Ask("GET", target, {"Host": host}, level="status" if target == "/info" else "all")
              for host in ("bad.host", "bad.host:80", "BAD.host", "x.bad.host", "other", "good") for target in ("{c}", "/info", "/healthcheck")],
            Ask("PUT", "{a}/second"), Ask("PUT", "{c}"), Ask("PUT", "/v1/AUTH_test2/d", user="admin:admin"),
            Ask("PUT", "/v1/AUTH_test2/e", user="admin:admin"),
            Ask("PUT", "{c}/x", {"X-Delete-After": "1"}, b"abc")]))
        time.sleep(2.2)
        pair.check(Story("options", [
            *[Ask(method, "{c}/x", headers, without=("x-delete-at",)) for method in ("GET", "HEAD", "POST")
              for headers in ({}, {"X-Open-Expired": "true"}, {"X-Open-Expired": "no"}, {"X-Backend-Open-Expired": "true"})],
            Ask("POST", "{c}/x", {"X-Open-Expired": "true", "X-Remove-Delete-At": "x"}), Ask("GET", "{c}/x"), Ask("DELETE", "{c}/x")]))
    finally:
        for one in reversed(started):
            one.stop()
