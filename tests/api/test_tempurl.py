"""Signed addresses give what OpenStack's give, and nothing else."""

from urllib.parse import quote

import pytest

from harness.compare import Ask, Story
from harness.signing import LATER, sign

ACCOUNT_KEYS = {"X-Account-Meta-Temp-URL-Key": "akey", "X-Account-Meta-Temp-URL-Key-2": "akey2"}
CONTAINER_KEYS = {"X-Container-Meta-Temp-URL-Key": "ckey", "X-Container-Meta-Temp-URL-Key-2": "ckey2"}


class Signed:
    """Asks about one object of a story's container, by signed addresses."""

    def __init__(self, story, name="o"):
        self.path = f"/v1/AUTH_test/{story}/{name}"

    def target(self, method="GET", key="akey", extra="", expires=LATER, shown=None, path=None, prefix=None, ip=None, **options):
        path = path or self.path
        lines = [f"ip={ip}"] if ip is not None else []
        signed = path if prefix is None else "prefix:" + "/".join(self.path.split("/")[:4]) + "/" + prefix
        signature = sign(key, *lines, method, expires, signed, **options)
        query = f"temp_url_sig={quote(signature, safe='')}&temp_url_expires={quote(str(shown or expires), safe='')}"
        query += "" if prefix is None else f"&temp_url_prefix={prefix}"
        query += "" if ip is None else f"&temp_url_ip_range={quote(ip, safe='')}"
        return f"{quote(path)}?{query}{extra}"

    def ask(self, method="GET", *, by=None, headers=None, body=b"", level="all", **options):
        return Ask(method, self.target(by or method, **options), headers or {}, body, user=None, level=level)


def story(name, *asks):
    own = [Ask("POST", "{a}", ACCOUNT_KEYS), Ask("PUT", "{c}", CONTAINER_KEYS),
           Ask("PUT", "{c}/o", {"X-Object-Meta-A": "1", "X-Object-Meta-Public-B": "2", "Content-Type": "text/plain"}, b"hello"),
           Ask("PUT", "{c}/d", {"Content-Disposition": "inline; x=y"}, b"stored")]
    return Story(name, [*own, *asks], container=False)


keys, forms, times = Signed("tempurl-keys"), Signed("tempurl-forms"), Signed("tempurl-times")
names, scope, writes, bad = (Signed(f"tempurl-{name}") for name in ("names", "scope", "writes", "bad"))
OBJECT = forms.path

STORIES = [
    story("tempurl keys", *[keys.ask(key=key) for key in ("akey", "akey2", "ckey", "ckey2", "other", "")],
          keys.ask(headers={"X-Auth-Token": "rubbish"}), keys.ask(key="other", headers={"X-Auth-Token": "{token}"})),
    story("tempurl forms", *[forms.ask(digest=digest, encoding=encoding) for digest in ("sha1", "sha256", "sha512", "md5", "sha384")
                             for encoding in ("hex", "base64")],
          *[Ask("GET", f"{OBJECT}?temp_url_sig={text}&temp_url_expires={LATER}", user=None)
            for text in ("", "x", "sha256", "sha256:", "sha256:!!", "%ff", "a" * 40, "A" * 64, "sha1:" + "a" * 40, "0" * 128)]),
    story("tempurl times", *[times.ask(shown=shown) for shown in
                             ("2100-01-01T00:00:00Z", "2100-01-01t00:00:00z", "2100-1-1T0:0:0Z", "2100-01-01T00:00:00", "2100-01-01",
                              "2100-01-01T00:00:00+00:00", f" {LATER} ", f"+{LATER}", f"{LATER}.0", "4_102_444_800", "x")],
          times.ask(expires=5), times.ask(expires=-5), Ask("GET", times.path + "?temp_url_sig=x", user=None),
          Ask("GET", times.path + f"?temp_url_expires={LATER}", user=None), times.ask(extra="&temp_url_sig=x"),
          times.ask(extra="&temp_url_expires=5")),
    story("tempurl names", *[names.ask(extra=extra) for extra in
                             ("&filename=a%20%22b%22;%5C%C3%BC%0A", "&filename=", "&filename=%ff", "&inline", "&inline=false&filename=z",
                              "&filename=/a/b/", "&multipart-manifest=get", "&format=json")],
          names.ask(path=names.path.replace("/o", "/d")), names.ask(path=names.path.replace("/o", "/d"), extra="&inline"),
          names.ask(path=names.path.replace("/o", "/d"), extra="&filename=x"), names.ask(path=names.path + "/none"),
          names.ask(headers={"Range": "bytes=0-1"}), names.ask(headers={"If-None-Match": "*"}), names.ask("HEAD", by="GET"),
          Ask("PUT", "{c}/p/q/%C3%BC%20%22x%5C%3By", body=b"odd"), names.ask(path=names.path[:-1] + "p/q/ü \"x\\;y")),
    story("tempurl scope", scope.ask(prefix=""), scope.ask(prefix="o"), scope.ask(prefix="p"),
          scope.ask(path="/v1/AUTH_test/tempurl-scope/", prefix=""), scope.ask(path="/v1/AUTH_test/tempurl-scope", prefix=""),
          *[scope.ask(ip=ip) for ip in ("127.0.0.1", "127.0.0.0/8", "127.0.0.1/8", "127.0.0.0/255.0.0.0", "127.0.0.0/0.255.255.255",
                                        "10.0.0.0/8", "::1", "x", "", "0.0.0.0/0", "127.0.0.01")],
          *[scope.ask(path=path) for path in ("/v1/AUTH_test/tempurl-scope", "/v1/AUTH_test/tempurl-scope/", "/v1/AUTH_test", "/v1",
                                              "/v9/AUTH_test/c/o", "/v1.0/AUTH_test/tempurl-scope/o", "/v1/AUTH_test2/c/o")],
          *[scope.ask("HEAD", by=method, level="status") for method in ("GET", "HEAD", "PUT", "POST", "DELETE")],
          *[scope.ask("GET", by=method) for method in ("HEAD", "PUT", "POST")], scope.ask("COPY", headers={"Destination": "x/y"}),
          scope.ask("OPTIONS", by="GET"), scope.ask(headers={"Origin": "http://example.com"})),
    story("tempurl writes", writes.ask("PUT", path=writes.path + "n", headers={"X-Object-Meta-A": "1", "X-Timestamp": "5"}, body=b"new"),
          Ask("HEAD", "{c}/on"), *[writes.ask(method, headers={name: "c/o"}, body=b"x") for method in ("PUT", "POST")
                                   for name in ("X-Object-Manifest", "X-Symlink-Target", "X-Copy-From")],
          writes.ask("POST", headers={"X-Object-Meta-B": "2"}), Ask("HEAD", "{c}/o"), writes.ask("DELETE", by="PUT"),
          writes.ask("PUT", extra="&multipart-manifest=put", body=b"[]"), writes.ask("DELETE"), writes.ask("DELETE"),
          writes.ask("PUT", extra="&extract-archive=tar", body=b"x" * 600),
          writes.ask("POST", extra="&bulk-delete", headers={"Content-Type": "text/plain"}, body=b"tempurl-writes/on\n")),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(full_pair, story):
    full_pair.check(story)
