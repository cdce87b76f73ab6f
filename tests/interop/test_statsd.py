"""What storage servers and gateways send to StatsD: the same metrics from either make for the same requests. Daemons:
test_statsd_daemons.py.
"""

import http.client
import re
import shutil
import time
from collections import Counter

import pytest
from swift.common.ring import Ring

from harness import disk
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import ROLES, Layout
from harness.memcached import Memcached
from harness.signing import LATER, form, sign, signed_fields
from harness.statsd import Listener, ask
from harness.waiting import until
from harness.wire import begin_upload


class Servers:
    """The same storage servers in both makes, each telling a listener of its own. Every metric is sent: none is left to chance."""

    def __init__(self, root, ours):
        self.sides = []
        for name, kind in (("theirs", "openstack"), ("ours", ours)):
            listeners = {role: Listener() for role in ROLES}
            overrides = {role: {"DEFAULT": {**listener.options, "log_statsd_sample_rate_factor": 100}} for role, listener in listeners.items()}
            cluster = Cluster(Layout(root / name, overrides=overrides).write(), kind)
            for role in ROLES:
                cluster.start_service(role)
            self.sides.append((cluster, listeners))

    def stop(self):
        for cluster, listeners in self.sides:
            cluster.stop()
            for listener in listeners.values():
                listener.stop()

    def ask(self, role, *request):
        """Status and metrics of one request, from each make. Those that differ are listened to longer: some come after the answer."""
        statuses = [ask(cluster.layout.ports[role, 0], *request) for cluster, _ in self.sides]
        counts, end = [Counter(), Counter()], time.monotonic() + 5
        while True:
            for (_, listeners), count in zip(self.sides, counts):
                count.update({(name, kind): len(values) for (name, kind, _), values in listeners[role].metrics(0.1).items()})
            if counts[0] == counts[1] or time.monotonic() > end:
                return [(status, sorted(count.items())) for status, count in zip(statuses, counts)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory, ours):
    servers = Servers(tmp_path_factory.mktemp("servers"), ours)
    yield servers
    servers.stop()


ACCOUNT, CONTAINER, OBJECT = "/sdb1/1/a", "/sdb1/1/a/c", "/sdb1/1/a/c/o"
EARLY, LATE = ({"X-Timestamp": f"{seconds}.00000"} for seconds in (1600000000, 1700000000))
ROW = {**LATE, "X-Put-Timestamp": "1.0", "X-Delete-Timestamp": "0", "X-Object-Count": "0", "X-Bytes-Used": "0"}
NEW = {**LATE, "X-Size": "1", "X-Content-Type": "t", "X-Etag": "e"}
TYPED = {**LATE, "Content-Type": "t"}
NOBODY = {"X-Container-Partition": "1", "X-Container-Host": "127.0.0.1:1", "X-Container-Device": "sdb1"}


def at(second, headers):
    return {**headers, "X-Timestamp": f"{1700000000 + second}.00000"}


