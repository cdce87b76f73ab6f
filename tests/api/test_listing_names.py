"""One container of 20,000 awkward names: every answer to the cross product of listing parameters is OpenStack's, byte for byte.

The rows are written into both clusters' databases by OpenStack's own library (both read the same format), so that
timestamps agree and nothing has to be forgiven.
"""

import http.client
import itertools
import json
import random
import re
import urllib.parse
from xml.etree import ElementTree

import pytest

from harness import disk
from harness.client import Client
from harness.systems import running

COUNT = 20_000
LONGEST = 1024  # bytes of UTF-8
SPACES = "\u0020\u00a0\u1680\u2003\u2028\u2029\u202f\u3000\ufeff\t\n\r\x0b\x0c\x85"
CONTROLS = "".join(map(chr, (*range(1, 32), *range(0x7f, 0xa0))))
MARKUP = "%'\"`\\<>&#?+=;,:@!$*()[]{}|^~"
LISTED = ("content-type", "content-length", "x-container-object-count", "x-container-bytes-used", "vary", "x-storage-policy")


def plane(rng, number):
    """A character of one of Unicode's seventeen planes, noncharacters included; never half of a pair."""
    while True:
        code = (number << 16) | rng.randrange(0x10000)
        if code and not 0xd800 <= code < 0xe000:
            return chr(code)


def names():
    rng = random.Random(20_000)
    kinds = [
        lambda: plane(rng, rng.randrange(17)) * rng.randint(1, 3) + str(rng.randrange(1000)),
        lambda: "".join(plane(rng, rng.randrange(17)) for _ in range(rng.randint(1, 40))),
        lambda: "".join(rng.choice(CONTROLS) for _ in range(rng.randint(1, 6))),
        lambda: rng.choice(SPACES) + "word" + rng.choice(SPACES) * rng.randint(0, 3) + str(rng.randrange(500)),
        lambda: "".join(rng.choice(MARKUP) for _ in range(rng.randint(1, 12))),
        lambda: "%" + f"{rng.randrange(256):02X}" + rng.choice(["", "%25", "%2F", "%00", "%zz"]) + str(rng.randrange(500)),
        lambda: "dir/" * rng.randint(1, 5) + rng.choice(["", "/", "x"]) + str(rng.randrange(2000)),
        lambda: rng.choice("ab") + "/" + plane(rng, rng.randrange(17)) + "/" + str(rng.randrange(50)),
        lambda: rng.choice("aé中🐦") * rng.randint(200, 1100),
        lambda: "e" + "\u0301\u0327\u200d\u202e"[rng.randrange(4)] * rng.randint(1, 9) + str(rng.randrange(300)),
        lambda: str(rng.randrange(10 ** 12)),
    ]
    found = set()
    while len(found) < COUNT:
        name = rng.choice(kinds)().encode()[:LONGEST].decode(errors="ignore")
        if name:
            found.add(name)
    return sorted(found)


def fill(system, rows):
    """The rows of the container `awkward`, in all of its replicas."""
    from swift.container.backend import ContainerBroker
    filled = 0
    for path in disk.databases(system.srv, "containers"):
        broker = ContainerBroker(str(path))
        if broker.get_info()["container"] == "awkward":
            broker.merge_items([dict(row) for row in rows])
            filled += 1
    assert filled >= 1


class Side:
    """A cluster with the container, asked over one kept connection."""

    def __init__(self, system, rows):
        client = Client(system.auth_url)
        client.put("awkward")
        system.stop()
        fill(system, rows)
        system.start()
        self.token = Client(system.auth_url).token
        self.connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=60)

    def ask(self, method, query):
        self.connection.request(method, "/v1/AUTH_test/awkward?" + query, headers={"X-Auth-Token": self.token})
        reply = self.connection.getresponse()
        body = reply.read()
        headers = {name.lower(): value for name, value in reply.getheaders()}
        if reply.status == 204:
            headers.pop("content-length", None)  # HTTP has none there; OpenStack says 0
        return reply.status, {name: headers.get(name) for name in LISTED}, body


@pytest.fixture(scope="module")
def sides(request, tmp_path_factory):
    kind = request.config.getoption("--sut").split(",")[0]
    rng = random.Random(1)
    kinds = ["text/plain", "application/octet-stream", "text/x; charset=utf-8", "a/ü", 'x/y; q="\\"<&>"']
    rows = [{"name": name, "created_at": f"17{rng.randrange(10 ** 8):08d}.{rng.randrange(10 ** 5):05d}", "size": rng.randrange(2 ** 40),
             "content_type": rng.choice(kinds), "etag": f"{rng.randrange(16 ** 32):032x}", "deleted": 0, "storage_policy_index": 0}
            for name in names()]
    systems = [running(make, tmp_path_factory.mktemp(f"names-{make}")) for make in ("openstack", kind)]
    yield [Side(next(system), rows) for system in systems]
    for system in systems:
        system.close()


ALL = names()
SOME = [ALL[COUNT // 3], ALL[2 * COUNT // 3 + 7], "a/🐦"]
PARAMETERS = {
    "limit": (None, "3", "240"),
    "marker": (None, *SOME),
    "end_marker": (None, SOME[1], "\u2028"),
    "prefix": (None, "a", "%2", "dir/dir/", "\U0001f426"),
    "delimiter": (None, "/", "%", "\u0301"),
    "reverse": (None, "true"),
}
FORMATS = (pytest.param("plain", marks=pytest.mark.extra), "json", "xml")


def queries():
    """The cross product; a listing without any bound only once per format, delimiter and direction."""
    for values in itertools.product(*PARAMETERS.values()):
        chosen = {name: value for name, value in zip(PARAMETERS, values, strict=True) if value is not None}
        if "limit" in chosen or not chosen.keys() - {"delimiter", "reverse"}:
            yield chosen
    for path, limit in itertools.product(("dir", "dir/", "a", "", "%"), ("3", "240")):
        yield {"path": path, "limit": limit}


QUERIES = list(queries())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", FORMATS)
def test_every_listing_is_openstacks(sides, form):
    different = []
    for chosen in QUERIES:
        query = urllib.parse.urlencode({**chosen, "format": form})
        openstack, ours = (side.ask("GET", query) for side in sides)
        if form == "xml":
            openstack = well_formed(openstack)
            ElementTree.fromstring(ours[2])
        if openstack != ours:
            different.append((query, openstack[:2], ours[:2], first_difference(openstack[2], ours[2])))
    assert not different, f"{len(different)} of {len(QUERIES)} answers differ, such as {different[:3]}"


def well_formed(answer):
    """OpenStack's XML with the characters replaced that XML cannot have, and carriage returns kept from parsers."""
    status, headers, body = answer
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", body.decode()).replace("\r", "&#13;")
    return status, {**headers, "content-length": str(len(text.encode()))}, text.encode()


def first_difference(left, right):
    at = next((at for at, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))
    return at, left[max(0, at - 60):at + 60], right[max(0, at - 60):at + 60]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("reverse", ("false", "true"))
def test_pages_make_the_whole(sides, reverse):
    """Walking with markers meets every name once, on both sides alike."""
    met, marker = [], ""
    while True:
        query = urllib.parse.urlencode({"format": "json", "limit": 3000, "marker": marker, "reverse": reverse})
        openstack, ours = (side.ask("GET", query) for side in sides)
        assert openstack == ours, query
        page = [row["name"] for row in json.loads(ours[2])]
        if not page:
            break
        met += page
        marker = page[-1]
    assert sorted(met) == ALL and len(met) == COUNT
