"""Accounts answer as OpenStack's: listings of containers, metadata, and who may set what."""

import pytest

from harness.compare import Ask, Story

# Of an account that no other test writes to: OpenStack's daemons, which bring its figures up to date, do not run here.
USER = "test3:tester"
A = "/v1/AUTH_test3"
NAMES = ["a", "ab", "a%20space", "b-1", "b-2", "b-3", "caf%C3%A9", "%25percent", "x.y.z", "%3Cxml%3E%26%22", "zz"]
QUERIES = ["", "?limit=2", "?limit=0", "?limit=10000", "?limit=10001", "?limit=-1", "?limit=x", "?limit=", "?marker=b-1",
           "?marker=b-1&limit=1", "?end_marker=b-2", "?marker=a&end_marker=b-3", "?prefix=b", "?prefix=nothing",
           "?prefix=b&delimiter=-", "?delimiter=-", "?delimiter=.", "?reverse=true", "?reverse=on&limit=3",
           "?reverse=1&marker=b-3", "?reverse=yes&end_marker=b", "?reverse=no", "?format=bogus", "?marker=%C3%A9",
           "?marker=%FF", "?prefix=%00"]


def ask(method, path="", headers=None, user=USER, **more):
    return Ask(method, A + path, headers or {}, user=user, **more)


STORIES = [
    Story("account listing", [*(ask("PUT", f"/{name}") for name in NAMES), ask("HEAD")] + [
        ask("GET", query + (("&" if query else "?") + form if form else ""))
        for query in QUERIES if "%FF" not in query for form in ("", "format=json", "format=xml") if not ("bogus" in query and form)
    ] + [ask("GET", f"?{name}=%FF", without=("content-type",)) for name in ("marker", "prefix", "delimiter")], container=False),
    Story("account listing by Accept", [
        ask("GET", "", {"Accept": accept}) for accept in
        ("text/plain", "application/json", "application/xml", "text/xml", "*/*", "application/*", "image/png",
         "text/plain;q=0.1, application/json;q=0.9", "application/json;q=2", "rubbish", "", "text/html, */*;q=0.1")
    ] + [ask("GET", "?format=json", {"Accept": "image/png"}), ask("HEAD", "?format=json"), ask("HEAD", "?format=xml"),
         ask("HEAD", "", {"Accept": "application/json"}), ask("GET", "?format=plain")], container=False),
    Story("account metadata", [
        ask("POST", "", {"X-Account-Meta-Colour": "blue", "X-Account-Meta-Empty": ""}), ask("HEAD"), ask("GET"),
        ask("POST", "", {"X-Account-Meta-Size": "großer", "x-account-meta-cOLOUR": "green"}), ask("HEAD"),
        ask("POST", "", {"X-Remove-Account-Meta-Size": "x"}), ask("HEAD"),
        ask("POST", "", {"X-Account-Meta-Colour": ""}), ask("HEAD"),
        ask("POST", "", {"X-Account-Meta-": "nameless"}), ask("POST"), ask("POST", "", {"Unknown": "ignored"}),
        ask("PUT", "", {"X-Account-Meta-Colour": "blue"}), ask("POST", "", {"X-Timestamp": "1.0"}),
        ask("POST", "", {"X-Account-Meta-Bytes": b"\xff\xfe"}),
    ], container=False),
    Story("account access control", [
        ask("POST", "", {"X-Account-Access-Control": '{"read-only":["test:tester3"]}'}), ask("HEAD"),
        ask("GET", "?format=json", user="test:tester3"), ask("HEAD", user="test:tester3"),
        ask("PUT", "/no", user="test:tester3"),
        ask("POST", "", {"X-Account-Access-Control": '{"read-write":["test:tester3"]}'}),
        ask("PUT", "/yes", user="test:tester3"), ask("POST", "", {"X-Account-Meta-No": "x"}, user="test:tester3"),
        ask("POST", "", {"X-Account-Access-Control": '{"admin":["test:tester3"]}'}), ask("HEAD", user="test:tester3"),
        ask("POST", "", {"X-Account-Meta-Yes": "x"}, user="test:tester3"),
        *(each for text in ('{"read-only":["b","a"],"admin":[ ]} ', '{"admin":["b"],"admin":["a"]}', '{"admin":["\\u00e9/\\/\\n"]}', "{}")
          for each in (ask("POST", "", {"X-Account-Access-Control": text}), ask("HEAD"))),
        ask("POST", "", {"X-Account-Access-Control": "not json"}),
        ask("POST", "", {"X-Account-Access-Control": '{"wrong":["x"]}'}),
        ask("POST", "", {"X-Account-Access-Control": '{"admin":"x"}'}),
        ask("POST", "", {"X-Account-Access-Control": ""}), ask("HEAD"), ask("HEAD", user="test:tester3"),
    ], container=False),
    Story("temp url keys are for administrators", [
        ask("POST", "", {"X-Account-Meta-Temp-URL-Key": "secret"}), ask("HEAD"),
        ask("POST", "", {"X-Remove-Account-Meta-Temp-URL-Key": "1"}), ask("HEAD"),
    ], container=False),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
