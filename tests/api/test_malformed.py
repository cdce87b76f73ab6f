"""Malformed requests get OpenStack's status, write nothing, and leave no temporary file."""

import pytest

from harness import disk
from harness.compare import Ask, Story
from harness.waiting import until


def raw(first, *lines, body=b"", hang_up=False, level="status", also=()):
    """A request typed by hand. `first` may hold any bytes. Who hung up need not be answered."""
    head = b"\r\n".join([first, b"Host: martlet.test", b"X-Auth-Token: {token}", *lines])
    return Ask(first.split(b" ")[0].decode("latin-1"), first.decode("latin-1"), raw=head + b"\r\n\r\n" + body,
               hang_up=hang_up, level=level, also=(*also, 0) if hang_up else also)


STRICTER = (400,)  # OpenStack's HTTP library lets these ambiguous messages through; refusing them is safer


def put(*lines, body=b"", name=b"o", **more):
    return raw(b"PUT {c}/" + name + b" HTTP/1.1", *lines, body=body, **more)


STORIES = [
    Story("bad names", [
        Ask(method, "{c}/" + name, body=b"x" if method == "PUT" else b"")
        for name in ("%FF", "a%C3", "%C3%28", "%00", "a%00b", "%ED%A0%80", "%F8%88%80%80%80", "%E2%82", "%zz", "%", "a%2")
        for method in ("PUT", "GET", "HEAD", "POST", "DELETE")
        if not (name in ("%zz", "%", "a%2"))  # legal names, taken literally: see the next story
    ] + [Ask("GET", "{c}?format=json")]),
    Story("names with a stray percent sign", [
        Ask(method, "{c}/" + name, body=b"x" if method == "PUT" else b"")
        for name in ("%zz", "%", "a%2") for method in ("PUT", "GET", "DELETE")]),
    Story("names with bytes that clients should have escaped", [
        put(b"Content-Length: 1", body=b"x", name=b"x%cy" % byte) for byte in (*range(1, 10), *range(11, 13), *range(14, 32), *b"#<>`^|{}\\\"", 127)
    ] + [raw(b"DELETE {c}/x#y HTTP/1.1"), Ask("GET", "{c}")]),
    Story("bad accounts and containers", [
        Ask(method, target) for method in ("PUT", "GET", "HEAD", "POST", "DELETE")
        for target in ("{a}/%FF", "{a}/a%00b", "/v1/AUTH_test%FF", "/v1/AUTH_test%00", "/v1/AUTH_%C3%BC", "/v1/%FF/c/o", "/%FF", "/%00",
                       "/v1/AUTH_test%2Fc%2Fo", "/v1%2FAUTH_test")
    ], container=False),
    Story("bad lengths", [
        put(b"Content-Length: -1", body=b"x"), put(b"Content-Length: x", body=b"x"), put(b"Content-Length: 1x", body=b"x"),
        put(b"Content-Length: +1", body=b"x", also=STRICTER), put(b"Content-Length: 1.0", body=b"x"), put(b"Content-Length:", body=b"x"),
        put(b"Content-Length: 0x1", body=b"x"), put(b"Content-Length: 1, 1", body=b"x"),
        put(b"Content-Length: 1", b"Content-Length: 2", body=b"xy", also=STRICTER),
        put(b"Content-Length: 18446744073709551617", body=b"x", also=STRICTER),
        put(), put(b"Transfer-Encoding: rubbish", body=b"x"), put(b"Transfer-Encoding: gzip, chunked", body=b"1\r\nx\r\n0\r\n\r\n", also=STRICTER),
        put(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n", name=b"both", also=STRICTER),
        put(b"Content-Length: 99", b"Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n", name=b"both", also=STRICTER),
        put(b"Transfer-Encoding: identity", b"Content-Length: 1", body=b"x"),
    ]),
    Story("bad chunks", [
        put(b"Transfer-Encoding: chunked", body=body, hang_up=True, also=STRICTER) for body in (
            b"zz\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc\r\n0\r\n\r\n", b"3\r\nabc", b"3\r\nabc\r\n",
            b"ffffffffffffffffff\r\nabc", b"5\r\nabc\r\n0\r\n\r\n", b"\r\n", b"")
    ] + [Ask("GET", "{c}?format=json")]),
    Story("chunks that overrun", [
        put(b"Transfer-Encoding: chunked", body=b"3\r\nabcd\r\n0\r\n\r\n", hang_up=True, also=(400, 499))]),  # OpenStack drops the d
    Story("cut short", [
        put(b"Content-Length: 10", body=b"12345", hang_up=True), put(b"Content-Length: 10", hang_up=True),
        put(b"Content-Length: 100000", body=b"y" * 70000, hang_up=True),
        put(b"Content-Length: 10", b"Expect: 100-continue", body=b"12345", hang_up=True),
        Ask("GET", "{c}?format=json"),
    ]),
    Story("reserved headers", [
        Ask("PUT", "{c}/o", headers, body=b"x") for headers in (
            {"X-Backend-Storage-Policy-Index": "1"}, {"X-Backend-Timestamp": "1.0"}, {"X-Object-Sysmeta-Evil": "x"},
            {"X-Object-Transient-Sysmeta-Evil": "x"}, {"X-Backend-Obj-Metadata-Footer": "yes"}, {"X-Timestamp": "1.00000"},
            {"X-Container-Host": "127.0.0.1:1"}, {"X-Delete-At-Host": "evil"}, {"X-Container-Sysmeta-A": "b"}, {"X-Symlink-Target": "c/o"},
            {"X-Static-Large-Object": "True"}, {"X-Backend-Replication": "true"}, {"X-Trans-Id-Extra": "ex/tra" * 20},
            {"X-Container-Device": "sdb1"}, {"X-Container-Partition": "1"}, {"X-Size": "1"}, {"X-Etag": "x"},
            {"X-Object-Meta-Ok": "yes", "X-Object-Sysmeta-No": "no"})
    ] + [
        Ask("HEAD", "{c}/o"), Ask("POST", "{c}/o", {"X-Object-Sysmeta-A": "b", "X-Object-Transient-Sysmeta-A": "b"}), Ask("HEAD", "{c}/o"),
        Ask("POST", "{c}", {"X-Container-Sysmeta-A": "b", "X-Backend-Sharding-State": "x"}), Ask("HEAD", "{c}"),
        Ask("POST", "{a}", {"X-Account-Sysmeta-A": "b"}), Ask("GET", "{c}", {"X-Backend-Record-Type": "shard"}),
        Ask("GET", "{c}?format=json", {"X-Backend-Record-Type": "auto", "X-Backend-Override-Deleted": "true"}),
        Ask("GET", "{c}/o", {"X-Backend-Open-Expired": "true"}), Ask("DELETE", "{c}/o", {"X-Backend-Allow-Reserved-Names": "true"}),
        Ask("PUT", "{a}/%00reserved", {"X-Backend-Allow-Reserved-Names": "true"}),
    ]),
    Story("header names that HTTP does not allow", [
        Ask(method, target, {f"X-{kind}-Meta-Ünï": "x"}, also=STRICTER)  # OpenStack takes them; the HTTP library here does not
        for kind, method, target in (("Account", "POST", "{a}"), ("Container", "POST", "{c}"), ("Object", "PUT", "{c}/o"))
    ]),
    Story("bad request lines", [
        raw(b"GET /v1/AUTH_test HTTP/1.1"), raw(b"GET  /v1/AUTH_test HTTP/1.1"), raw(b"GET v1/AUTH_test HTTP/1.1", also=STRICTER),
        raw(b"GET /healthcheck\xff HTTP/1.1", also=STRICTER), raw(b"GET http://other.example/v1/AUTH_test HTTP/1.1"), raw(b"GET * HTTP/1.1"),
        raw(b"GET /v1/AUTH_test?prefix=\xff HTTP/1.1"), raw(b"GET /v1/AUTH_test?\xc3\xbc=1 HTTP/1.1"),
        raw(b"GET /v1/AUTH_test#fragment HTTP/1.1"), raw(b"GET /v1/AUTH_test/.. HTTP/1.1"),
        raw(b"GET /v1/../v1/AUTH_test HTTP/1.1"), raw(b"GET /v1/AUTH_test/./ HTTP/1.1"),
        raw(b"GET /v1/AUTH_test HTTP/1.0"),
    ], container=False),
    Story("bad header values", [
        put(b"X-Object-Meta-A: \xff\xfe", b"Content-Length: 1", body=b"x", level="all"), Ask("HEAD", "{c}/o"),
        put(b"X-Object-Meta-Latin: \xe9", b"Content-Length: 1", body=b"x", level="all"),
        put(b"X-Object-Meta-Twice: 1", b"X-Object-Meta-Twice: 2", b"Content-Length: 1", body=b"x"), Ask("HEAD", "{c}/o"),
        put(b"X-Object-Meta-Spaces:    around   ", b"Content-Length: 1", body=b"x"), Ask("HEAD", "{c}/o"),
        put(b"Content-Type: \xff", b"Content-Length: 1", body=b"x", level="all"),
    ]),
    Story("bad tokens", [
        Ask("GET", "{a}", {"X-Auth-Token": b"\xff\xfe"}, level="status"),
        Ask("GET", "{a}", {"X-Auth-Token": "AUTH_tk" + "0" * 5000}, level="status"), Ask("GET", "{a}", {"X-Auth-Token": "../../etc"}),
        Ask("GET", "/auth/v1.0", {"X-Auth-User": b"\xff:\xff", "X-Auth-Key": "x"}, user=None, level="status"),
        Ask("GET", "/auth/v1.0", {"X-Auth-User": "ü:ü", "X-Auth-Key": "ü"}, user=None, level="status"),
    ], container=False),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)


def test_no_temporary_file_is_left(pair):
    until(lambda: not disk.temporary(pair.ours.system.srv), what="no temporary file after malformed requests")


def test_the_system_still_serves(pair):
    assert pair.ours.ask(Ask("GET", "{a}")).status == 200
    assert pair.ours.system.alive()
