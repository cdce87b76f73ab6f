"""What pages from elsewhere may ask and see, under all the filters, as at OpenStack's."""

from harness.compare import Ask, Story

PAGE, OTHER = {"Origin": "http://a.example"}, {"Origin": "http://b.example"}
FOR_GET = {"Access-Control-Request-Method": "GET"}
PREFLIGHTS = [{}, PAGE, {**PAGE, **FOR_GET}, {**OTHER, **FOR_GET}, FOR_GET, {**PAGE, "Access-Control-Request-Method": "PATCH"},
              {**PAGE, "Access-Control-Request-Method": "COPY", "Access-Control-Request-Headers": "x-auth-token, X-Foo"}]
PLACES = ["{c}", "{c}/o", "{a}", "{a}/nosuch", "{a}/nosuch/o", "/v1/AUTH_none/c", "/info", "/healthcheck", "/auth/v1.0", "/v1", "/", "/crossdomain.xml",
          "{c}?bulk-delete", "{a}?bulk-delete", "{c}?extract-archive=tar", "{c}/o?temp_url_sig=x&temp_url_expires=1"]
SHOWN = ["{c}", "{c}/o", "{c}/p", "{c}/link", "{c}/link?symlink=get", "{c}/slo", "{c}/slo?multipart-manifest=get", "{c}/nosuch", "{a}/nosuch/o", "{a}",
         "{c}?versions", "{c}/p?version-id=null"]
STORED = [
    Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Allow-Origin": "http://a.example", "X-Container-Meta-Access-Control-Max-Age": "60",
                        "X-Container-Meta-Access-Control-Expose-Headers": "X-Foo x-bar", "X-Container-Read": ".r:*,.rlistings", "X-Container-Meta-Quota-Count": "50"}),
    Ask("PUT", "{c}/o", {"X-Object-Meta-One": "1", "X-Object-Meta-Two-B": "2", "X-Delete-After": "9999", "X-Object-Manifest": "x/y"}, b"abc", level="status"),
    Ask("PUT", "{c}/p", {"X-Object-Meta-One": "1", "Content-Encoding": "gzip", "Content-Disposition": "x"}, b"abc", level="status"),
    Ask("PUT", "{c}/link", {"Content-Length": "0", "X-Symlink-Target": "{n}/p"}, level="status"),
    Ask("PUT", "{c}/slo?multipart-manifest=put", {}, b'[{"path": "/{n}/p"}]', level="status"),
]


def test_preflights(full_pair):
    full_pair.check(Story("preflights", [*STORED, *[Ask("OPTIONS", place, headers, user=user) for place in PLACES for headers in PREFLIGHTS
                                                   for user in (None, "test:tester")]]))


def test_exposed_headers(full_pair):
    anywhere = {"Origin": "http://q.example"}
    full_pair.check(Story("exposed", [
        *STORED,
        *[Ask(method, place, origin, user=user) for origin in (PAGE, OTHER) for method in ("GET", "HEAD") for user in (None, "test:tester") for place in SHOWN],
        Ask("COPY", "{c}/p", {**PAGE, "Destination": "{n}/q"}), Ask("COPY", "{c}/p", {**PAGE, "Destination": "nosuch/q"}),
        *[Ask(method, "{c}/r", {**PAGE, "Content-Length": "0"}, level="headers", without=("etag", "last-modified")) for method in ("PUT", "POST", "DELETE", "DELETE")],
        Ask("PUT", "{c}/r", {**PAGE, "X-Copy-From": "{n}/p", "Content-Length": "0"}),
        Ask("POST", "{c}", {"X-Versions-Enabled": "true"}, level="status"),
        Ask("POST", "{c}?bulk-delete", {**PAGE, "Accept": "application/json", "Content-Type": "text/plain"}, b"{n}/zz\n"),
        Ask("GET", "{c}/p", PAGE), Ask("GET", "{c}", PAGE),
        Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Allow-Origin": "*"}, level="status"),
        *[Ask("GET", "{c}/p", {**anywhere, **headers}) for headers in ({}, {"Range": "bytes=1-1"}, {"Range": "bytes=10-"}, {"If-None-Match": "*"})],
        Ask("GET", "{c}/p", {**anywhere, "X-Auth-Token": "bad"}, user=None),
    ]))
