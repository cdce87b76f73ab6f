"""Object listings answer as OpenStack's, for every parameter, in every format."""

import itertools

import pytest

from harness.compare import Ask, Story

NAMES = ["a", "a/1", "a/2", "a/b/1", "a/b/2", "a/b/c/1", "a//double", "b", "b--x--1", "b--x--2", "b--y", "c/", "c/1",
         "d%20e", "%3Cxml%3E%26%22%27", "line%0Abreak", "%25", "%C3%BC", "%C3%BC/1", "%F0%9F%90%A6/x", "photos/2024/jan.jpg",
         "photos/2024/feb.jpg", "photos/2025/jan.jpg", "photos/me.jpg", "%7Etilde", "10", "9", "A", "tab%09", "~~end"]
QUERIES = [
    "", "limit=5", "limit=1", "limit=0", "limit=10000", "limit=10001", "limit=-1", "limit=x", "limit=", "limit=1.5",
    "limit=%2B3", "limit=999999999999999999999",
    "marker=b", "marker=b&limit=2", "marker=nothing-like-it", "marker=~~end", "marker=%C3%BC", "marker=%FF", "marker=",
    "end_marker=b", "end_marker=a", "end_marker=", "marker=a/2&end_marker=c/", "marker=c&end_marker=b",
    "prefix=a", "prefix=a/", "prefix=a/b/", "prefix=none", "prefix=%C3%BC", "prefix=photos/2024/&limit=1", "prefix=",
    "prefix=b&marker=a", "prefix=a/&marker=a/1", "prefix=a/&marker=z", "prefix=a/&end_marker=a/2",
    "delimiter=/", "delimiter=/&prefix=a", "delimiter=/&prefix=a/", "delimiter=/&prefix=a/b/", "delimiter=/&limit=3",
    "delimiter=/&marker=a/", "delimiter=/&marker=a", "delimiter=/&marker=a/zzz", "delimiter=/&prefix=photos/",
    "delimiter=/&prefix=photos/&marker=photos/2024/", "delimiter=/&prefix=a/&limit=2", "delimiter=/&end_marker=c",
    "delimiter=/&prefix=c", "delimiter=/&prefix=c/", "delimiter=-", "delimiter=--", "delimiter=--&prefix=b",
    "delimiter=--&prefix=b--", "delimiter=--x--", "delimiter=2024", "delimiter=%C3%BC", "delimiter=%FF", "delimiter=",
    "delimiter=//", "delimiter=%00", "delimiter=/&limit=1&marker=b--y",
    "path=", "path=a", "path=a/", "path=a/b", "path=photos", "path=photos&limit=1", "path=photos/2024", "path=none",
    "path=/", "path=a&marker=a/1", "path=a&delimiter=-", "path=a&prefix=b", "path=c", "path=%C3%BC",
    "reverse=true", "reverse=on", "reverse=false", "reverse=rubbish", "reverse=true&limit=3", "reverse=true&marker=b",
    "reverse=true&end_marker=b", "reverse=true&marker=c/&end_marker=a/2", "reverse=true&prefix=a/",
    "reverse=true&delimiter=/", "reverse=true&delimiter=/&limit=2", "reverse=true&delimiter=/&marker=photos/",
    "reverse=true&delimiter=/&prefix=photos/", "reverse=true&delimiter=--&prefix=b", "reverse=true&path=a",
    "reverse=true&marker=a/2&prefix=a/", "format=bogus", "unknown=parameter", "multipart-manifest=get",
    "states=shard", "states=listing", "prefix=a&prefix=b", "symlinks=", "versions", "version_marker=x",
    "marker=%00", "prefix=%00", "end_marker=%00", "path=%00",
]


def setup():
    return [Ask("PUT", "{c}/" + name, {"Content-Type": f"text/x-{index % 3}; charset=utf-8"}, body=b"x" * index)
            for index, name in enumerate(NAMES)]


STORIES = [
    Story(f"listing {form or 'plain'}", setup() + [
        Ask("GET", "{c}?" + query + ("&format=" + form if form else ""))
        for query in QUERIES if not ("format=" in query and form)
    ])
    for form in ("", "json", "xml")
] + [
    Story("listing by Accept", setup()[:4] + [
        Ask(method, "{c}", {"Accept": accept})
        for method, accept in itertools.product(("GET", "HEAD"), (
            "text/plain", "application/json", "application/xml", "text/xml", "*/*", "image/png", "rubbish", "",
            "text/xml;q=0.5,application/json", "text/plain; charset=utf-8"))
    ] + [Ask("GET", "{c}?format=json", {"Accept": "text/xml"}), Ask("HEAD", "{c}?format=xml"), Ask("HEAD", "{c}?limit=1"),
         Ask("HEAD", "{c}?limit=10001"), Ask("HEAD", "{c}?delimiter=%FF")]),
    Story("listing nothing", [
        Ask("GET", "{c}" + query) for query in ("", "?format=json", "?format=xml", "?prefix=x", "?delimiter=/&format=json")
    ]),
    Story("listing shows updates", [
        Ask("PUT", "{c}/o", {"Content-Type": "text/a"}, b"1"), Ask("GET", "{c}?format=json"),
        Ask("PUT", "{c}/o", {"Content-Type": "text/b"}, b"22"), Ask("GET", "{c}?format=json"),
        Ask("POST", "{c}/o", {"Content-Type": "text/c"}), Ask("GET", "{c}?format=json"),
        Ask("POST", "{c}/o", {"X-Object-Meta-A": "b"}), Ask("GET", "{c}?format=json"),
        Ask("PUT", "{c}/o", {"Content-Type": "text/d;swift_bytes=99;x=y"}, b"333"), Ask("GET", "{c}?format=json"),
        Ask("GET", "{c}?format=xml"), Ask("HEAD", "{c}/o"), Ask("DELETE", "{c}/o"), Ask("GET", "{c}?format=json"),
        Ask("HEAD", "{c}"),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
