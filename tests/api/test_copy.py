"""Copies answer as OpenStack's: what goes along, what may be asked of the source, who may copy what where, signs of life."""

import pytest

from harness.compare import Ask, Story
from harness.wire import chunked

ETAG = "781e5e245d69b566979b86e28d23f2c7"
SOURCE = Ask("PUT", "{c}/src", {"Content-Type": "text/x-src", "X-Object-Meta-A": "1", "X-Object-Meta-B": "2",
                                "Content-Encoding": "gz", "Content-Disposition": "inline", "X-Delete-At": "9999999999"},
             b"0123456789")


def copy(destination="{n}/dst", target="{c}/src", user="test:tester", body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Ask("COPY", target, {"Destination": destination, **named}, body, user=user)


def put(target, source="{n}/src", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Ask("PUT", "{c}/" + target, {"X-Copy-From": source, "Content-Length": 0, **named})


def show(name):
    return Ask("GET", "{c}/" + name)


STORIES = [
    Story("copy refusals", [
        SOURCE, Ask("COPY", "{c}/src"), copy(""), copy("c"), copy("/c/"), copy("//c/o"), copy("c%00/o"), copy("nosuch/o"),
        copy(Destination_Account="a/b"), copy(Destination_Account=""), copy(target="{c}"), copy(target="{a}"),
        copy(target="{c}/nosuch"), copy("{n}/" + "x" * 1025), copy(X_Object_Meta_="nameless"), copy(X_Delete_At="1"),
        put("d", ""), put("d", "c"), put("d", "/"), put("d", "c/o", X_Copy_From_Account="a/b"),
        put("d", X_Copy_From_Account=""), put("d", "nosuch/o"), Ask("PUT", "{c}", {"X-Copy-From": "{n}/src"}),
        Ask("PUT", "{c}/d", {"X-Copy-From": "{n}/src"}, b"abc"), copy(body=b"ignored"),
        Ask("PUT", "{c}/d", {"X-Copy-From": "{n}/src", "Transfer-Encoding": "chunked"}, chunked()), show("d"),
        Ask("PUT", "{c}/d", {"X-Copy-From": "{n}/src", "Transfer-Encoding": "chunked"}, chunked(b"x"), also=(400,)),
    ]),
    Story("copy and metadata", [
        SOURCE, copy(), show("dst"),
        copy("/{n}/d 2%20%C3%BC", X_Object_Meta_A="new", X_Object_Meta_C="3", Content_Type="text/y"), show("d%202%20%C3%BC"),
        put("d3", X_Fresh_Metadata="true", X_Object_Meta_Z="9"), show("d3"),
        put("d4", Content_Type="", X_Delete_After="100000000000"), show("d4"),
        put("d5", X_Delete_At="9999999998"), show("d5"), put("d6", ETag="0" * 32), show("d6"),
        put("d7", X_Remove_Delete_At="1", Content_Encoding="", X_Object_Meta_A=""), show("d7"),
        copy("{n}/src", X_Object_Meta_New="in place"), show("src"),
        put("d8", X_Detect_Content_Type="true"), show("d8"), put("d8.jpg", X_Detect_Content_Type="true"), show("d8.jpg"),
        put("d9", X_Copy_From_Account="AUTH%5Ftest"), copy("{n}/d%2Fe", target="{c}/d%202%20%C3%BC"), show("d/e"),
    ]),
    Story("copy conditions", [
        SOURCE, put("r", Range="bytes=2-4"), show("r"), put("r2", Range="bytes=20-40"), put("r2", If_Match="nope"),
        put("r2", If_None_Match=ETAG), put("r2", If_None_Match="*"), put("r2", If_None_Match="abc"), show("r2"),
        put("r3", If_Match=ETAG), put("r3", If_Match="*"), put("r3", If_Modified_Since="Thu, 01 Jan 2037 00:00:00 GMT"),
        put("r3", If_Unmodified_Since="Thu, 01 Jan 2007 00:00:00 GMT"), copy("{n}/r4", Range="bytes=5-"), show("r4"),
        copy("{n}/r4", If_Match="zz"), copy("{n}/r4", user=None), copy("{n}/r4", user="test:tester3"),
    ]),
    Story("copy sizes", [
        Ask("PUT", "{c}/big", {}, b"x" * 200000), copy("{n}/big2", "{c}/big"), show("big2"),
        Ask("PUT", "{c}/empty", {"Content-Length": 0}), copy("{n}/empty2", "{c}/empty"), show("empty2"),
    ]),
    Story("copy across accounts", [
        SOURCE, Ask("PUT", "{a}2/{n}", user="test2:tester2"), copy("{n}/x", Destination_Account="AUTH_test2"),
        copy("{n}/x", Destination_Account="AUTH_test2", user="test2:tester2"),
        Ask("POST", "{c}", {"X-Container-Read": "test2:tester2"}),
        copy("{n}/x", Destination_Account="AUTH_test2", user="test2:tester2"),
        Ask("GET", "{a}2/{n}/x", user="test2:tester2"),
        Ask("PUT", "{a}2/{n}/y", {"X-Copy-From": "{n}/src", "X-Copy-From-Account": "AUTH_test", "Content-Length": 0},
            user="test2:tester2"),
        copy("{n}/y", Destination_Account="AUTH_test2"), copy("{n}/y", user="test2:tester2"),
    ]),
    Story("copy with a heartbeat", [
        SOURCE, *(copy(target="{c}/src?heartbeat=on", Accept=accept) for accept in
                  ("text/plain", "application/json", "application/xml", "application/*", "image/png", "rubbish")),
        copy(target="{c}/src?heartbeat=no"), copy(target="{c}/nosuch?heartbeat=on"),
        copy("nosuch/o", target="{c}/src?heartbeat=on"), copy(target="{c}/src?heartbeat=on", X_Delete_At="1"),
        copy("nosuch/o", target="{c}/src?heartbeat=on", Accept="application/json"),
        copy("c", target="{c}/src?heartbeat=on"), copy(target="{c}/src?heartbeat=on", user="test:tester3"),
        put("dst?heartbeat=1", Range="bytes=1-2"), show("dst"),
    ]),
    Story("copy and pages from elsewhere", [
        SOURCE, Ask("OPTIONS", "{c}/src"), Ask("OPTIONS", "{c}"), Ask("OPTIONS", "{a}"), Ask("BREW", "{c}/src"),
        Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Allow-Origin": "*"}),
        *(Ask("OPTIONS", "{c}/src", {"Origin": "http://a", "Access-Control-Request-Method": method})
          for method in ("COPY", "PUT")),
        copy(Origin="http://a"),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_copies(pair, story):
    pair.check(story)
