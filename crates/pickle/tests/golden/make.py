"""Writes plain.jsonl and swift.jsonl: what CPython and OpenStack Swift really pickle.

Run with a Python 3.11 that has OpenStack Swift 2.38 installed, on a file system with extended
attributes, from any directory:

    python crates/pickle/tests/golden/make.py

Each line of plain.jsonl is {"name": ..., "p0": hex, ... "p5": hex}, of swift.jsonl {"name": ..., "raw": hex}.
"""

import array
import base64
import json
import os
import pickle
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def fresh(value):
    """The same data made of new objects, as if it had just been read from a socket."""
    if isinstance(value, str):
        return value.encode("utf8").decode("utf8")
    if isinstance(value, bytes):
        return value.decode("latin1").encode("latin1")
    if isinstance(value, list):
        return [fresh(item) for item in value]
    if isinstance(value, tuple):
        return tuple([fresh(item) for item in value])
    if isinstance(value, set):
        return {fresh(item) for item in value}
    if isinstance(value, dict):
        made = type(value)()
        for key, item in value.items():
            made[fresh(key)] = fresh(item)
        return made
    return value


def chance(rng, depth):
    """Some data, at random."""
    kind = rng.randrange(14 if depth else 8)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind in (2, 3):
        return rng.choice([1, -1]) * rng.getrandbits(rng.choice([3, 8, 9, 16, 17, 31, 32, 33, 62]))
    if kind == 4:
        return rng.choice([0.0, -0.0, 1.5, rng.random(), rng.random() * 10 ** rng.randrange(-30, 30)])
    if kind in (5, 6):
        size = rng.choice([0, 1, 1, 2, 5, 40, 300])
        return "".join(rng.choice("ab\\\n\r\x00\x1a é\xff\u0100\u20ac\U0001f600") for _ in range(size))
    if kind == 7:
        return bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 1, 2, 5, 40, 300])))
    if kind in (8, 9):
        return [chance(rng, depth - 1) for _ in range(rng.randrange(6))]
    if kind in (10, 11):
        return tuple(chance(rng, depth - 1) for _ in range(rng.randrange(6)))
    return {chance(rng, 0): chance(rng, depth - 1) for _ in range(rng.randrange(6))}


def plain_cases():
    from swift.common.header_key_dict import HeaderKeyDict
    yield "scalars", [None, True, False, 0, 1, 255, 256, 65535, 65536, -1, 2**31 - 1, 2**31,
                      -2**31, -2**31 - 1, 2**39, 128 << 32, -(128 << 32), 2**63 - 1, -2**63]
    yield "floats", [0.0, -0.0, 1.0, 0.1, 1e16, 1e15, 123456789012345678.0, 1e-4, 1e-5, 1.5e-7,
                     1e100, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf")]
    yield "text", ["", "", "a", "a", "ab", "ab", "\xff", "\xff", "\u0100", "\u0100", "é€\U0001f600",
                   "\\", "\\u0041", "a\\", "\n", "\r\n", "\x00", "\x1a", "latin1", "latin1", "x" * 300]
    yield "bytes", [b"", b"", b"a", b"a", "a", b"\xff", "\xff", b"ab", b"ab", b"latin1", bytes(range(256))]
    yield "bytes after text", ["a", b"a", "", b"", b"ab", "latin1"]
    yield "one byte", b"0"
    yield "no bytes", b""
    yield "dict with no bytes", {b"a": b""}
    yield "tuples", [(), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),)), ("a", b"b")]
    yield "nested", {"a": [{"b": ({"c": []},)}], "d": {}}
    yield "one item", [[1], {1: 2}, [[]], {"a": {}}]
    for count in (0, 1, 2, 256, 999, 1000, 1001, 2000):
        yield "list of %d" % count, [7] * count
        yield "dict of %d" % count, {number: 7 for number in range(count)}
    yield "many bytes", [b"ab%d" % number for number in range(100)]
    yield "a long memo", ["ab%d" % number for number in range(300)] + ["a", b"c", "a", b"c"]
    yield "set", {5}
    yield "no set", set()
    yield "array H", array.array("H", range(1001))
    yield "array B", array.array("B", [255])
    yield "array I", [array.array("I", [2**32 - 1, 0]), array.array("I")]
    yield "headers", HeaderKeyDict({"X-Timestamp": "1", "X-Size": "0"})
    yield "two headers", {"a": HeaderKeyDict({"x": "1"}), "b": HeaderKeyDict({"y": "1"})}
    yield "no headers", [HeaderKeyDict()]
    for count in (1000, 1001):
        yield "headers of %d" % count, HeaderKeyDict({"%d" % number: 1 for number in range(count)})
    rng = random.Random(7)
    for number in range(50):
        yield "random %d" % number, chance(rng, 3)


def write_plain():
    with open(os.path.join(HERE, "plain.jsonl"), "w") as out:
        for name, value in plain_cases():
            value = fresh(value)
            line = {"name": name}
            for protocol in range(6):
                line["p%d" % protocol] = pickle.dumps(value, protocol).hex()
            if "array" in name:
                line = {key: line[key] for key in ("name", "p0", "p1", "p2")}
            if len(line["p2"]) > 4000:
                line = {"name": name, "p2": line["p2"]}
            out.write(json.dumps(line) + "\n")


