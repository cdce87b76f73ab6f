"""TempAuth and the outer door answer as OpenStack's: tokens, refusals, reseller prefixes, wrong paths."""

import pytest

from harness.compare import Ask, Story


def login(target="/auth/v1.0", method="GET", **headers):
    return Ask(method, target, {"X-" + name.replace("_", "-"): value for name, value in headers.items()}, user=None)


RIGHT = {"Auth_User": "test:tester", "Auth_Key": "testing"}

STORIES = [
    Story("login", [
        login(**RIGHT), login(Storage_User="test:tester", Storage_Pass="testing"),
        login(Auth_User="test:tester3", Auth_Key="testing3"), login(Auth_User="test5:tester5", Auth_Key="testing5"),
        login("/auth/v1/test/auth", Auth_User="tester", Auth_Key="testing"),
        login("/auth/v1/test/auth", **RIGHT), login("/auth/v1/other/auth", **RIGHT),
        login(method="HEAD", **RIGHT), login("/auth/v1.0/", **RIGHT), login("/auth/v1", **RIGHT),
    ], container=False),
    Story("login refused", [
        login(Auth_User="test:tester", Auth_Key="wrong"), login(Auth_User="test:tester", Auth_Key=""),
        login(Auth_User="test:nobody", Auth_Key="testing"), login(Auth_User="none:tester", Auth_Key="testing"),
        login(Auth_User="tester", Auth_Key="testing"), login(Auth_User="test:tester"), login(),
        login(Auth_User="test:tester:", Auth_Key="testing"), login("/auth/v1/test/auth"),
    ], container=False),
    Story("login at wrong paths", [
        login("/auth", **RIGHT), login("/auth/", **RIGHT), login("/auth/v2.0", **RIGHT), login("/auth/v1.0/x", **RIGHT),
        login("/auth//v1.0", **RIGHT), login(method="POST", **RIGHT), login(method="PUT", **RIGHT),
        login("/auth/v1/test/other", **RIGHT),
    ], container=False),
    Story("tokens", [
        Ask("HEAD", "{c}", user=None), Ask("GET", "{c}", user=None), Ask("PUT", "{c}/o", user=None, body=b"x"),
        Ask("GET", "{c}", {"X-Auth-Token": "AUTH_tk00000000000000000000000000000000"}),
        Ask("GET", "{c}", {"X-Auth-Token": "rubbish"}), Ask("GET", "{c}", {"X-Auth-Token": ""}),
        Ask("HEAD", "{c}", {"X-Storage-Token": "{token}", "X-Auth-Token": ""}),
        Ask("GET", "{c}", user="test2:tester2"), Ask("GET", "{c}", user="test:tester3"),
        Ask("HEAD", "{c}", user="test:tester2"), Ask("HEAD", "{c}", user="test:tester6"),
        Ask("HEAD", "{c}", user="admin:admin"), Ask("PUT", "{c}/o", user="test:tester3", body=b"x"),
        Ask("GET", "/v1/AUTH_test2", user="test:tester"), Ask("HEAD", "/v1/AUTH_test2", user=None),
    ]),
    Story("paths outside", [
        Ask(method, target, user=user)
        for method in ("GET", "PUT")
        for user in (None, "test:tester")
        for target in ("/", "/v1", "/v1/", "/v1/AUTH_", "/v1/OTHER_test", "/v1/SERVICE_test", "/v2/AUTH_test",
                       "/v1.0/AUTH_test", "/other", "//v1/AUTH_test", "/v1//c/o")
    ], container=False),
    Story("methods", [
        Ask(method, target, user=user, also=(405,) if method == "COPY" else ())  # no copying yet
        for method in ("OPTIONS", "TRACE", "PATCH", "COPY", "REPLICATE", "SSYNC", "BREW", "get")
        for user in ("test:tester", None)
        for target in ("{a}", "{c}", "{c}/o")
    ]),
    Story("service accounts", [
        Ask("PUT", "/v1/SERVICE_test/svc", user="test:tester"),
        Ask("PUT", "/v1/SERVICE_test/svc", {"X-Service-Token": "nonsense"}, user="test:tester"),
        Ask("GET", "/v1/SERVICE_test5", user="test5:tester5"),
        Ask("PUT", "/v1/SERVICE_test/svc", user="admin:admin"),
        Ask("HEAD", "/v1/SERVICE_test/svc", user="admin:admin"),
        Ask("GET", "/v1/AUTH_test5", user="test5:tester5"),
    ], container=False),
    Story("account management", [
        Ask("PUT", "/v1/AUTH_made", user="test:tester"), Ask("GET", "/v1/AUTH_made", user="admin:admin"),
        Ask("PUT", "/v1/AUTH_made", user="admin:admin"), Ask("PUT", "/v1/AUTH_made", user="admin:admin"),
        Ask("HEAD", "/v1/AUTH_made", user="admin:admin"), Ask("PUT", "/v1/AUTH_made/c", user="admin:admin"),
        Ask("GET", "/v1/AUTH_made?format=json", user="admin:admin"),
        Ask("DELETE", "/v1/AUTH_made", user="test:tester"), Ask("DELETE", "/v1/AUTH_made", user="admin:admin"),
        Ask("HEAD", "/v1/AUTH_made", user="admin:admin"), Ask("GET", "/v1/AUTH_made", user="admin:admin"),
        Ask("GET", "/v1/AUTH_made/c", user="admin:admin"), Ask("PUT", "/v1/AUTH_made/d", user="admin:admin"),
        Ask("PUT", "/v1/AUTH_made", user="admin:admin"), Ask("DELETE", "/v1/AUTH_made", user="admin:admin"),
        Ask("DELETE", "/v1/AUTH_never", user="admin:admin"), Ask("DELETE", "{a}?x=y"),
        Ask("PUT", "/v1/AUTH_" + "n" * 252, user="admin:admin"),
    ], container=False),
    Story("autocreated accounts", [
        Ask("HEAD", "/v1/AUTH_auto", user="admin:admin"), Ask("GET", "/v1/AUTH_auto", user="admin:admin"),
        Ask("GET", "/v1/AUTH_auto?format=json", user="admin:admin"),
        Ask("GET", "/v1/AUTH_auto?format=xml", user="admin:admin"),
        Ask("GET", "/v1/AUTH_auto/c", user="admin:admin"), Ask("PUT", "/v1/AUTH_auto/c/o", user="admin:admin"),
        Ask("POST", "/v1/AUTH_auto/c", user="admin:admin"), Ask("DELETE", "/v1/AUTH_auto/c", user="admin:admin"),
        Ask("POST", "/v1/AUTH_auto", {"X-Account-Meta-Colour": "blue"}, user="admin:admin"),
        Ask("HEAD", "/v1/AUTH_auto", user="admin:admin"),
        Ask("PUT", "/v1/AUTH_auto2/c", user="admin:admin"), Ask("HEAD", "/v1/AUTH_auto2", user="admin:admin"),
    ], container=False),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
