"""Objects answer as OpenStack's: storing, describing, replacing, deleting, and what headers survive."""

import pytest

from harness.compare import Ask, Story
from harness.wire import chunked

ETAG = "900150983cd24fb0d6963f7d28e17f72"  # of b"abc"

STORIES = [
    Story("object life", [
        Ask("GET", "{c}/o"), Ask("HEAD", "{c}/o"), Ask("POST", "{c}/o"), Ask("DELETE", "{c}/o"),
        Ask("PUT", "{c}/o", body=b"abc"), Ask("GET", "{c}/o"), Ask("HEAD", "{c}/o"), Ask("PUT", "{c}/o", body=b"abcd"),
        Ask("GET", "{c}/o"), Ask("GET", "{c}/o", {"X-Newest": "true"}), Ask("HEAD", "{c}/o", {"X-Newest": "1"}),
        Ask("DELETE", "{c}/o"), Ask("GET", "{c}/o"), Ask("HEAD", "{c}/o"), Ask("DELETE", "{c}/o"),
        Ask("POST", "{c}/o", {"X-Object-Meta-A": "b"}), Ask("PUT", "{c}/o", {"Content-Length": 0}), Ask("GET", "{c}/o"),
        Ask("GET", "{c}/o?format=json&limit=2&unknown"), Ask("PUT", "{c}-missing/o", body=b"abc"),
        Ask("GET", "{c}-missing/o"), Ask("HEAD", "{c}-missing/o"), Ask("POST", "{c}-missing/o"),
        Ask("DELETE", "{c}-missing/o"),
    ]),
    Story("object etag", [
        Ask("PUT", "{c}/o", {"ETag": ETAG}, b"abc"), Ask("PUT", "{c}/o", {"ETag": f'"{ETAG}"'}, b"abc"),
        Ask("PUT", "{c}/o", {"ETag": ETAG.upper()}, b"abc"), Ask("PUT", "{c}/o", {"ETag": ETAG}, b"abcd"),
        Ask("PUT", "{c}/o", {"ETag": "rubbish"}, b"abcd"), Ask("PUT", "{c}/o", {"ETag": ""}, b"abcd"),
        Ask("PUT", "{c}/new", {"ETag": ETAG}, b"abcd"), Ask("GET", "{c}/new"), Ask("GET", "{c}/o"),
        Ask("PUT", "{c}/o", {"Content-MD5": "rubbish"}, b"x"),
    ]),
    Story("object content type", [
        ask for name, headers in [
            ("plain", {}), ("p.jpg", {}), ("p.html", {}), ("p.tar.gz", {}), ("p.unknown", {}), ("p.json", {}), ("p.py", {}),
            ("t", {"Content-Type": "text/x-a"}), ("t2", {"Content-Type": "Text/X-A; Charset=UTF-8"}),
            ("e", {"Content-Type": ""}), ("p.png", {"Content-Type": "x/y", "X-Detect-Content-Type": "true"}),
            ("p.gif", {"Content-Type": ""}), ("u", {"Content-Type": "application/\u00fc"}), ("b", {"Content-Type": b"\xff/x"}),
            ("form", {"Content-Type": "application/x-www-form-urlencoded"}), ("s", {"Content-Type": "x/y; swift_bytes=3"}),
            ("P.JPG", {}), ("p.md", {}), ("p.webp", {}), ("p.mjs", {}), ("p.tgz", {}), ("p.csv", {}),
        ] for ask in (Ask("PUT", "{c}/" + name, headers, b"abc"), Ask("HEAD", "{c}/" + name))
    ]),
    Story("object headers kept", [
        Ask("PUT", "{c}/o", {"Content-Encoding": "gzip", "Content-Disposition": "attachment; filename=\"x\"",
                             "Content-Language": "de", "Expires": "never",
                             "Cache-Control": "no-cache", "X-Robots-Tag": "noindex", "X-Static-Large-Object": "True",
                             "X-Object-Meta-Colour": "blue", "X-Object-Meta-Uni": "çødé", "X-Object-Meta-Empty": "",
                             "X-Object-Meta-Under_Score": "x", "X-Other": "dropped", "Server": "none"}, b"abc"),
        Ask("HEAD", "{c}/o"), Ask("GET", "{c}/o"),
        Ask("POST", "{c}/o", {"X-Object-Meta-Size": "L"}), Ask("HEAD", "{c}/o"),
        Ask("POST", "{c}/o", {"Content-Type": "text/new", "Content-Encoding": "x"}),
        Ask("HEAD", "{c}/o"), Ask("POST", "{c}/o", {"Content-Disposition": ""}), Ask("HEAD", "{c}/o"),
        Ask("POST", "{c}/o"), Ask("GET", "{c}/o"), Ask("POST", "{c}/o", {"X-Object-Meta-": "nameless"}),
        Ask("PUT", "{c}/p", {"X-Object-Meta-": "nameless"}, b"x"), Ask("POST", "{c}/o", {"X-Remove-Object-Meta-A": "x"}),
        Ask("POST", "{c}/o", body=b"a body"), Ask("DELETE", "{c}/o", body=b"a body"),
    ]),
    Story("object expiry", [
        Ask("PUT", "{c}/o", {"X-Delete-At": "99999999999"}, b"x"), Ask("PUT", "{c}/o", {"X-Delete-At": "9999999999"}, b"x"),
        Ask("HEAD", "{c}/o"), Ask("PUT", "{c}/o", {"X-Delete-At": "1"}, b"x"), Ask("PUT", "{c}/o", {"X-Delete-At": "soon"}, b"x"),
        Ask("PUT", "{c}/o", {"X-Delete-At": "-5"}, b"x"), Ask("PUT", "{c}/o", {"X-Delete-At": ""}, b"x"), Ask("HEAD", "{c}/o"),
        Ask("PUT", "{c}/o", {"X-Delete-After": "-1"}, b"x"), Ask("PUT", "{c}/o", {"X-Delete-After": "x"}, b"x"),
        Ask("PUT", "{c}/o", {"X-Delete-After": "0"}, b"x"), Ask("PUT", "{c}/o", {"X-Delete-After": "1000"}, b"x"),
        Ask("HEAD", "{c}/o", without=("x-delete-at",)), Ask("POST", "{c}/o", {"X-Delete-At": "9999999998"}),
        Ask("HEAD", "{c}/o"), Ask("POST", "{c}/o", {"X-Delete-At": "1"}), Ask("POST", "{c}/o", {"X-Delete-At": "x"}),
        Ask("POST", "{c}/o", {"X-Remove-Delete-At": "x"}), Ask("HEAD", "{c}/o"), Ask("GET", "{c}?format=json"),
    ]),
    Story("object conditions on storing", [
        Ask("PUT", "{c}/o", {"If-None-Match": "*"}, b"abc"), Ask("PUT", "{c}/o", {"If-None-Match": "*"}, b"abcd"),
        Ask("GET", "{c}/o"), Ask("PUT", "{c}/o", {"If-None-Match": "abc"}, b"x"), Ask("PUT", "{c}/o", {"If-None-Match": ""}, b"x"),
        Ask("PUT", "{c}/o", {"If-Match": "*"}, b"x"), Ask("PUT", "{c}/n", {"If-Match": "*"}, b"x"),
        Ask("PUT", "{c}/o", {"If-Modified-Since": "Thu, 01 Jan 2037 00:00:00 GMT"}, b"x"),
        Ask("DELETE", "{c}/o", {"If-None-Match": "*"}), Ask("DELETE", "{c}/o", {"If-Match": "abc"}), Ask("GET", "{c}/o"),
    ]),
    Story("object lengths", [
        Ask("PUT", "{c}/none"), Ask("PUT", "{c}/zero", {"Content-Length": 0}),
        Ask("PUT", "{c}/chunked", {"Transfer-Encoding": "chunked"}, chunked(b"hello ", b"world")), Ask("GET", "{c}/chunked"),
        Ask("PUT", "{c}/chunked0", {"Transfer-Encoding": "chunked"}, chunked()), Ask("GET", "{c}/chunked0"),
        Ask("PUT", "{c}/upper", {"Transfer-Encoding": "Chunked"}, chunked(b"x"), also=(201,)),
        Ask("PUT", "{c}/exts", {"Transfer-Encoding": "chunked"}, b"3;ext=1\r\nabc\r\n0\r\n\r\n"), Ask("GET", "{c}/exts"),
        Ask("PUT", "{c}/trailer", {"Transfer-Encoding": "chunked"}, b"3\r\nabc\r\n0\r\nX-T: y\r\n\r\n", level="status"),
        Ask("PUT", "{c}/expect", {"Expect": "100-continue"}, b"abc", level="status"),
        Ask("PUT", "{c}/odd", {"Expect": "200-ok"}, b"abc"),
    ]),
    Story("object names", [
        Ask(method, "{c}/" + name, body=b"x" if method == "PUT" else b"")
        for name in ("n" * 1024, "n" * 1025, "%C3%BC" * 512, "%C3%BC" * 513, "a/b", "a//b", "/lead", "trail/", "//", ".", "..",
                     "../up", "a/../b", "%2E%2E", "%2E%2E%2F%2E%2E%2Fetc", "a%2Fb", "sp%20ace", "sp+plus", "%25", "%2525",
                     "q%3Fq", "h%23h", "a;b=c", "%F0%9F%90%A6", "%0A", "%7F", "\u00fc", "(x)'y'!*", "a:b@c", "&=", "[x]", "%5C")
        for method in ("PUT", "GET", "HEAD", "DELETE")
    ]),
    Story("object copying, which OpenStack configures by itself", [
        Ask("PUT", "{c}/o", body=b"abc"), Ask("COPY", "{c}/o", {"Destination": "x/y"}, also=(405,)),
        Ask("PUT", "{c}/p", {"X-Copy-From": "/x/o", "Content-Length": 0}, also=(405, 501)), Ask("GET", "{c}/p"),
    ]),
    Story("object cors", [
        Ask("PUT", "{c}/o", body=b"abc"), Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Allow-Origin": "http://good.example"}),
        Ask("GET", "{c}/o", {"Origin": "http://good.example"}), Ask("GET", "{c}/o", {"Origin": "http://bad.example"}),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://good.example", "Access-Control-Request-Method": "GET"}),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://bad.example", "Access-Control-Request-Method": "GET"}),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://good.example", "Access-Control-Request-Method": "BREW"}),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://good.example"}), Ask("OPTIONS", "{c}/o", user=None),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://good.example", "Access-Control-Request-Method": "PUT",
                                 "Access-Control-Request-Headers": "X-A, X-B"}, user=None),
        Ask("POST", "{c}", {"X-Container-Meta-Access-Control-Expose-Headers": "X-Mine", "X-Container-Meta-Access-Control-Max-Age": "5"}),
        Ask("GET", "{c}/o", {"Origin": "http://good.example"}), Ask("GET", "{c}/none", {"Origin": "http://good.example"}),
        Ask("OPTIONS", "{c}/o", {"Origin": "http://good.example", "Access-Control-Request-Method": "GET"}),
    ]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
