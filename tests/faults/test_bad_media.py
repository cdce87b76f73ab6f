"""Files that rot: an object, its attributes, a database, a pickle. Never wrong bytes, never a crash; the rest goes on."""

import hashlib
import http.client
import os
import pickle
import sqlite3

import pytest

from harness import disk
from harness.client import Client
from harness.systems import running
from harness.waiting import until

BODY = hashlib.shake_256(b"media").digest(300_000)


@pytest.fixture(scope="module")
def system(request, tmp_path_factory):
    """A system of this file's own: what is spoiled here must not puzzle other tests."""
    yield from running(request.param, tmp_path_factory.mktemp("media"))


@pytest.fixture(scope="module")
def store(system):
    """A client with a container of objects to spoil."""
    client = Client(system.auth_url)
    client.put("media")
    return client


def copies(system, name):
    found = disk.find_object(system.srv, f"/AUTH_test/media/{name}")
    assert len(found) == 3
    return found


def truncate(path):
    os.truncate(path, 100_000)


def lengthen(path):
    with open(path, "ab") as file:
        file.write(b"more than was stored")


def empty(path):
    os.truncate(path, 0)


def drop_attributes(path):
    os.removexattr(path, "user.swift.metadata")


def rot_attributes(path):
    value = bytearray(os.getxattr(path, "user.swift.metadata"))
    value[len(value) // 2] ^= 0x40
    os.setxattr(path, "user.swift.metadata", bytes(value))


def nonsense_attributes(path):
    os.setxattr(path, "user.swift.metadata", b"no pickle at all")


def wrong_kind(path):
    os.setxattr(path, "user.swift.metadata", pickle.dumps([1, 2, 3], 2))


class Code:
    """Unpickled carelessly, this writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def code_in_attributes(path):
    os.setxattr(path, "user.swift.metadata", pickle.dumps({b"name": Code(path.parent / "owned")}, 2))


def replace_by_directory(path):
    path.unlink()
    path.mkdir()


SPOILERS = [truncate, lengthen, empty, drop_attributes, rot_attributes, nonsense_attributes, wrong_kind, code_in_attributes]


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("count", [1, 3])
def test_a_spoiled_object_is_never_served(system, store, spoil, count):
    """With one replica spoiled the others serve; with all, no wrong byte is: the answer is an error or breaks off."""
    name = f"{spoil.__name__}-{count}"
    store.put("media", name, body=BODY)
    for path in copies(system, name)[:count]:
        spoil(path)
    for _ in range(6):
        try:
            reply = store.do("GET", "media", name)
        except (http.client.HTTPException, OSError):  # broken off in mid-body
            assert count == 3
            continue
        assert reply.status == 200 or count == 3
        if reply.status == 200:
            assert reply.body == BODY
        else:
            assert reply.status in (404, 503)
    assert not [path for path in disk.files(system.srv) if path.name == "owned"], "a pickle was executed"
    store.put("media", name, body=b"healed")
    assert store.get("media", name) == b"healed"
    store.delete("media", name)


def test_a_spoiled_object_is_put_in_quarantine(system, store):
    store.put("media", "quarantine", body=BODY)
    path = copies(system, "quarantine")[0]
    truncate(path)
    until(lambda: store.get("media", "quarantine") == BODY and not path.exists(), what="the truncated file leaving its place")
    assert any("quarantined" in found.parts and path.parent.name in found.parts for found in disk.files(system.srv))


def test_a_flipped_bit_is_noticed_while_reading(system, store):
    """The size is right, so only the checksum tells. A client that read it may have got the bytes, as with OpenStack,
    but the file goes to quarantine and the next reader gets the right ones."""
    store.put("media", "flipped", body=BODY)
    for path in copies(system, "flipped")[:1]:
        with open(path, "r+b") as file:
            file.seek(200_000)
            byte = file.read(1)
            file.seek(200_000)
            file.write(bytes([byte[0] ^ 1]))

    def healed():
        try:
            store.do("GET", "media", "flipped")
        except (http.client.HTTPException, OSError):
            pass
        return not path.exists()
    until(healed, what="the flipped file leaving its place")
    for _ in range(5):
        assert store.get("media", "flipped") == BODY


def test_rubbish_files_in_a_hash_directory(system, store):
    store.put("media", "rubbish", body=BODY)
    folder = copies(system, "rubbish")[0].parent
    for junk in ("not-a-timestamp.data", "9999999999.99999.txt", ".hidden", "1.data", "x.ts", "-1.meta"):
        (folder / junk).write_bytes(b"junk")
    for _ in range(6):
        assert store.get("media", "rubbish") == BODY
    store.put("media", "rubbish", body=b"again")
    assert store.get("media", "rubbish") == b"again"


def spoil_database(path):
    path.write_bytes(b"this is no database" * 1000)


def spoil_pages(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096))


def empty_database(path):
    os.truncate(path, 0)


def drop_table(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE object")


@pytest.mark.parametrize("spoil", [spoil_database, empty_database, spoil_pages], ids=lambda spoil: spoil.__name__)
def test_a_spoiled_container_database_is_contained(system, store, spoil):
    """One of three databases rots: listings, writes and reads go on from the other two, and the process lives."""
    container = f"db {spoil.__name__}"
    store.put(container)
    for number in range(20):
        store.put(container, f"o{number}", body=b"x")

    def mine():
        found = []
        for path in disk.databases(system.srv, "containers"):
            try:
                with sqlite3.connect(path, timeout=10) as connection:
                    if connection.execute("SELECT container FROM container_info").fetchone() == (container,):
                        found.append(path)
            except sqlite3.DatabaseError:
                pass
        return found

    databases = until(lambda: len(found := mine()) == 3 and found, what="three databases that can be read")
    until(lambda: len(store.get(container).splitlines()) == 20, what="the listing")
    spoil(databases[0])
    for number in range(20, 30):
        store.put(container, f"o{number}", body=b"y")
        assert store.get(container, f"o{number}") == b"y"
    assert store.do("GET", container).status in (200, 204)
    assert store.do("POST", container, headers={"X-Container-Meta-A": "b"}).status in (204, 503)
    assert system.alive()


def test_a_pickle_with_code_in_hashes_and_pending(system, store, tmp_path):
    """hashes.pkl and pending updates hold pickles too; none is ever executed."""
    store.put("media", "hashes", body=b"x")
    path = copies(system, "hashes")[0]
    (path.parents[2] / "hashes.pkl").write_bytes(pickle.dumps({"x": Code(tmp_path / "owned")}, 2))
    waiting = system.srv / path.relative_to(system.srv).parts[0] / "async_pending" / "abc"
    waiting.mkdir(parents=True, exist_ok=True)
    (waiting / ("0" * 29 + "abc-1234567890.12345")).write_bytes(pickle.dumps({"op": Code(tmp_path / "owned")}, 2))
    store.put("media", "hashes", body=b"y")
    assert store.get("media", "hashes") == b"y"
    assert not (tmp_path / "owned").exists()
    assert system.alive()
