"""Hosts name accounts and containers as they do at OpenStack's."""

import pytest

from harness.compare import Ask, Story

HOSTS = ["AUTH_test.example.com", "auth-test.example.com", "remap.AUTH_test.example.com", "REMAP.auth_test.EXAMPLE.com",
         "x.y.AUTH_test.example.com", "example.com", ".example.com", "test.example.com", "AUTH_.example.com",
         "AUTH-test-x.example.com", "AUTH_te-st.example.com", "c.aexample.com", "remap.AUTH_test.example.com:8080",
         "remap.AUTH_test.example.com:80:80", ".AUTH_test.example.com", "..example.com", "AUTH.example.com",
         "AUTH_test..example.com", "a..AUTH_test.example.com", "d%20r.AUTH_test.example.com", "[::1]",
         "remap.AUTH_test.example.com.", "AUTHtest.example.com", "remap.auth.example.com", "re-map.AUTH-test.example.com"]
PATHS = ["/", "/o", "/v1/o", "/remap/o", "/info", "/v1", "//o", "/remap", "/healthcheck", "/?format=json&prefix=v"]

STORY = Story("remap", [
    Ask("POST", "{c}", {"X-Container-Read": ".r:*,.rlistings"}),
    *[Ask("PUT", "{c}/" + name, {"Content-Length": "1"}, b"x", level="status") for name in ("o", "v1/o")],
    *[Ask("GET", path, {"Host": host}, user=user) for host in HOSTS for path in (PATHS if "remap" in host else PATHS[:2])
      for user in (None, "test:tester") if path != "/info"],
    Ask("HEAD", "/o", {"Host": "x.y.z.example.com"}),
    Ask("PUT", "/new", {"Host": "remap.auth-test.example.com", "Content-Length": "1"}, b"x", level="status"),
    Ask("GET", "{c}"),
    Ask("DELETE", "/new", {"Host": "remap.auth-test.example.com"}),
    Ask("GET", "{c}"),
])


def test_same_places(full_pair):
    full_pair.check(STORY)
