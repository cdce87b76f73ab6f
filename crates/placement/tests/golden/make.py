"""Writes *.ring.gz, *.builder and rings.json: rings by OpenStack Swift, and where it finds things in them.

    python crates/placement/tests/golden/make.py

with a Python that has OpenStack Swift 2.38. rings.json holds, for each ring, what
swift.common.ring.Ring says: its counts, its devices, and for sampled partitions the ids of the
primaries and of the handoffs in order.
"""

import array
import gzip
import hashlib
import itertools
import json
import os
import struct

from swift.common import utils
from swift.common.ring import Ring, RingBuilder
from swift.common.ring.ring import RingData

HERE = os.path.dirname(os.path.abspath(__file__))
utils.HASH_PATH_PREFIX = b"before"
utils.HASH_PATH_SUFFIX = b"behind"


def device(number, region=1, zone=1, ip="10.0.0.1", weight=100.0, **more):
    dev = {"region": region, "zone": zone, "ip": ip, "port": 6200, "device": "sd%d" % number,
           "weight": weight, "meta": ""}
    dev.update(more)
    dev.setdefault("replication_ip", dev["ip"])
    dev.setdefault("replication_port", dev["port"])
    return dev


def built(part_power, replicas, devices, change=None):
    builder = RingBuilder(part_power, replicas, 1)
    for dev in devices:
        builder.add_dev(dict(dev))
    for seed in range(5):
        builder.rebalance(seed=seed)
    if change:
        change(builder)
        builder.pretend_min_part_hours_passed()
        builder.rebalance(seed=9)
    return builder


def spread(regions, zones, servers, disks, weights=(100.0,)):
    cycle = itertools.cycle(weights)
    for number, (region, zone, server, _) in enumerate(itertools.product(
            range(1, regions + 1), range(1, zones + 1), range(1, servers + 1), range(disks))):
        yield device(number, region, zone, "10.%d.%d.%d" % (region, zone, server), next(cycle))


def builders():
    yield "single", built(2, 1, [device(0)]), 1
    yield "up", built(6, 3, [device(n) for n in range(4)]), 1
    yield "zones", built(6, 3, spread(1, 5, 2, 2, (100.0, 50.0, 200.0))), 1
    yield "regions", built(6, 4, spread(3, 2, 2, 2, (100.0, 75.5))), 1
    yield "half", built(5, 2.5, spread(2, 3, 1, 2)), 1
    yield "little-more", built(6, 1.3, spread(1, 2, 2, 1)), 1
    yield "large", built(8, 3, spread(3, 4, 3, 2, (100.0, 30.0, 250.0, 80.0, 10.0))), 1

    def remove(builder):
        for gone in (0, 5, 6, 11):
            builder.remove_dev(gone)
    yield "removed", built(5, 3, spread(1, 3, 2, 2), remove), 1

    def drain(builder):
        for gone in (1, 4, 8, 9, 10, 11):
            builder.set_dev_weight(gone, 0.0)
    yield "drained", built(5, 3, spread(1, 3, 2, 2), drain), 1

    shared = [device(n, region=1 + n % 2, zone=1 + n % 3, ip="10.0.0.%d" % (n % 2), port=6200 + n)
              for n in range(12)]
    yield "shared-addresses", built(5, 3, shared), 1
    named = [
        device(0, ip="::1", zone=1, meta="gr\u00fcn \U0001f426 \"quoted\" \\ \x7f\t\u20ac"),
        device(1, ip="fe80::1:2", zone=2, replication_ip="10.9.0.1", replication_port=6300),
        device(2, ip="storage-3.example.com", zone=3, weight=0.1),
        device(3, ip="127.0.0.1", zone=4, weight=1e16)]
    yield "names", built(4, 2, named), 1
    growing = built(4, 3, spread(1, 3, 1, 2))
    growing.prepare_increase_partition_power()
    yield "growing", growing, 1
    yield "second-format", built(6, 2.5, spread(2, 2, 2, 2), remove), 2
    wide = built(4, 3, spread(1, 3, 2, 1))
    wide.set_dev_id_bytes(4)
    yield "second-format-wide", wide, 2


