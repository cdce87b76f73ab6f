"""Metadata whose names are no HTTP tokens: taken, kept, counted and shown as OpenStack does."""

import pytest

from harness.compare import Ask, Story

THAI = "uni\u0e12x"  # of three bytes; OpenStack's proxy takes names of two bytes for objects only
NAMES = {"thai": THAI, "umlaut": "\u00fc", "large umlaut": "a\u00dcB", "hebrew": "\u05d0b", "bird": "\U0001f426", "percent": "50%", "encoded": "%41%c3%a9",
         "slash": "a/b", "brackets": "a(b)[c]{d}", "quote": 'a"b', "at": "a@b,c;d=e?<f>\\", "no text": "\udcff\udcfe", "micro": "\u00b5", "sigma": "\u03a3"}

# What containers of other tests add to the account, in either cluster at its own pace.
OF_OTHER_TESTS = ("x-account-container-count", "content-length", *(
    f"x-account-storage-policy-{policy}-{figure}" for policy in ("gold", "silver") for figure in ("object-count", "bytes-used", "container-count")))


def stories(kind, target, make, status):
    prefix = f"X-{kind}-Meta-"
    others = OF_OTHER_TESTS if kind == "Account" else ()
    return Story(f"{kind} names", [ask for name in NAMES.values() for ask in (
        Ask(make, target, {prefix + name: "v\u00e9"}, level=status), Ask("HEAD", target, without=others),
        *([Ask("GET", target, level="headers", without=others)] if kind != "Container" else []),  # OpenStack answers 500
        *([Ask("POST", target, {f"X-Remove-{kind}-Meta-" + name: "x"}), Ask("HEAD", target, without=others)] if kind != "Object" else []),
    )], container=kind != "Account")


STORIES = [
    stories("Account", "{a}", "POST", "all"), stories("Container", "{c}", "POST", "all"), stories("Object", "{c}/o", "PUT", "headers"),
    Story("objects are posted anew", [
        Ask("PUT", "{c}/o", {"X-Object-Meta-" + THAI: "1"}, level="headers"), Ask("POST", "{c}/o", {"X-Object-Meta-\u00fc": "2"}),
        Ask("HEAD", "{c}/o"), Ask("POST", "{c}/o"), Ask("HEAD", "{c}/o")]),
    Story("bytes of the real name count", [
        Ask(method, target, {f"X-{kind}-Meta-" + "\u0e12" * length + "a" * more: "v"})
        for kind, method, target in (("Account", "POST", "{a}"), ("Container", "PUT", "{c}"), ("Object", "PUT", "{c}/long"))
        for length, more in ((42, 2), (42, 3), (43, 0))] + [Ask("HEAD", "{c}"), Ask("HEAD", "{c}/long")]),
    Story("values too long name the name", [
        Ask("POST", "{c}", {"X-Container-Meta-" + THAI: "v" * 257}), Ask("PUT", "{c}/o", {"X-Object-Meta-\u00fc": "v" * 257})]),
    Story("no text", [
        Ask("POST", target, {f"X-{word}{kind}-Meta-" + name: value})
        for kind, target in (("Account", "{a}"), ("Container", "{c}")) for word in ("", "Remove-") for name, value in (
            ("a", "\udcff"), ("\udcff", "a"), ("\udcff", "\udcff"), ("\udcff" * 129, "a"), ("a" * 129, "a"), ("", "a"), ("\u0e12" * 43, "\udcff"))]),
    Story("other headers", [
        Ask("GET", "{c}", {"X-\u00dc": "1", "Ran\u00e9ge": "x"}), Ask("GET", "{c}", {"X-Object-Meta": "1", "%": "2"})]),
    Story("a body behind such a head", [
        Ask("PUT", "{c}/body", {"X-Object-Meta-\u00fc": "1"}, body="\u00fc: %\r\n\r\nPUT / HTTP/1.1\r\n\u00fc: \r\n\r\n".encode(), level="headers"),
        Ask("GET", "{c}/body")]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_names(pair, story):
    pair.check(story)
