"""/info, /healthcheck and transaction ids answer as OpenStack's."""

import json

import pytest

from harness.compare import Ask, Story

STORIES = [
    Story("healthcheck", [
        Ask(method, target, user=None) for method in ("GET", "HEAD", "PUT", "POST")
        for target in ("/healthcheck", "/healthcheck/", "/healthcheck?x=y", "//healthcheck")], container=False),
    Story("info", [
        Ask("HEAD", "/info", user=None, level="status"), Ask("PUT", "/info", user=None), Ask("POST", "/info", user=None),
        Ask("GET", "/info/x", user=None), Ask("GET", "/info?swiftinfo_sig=x&swiftinfo_expires=1", user=None),
        Ask("OPTIONS", "/info", user=None), Ask("GET", "/info/", user=None),
        Ask("GET", "/info", {"Origin": "http://example.com"}, user=None, level="headers", without=("content-length",))], container=False),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)


def test_info_tells_the_same_limits_and_policies(pair):
    theirs, ours = (json.loads(side.ask(Ask("GET", "/info", user=None)).body) for side in (pair.theirs, pair.ours))
    assert theirs["swift"].keys() == ours["swift"].keys()
    differing = {key: (theirs["swift"][key], ours["swift"][key]) for key in theirs["swift"]
                 if theirs["swift"][key] != ours["swift"][key] and key != "version"}
    assert not differing
    assert theirs["tempauth"] == ours["tempauth"]


def test_a_client_extends_the_transaction_id(pair):
    for side in (pair.theirs, pair.ours):
        reply = side.ask(Ask("GET", "{a}", {"X-Trans-Id-Extra": "mine"}))
        assert reply["X-Trans-Id"].endswith("-mine")
        assert reply["X-Openstack-Request-Id"] == reply["X-Trans-Id"]
