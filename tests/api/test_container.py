"""Containers answer as OpenStack's: making, describing, deleting, policies, names."""

import pytest

from harness.compare import Ask, Story

STORIES = [
    Story("container life", [
        Ask("GET", "{c}"), Ask("HEAD", "{c}"), Ask("POST", "{c}"), Ask("DELETE", "{c}"),
        Ask("PUT", "{c}"), Ask("PUT", "{c}"), Ask("HEAD", "{c}"), Ask("GET", "{c}"), Ask("GET", "{c}?format=json"),
        Ask("GET", "{c}?format=xml"), Ask("PUT", "{c}/o", body=b"12345"), Ask("HEAD", "{c}"), Ask("DELETE", "{c}"),
        Ask("DELETE", "{c}/o"), Ask("HEAD", "{c}"), Ask("DELETE", "{c}"), Ask("DELETE", "{c}"), Ask("HEAD", "{c}"),
        Ask("PUT", "{c}/o", body=b"x"), Ask("GET", "{c}/o"), Ask("PUT", "{c}"), Ask("HEAD", "{c}/"), Ask("GET", "{c}/"),
        Ask("PUT", "{c}/"), Ask("DELETE", "{c}/"),
    ], container=False),
    Story("container metadata", [
        Ask("PUT", "{c}", {"X-Container-Meta-Colour": "blue"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Meta-Size": "L", "X-Container-Meta-Colour": ""}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Remove-Container-Meta-Size": "x"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Meta-Unicode": "ü"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Meta-": "nameless"}), Ask("POST", "{c}", {"X-Container-Meta-Under_score": "1"}),
        Ask("HEAD", "{c}"), Ask("POST", "{c}", {"X-Versions-Location": "elsewhere"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Meta-Quota-Bytes": "10", "X-Container-Meta-Web-Index": "i.html"}),
        Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Allow-Origin": "*"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Sync-Key": "k"}), Ask("POST", "{c}", {"X-Container-Sync-To": "http://nowhere/v1/a/c"}),
        Ask("GET", "{c}", {"Origin": "http://example.com"}), Ask("PUT", "{c}", {"X-Timestamp": "1.0"}),
    ]),
    Story("container policies", [
        Ask("PUT", "{c}-s", {"X-Storage-Policy": "silver"}), Ask("HEAD", "{c}-s"), Ask("PUT", "{c}-s/o", body=b"x"),
        Ask("GET", "{c}-s/o"), Ask("GET", "{c}-s?format=json"),
        Ask("PUT", "{c}-s", {"X-Storage-Policy": "SILVER"}), Ask("PUT", "{c}-s", {"X-Storage-Policy": "gold"}),
        Ask("PUT", "{c}-n", {"X-Storage-Policy": "none"}), Ask("PUT", "{c}-n", {"X-Storage-Policy": "1"}),
        Ask("POST", "{c}-s", {"X-Storage-Policy": "gold"}), Ask("PUT", "{c}-s", {"X-Storage-Policy": ""}),
        Ask("PUT", "{c}-e", {"X-Storage-Policy": ""}), Ask("HEAD", "{c}-e"), Ask("HEAD", "{c}-s"),
        Ask("HEAD", "{a}"),
    ], container=False),
    Story("container names", [
        Ask(method, "{a}/" + name)
        for name in ("n" * 256, "n" * 257, "%C3%BC", "%FF", "%00", "a%00b", ".", "..", "%2E%2E", "a%2Fb", "with%20space",
                     "%20", "a%3Fb", "a%0Ab", "%F0%9F%90%A6", "%25", "+", "a;b", "(%27x%27)",
                     "%C3%BC" * 85, "%C3%BC" * 129, "%ED%A0%80")
        for method in ("PUT", "HEAD", "GET", "DELETE")
    ], container=False),
    Story("container bodies", [
        Ask("PUT", "{c}-b", body=b"a body nobody asked for"), Ask("POST", "{c}-b", body=b"again"),
        Ask("DELETE", "{c}-b", body=b"and again"), Ask("GET", "{c}", body=b"x"),
    ]),
    Story("container conditions and ranges", [
        Ask("PUT", "{c}/o"), Ask("GET", "{c}", {"Range": "bytes=0-1"}), Ask("GET", "{c}", {"If-None-Match": "*"}),
        Ask("GET", "{c}", {"If-Modified-Since": "Thu, 01 Jan 2037 00:00:00 GMT"}),
        Ask("HEAD", "{c}", {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:10 GMT"}),
        Ask("GET", "{c}", {"X-Newest": "true"}), Ask("HEAD", "{c}", {"X-Newest": "true"}),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
