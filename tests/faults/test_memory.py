"""A large object streams up and down while the process's resident memory grows by less than 64 MiB.

It is of 1 GiB, or of 5 GiB (`make large-object`): three replicas of that are 15 GiB, and where the disk has less to give, the
largest object that fits stands in, and the run says so.
"""

import hashlib
import http.client
import shutil
import warnings

import pytest

from harness.client import Client
from harness.memory import Watch
from harness.waiting import until

SMALLEST = 2**30  # sixteen times what memory may grow by
LARGEST = 5 * SMALLEST
REPLICAS = 3
BLOCK = hashlib.shake_256(b"martlet").digest(2**20)
LIMIT = 64 * 2**20


def size_that_fits(folder, wanted):
    """The largest object up to `wanted` bytes whose replicas leave a fiftieth of the disk free, which a server may keep in reserve."""
    disk = shutil.disk_usage(folder)
    room = (disk.free - disk.total // 50) // REPLICAS // len(BLOCK) * len(BLOCK)
    assert room >= SMALLEST, f"{folder} has {disk.free >> 30} GiB free: make room for three replicas of 1 GiB and a reserve"
    if room < wanted:
        warnings.warn(f"the object is of {room >> 20} MiB, not {wanted >> 30} GiB: {folder} has only {disk.free >> 30} GiB free")
    return min(room, wanted)


def blocks(size):
    for _ in range(size // len(BLOCK)):
        yield BLOCK


def expected_etag(size):
    digest = hashlib.md5()
    for block in blocks(size):
        digest.update(block)
    return digest.hexdigest()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("wanted", [SMALLEST, pytest.param(LARGEST, marks=pytest.mark.long)])
def test_a_large_object_up_and_down(make_system, wanted):
    system = make_system()
    system.start()
    client = Client(system.auth_url, timeout=600)
    size = size_that_fits(system.srv, wanted)
    client.put("big")
    client.put("big", "warm", body=BLOCK * 4)
    assert client.get("big", "warm") == BLOCK * 4
    with Watch(system) as up:
        reply = client.do("PUT", "big", "object", body=blocks(size), headers={"Content-Length": str(size)}, expect=201)
    assert reply["Etag"] == expected_etag(size)
    assert up.growth() < LIMIT, f"uploading grew memory by {up.growth() >> 20} MiB"

    with Watch(system) as down:
        connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=600)
        connection.request("GET", client.path("big", "object"), headers={"X-Auth-Token": client.token})
        response = connection.getresponse()
        count = 0
        while piece := response.read(len(BLOCK)):
            assert piece == BLOCK, f"wrong bytes at {count}"
            count += len(piece)
    assert count == size
    assert down.most - up.first < LIMIT, f"downloading grew memory by {down.growth() >> 20} MiB"
    client.do("DELETE", "big", "object", expect=204)
    until(lambda: not any(path.stat().st_size >= size for path in system.srv.rglob("*.data")), what="the space being given back")


def test_a_slow_reader_is_not_buffered_for(make_system):
    """Many readers that stop reading in mid-body: what they do not take is not held in memory."""
    system = make_system()
    system.start()
    client = Client(system.auth_url, timeout=120)
    client.put("slow")
    client.do("PUT", "slow", "object", body=blocks(2**26), headers={"Content-Length": str(2**26)}, expect=201)
    with Watch(system) as watch:
        readers = []
        for _ in range(30):
            connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=60)
            connection.request("GET", client.path("slow", "object"), headers={"X-Auth-Token": client.token})
            response = connection.getresponse()
            assert response.read(1000) == BLOCK[:1000]
            readers.append((connection, response))
        for connection, response in readers[::10]:
            assert response.read(2**20) == (BLOCK + BLOCK)[1000:2**20 + 1000]
    for connection, _ in readers:
        connection.close()
    assert watch.growth() < LIMIT + 30 * 2**20
