"""Container and account quotas are set, shown and kept as OpenStack's."""

import pytest

from harness.compare import Ask, Story

RESELLER = "admin:admin"
BYTES, COUNT = "X-Container-Meta-Quota-Bytes", "X-Container-Meta-Quota-Count"
ACCOUNT = ["X-Account-Quota-Bytes", "X-Account-Quota-Count", "X-Account-Quota-Bytes-Policy-gold",
           "X-Account-Quota-Count-Policy-Silver", "X-Account-Meta-Quota-Bytes", "X-Account-Meta-Quota-Count",
           "X-Account-Quota-Bytes-Policy-nope", "X-Account-Sysmeta-Quota-Bytes", "X-Remove-Account-Quota-Bytes",
           "X-Remove-Account-Meta-Quota-Bytes"]
CHUNKED = {"Transfer-Encoding": "chunked"}


def quiet(method, target, headers=None, body=b"", **more):
    return Ask(method, target, headers or {}, body, level="status", **more)


def around(quota, off, *asks):
    """`asks` with an account quota in force, which is taken off at the end."""
    return [quiet("POST", "{a}", quota, user=RESELLER), *asks, quiet("POST", "{a}", {name: "" for name in off or quota}, user=RESELLER)]


PUTS = [Ask("PUT", "{c}/new", {}, b"12345678901"), Ask("PUT", "{c}/new", CHUNKED, b"b\r\n12345678901\r\n0\r\n\r\n"),
        Ask("PUT", "{c}/new", {}, b"12345678901", user=None), Ask("PUT", "{c}/new", {}, b"1", user="test:tester3"),
        Ask("PUT", "{c}/new", {}, b"12345678901", user=RESELLER), Ask("PUT", "{c}/new", {"Content-Length": "0"}),
        Ask("POST", "{c}/new", {"X-Object-Meta-A": "b"}), Ask("GET", "{c}/new", level="status"), Ask("PUT", "{c}/new"),
        Ask("PUT", "{c}", {}), Ask("DELETE", "{c}/new")]
# How full an account is depends on updates that OpenStack's daemons would make, so these name what they add.
WITH_LENGTH = [ask for ask in PUTS if ask.body and ask.headers is not CHUNKED]
STORIES = [
    Story("container quotas set", [
        Ask(method, "{c}", {name: value}) for name in (BYTES, COUNT) for method in ("PUT", "POST")
        for value in ("abc", "-1", "", "1.5", "10", b"\xd9\xa1", " 12 ", "0x1", "99999999999999999999", "1e3", "+1")]
        + [Ask("HEAD", "{c}"), Ask("POST", "{c}", {BYTES: "x", COUNT: "y"}), Ask("POST", "{c}/", {COUNT: "y"}, user=None)]),
    Story("container quotas bytes", [Ask("POST", "{c}", {BYTES: "10"}), *PUTS]),
    Story("container quotas count", [Ask("POST", "{c}", {COUNT: "0"}), *PUTS]),
    Story("container quotas both", [Ask("POST", "{c}", {COUNT: "5", BYTES: "11"}), *PUTS]),
    Story("container quotas missing", [Ask("PUT", "{a}/nosuch/o", {}, b"1")]),
    *[Story(f"account quotas set {name}", [
        *[Ask(method, "{a}", {name: value}, user=user) for user in ("test:tester", None, "test:tester3", RESELLER)
          for method in ("POST", "PUT") for value in ("abc", "9999999", "-1", "")],
        quiet("POST", "{a}", {name: "7777777"}, user=RESELLER), Ask("HEAD", "{a}"), Ask("HEAD", "{a}", user=RESELLER),
        Ask("PUT", "{c}/o", {name: "1"}, b"x"), Ask("POST", "{c}", {name: "1"}),
        quiet("POST", "{a}", {name: ""}, user=RESELLER), Ask("HEAD", "{a}")]) for name in ACCOUNT],
    *[Story(f"account quotas {name}", around({header: "0"}, None, *(PUTS if "count" in name or "other" in name else WITH_LENGTH))) for name, header in [
        ("bytes", "X-Account-Quota-Bytes"), ("count", "X-Account-Quota-Count"), ("of old", "X-Account-Meta-Quota-Bytes"),
        ("policy bytes", "X-Account-Quota-Bytes-Policy-Gold"), ("policy count", "X-Account-Quota-Count-Policy-gold"),
        ("other policy", "X-Account-Quota-Bytes-Policy-silver")]],
    Story("account quotas removed", [
        quiet("POST", "{a}", {"X-Account-Quota-Bytes": "1"}, user=RESELLER), Ask("POST", "{a}", {"X-Remove-Account-Quota-Bytes": "x"}),
        Ask("POST", "{a}", {"X-Remove-Account-Quota-Bytes": "x"}, user=RESELLER), Ask("HEAD", "{a}"), *PUTS]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_limits(full_pair, story):
    full_pair.check(story)


def test_same_info(full_pair):
    import json
    theirs, ours = (json.loads(side.ask(Ask("GET", "/info", user=None)).body) for side in (full_pair.theirs, full_pair.ours))
    for name in ("account_quotas", "container_quotas", "staticweb", "domain_remap"):
        assert theirs[name] == ours[name]