def swift_files(root):
    """Runs OpenStack's own servers on an empty device and yields what they leave."""
    import eventlet
    from swift.account import server as account_server
    from swift.common import storage_policy, utils
    from swift.common.storage_policy import StoragePolicy, StoragePolicyCollection
    from swift.common.swob import Request
    from swift.container import server as container_server
    from swift.obj import diskfile, server as object_server

    utils.HASH_PATH_SUFFIX = diskfile.HASH_PATH_SUFFIX = b"martlet"
    utils.HASH_PATH_PREFIX = diskfile.HASH_PATH_PREFIX = b""
    policies = StoragePolicyCollection([StoragePolicy(0, "gold", True)])
    storage_policy._POLICIES = policies
    os.makedirs(root + "/sda1")
    conf = {"devices": root, "mount_check": "false", "conn_timeout": "0.2",
            "container_update_timeout": "1", "log_level": "CRITICAL"}
    objects = object_server.ObjectController(conf)
    containers = container_server.ContainerController(conf)
    accounts = account_server.AccountController(conf)

    def ask(app, method, path, headers, body=b""):
        headers = dict(headers, **{"X-Backend-Storage-Policy-Index": "0"})
        req = Request.blank(path, method=method, headers=headers, body=body)
        status = req.get_response(app).status_int
        assert status in (201, 202, 204, 404), (method, path, status)

    listing = {"X-Container-Host": "127.0.0.1:1", "X-Container-Partition": "7",
               "X-Container-Device": "sdb1", "X-Trans-Id": "tx0123456789abcdef-0012345678",
               "User-Agent": "proxy-server 1"}
    ask(objects, "PUT", "/sda1/0/AUTH_test/c/o%20%C3%A9%E2%82%AC", dict(
        listing, **{"X-Timestamp": "1700000000.00001", "Content-Type": "text/plain",
                    "X-Object-Meta-Color": "blue", "X-Object-Meta-Empty": "",
                    "X-Object-Meta-One": "1", "X-Object-Meta-Two": "1",
                    "X-Object-Meta-Uni": "\xc3\xa9", "X-Delete-At": "9999999999"}), b"1")
    ask(objects, "DELETE", "/sda1/0/AUTH_test/c/gone", dict(
        listing, **{"X-Timestamp": "1700000001.00000"}))
    eventlet.sleep(2.5)
    ask(objects, "POST", "/sda1/0/AUTH_test/c/o%20%C3%A9%E2%82%AC", dict(
        {"X-Timestamp": "1700000002.00000", "X-Object-Meta-Color": "red"}))
    objects._diskfile_router[policies[0]].get_hashes("sda1", "0", None, policies[0])
    for folder, _, files in sorted(os.walk(root)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            short = path[len(root):]
            if "async_pending" in short or name == "hashes.pkl":
                yield short, open(path, "rb").read()
            elif name.endswith((".data", ".meta", ".ts")):
                yield short, os.getxattr(path, "user.swift.metadata")

    def pending(kind):
        for folder, _, files in sorted(os.walk(root + "/sda1/" + kind)):
            for name in files:
                if name.endswith(".pending"):
                    data = open(os.path.join(folder, name), "rb").read()
                    for number, row in enumerate(data.split(b":")[1:]):
                        yield "%s pending %d" % (kind, number), base64.b64decode(row)

    ask(containers, "PUT", "/sda1/0/AUTH_test/c", {"X-Timestamp": "1700000000.00000"})
    row = {"X-Size": "0", "X-Content-Type": "text/plain", "X-Etag": "d41d8cd98f00b204e9800998ecf8427e"}
    ask(containers, "PUT", "/sda1/0/AUTH_test/c/o", dict(row, **{"X-Timestamp": "1700000003.00000"}))
    ask(containers, "PUT", "/sda1/0/AUTH_test/c/o%20%C3%A9", dict(
        row, **{"X-Timestamp": "1700000003.00000_0000000000000001", "X-Content-Type-Timestamp": "1700000004.00000",
                "X-Meta-Timestamp": "1700000005.00000", "X-Size": "12345678901"}))
    ask(containers, "DELETE", "/sda1/0/AUTH_test/c/o", {"X-Timestamp": "1700000006.00000"})
    yield from pending("containers")
    ask(accounts, "PUT", "/sda1/0/AUTH_test", {"X-Timestamp": "1700000000.00000"})
    ask(accounts, "PUT", "/sda1/0/AUTH_test/c", {
        "X-Put-Timestamp": "1700000007.00000", "X-Delete-Timestamp": "0",
        "X-Object-Count": "3", "X-Bytes-Used": "12345678901"})
    yield from pending("accounts")


def write_swift():
    scratch = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else HERE)
    try:
        with open(os.path.join(HERE, "swift.jsonl"), "w") as out:
            for name, raw in swift_files(scratch):
                out.write(json.dumps({"name": name, "raw": raw.hex()}) + "\n")
    finally:
        shutil.rmtree(scratch)


write_plain()
write_swift()