REQUESTS = {
    "account": [
        ("PUT", ACCOUNT, LATE), ("PUT", ACCOUNT, LATE), ("PUT", ACCOUNT, {}), ("PUT", ACCOUNT, EARLY), ("PUT", "/gone/1/a", LATE),
        ("PUT", f"{ACCOUNT}/c", ROW), ("PUT", "/sdb1/1/x/c", ROW), ("GET", ACCOUNT), ("GET", f"{ACCOUNT}?limit=100000000"), ("GET", "/sdb1/1/x"),
        ("GET", "/gone/1/a"), ("HEAD", ACCOUNT), ("HEAD", "/sdb1/1/x"), ("HEAD", "/gone/1/a"), ("POST", ACCOUNT, LATE),
        ("POST", ACCOUNT, {}), ("POST", "/sdb1/1/x", LATE), ("REPLICATE", f"/sdb1/1/{'a' * 32}", {}, b'["sync"]'), ("BREW", ACCOUNT), ("OPTIONS", ACCOUNT),
        ("DELETE", ACCOUNT, {}), ("DELETE", ACCOUNT, at(9, {})), ("DELETE", ACCOUNT, at(9, {})), ("PUT", ACCOUNT, at(10, {})),
    ],
    "container": [
        ("PUT", CONTAINER, LATE), ("PUT", CONTAINER, LATE), ("PUT", CONTAINER, {}), ("PUT", CONTAINER, EARLY), ("PUT", "/gone/1/a/c", LATE),
        ("PUT", CONTAINER, {**LATE, "X-Backend-Storage-Policy-Index": "1"}), ("PUT", CONTAINER, {**LATE, "X-Backend-Storage-Policy-Index": "9"}),
        ("PUT", f"{CONTAINER}/o", NEW), ("PUT", "/sdb1/1/a/x/o", NEW), ("PUT", "/gone/1/a/c/o", NEW), ("GET", CONTAINER), ("GET", "/sdb1/1/a/x"),
        ("GET", CONTAINER, {"X-Backend-Record-Type": "shard"}), ("GET", CONTAINER, {"X-Backend-Record-Type": "auto"}), ("GET", f"{CONTAINER}?limit=1000000"),
        ("GET", "/gone/1/a/c"), ("HEAD", CONTAINER), ("HEAD", "/gone/1/a/c"), ("POST", CONTAINER, LATE), ("POST", CONTAINER, {}), ("POST", "/sdb1/1/a/x", LATE),
        ("POST", CONTAINER, {**LATE, "X-Container-Sync-To": "x:/"}), ("UPDATE", CONTAINER, LATE, b"[]"), ("UPDATE", CONTAINER, LATE, b"x"),
        ("REPLICATE", f"/sdb1/1/{'a' * 32}", {}, b'["sync"]'), ("BREW", CONTAINER), ("OPTIONS", CONTAINER), ("DELETE", CONTAINER, LATE),
        ("DELETE", f"{CONTAINER}/o", at(5, {})), ("DELETE", f"{CONTAINER}/o", {}), ("DELETE", CONTAINER, at(9, {})), ("DELETE", CONTAINER, at(9, {})),
    ],
    "object": [
        ("PUT", OBJECT, TYPED, b"x" * 2000), ("PUT", OBJECT, at(1, TYPED), b"x" * 200000), ("PUT", OBJECT, at(2, TYPED)), ("PUT", OBJECT, {"Content-Type": "t"}, b"x"),
        ("PUT", OBJECT, {**TYPED, **EARLY}, b"x"), ("PUT", OBJECT, {**at(3, TYPED), "ETag": "0" * 32}, b"x"), ("PUT", "/gone/1/a/c/o", TYPED, b"x"),
        ("PUT", OBJECT, {**at(3, TYPED), "If-None-Match": "*"}, b"x"), ("PUT", OBJECT, {**at(3, TYPED), "X-Delete-At": "1"}, b"x"),
        ("PUT", OBJECT, {**at(4, TYPED), **NOBODY}, b"x"), ("GET", OBJECT), ("GET", "/sdb1/1/a/c/x"), ("GET", "/gone/1/a/c/o"), ("GET", OBJECT, {"Range": "bytes=1000000-"}),
        ("GET", OBJECT, {"If-Match": "x"}), ("GET", OBJECT, {"If-None-Match": "*"}), ("GET", OBJECT, {"X-Backend-Storage-Policy-Index": "9"}), ("HEAD", OBJECT),
        ("HEAD", "/sdb1/1/a/c/x"), ("HEAD", "/gone/1/a/c/o"), ("POST", OBJECT, at(5, {})), ("POST", OBJECT, {}), ("POST", "/sdb1/1/a/c/x", LATE), ("POST", OBJECT, LATE),
        ("REPLICATE", "/sdb1/1"), ("REPLICATE", "/sdb1/1/abc-def"), ("REPLICATE", "/gone/1"), ("BREW", OBJECT), ("OPTIONS", OBJECT), ("DELETE", OBJECT, LATE),
        ("DELETE", OBJECT, {**at(6, {}), "X-If-Delete-At": "5"}), ("DELETE", OBJECT, {**at(7, {}), **NOBODY}), ("DELETE", OBJECT, at(7, {})), ("DELETE", OBJECT, {}),
        ("DELETE", "/gone/1/a/c/o", LATE),
    ],
}


@pytest.mark.parametrize("role", REQUESTS)
def test_a_server(servers, role):
    wrong = []
    for request in REQUESTS[role]:
        theirs, here = servers.ask(role, *request)
        if theirs[1] != here[1]:  # statuses are others' to compare
            wrong.append(f"{request}\n    OpenStack {theirs}\n    here      {here}")
    assert not wrong, "\n".join(wrong)


def give_uploads_a_second(cluster):
    """From now on: what other tests store may take longer on a busy machine."""
    cluster.layout.overrides["object"]["app:object-server"] = {"max_upload_time": 1}
    cluster.layout.write()
    cluster.stop_service("object")
    cluster.start_service("object")


