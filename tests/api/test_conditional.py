"""Conditional reads and ranges answer as OpenStack's, one and several ranges, and both together."""

import hashlib
import itertools

import pytest

from harness.compare import Ask, Story

BODY = bytes(range(65, 91)) * 4  # 104 bytes, A-Z four times
ETAG = hashlib.md5(BODY).hexdigest()
PAST, FUTURE = "Thu, 01 Jan 1998 00:00:00 GMT", "Fri, 01 Jan 2037 00:00:00 GMT"

CONDITIONS = [
    {"If-Match": "*"}, {"If-Match": ETAG}, {"If-Match": f'"{ETAG}"'}, {"If-Match": '"x", "y"'}, {"If-Match": ""},
    {"If-None-Match": "*"}, {"If-None-Match": ETAG}, {"If-None-Match": '"x"'}, {"If-None-Match": ""},
    {"If-Modified-Since": PAST}, {"If-Modified-Since": FUTURE}, {"If-Modified-Since": "rubbish"}, {"If-Modified-Since": ""},
    {"If-Unmodified-Since": PAST}, {"If-Unmodified-Since": FUTURE}, {"If-Unmodified-Since": "rubbish"},
    {"If-Match": "*", "If-Unmodified-Since": PAST}, {"If-None-Match": '"x"', "If-Modified-Since": FUTURE},
    {"If-Modified-Since": "0"}, {"If-Modified-Since": "1999-01-01"}, {"If-Unmodified-Since": "Thu, 01 Jan 0001 00:00:00 GMT"},
    {"If-Unmodified-Since": "Thu, 01 Jan 1998 00:00:00 +0200"}, {"If-Modified-Since": "Fri, 01 Jan 2037 00:00:00 -0200"},
    {"If-Modified-Since": "Fri, 01 Jan 2037 00:00:00 EST"}, {"If-Unmodified-Since": "Thu, 01 Jan 1998 00:00:00 GMT and more"},
]
RANGES = ["bytes=0-0", "bytes=0-", "bytes=5-10", "bytes=103-103", "bytes=103-", "bytes=104-", "bytes=104-200", "bytes=100-200",
          "bytes=-1", "bytes=-104", "bytes=-105", "bytes=-0", "bytes=10-5", "bytes=", "bytes=-", "bytes=a-b", "bytes=1",
          "lines=0-1", "Bytes=0-1", "bytes =0-1", "bytes=0-1,", "bytes=,0-1", "bytes= 0-1", "bytes=0 - 1", "bytes=+0-1",
          "bytes=0-0,2-2", "bytes=0-0,2-2,4-5", "bytes=0-10,5-15", "bytes=0-5,2-7,4-9", "bytes=0-9,0-8,0-7", "bytes=-5,0-4", "bytes=200-300,0-1", "bytes=200-300,400-",
          "bytes=0-1, 3-4", "bytes=5-2,0-1", "bytes=0-1,x", "bytes=99999999999999999999-", "bytes=0-99999999999999999999",
          "bytes=--1", "bytes=" + ",".join(f"{n}-{n}" for n in range(49)), "bytes=" + ",".join(f"{n}-{n}" for n in range(51)),
          "bytes=" + ",".join(f"{100 - n}-{101 - n}" for n in range(9)), "bytes=0-50,0-50,0-50", "bytes=0-1,0-1,0-1"]


def full(headers):
    return Ask("GET", "{c}/o", headers)


STORIES = [
    Story("conditions", [Ask("PUT", "{c}/o", body=BODY)] + [
        Ask(method, "{c}/" + name, condition)
        for condition, method, name in itertools.product(CONDITIONS, ("GET", "HEAD"), ("o", "missing"))
    ]),
    Story("conditions that match", [
        Ask("PUT", "{c}/o", body=b"abc"), *(
            Ask(method, "{c}/o", {name: value})
            for method in ("GET", "HEAD") for name in ("If-Match", "If-None-Match")
            for value in ("900150983cd24fb0d6963f7d28e17f72", '"900150983cd24fb0d6963f7d28e17f72"',
                          'W/"900150983cd24fb0d6963f7d28e17f72"', 'x, 900150983cd24fb0d6963f7d28e17f72',
                          '"x","900150983cd24fb0d6963f7d28e17f72"', "900150983CD24FB0D6963F7D28E17F72"))]),
    Story("ranges", [Ask("PUT", "{c}/o", {"Content-Type": "text/x"}, BODY)] + [full({"Range": value}) for value in RANGES] + [
        Ask("HEAD", "{c}/o", {"Range": value}) for value in ("bytes=0-1", "bytes=200-", "bytes=0-0,2-2", "rubbish")] + [
        Ask(method, "{c}/missing", {"Range": "bytes=0-0,2-2", **condition}) for method in ("GET", "HEAD")
        for condition in ({}, {"If-Match": "x"})] + [full({"Range": "bytes=0-0,2-2", **condition}) for condition in (
            {"If-Match": "x"}, {"If-None-Match": "*"})]),
    Story("ranges of nothing", [Ask("PUT", "{c}/o", {"Content-Length": 0})] + [
        full({"Range": value}) for value in ("bytes=0-0", "bytes=0-", "bytes=-1", "bytes=-0", "bytes=0-0,1-1", "bytes=0-0,-1", "bytes=-5,-1")]),
    Story("ranges under conditions", [Ask("PUT", "{c}/o", body=b"abcdefgh")] + [
        full({"Range": "bytes=1-2", **condition}) for condition in [
            {"If-Range": "rubbish"}, {"If-Range": '"e8dc4081b13434b45189a720b77b6818"'}, {"If-Range": PAST}, {"If-Range": FUTURE},
            {"If-Range": '"other"'}, {"If-Match": '"other"'}, {"If-None-Match": "*"}, {"If-Modified-Since": FUTURE},
            {"If-Match": "e8dc4081b13434b45189a720b77b6818"}, {"If-Unmodified-Since": PAST}]] +
        [full({"Range": "bytes=100-", "If-None-Match": "*"}), full({"Range": "bytes=100-", "If-Match": "x"})]),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(pair, story):
    pair.check(story)
