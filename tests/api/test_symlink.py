"""Links answer as OpenStack's: made, read through, listed, copied; loops, conditions and ranges; other accounts."""

import pytest

from harness.compare import Ask, Story
from harness.wire import chunked

EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
ETAG = "781e5e245d69b566979b86e28d23f2c7"
TARGET = Ask("PUT", "{c}/tgt", {"Content-Type": "text/t", "X-Object-Meta-T": "t"}, b"0123456789")


def link(name, target="{n}/tgt", body=b"", also=(), **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    length = {} if body else {"Content-Length": 0}
    return Ask("PUT", "{c}/" + name, {"X-Symlink-Target": target, **length, **named}, body, also=also)


def static(name, target="{n}/tgt", etag=ETAG, **headers):
    return link(name, target, X_Symlink_Target_Etag=etag, **headers)


def get(name, method="GET", **headers):
    return Ask(method, "{c}/" + name, {name.replace("_", "-"): value for name, value in headers.items()})


def head(name, **headers):
    return get(name, "HEAD", **headers)


def copy(name, to, account="AUTH_test", user="test:tester", **headers):
    return Ask("COPY", "{c}/" + name, {"Destination": "{n}/" + to, "Destination-Account": account, **headers}, user=user)


OTHER = "test2:tester2"
CONDITIONS = [{"Range": "bytes=2-4"}, {"Range": "bytes=20-"}, {"Range": "bytes=0-1,4-5"}, {"Range": "bytes=-3"},
              {"If_Match": ETAG}, {"If_Match": EMPTY}, {"If_Match": "*"}, {"If_None_Match": ETAG}, {"If_None_Match": EMPTY},
              {"If_None_Match": "*"}, {"If_Modified_Since": "Thu, 01 Jan 2037 00:00:00 GMT"},
              {"If_Unmodified_Since": "Thu, 01 Jan 2007 00:00:00 GMT"}, {"X_Newest": "true"}]

STORIES = [
    Story("links", [
        TARGET, link("l"), get("l"), head("l"), get("l?symlink=get"), head("l?symlink=get"),
        link("x", "{n}"), link("x", "/{n}/tgt"), link("x", ""), link("x", "{n}/"), link("x", "{n}/x"), link("x", body=b"abc"),
        Ask("PUT", "{c}/x", {"X-Symlink-Target": "{n}/tgt", "Transfer-Encoding": "chunked"}, chunked(b"x")),
        Ask("PUT", "{c}/l3", {"X-Symlink-Target": "{n}/tgt", "Transfer-Encoding": "chunked"}, chunked()), get("l3"),
        Ask("PUT", "{c}/x", {"X-Symlink-Target": "{n}/tgt"}), link("x", ETag=ETAG), link("l4", ETag=EMPTY),
        link("l5", "{n}/%C3%BC%20x%2fy"), head("l5?symlink=get"), get("l5"), link("l6", "{n}/ü x"), head("l6?symlink=get"),
        link("l7", X_Symlink_Target_Account="AUTH_test"), head("l7?symlink=get"), get("l7"),
        link("x", X_Symlink_Target_Account="a/b"), link("x", X_Symlink_Target_Account=""),
        link("l8", X_Symlink_Target_Account="AUTH_none"), get("l8"),
        link("l9", Content_Type="x/y", X_Object_Meta_L="l"), get("l9"), get("l9?symlink=get"), head("l9?symlink=get&x=y"),
        link("l10", "nosuch/x"), get("l10"), head("l10"), link("l11", "{n}/nosuch"), get("l11"),
        Ask("POST", "{c}/tgt", {"X-Symlink-Target": "{n}/x"}), Ask("POST", "{c}/l", {"X-Object-Meta-New": "n"}),
        head("l?symlink=get"), head("tgt"), Ask("POST", "{c}/tgt", {"X-Object-Meta-T": "t2"}),
        Ask("PUT", "{c}/plain", {"X-Symlink-Target-Account": "x"}, b"abc"),
        Ask("PUT", "{c}/plain", {"X-Symlink-Target-Etag": "x"}, b"abc"),
        *(Ask("GET", "{c}" + query) for query in ("?format=json", "?format=xml", "", "?format=json&prefix=l&delimiter=1")),
        Ask("DELETE", "{c}/l"), get("l"), get("tgt"), Ask("DELETE", "{c}/l7?symlink=get"),
    ]),
    Story("links into nothing that can be named", [
        *(ask for target in ("{n}/%ff", "%ff/x", "{n}/a%00b", "%00a/b", "%e2%82/x")
          for ask in (link("x", target), head("x?symlink=get"), get("x"), head("x"), Ask("GET", "{c}?format=json"), static("x", target),
                      Ask("DELETE", "{c}/x"))),
        link("x", "%ff"), link("x", X_Symlink_Target_Account="%ff"), get("x"), link("x", "a%2fb"), head("x?symlink=get"),
    ]),
    Story("static links", [
        TARGET, static("s"), get("s"), head("s"), get("s?symlink=get"), static("s2", etag=f'"{ETAG}"'),
        head("s2?symlink=get"), static("x", etag="nope"), static("x", etag="no;pe"), static("s3", etag=""),
        head("s3?symlink=get"), static("x", "{n}/nosuch"), static("x", "nosuch/x"), static("s5", Content_Type="a/b"),
        head("s5?symlink=get"), static("s6", "{n}/s"), get("s6"), head("s6?symlink=get"), link("d"), static("x", "{n}/d"),
        static("s7", "{n}/d", EMPTY), get("s7"), head("s7?symlink=get"), link("d2", "{n}/s"), get("d2"),
        static("s8", "{n}/d2", EMPTY), get("s8"), Ask("GET", "{c}?format=json"),
        Ask("POST", "{c}/s", {"X-Object-Meta-New": "n"}), head("s?symlink=get"), Ask("PUT", "{c}/tgt", {}, b"changed"),
        *(ask for name in ("s", "s6", "s7", "s8", "d2") for ask in (get(name), head(name))),
        Ask("DELETE", "{c}/tgt"), get("s"), head("s"), Ask("PUT", "{c}/empty", {"Content-Length": 0}),
        static("se", "{n}/empty", EMPTY), get("se"),
    ]),
    Story("links in a row", [
        TARGET, link("a", "{n}/b"), link("b", "{n}/a"), get("a"), head("a"), link("c1"), link("c2", "{n}/c1"),
        link("c3", "{n}/c2"), link("c4", "{n}/c3"), get("c2"), get("c3"), get("c4"), head("c3"), static("s1"),
        static("s2", "{n}/s1"), static("s3", "{n}/s2"), get("s3"),
        link("s4", "{n}/s3", X_Symlink_Target_Etag=ETAG, also=(409,)),  # OpenStack: 500
    ]),
    Story("links and conditions", [
        TARGET, link("l"), static("s"), *(get(name, **headers) for name in ("l", "s") for headers in CONDITIONS),
        *(head(name, **headers) for name in ("l", "s") for headers in CONDITIONS),
        *(get("l?symlink=get", **headers) for headers in CONDITIONS),
    ]),
    Story("links copied", [
        TARGET, link("l"), static("s"), copy("l", "cl"), get("cl"), head("cl?symlink=get"), copy("l?symlink=get", "cl2"),
        get("cl2"), head("cl2?symlink=get"), copy("s", "cs"), get("cs"), copy("s?symlink=get", "cs2"), get("cs2"),
        head("cs2?symlink=get"), copy("tgt", "x", **{"X-Symlink-Target": "{n}/tgt"}), Ask("GET", "{c}?format=json"),
        Ask("PUT", "{a}2/{n}", user=OTHER), Ask("POST", "{c}", {"X-Container-Read": OTHER}),
        copy("l?symlink=get", "xl", "AUTH_test2", OTHER), Ask("HEAD", "{a}2/{n}/xl?symlink=get", user=OTHER),
        Ask("GET", "{a}2/{n}/xl", user=OTHER), copy("s?symlink=get", "xs", "AUTH_test2", OTHER),
        Ask("GET", "{a}2/{n}/xs", user=OTHER), Ask("GET", "{a}2/{n}?format=json", user=OTHER), Ask("OPTIONS", "{c}/l"),
    ]),
    Story("links across accounts", [
        TARGET, Ask("PUT", "{a}2/{n}", user=OTHER), Ask("POST", "{c}", {"X-Container-Read": OTHER}),
        Ask("PUT", "{a}2/{n}/l", {"X-Symlink-Target": "{n}/tgt", "X-Symlink-Target-Account": "AUTH_test",
                                  "Content-Length": 0}, user=OTHER),
        Ask("GET", "{a}2/{n}/l", user=OTHER), Ask("GET", "{a}2/{n}/l"), Ask("GET", "{a}2/{n}?format=json", user=OTHER),
        Ask("POST", "{c}", {"X-Container-Read": ""}), Ask("GET", "{a}2/{n}/l", user=OTHER),
        Ask("POST", "{a}2/{n}/l", user=OTHER), Ask("GET", "{a}2/{n}/l", user=None),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_links(full_pair, story):
    full_pair.check(story)
