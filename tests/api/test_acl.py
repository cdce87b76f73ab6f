"""Access control answers as OpenStack's: who may read, list and write, by user, account and referrer."""

import pytest

from harness.compare import Ask, Story

THIRD, OTHER, ADMIN = "test:tester3", "test2:tester2", "test:tester6"


def attempts(headers=None):
    """What everyone but the owner gets: reads, listings, writes."""
    return [Ask(method, target, dict(headers or {}), body=b"x" if method == "PUT" else b"", user=user)
            for user in (None, THIRD, OTHER)
            for method, target in (("GET", "{c}/o"), ("HEAD", "{c}/o"), ("GET", "{c}"), ("HEAD", "{c}"), ("PUT", "{c}/w"),
                                   ("POST", "{c}/o"), ("DELETE", "{c}/w"), ("POST", "{c}"), ("GET", "{c}/missing"))]


def granted(name, read="", write="", headers=None):
    return Story(f"acl {name}", [
        Ask("PUT", "{c}/o", body=b"abc"), Ask("POST", "{c}", {"X-Container-Read": read, "X-Container-Write": write}),
        Ask("HEAD", "{c}"), *attempts(headers)])


GOOD = [".r:*", " .r : * , .rlistings ", ".r:*,.rlistings", ".r:example.com", ".r:.example.com", ".r:-bad.example", ".r:*,.r:-bad.example",
        "test:tester3", "test", "test2", "test2:*", "*:*", "*", "a,b , c", ".referrer:*", ".ref:x", ".referer:*,.rlistings", ".r:*.example.com",
        "", "test:tester3,,", ".rlistings", ",,", "ü:ü"]
BAD = [".r:", ".r:-", ".unknown:x", ".r: ,x", ".r:*.", ".r:.", ".r:-*.", ".x", ".r"]

STORIES = [
    granted("none"), granted("public objects", ".r:*"), granted("public listings", ".r:*,.rlistings"),
    granted("listings alone", ".rlistings"), granted("user read", "test:tester3"), granted("user write", "", "test:tester3"),
    granted("account read", "test2"), granted("account wildcard", "test2:*"), granted("everyone with a token", "*:*", "*:*"),
    granted("both", "test2:tester2", "test2:tester2"), granted("account write", "", "test2"), granted("star", "*", "*"),
    granted("referrer right", ".r:.example.com,.rlistings", headers={"Referer": "http://www.example.com/page"}),
    granted("referrer bare", ".r:example.com", headers={"Referer": "http://example.com"}),
    granted("referrer wrong", ".r:.example.com", headers={"Referer": "http://www.example.org/"}),
    granted("referrer denied", ".r:*,.r:-.example.com", headers={"Referer": "https://thief.example.com/x"}),
    granted("referrer later rule wins", ".r:-.example.com,.r:*", headers={"Referer": "https://thief.example.com/x"}),
    granted("referrer with user", ".r:*", headers={"Referer": "http://user@example.com:8080/x"}),
    granted("referrer rubbish", ".r:example.com", headers={"Referer": "rubbish"}),
    granted("missing referrer", ".r:example.com"),
    Story("acl texts kept", [ask for text in GOOD for ask in (
        Ask("POST", "{c}", {"X-Container-Read": text}), Ask("HEAD", "{c}"))]),
    Story("acl texts refused", [ask for text in BAD for ask in (
        Ask("POST", "{c}", {"X-Container-Read": text}), Ask("PUT", "{c}-bad", {"X-Container-Read": text}),
        Ask("POST", "{c}", {"X-Container-Write": text}))]),
    Story("acl for writing takes no referrers", [
        Ask("POST", "{c}", {"X-Container-Write": text}) for text in (".r:*", ".rlistings", "x,.r:*", ".referrer:x")] + [Ask("HEAD", "{c}")]),
    Story("acl removed", [
        Ask("POST", "{c}", {"X-Container-Read": ".r:*", "X-Container-Write": "test2"}),
        Ask("POST", "{c}", {"X-Remove-Container-Read": "x"}), Ask("HEAD", "{c}"),
        Ask("POST", "{c}", {"X-Container-Write": ""}), Ask("HEAD", "{c}"),
        Ask("PUT", "{c}", {"X-Container-Read": ".r:*"}), Ask("HEAD", "{c}"), Ask("HEAD", "{c}", user=ADMIN)]),
    Story("acl of a container that an account's administrator may read anyway", [
        Ask("POST", "{a}", {"X-Account-Access-Control": '{"admin": ["test:tester3"]}'}),
        Ask("POST", "{c}", {"X-Container-Read": ".r:*,.rlistings", "X-Container-Sync-Key": "s"}),
        Ask("HEAD", "{c}", user=THIRD), Ask("GET", "{c}?format=json", user=THIRD), Ask("HEAD", "{c}", user=OTHER),
        Ask("POST", "{a}", {"X-Account-Access-Control": "{}"})]),
    Story("acl hidden from those it grants to", [
        Ask("POST", "{c}", {"X-Container-Read": "test:tester3,.rlistings", "X-Container-Write": "test:tester3", "X-Container-Sync-Key": "s"}),
        Ask("HEAD", "{c}", user=THIRD), Ask("GET", "{c}?format=json", user=THIRD), Ask("HEAD", "{c}"),
        Ask("PUT", "{c}/new", body=b"x", user=THIRD), Ask("DELETE", "{c}/new", user=THIRD), Ask("PUT", "{c}", user=THIRD),
        Ask("DELETE", "{c}", user=THIRD), Ask("GET", "{a}", user=THIRD)]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
