"""Containers as web sites look as OpenStack's: index files, error pages, listings, redirects."""

import pytest

from harness.compare import Ask, Story

META = "X-Container-Meta-Web-"
READABLE = {"X-Container-Read": ".r:*,.rlistings"}
WEB = {"X-Web-Mode": "true"}
FILES = {"one.txt": ("text/plain", b"1" * 1234), "dir/": ("application/directory", b"x" * 9), "dir/obj": ("image/png", b""),
         "dir/%C3%BC%20%26%3C%22'.x": ("a/b; charset=\"x'y\"", b"1" * 1536), "marker/": ("application/directory", b""),
         "a%25b%3Fmulti": ("x/y\"<>&/z", b"1"), "..x/y": ("text", b"1" * 2560), "%0Anl%09tab": ("a/b c", b"1"),
         "d%20%23%3F/x": ("a/b", b"1"), "~_-.!*()": ("A/B;charset=X", b"1"), "/lead": ("a/b", b"1"), "m2": ("application/directory", b"x"),
         "m2/x": ("a/b", b"22"), "m3/": ("text/dir", b"")}


def files(*names):
    """Asks that store them; what they are answered says nothing here."""
    return [Ask("PUT", "{c}/" + name, {"Content-Type": FILES[name][0], "Content-Length": str(len(FILES[name][1]))},
                FILES[name][1], level="status") for name in names or FILES]


def visits(*paths, method="GET", **more):
    return [Ask(method, "{c}" + path, dict(more), user=None) for path in paths]


EVERYWHERE = ("", "/", "/dir", "/dir/", "/nosuch", "/nosuch/", "/marker", "/marker/", "/m2", "/m2/", "/m3", "/m3/", "//",
              "/one.txt", "/one.txt/", "/..x/", "/..x", "/d%20%23%3F", "/d%20%23%3F/", "?format=json", "/?format=json&prefix=x",
              "/dir?x=y", "/?limit=1&delimiter=x&prefix=d")


def site(name, settings, *asks, acl=READABLE):
    headers = {**acl, **{META + key: value for key, value in settings.items()}}
    return Story(name, [Ask("PUT", "{c}", headers), *files(), *(asks or visits(*EVERYWHERE))], container=False)


ERRORS = [Ask("PUT", "{c}/" + status + "error.html", {"Content-Type": "text/html", "X-Object-Meta-A": "b"}, status.encode(),
              level="status") for status in ("404", "401", "412")]
STORIES = [
    site("web nothing", {}), site("web nothing but by name", {}, *[Ask("GET", "{c}" + path, WEB) for path in EVERYWHERE]),
    site("web index", {"Index": "index.html"}),
    site("web index of some", {"Index": "x"}),
    site("web listings", {"Listings": "true"}),
    site("web listings heads", {"Listings": "true"}, *visits("", "/", "/dir", "/dir/", "/m2", "/m2/", "/one.txt", method="HEAD")),
    site("web listings for users", {"Listings": "true"}, *[Ask("GET", "{c}" + path, WEB) for path in EVERYWHERE],
         Ask("GET", "{c}/"), Ask("GET", "{c}/m2/"), Ask("GET", "{c}/", WEB, user="test:tester3")),
    site("web listings label", {"Listings": "yes", "Listings-Label": "ex<b>.com", "Listings-Css": "l/x.css"}),
    site("web off", {"Listings": "f", "Listings-Css": "a.css", "Index": "i.html"}),
    site("web off bare", {"Listings": "f"}),
    site("web directory type", {"Listings": "1", "Directory-Type": "text/dir"}),
    site("web errors", {"Listings": "t", "Index": "x", "Error": "error.html"}, *visits(*EVERYWHERE), *ERRORS, *visits(*EVERYWHERE),
         *visits("/one.txt", **{"If-Match": "no"}), *visits("/one.txt", **{"If-None-Match": "*"})),
    site("web errors only", {"Error": "error.html"}, *ERRORS, *visits(*EVERYWHERE)),
    site("web no listings", {"Listings": "t", "Index": "x", "Error": "error.html"}, *visits(*EVERYWHERE), *ERRORS,
         *visits(*EVERYWHERE), acl={"X-Container-Read": ".r:*"}),
    site("web private", {"Listings": "t", "Index": "x", "Error": "error.html"}, *ERRORS, *visits(*EVERYWHERE),
         *[Ask("GET", "{c}" + path, WEB) for path in EVERYWHERE], acl={}),
    site("web ranges", {"Index": "x", "Listings": "t"}, *visits("/m2/", "/one.txt", Range="bytes=1-1"),
         *visits("/m2/", **{"If-None-Match": "*"})),
    Story("web others", [Ask("POST", "{c}/", user=None), Ask("GET", "{a}", user=None), Ask("GET", "{a}", WEB),
                         Ask("GET", "{a}/nosuch/", user=None), Ask("GET", "{a}/nosuch", WEB), Ask("GET", "/v1/AUTH_nosuch/c/", user=None)]),
    *[site(f"web css {number}", {"Listings": "t", "Listings-Css": css}, *visits("/m2/", "/"))
      for number, css in enumerate(["http://h/a b.css?x=1&y=\"<", "https://h/'", "ftp://h/x", "HTTP://h/x", "/a b&\"x", "//h/x",
                                    "a/../b"])],
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_sites(full_pair, story):
    full_pair.check(story)