def patterned(name, part_power, replicas, devices, skip, format_version=1):
    """A high part power whose table compresses well, because it repeats itself."""
    parts = 2 ** part_power
    rows = []
    for row in range(int(replicas + 0.99)):
        length = parts if row + 1 <= replicas else int(parts * (replicas - row))
        rows.append(array.array("H", ((part // skip + row * 3) % devices for part in range(length))))
    devs = [dict(dev, id=number) for number, dev in enumerate(spread(2, 3, 2, 3))][:devices]
    RingData(rows, devs, 32 - part_power, version=3).save(
        os.path.join(HERE, name + ".ring.gz"), format_version=format_version)


def by_hand(name, header, devs, rows, order):
    """Files of other times and machines: no byteorder, no replication address, big endian."""
    meta = json.dumps(dict(header, devs=devs, replica_count=len(rows)), sort_keys=True).encode()
    body = b"".join(struct.pack(order + "%dH" % len(row), *row) for row in rows)
    with open(os.path.join(HERE, name + ".ring.gz"), "wb") as out:
        with gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0) as packed:
            packed.write(b"R1NG" + struct.pack(">HI", 1, len(meta)) + meta + body)


def described(name, every):
    ring = Ring(os.path.join(HERE, name + ".ring.gz"))
    parts = ring.partition_count
    lookups = []
    for part in sorted({0, 1, parts // 2, parts - 1} | set(range(0, parts, max(1, parts // every)))):
        if part >= parts:
            continue
        nodes = ring.get_part_nodes(part)
        assert [node["index"] for node in nodes] == list(range(len(nodes)))
        more = list(itertools.islice(ring.get_more_nodes(part), 80))
        assert [node["handoff_index"] for node in more] == list(range(len(more)))
        lookups.append([part, [node["id"] for node in nodes], [node["id"] for node in more]])
    hashes = []
    for number in range(8):
        path = ("AUTH_test", "c", "o%d" % number)
        digest = hashlib.md5(b"before/AUTH_test/c/o%dbehind" % number).hexdigest()
        hashes.append([digest, ring.get_part(*path)])
    return {"replicas": ring.replica_count, "parts": parts, "part_power": ring.part_power,
            "version": ring.version, "next_part_power": ring.next_part_power, "devices": ring.devs,
            "lookups": lookups, "hashes": hashes}


def main():
    rings = {}
    for name, builder, version in builders():
        builder.get_ring().save(os.path.join(HERE, name + ".ring.gz"), format_version=version)
        if name in ("half", "removed", "names", "second-format-wide"):
            builder.save(os.path.join(HERE, name + ".builder"))
        rings[name] = described(name, 16)
    RingBuilder(3, 3.0, 1).save(os.path.join(HERE, "created.builder"))
    for name, power, replicas, devices, skip, version in (
            ("power-17", 17, 2, 17, 1024, 1), ("power-18", 18, 2.5, 36, 512, 1),
            ("power-16", 16, 3, 30, 999, 2)):
        patterned(name, power, replicas, devices, skip, version)
        rings[name] = described(name, 8)
    old = [{"id": n, "region": 1, "zone": 1 + n % 3, "ip": "10.0.0.%d" % n, "port": 6000, "device": "sdb1",
            "weight": 100.0, "meta": ""} for n in range(4)]
    rows = [[(part + row) % 4 for part in range(8)] for row in range(3)]
    by_hand("old", {"part_shift": 29}, old, rows, "<")
    by_hand("big-endian", {"part_shift": 29, "byteorder": "big", "version": 5},
            [device(n, zone=n) | {"id": n} for n in range(4)], rows, ">")
    by_hand("doubles", {"part_shift": 28, "version": 1},
            [device(n, zone=n // 2) | {"id": n} for n in range(5)],
            [[part % 4 for part in range(16)], [part // 4 for part in range(16)], [3] * 9], "<")
    by_hand("corner", {"part_shift": 28, "version": 1},
            [device(n, ip="10.0.0.%d" % n) | {"id": n} for n in range(3)], [[2] + [0] * 14 + [1]], "<")
    for name in ("old", "big-endian", "doubles", "corner"):
        rings[name] = described(name, 16)
    with open(os.path.join(HERE, "rings.json"), "w") as out:
        json.dump(rings, out, sort_keys=True, separators=(",", ":"))
        out.write("\n")


main()