def test_objects_that_go_to_quarantine_and_bodies_that_take_too_long(servers):
    path, found = "/sdb1/7/a/c/spoiled", []
    expected = {f"object-server.{name}" for name in ("quarantines", "PUT.timeouts", "PUT.timing", "GET.timing")}
    for cluster, listeners in servers.sides:
        port = cluster.layout.ports["object", 0]
        assert ask(port, "PUT", path, TYPED, b"hello") == 201
        (file,) = disk.find_object(cluster.srv, "/a/c/spoiled")
        with open(file, "ab") as end:
            end.write(b"more")
        give_uploads_a_second(cluster)
        listeners["object"].metrics()
        assert ask(port, "GET", path) == 404
        slow = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        slow.putrequest("PUT", "/sdb1/7/a/c/slow")
        for name, value in {**TYPED, "Content-Length": "300000"}.items():
            slow.putheader(name, value)
        slow.endheaders(b"x" * 100000)
        time.sleep(1.5)
        try:
            slow.send(b"x" * 100000)
            time.sleep(0.2)
            slow.send(b"x" * 100000)
            assert slow.getresponse().status == 408
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was answered before it had all
        slow.close()
        until(lambda: all(listeners["object"].heard(name) for name in expected), what=f"{expected}")
        found.append({name for name, _, _ in listeners["object"].metrics()})
    assert found[0] == found[1]


def test_prefixes_shares_and_addresses(tmp_path, ours):
    """The prefix stands in front of all names; a factor multiplies the share that each metric has; a host may have an IPv6 address."""
    found = []
    for name, kind in (("theirs", "openstack"), ("ours", ours)):
        listener = Listener("::1")
        options = {**listener.options, "log_statsd_metric_prefix": "here.there", "log_statsd_sample_rate_factor": 0.5}
        cluster = Cluster(Layout(tmp_path / name, overrides={"object": {"DEFAULT": options}}).write(), kind)
        try:
            cluster.start_service("object")
            port = cluster.layout.ports["object", 0]
            for _ in range(60):
                ask(port, "HEAD", OBJECT)
                ask(port, "GET", OBJECT)
            found.append({name: (kind, share, 5 < len(values) < 50) for (name, kind, share), values in listener.metrics().items()})
        finally:
            cluster.stop()
            listener.stop()
    assert found[0] == found[1] == {"here.there.object-server.HEAD.timing": ("ms", "0.4", True),
                                    "here.there.object-server.GET.timing": ("ms", "0.5", True)}


# The access log's are compared in tests/api/test_metrics.py.
REQUEST = re.compile(r"proxy-server\.(account|container|object|UNKNOWN)\.(policy\.\d\.)?[A-Z_]+\.\d{3}\..*")
DIGESTS = ("sha1", "sha256", "sha512")
NOTICED = {"object.client_timeouts", "object.client_disconnects"}


class Gateway:
    """A gateway of one make over our servers; it sends every metric, for none is left to chance."""

    def __init__(self, root, kind, servers, client_timeout):
        self.listener, self.memcached = Listener(), Memcached().start()
        signed = {"allowed_digests": " ".join(DIGESTS)}
        proxy = {"DEFAULT": {**self.listener.options, "log_statsd_sample_rate_factor": 1000}, "filter:tempurl": signed, "filter:formpost": signed,
                 "app:proxy-server": {"client_timeout": client_timeout, "error_suppression_limit": 1}, "filter:ratelimit": {"account_ratelimit": 50}}
        self.layout = Layout(root, devices=9, memcached_port=self.memcached.port, overrides={"proxy": proxy}).write()
        self.cluster = Cluster(self.layout, {**dict.fromkeys(ROLES, servers), "proxy": kind}).start()
        self.listener.metrics()

    def stop(self):
        self.cluster.stop()
        self.memcached.stop()
        self.listener.stop()

    def client(self, user="test:tester"):
        return Client(self.cluster.auth_url, user=user)

    def sent(self):
        """Names and kinds; of what a cache did not have, not with which status it was found: OpenStack's invents accounts."""
        found = {(re.sub(r"(\.cache\.\w+)\.\d{3}$", r"\1.STATUS", name), kind) for name, kind, _ in self.listener.metrics()}
        return {pair for pair in found if not REQUEST.fullmatch(pair[0])}

    def half_a_body(self, stall):
        """A body that begins and then goes on no more, or whose sender has gone; until it was noticed."""
        def hear():
            until(lambda: any(self.listener.heard(name) for name in NOTICED), what=f"one of {NOTICED}")

        with begin_upload(self.cluster.port, "/v1/AUTH_test/c/half", {"X-Auth-Token": self.client().token}, 1000000, b"abc"):
            if stall:
                hear()
        hear()


