"""Older versions answer as OpenStack's: where they go, what is kept, what DELETE brings back or leaves, who may."""

import pytest

from harness.compare import Ask, Story
from harness.wire import chunked

VERSIONS = [Ask("PUT", "{a}/{n}-v")]
NAMES = Ask("GET", "{a}/{n}-v?delimiter=/")
COUNT = Ask("HEAD", "{a}/{n}-v")
FRIEND = "test:tester3"


def keep(how="Versions", where="{n}-v", **headers):
    return Ask("POST", "{c}", {f"X-{how}-Location": where, **{k.replace("_", "-"): v for k, v in headers.items()}})


def put(name, body=b"x", user="test:tester", **headers):
    return Ask("PUT", "{c}/" + name, {k.replace("_", "-"): v for k, v in headers.items()}, body, user=user)


def get(name):
    return Ask("GET", "{c}/" + name)


def delete(name, user="test:tester"):
    return [Ask("DELETE", "{c}/" + name, user=user), get(name), COUNT, NAMES]


STORIES = [
    Story("versions of a container", [
        *VERSIONS, *(ask for headers in (
            {"X-Versions-Location": "{n}-v"}, {"X-History-Location": "{n}-v"},
            {"X-History-Location": "a", "X-Versions-Location": "b"}, {"X-History-Location": "a", "X-Versions-Location": ""},
            {"X-History-Location": "", "X-Versions-Location": "b"}, {"X-Versions-Location": ""},
            {"X-Versions-Location": "%C3%BC x"}, {"X-Remove-Versions-Location": "x"}, {"X-Versions-Location": "a/b"},
            {"X-Versions-Location": "/a"}, {"X-Remove-Versions-Location": "x", "X-Versions-Location": "y"},
            {"X-Remove-History-Location": "x"}, {"X-Container-Meta-Foo": "x"},
        ) for ask in (Ask("POST", "{c}", headers), Ask("HEAD", "{c}"))),
        Ask("PUT", "{a}/{n}-2", {"X-Versions-Location": "nosuch"}), Ask("HEAD", "{a}/{n}-2"),
        Ask("POST", "{c}", {"X-Versions-Location": "{n}-v"}, user=FRIEND),
    ]),
    Story("versions on a stack", [
        *VERSIONS, keep(), put("o", b"1", Content_Type="text/1", X_Object_Meta_A="1"), COUNT, put("o", b"2", Content_Type="t/2"),
        COUNT, put("o", b"3"), COUNT, Ask("POST", "{c}/o", {"X-Object-Meta-B": "b"}), COUNT, get("o"),
        *delete("o"), *delete("o"), *delete("o"), *delete("o"), put("ü/x", b"1"), put("ü/x", b"2"), NAMES,
        put("o2", b"1"), put("o2", b"2", ETag="0" * 32), get("o2"), COUNT, put("o3", b"1"), put("o3", b"2", If_None_Match="*"),
        COUNT, Ask("COPY", "{c}/o2", {"Destination": "{n}/o3"}), get("o3"), NAMES, put("o4", b"1", X_Delete_At="9999999999"),
        put("o4", b"2"), *delete("o4"), keep("Remove-Versions"), put("o4", b"3"), COUNT, *delete("o4"),
    ]),
    Story("versions in a history", [
        *VERSIONS, keep("History"), put("o", b"1", Content_Type="text/1", X_Object_Meta_A="1"), put("o", b"2"), *delete("o"),
        *delete("o"), put("o", b"3"), COUNT, *delete("o"), keep(),
        *(ask for _ in range(9) for ask in delete("o")),
    ]),
    Story("both kinds of versions", [
        *VERSIONS, *(ask for number, (method, headers) in enumerate([
            ("PUT", {"X-Versions-Location": "{n}-v", "X-Versions-Enabled": "false"}),
            ("PUT", {"X-Versions-Location": "", "X-Versions-Enabled": "true"}),
        ]) for ask in (Ask(method, f"{{a}}/{{n}}-b{number}", headers), Ask("HEAD", f"{{a}}/{{n}}-b{number}"))),
        Ask("POST", "{c}", {"X-Versions-Enabled": "true"}), Ask("POST", "{c}", {"X-Versions-Location": "{n}-v"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Versions-Enabled": "false"}), Ask("POST", "{c}", {"X-Versions-Location": "{n}-v"}), Ask("HEAD", "{c}"),
    ]),
    Story("versions by their ids", [
        Ask("PUT", "{a}/{n}-i", {"X-Versions-Enabled": "true"}),
        *(Ask("PUT", f"{{a}}/{{n}}-i/o?version-id={which}", headers, body)
          for which in ("1500000000.00000", "1e5", "null", "junk")
          for headers, body in (({}, b""), ({"Content-Length": 0}, b""), ({"Content-Length": 1}, b"x"),
                                ({"Transfer-Encoding": "chunked"}, chunked()), ({"Transfer-Encoding": "chunked"}, chunked(b"x")))),
        Ask("PUT", "{a}/{n}-i/o?version-id=1500000000.00000", user="test:tester3"),
        *(Ask(method, f"{{a}}/{{n}}-i/o?version-id={which}") for method in ("GET", "HEAD")
          for which in ("1e5", "%205", "5_0", "5__0", "1e10", "-1", "nan", "1500000000.1", "9999999999.99999", "9999999999.999999")),
    ], container=False),
    Story("versions without a place", [
        keep(), put("o", b"1"), put("o", b"2"), get("o"), Ask("DELETE", "{c}/o"), get("o"), put("o", b"1"), keep("History"),
        put("o", b"2"), Ask("DELETE", "{c}/o"), get("o"), Ask("DELETE", "{c}/nosuch"),
    ]),
    Story("versions and who may", [
        *VERSIONS, keep(X_Container_Write=FRIEND, X_Container_Read=FRIEND), put("o", b"1"), put("o", b"2", FRIEND), COUNT,
        Ask("GET", "{a}/{n}-v", user=FRIEND), *delete("o", FRIEND), put("o", b"3", "test2:tester2"),
        *delete("o", "test2:tester2"), *delete("o", None), put("o", b"4", None), keep("History"), *delete("o", FRIEND),
    ]),
    Story("versions of links", [
        *VERSIONS, Ask("PUT", "{a}/{n}-t"), Ask("PUT", "{a}/{n}-t/t", {}, b"target"), keep(), put("o", b"1"),
        Ask("PUT", "{c}/o", {"X-Symlink-Target": "{n}-t/t", "Content-Length": 0}), get("o"), put("o", b"2"), COUNT,
        *delete("o"), get("o?symlink=get"), *delete("o"), Ask("GET", "{c}?format=json"),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_versions(full_pair, story):
    full_pair.check(story)
