"""Limits answer as OpenStack's, at the limit and one past it: metadata, names, header lines, object size."""

import pytest

from harness.compare import Ask, Story

KINDS = {"Account": ("POST", "{a}"), "Container": ("POST", "{c}"), "Object": ("PUT", "{c}/o")}
# 16 values fill Swift's limit of 4096 bytes; ext4 has no room for as much in an object's extended attributes.
FITS = {"Account": 16, "Container": 16, "Object": 10}


def metas(kind, pairs):
    return {f"X-{kind}-Meta-{name}": value for name, value in pairs}


def cleared(kind, ask):
    """The request, and for an account one that removes again what it set: metadata there adds up."""
    if kind != "Account":
        return [ask]
    return [ask, Ask(ask.method, ask.target, dict.fromkeys(ask.headers, ""), level="status")]


STORIES = [
    Story(f"limits of {kind.lower()} metadata", [ask for headers in (
        metas(kind, [("n" * 128, "v")]), metas(kind, [("n" * 129, "v")]),
        metas(kind, [("a", "v" * 256)]), metas(kind, [("a", "v" * 257)]),
        metas(kind, [("a", "ü" * 128)]), metas(kind, [("a", "ü" * 129)]),
        metas(kind, [(f"b{n}", "v") for n in range(90)]), metas(kind, [(f"b{n}", "v") for n in range(91)]),
        metas(kind, [(f"{n:02}", "v" * 254) for n in range(FITS[kind])]),
        metas(kind, [(f"{n:02}", "v" * 254) for n in range(16)] + [("x", "y")]),
    ) for ask in cleared(kind, Ask(method, target, headers, b"x" if method == "PUT" else b""))])
    for kind, (method, target) in KINDS.items()
] + [
    Story("limits of container metadata as it grows", [
        *(Ask("POST", "{c}", metas("Container", [(f"{batch}-{n}", "v") for n in range(45)])) for batch in ("a", "b", "c")),
        Ask("HEAD", "{c}"),
    ]),
    Story("limits of heads", [
        Ask("GET", target, headers, level="status", user=None) for target in ("/healthcheck", "{a}/c") for headers in (
            *({"X-H": "v" * length} for length in (8184, 8185)),
            *({**{f"X-H{n}": "v" * 1000 for n in range(64)}, "X-T": "v" * length} for length in (100, 2000)))
    ] + [Ask("GET", "/healthcheck", {f"X-H{n}": "v" for n in range(count)}, level="status", user=None) for count in (199, 200, 300)
    ] + [Ask("GET", "/healthcheck?" + "q" * length, level="status", user=None) for length in range(8160, 8167)], container=False),
    Story("limits of header lines", [
        Ask("GET", "{c}", {"X-Long": "v" * 8000}), Ask("GET", "{c}", {"X-Long": "v" * 8200}, level="status"),
        Ask("GET", "{c}", {"X-Long": "v" * 20000}, level="status"),
        Ask("GET", "{c}", {f"X-Many-{n}": "v" for n in range(60)}),
        Ask("GET", "{c}", {f"X-Many-{n}": "v" * 7000 for n in range(20)}, level="status"),
        Ask("GET", "{c}?prefix=" + "x" * 1000), Ask("GET", "{c}?prefix=" + "x" * 7000),
        Ask("GET", "{c}?prefix=" + "x" * 9000, level="status"), Ask("GET", "{c}?marker=" + "x" * 1025),
        Ask("GET", "{c}/" + "x" * 9000, level="status"),
    ]),
    Story("limits of header lines on storing", [
        Ask("PUT", "{c}/o", {"X-Object-Meta-A": "v", **{f"X-Extra-{n}": "v" for n in range(40)}}, b"x"),
        Ask("PUT", "{c}/o", {f"X-Extra-{n}": "v" for n in range(130)}, b"x"),
        Ask("PUT", "{c}/o", {"Content-Type": "x/" + "y" * 300}, b"x"), Ask("HEAD", "{c}/o"),
        Ask("PUT", "{c}/o", {"Content-Disposition": "y" * 3000}, b"x"), Ask("HEAD", "{c}/o"),
        Ask("POST", "{c}/o", {"X-Object-Meta-A": "v", **{f"X-Extra-{n}": "v" for n in range(40)}}),
    ]),
    Story("limits of object size", [
        Ask("PUT", "{c}/o", {"Content-Length": 5 * 2**30 + 3}), Ask("PUT", "{c}/o", {"Content-Length": 2**63}),
        Ask("PUT", "{c}/o", {"Content-Length": 10**30}, also=(400,)), Ask("HEAD", "{c}/o"),
    ]),
    Story("limits of deep names", [
        Ask("PUT", "{c}/" + "/".join("d" * 200), body=b"x"), Ask("PUT", "{c}/" + "d" * 300, body=b"x"), Ask("HEAD", "{c}/" + "d" * 300),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
