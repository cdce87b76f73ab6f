"""Object servers asked the same by a proxy answer the same and leave the same bytes: names, contents, attributes."""

import pytest

from harness.backend import Call
from harness.waiting import free_port

O = "/a/c/"  # noqa: E741
PLAIN = {"Content-Type": "text/x"}
DEAD = f"127.0.0.1:{free_port()}"
LISTING = {"X-Container-Host": DEAD, "X-Container-Device": "sdb1", "X-Container-Partition": "9"}


def put(name, time, body=b"abc", **headers):
    return Call("PUT", O + name, time, {**PLAIN, "Content-Length": str(len(body)), **headers}, body)


def boundary(*parts):
    """A MIME body as a proxy sends it: the data, then footers with their MD5."""
    return b"".join(b"--EDGE\r\n" + part + b"\r\n" for part in parts) + b"--EDGE--"


FOOTED = {**PLAIN, "Transfer-Encoding": "chunked", "Expect": "100-continue", "X-Backend-Obj-Metadata-Footer": "yes",
          "X-Backend-Obj-Multipart-Mime-Boundary": "EDGE"}

STORIES = {
    "life": [
        Call("GET", O + "o"), Call("HEAD", O + "o"), Call("POST", O + "o", "1"), Call("DELETE", O + "o", "1"),
        put("o", "5"), Call("GET", O + "o"), Call("HEAD", O + "o"), put("o", "4"), put("o", "5"), put("o", "6", b"longer"),
        Call("GET", O + "o"), Call("DELETE", O + "o", "5.5"), Call("DELETE", O + "o", "6"), Call("DELETE", O + "o", "7"),
        Call("GET", O + "o"), Call("HEAD", O + "o"), put("o", "6.5"), put("o", "7"), Call("POST", O + "o", "8"),
        Call("DELETE", O + "o", "8"), put("o", "9", b""), Call("GET", O + "o"),
    ],
    "tombstones past their age": [
        put("t", "0000000005.00000"), Call("DELETE", O + "t", "0000000007.00000"), Call("HEAD", O + "t"),
        put("t", "0000000006.00000"), Call("GET", O + "t"),
    ],
    "offsets": [
        put("off", "4000000005.00000_0000000000000001"), put("off", "4000000005.00000"), Call("HEAD", O + "off"),
        put("off", "4000000005.00000_0000000000000002"), Call("HEAD", O + "off"),
        Call("DELETE", O + "off", "4000000005.00000_00000000000000ff"), Call("HEAD", O + "off"),
    ],
    "metadata": [
        put("m", "5", **{"X-Object-Meta-Colour": "blue", "X-Object-Meta-Uni": "çødé", "X-Object-Sysmeta-S": "sys",
                         "X-Object-Transient-Sysmeta-T": "tra", "Content-Encoding": "gzip", "Content-Disposition": "d",
                         "X-Object-Manifest": "seg/o", "X-Static-Large-Object": "True", "Cache-Control": "no",
                         "Content-Language": "de", "Expires": "never", "X-Robots-Tag": "x", "X-Other": "dropped",
                         "X-Object-Meta-Empty": "", "X-Backend-Replication-Headers": "x-other"}),
        Call("HEAD", O + "m"),
        Call("POST", O + "m", "6", {"X-Object-Meta-Size": "L", "X-Object-Transient-Sysmeta-U": "u"}), Call("HEAD", O + "m"),
        Call("POST", O + "m", "5.5", {"X-Object-Meta-Late": "x"}), Call("HEAD", O + "m"),
        Call("POST", O + "m", "7", {"Content-Type": "text/y"}), Call("HEAD", O + "m"),
        Call("POST", O + "m", "8", {"X-Object-Meta-Keep": "type"}), Call("HEAD", O + "m"),
        Call("POST", O + "m", "9", {"Content-Type": "text/z", "Content-Encoding": "br", "X-Delete-At": "9999999999"}),
        Call("GET", O + "m"), Call("POST", O + "m", "9", {"X-Object-Meta-Same": "time"}), put("m", "10"), Call("HEAD", O + "m"),
    ],
    "long metadata": [put("l", "5", **{f"X-Object-Meta-{n}": "v" * 230 for n in range(10)}), Call("HEAD", O + "l")],
    "names beyond tokens": [
        put("u", "5", **{"X-Object-Meta-uni\u0e12x": "v\u00e9", "X-Object-Meta-\u00e9a\u00c9%c3%25": "1", "X-Object-Meta-a/b(c)": "2",
                         "X-Object-Meta-\udcff\udcfe": "3", "X-Object-Sysmeta-\u00fc": "4"}),
        Call("HEAD", O + "u"), Call("POST", O + "u", "6", {"X-Object-Meta-neu\u00dfx": "5"}), Call("GET", O + "u"),
        put("u2", "5", **{"X-Object-Meta-" + "\u0e12" * 42: "fits"}), put("u2", "6", **{"X-Object-Meta-" + "\u0e12" * 43: "does not"}),
    ],
    "etag": [
        put("e", "5", ETag="900150983cd24fb0d6963f7d28e17f72"), put("e", "6", ETag="0" * 32), Call("HEAD", O + "e"),
        put("e", "7", ETag='"900150983cd24fb0d6963f7d28e17f72"'), put("e2", "5", ETag="nonsense"), Call("HEAD", O + "e2"),
    ],
    "conditions": [
        put("c", "5", **{"If-None-Match": "*"}), put("c", "6", **{"If-None-Match": "*"}), Call("HEAD", O + "c"),
        Call("GET", O + "c", headers={"If-Match": "900150983cd24fb0d6963f7d28e17f72"}),
        Call("GET", O + "c", headers={"If-Match": "x"}), Call("GET", O + "c", headers={"If-None-Match": "*"}),
        Call("HEAD", O + "c", headers={"If-Modified-Since": "Tue, 02 Oct 2096 07:06:49 GMT"}),
        Call("GET", O + "c", headers={"If-Modified-Since": "Tue, 02 Oct 2096 07:06:41 GMT"}),
        Call("GET", O + "c", headers={"If-Unmodified-Since": "Tue, 02 Oct 2096 07:06:41 GMT"}),
        Call("GET", O + "c", headers={"X-If-Delete-At": "1"}),
    ],
    "ranges": [put("r", "5", b"0123456789")] + [
        Call("GET", O + "r", headers={"Range": value})
        for value in ("bytes=0-0", "bytes=5-", "bytes=-3", "bytes=10-", "bytes=8-20", "bytes=0-1,4-5", "bytes=4-2", "x", "bytes=-0",
                      "bytes=20-30,40-")],
    "expiry": [
        put("x", "5", **{"X-Delete-At": "9999999999"}), Call("HEAD", O + "x"), put("x2", "5", **{"X-Delete-At": "6"}),
        put("x2", "5", **{"X-Delete-At": "soon"}), Call("HEAD", O + "x2"), Call("POST", O + "x", "6", {"X-Delete-At": "1"}),
        Call("POST", O + "x", "7", {"X-Delete-At": "9999999998"}), Call("HEAD", O + "x"), Call("POST", O + "x", "8"), Call("HEAD", O + "x"),
        Call("DELETE", O + "x", "9", {"X-If-Delete-At": "5"}), Call("DELETE", O + "x", "9", {"X-If-Delete-At": "word"}),
    ],
    "policies": [
        put("p", "5", **{"X-Backend-Storage-Policy-Index": "1"}), Call("HEAD", O + "p"),
        Call("HEAD", O + "p", headers={"X-Backend-Storage-Policy-Index": "1"}),
        put("p", "5", **{"X-Backend-Storage-Policy-Index": "7"}), put("p", "5", **{"X-Backend-Storage-Policy-Index": "x"}),
        Call("DELETE", O + "p", "6", {"X-Backend-Storage-Policy-Index": "1"}),
    ],
    "footers": [
        Call("PUT", O + "f", "5", FOOTED, chunk := b"%x\r\n%s\r\n0\r\n\r\n" % (
            len(boundary(b"X-Document: object body\r\n\r\nabc", b"X-Document: object metadata\r\nContent-MD5: 37a3e38ca9fc3bcd0ac9f07c0d6bcf77\r\n\r\n{}")),
            boundary(b"X-Document: object body\r\n\r\nabc", b"X-Document: object metadata\r\nContent-MD5: 37a3e38ca9fc3bcd0ac9f07c0d6bcf77\r\n\r\n{}"))),
        Call("HEAD", O + "f"),
    ],
    "refused": [
        put("bad", "never"), Call("PUT", O + "bad", "5", {"Content-Length": "1"}, b"x"), Call("PUT", O + "bad", "5", PLAIN),
        Call("PUT", O + "bad", None, {**PLAIN, "Content-Length": "0"}), Call("DELETE", O + "bad"), Call("POST", O + "bad", None),
        put("bad", "5", **{"Content-Length": "x"}), Call("BREW", O + "bad", "5"), Call("GET", "/a/c"), Call("GET", "/a"),
        Call("GET", O + "bad", device="sdb9", also=(507,)), Call("PUT", O + "bad", "5", {**PLAIN, "Content-Length": "0"}, device="..", level="status"),
        Call("GET", O + "bad", partition="x", also=(400,)), Call("GET", O + "%FF", also=(400,)), Call("GET", O + "a%00b"), Call("PUT", O + "n" * 1025, "5", {**PLAIN, "Content-Length": "0"}),
        put("old", "5", **{"X-Timestamp": "-5"}),
    ],
    "listing updates that must wait": [
        put("w", "5", **LISTING), put("w", "6", **LISTING, **{"X-Object-Meta-A": "b"}), Call("DELETE", O + "w", "7", LISTING),
        put("w", "8", **LISTING, **{"X-Backend-Storage-Policy-Index": "1"}),
        Call("POST", O + "w", "9", {**LISTING, "Content-Type": "text/y", "X-Backend-Storage-Policy-Index": "1"}),
        put("w2", "5", **{**LISTING, "X-Container-Host": f"{DEAD},{DEAD}", "X-Container-Device": "sdb1,sdb2"}),
    ],
    "names": [
        Call(method, O + name, "5", {**PLAIN, "Content-Length": "1"} if method == "PUT" else {}, b"x" if method == "PUT" else b"")
        for name in ("%C3%BC", "a/b/c", "with%20space", "..", "a//b", "%25", "n" * 1024, "trail/", "%0A", "%F0%9F%90%A6")
        for method in ("PUT", "GET")],
    "replicate": [put("z", "5"), put("z2", "6"),
                  Call("REPLICATE", "", level="status"), Call("REPLICATE", "/abc", level="status")][:2],
}


@pytest.mark.parametrize("name", STORIES)
def test_same_answers_and_same_bytes(object_servers, name):
    object_servers.check(STORIES[name])