def objects_and_containers(side):
    client = side.client()
    client.put("c")
    for _ in range(2):
        client.put("c", "o", body=b"hello")
        client.get("c", "o")
        client.do("POST", "c", "o")
    client.do("HEAD", "nowhere")
    client.do("DELETE", "c", "o")


def signatures(side):
    client = side.client()
    client.do("POST", headers={"X-Account-Meta-Temp-URL-Key": "akey"})
    client.put("c")
    client.put("c", "o", body=b"hello")
    client.token, target, below = None, "/v1/AUTH_test/c/o", "/v1/AUTH_test/c/pre-"
    for digest in DIGESTS:
        for key in ("akey", "other"):
            signature = sign(key, "GET", LATER, target, digest=digest)
            client.send("GET", f"{target}?temp_url_sig={signature}&temp_url_expires={LATER}")
        body = form(signed_fields(below, "akey", digest=digest), [("a.txt", b"hello", "Content-Type: text/plain")])
        assert client.send("POST", below, body, {"Content-Type": "multipart/form-data; boundary=BOUNDARY"}).status == 201


def refusals(side):
    client = side.client()
    client.send("GET", "/v1/AUTH_test2")
    client.token = "rubbish"
    client.do("GET")
    client.token = None
    client.do("GET")
    client.send("GET", "/auth/v1.0", headers={"X-Auth-User": "test:tester", "X-Auth-Key": "wrong"})
    for nothing in ("/v1", "/v1//c"):
        client.send("GET", nothing)


def nodes_that_fail(side):
    client = side.client()
    client.put("c")
    client.put("c", "o", body=b"hello")
    _, nodes = Ring(str(side.layout.etc), ring_name="object").get_nodes("AUTH_test", "c", "o")
    for node in nodes:
        shutil.rmtree(side.layout.srv / node["device"])
    for _ in range(3):
        client.do("GET", "c", "o")
    side.cluster.stop_service("object")
    for _ in range(4):
        client.do("GET", "c", "o")


GATEWAY = {
    "objects and containers": (objects_and_containers, {"account.info.cache.hit", "container.info.infocache.hit", "memcached.get.timing", "memcached.incr.timing"}),
    "signatures": (signatures, {f"{feature}.digests.{digest}" for feature in ("tempurl", "formpost") for digest in DIGESTS}),
    "refusals": (refusals, {"errors"}),
    "clients that leave": (lambda side: (objects_and_containers(side), side.half_a_body(stall=False)), {"object.client_disconnects"}),
    "clients that stall": (lambda side: (objects_and_containers(side), side.half_a_body(stall=True)), {"object.client_timeouts"}),
    "nodes that fail": (nodes_that_fail, {"object.handoff_count", "object.handoff_all_count", "error_limiter.forced_limit",
                                          "error_limiter.incremented_limit", "error_limiter.is_limited"}),
}


@pytest.mark.parametrize("situation", GATEWAY)
def test_a_gateway(tmp_path, ours, situation):
    act, expected = GATEWAY[situation]
    sent = []
    for name, kind in (("theirs", "openstack"), ("ours", ours)):
        # Clients of the others may be late, on a busy machine, without its being noticed.
        side = Gateway(tmp_path / name, kind, ours, client_timeout=2 if situation == "clients that stall" else 60)
        try:
            act(side)
            client = side.client()
            client.do("GET", "c")
            client.close()  # it would be hung up on, were it left alone for long
            time.sleep(1.2)  # what our process knows by itself it knows for a second
            client.do("GET", "c")
            until(lambda side=side: all(side.listener.heard(f"proxy-server.{name}") for name in expected - NOTICED), what=f"{expected}")
            sent.append(side.sent())
        finally:
            side.stop()
    if "object.client_timeouts" in expected:
        # The server under OpenStack's gateway gives up at the same age: the first one counts the reason.
        sent[0] = {(name.replace("client_disconnects", "client_timeouts"), kind) for name, kind in sent[0]}
    missing, foreign = sent[0] - sent[1], sent[1] - sent[0]
    assert {f"proxy-server.{name}" for name in expected} <= {name for name, _ in sent[0]}, sorted(sent[0])
    assert not missing and not foreign, f"missing: {sorted(missing)}\nforeign: {sorted(foreign)}"
