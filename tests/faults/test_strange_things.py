"""Things under a device that do not belong there: each is named in one line and passed over or put aside, by every daemon.

None is followed out of its device, none makes a daemon or a server wait, and what is sound stays whole.
"""

import base64
import os
import pickle
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from harness import disk
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.upkeep import once

DAEMONS = ("object-auditor", "object-updater", "object-replicator", "container-auditor", "container-updater", "container-replicator",
           "container-sync", "account-auditor", "account-replicator", "account-reaper")
NAMES = [f"o{number}" for number in range(8)]
CONTAINERS = ["c0", "c1", "c2"]


@pytest.fixture
def kind(request):
    return "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"


class Code:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


@pytest.fixture
def filled(tmp_path, kind):
    if kind == "openstack":
        pytest.skip("OpenStack's follow links and wait for pipes")
    cluster = Cluster(Layout(tmp_path / "c").write(), kind).start()
    client = Client(cluster.auth_url, timeout=30)
    for container in CONTAINERS:
        client.put(container)
    for name in NAMES:
        client.put("c0", name, body=name.encode() * 1000)
    yield cluster, client
    cluster.stop()


def everything(root):
    return {path.relative_to(root): (path.read_bytes() if path.is_file() and not path.is_symlink() else None) for path in sorted(root.rglob("*"))}


def outside(tmp_path):
    """A tree like a device's, outside of all."""
    place = tmp_path / "outside"
    for folder in ("abc/" + "d" * 29 + "abc", "empty/emptier", "7/abc"):
        (place / folder).mkdir(parents=True)
    (place / "abc" / ("d" * 29 + "abc") / "1700000000.00000.data").write_text("kept")
    (place / "abc" / f"{'d' * 29}abc-1700000000.00000").write_text("kept")
    (place / "hashes.pkl").write_text("kept")
    (place / ".lock").write_text("")
    return place


def run_all(cluster, kind, daemons=DAEMONS):
    output = ""
    for daemon in daemons:
        began = time.monotonic()
        output += once(cluster, kind, daemon, cluster.etc / f"{daemon.split('-')[0]}-server.conf")
        assert time.monotonic() - began < 60, daemon
    return output


def whole(client):
    for name in NAMES:
        assert client.get("c0", name) == name.encode() * 1000
    for container in CONTAINERS:
        assert client.do("GET", container).status in (200, 204)
    assert client.get("c0").split() == [name.encode() for name in NAMES]


def fifo(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def bound(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)
    return path


def written(path, content=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def made(path):
    path.mkdir(parents=True)
    return path


def linked(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


STRANGE_HASH = "d" * 29 + "abc"


def trees(device, elsewhere):
    """Strange things in each of the three trees, in every level."""
    for tree in ("objects", "containers", "accounts"):
        top = device / tree
        free = (str(number) for number in range(256) if not os.path.lexists(top / str(number)))
        yield written(top / "file")
        yield fifo(top / next(free))
        yield bound(top / next(free))
        yield linked(top / next(free), elsewhere)
        around = next(free)
        yield linked(top / around, around)
        yield made(top / "007")
        yield made(top / "new\nline")
        yield made(Path(os.fsdecode(os.fsencode(top) + b"/\xff\xfe")))
        part = top / next(free)
        yield made(part / "xyz")
        yield fifo(part / "aaa")
        yield linked(part / "aab", elsewhere)
        yield linked(part / "aac", "aac")
        yield written(part / "aad")
        yield made(Path(os.fsdecode(os.fsencode(part) + b"/\xff\xfe")))
        suffix = part / "abc"
        yield made(suffix / "short")
        yield made(suffix / ("e" * 29 + "fff"))
        yield fifo(suffix / ("1" * 29 + "abc"))
        yield linked(suffix / ("2" * 29 + "abc"), elsewhere)
        yield linked(suffix / ("3" * 29 + "abc"), "3" * 29 + "abc")
        yield written(suffix / ("4" * 29 + "abc"))
    written(device / "objects" / "99999" / "abc" / STRANGE_HASH / "1700000000.00000.data")
    for place in (elsewhere / "old", device / "tmp-mine" / "old"):
        written(place, b"kept")
        os.utime(place, (10**9, 10**9))
    yield linked(device / "tmp-9", elsewhere)
    written(device / "objects-7" / "5" / "abc" / STRANGE_HASH / "1700000000.00000.data")
    yield device / "objects-7"


def is_named(thing, output):
    """Whether a path is in the log, its control characters as `#012` and what is no UTF-8 as the sign for that."""
    name = os.fsencode(thing).decode(errors="replace").replace("\n", "#012")
    return name in output


def test_strange_things_in_every_level(filled, kind, tmp_path):
    cluster, client = filled
    elsewhere = outside(tmp_path)
    things = [thing for device in cluster.srv.iterdir() for thing in trees(device, elsewhere)]
    before = everything(elsewhere)
    output = run_all(cluster, kind)
    assert [thing for thing in things if not is_named(thing, output)] == []
    assert all((device / "tmp-mine" / "old").exists() for device in cluster.srv.iterdir())
    assert output.count("objects/99999 is no partition") == 4
    assert everything(elsewhere) == before
    whole(client)


def pickled(*value, protocol=2):
    return lambda path, _: path.write_bytes(pickle.dumps(*value, protocol))


def code(path, elsewhere):
    path.write_bytes(pickle.dumps({"abc": Code(elsewhere / "owned")}, 2))


def pending_code(path, elsewhere):
    path.write_bytes(b":" + base64.b64encode(pickle.dumps(Code(elsewhere / "owned"), 2)))


def link(path, elsewhere):
    path.symlink_to(elsewhere / "hashes.pkl")


def dangling(path, elsewhere):
    path.symlink_to(elsewhere / "new")


def pipe(path, _):
    os.mkfifo(path)


def directory(path, _):
    path.mkdir()


def rubbish(path, _):
    path.write_bytes(os.urandom(20000) + b"\n../../x\n" + b"\0" * 100)


def long_rubbish(path, _):
    path.write_bytes(os.urandom(9 * 2**20))


def schema(path, _):
    with sqlite3.connect(path) as connection:
        connection.execute("create table something(other text)")


NO_FILES = (pipe, directory, link, dangling)
PARTITION = [("hashes.pkl", pickled({"version": 7, "hashes": [1, 2]})), ("hashes.pkl", code), ("hashes.pkl", rubbish),
             ("hashes.pkl", pickled({"abc": b"x" * 70000, "valid": True}, protocol=5)),
             ("hashes.invalid", rubbish), ("hashes.invalid", long_rubbish),
             *((name, make) for name in ("hashes.pkl", "hashes.invalid", ".lock") for make in NO_FILES)]
LATE = 3
DATABASE = [("", schema), ("", rubbish), (".pending", rubbish), (".pending", pending_code), ("", lambda path, _: path.symlink_to(path.name)),
            *((ending, make) for ending in ("", "-journal", "-wal", "-shm", ".pending", ".lock") for make in NO_FILES)]


def spoil(path, make, elsewhere):
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    make(path, elsewhere)
    return path


def test_strange_files_of_a_partition(filled, kind, tmp_path):
    """Each beside an object of its own, on one of its devices."""
    cluster, client = filled
    elsewhere = outside(tmp_path)
    before = everything(elsewhere)
    spoilt = {}
    for number, (name, make) in enumerate(PARTITION):
        while True:
            number += 100
            client.put("c1", f"p{number}", body=b"x")
            partition = disk.find_object(cluster.srv, client.root.removeprefix("/v1") + f"/c1/p{number}")[0].parents[2]
            if partition not in spoilt:
                break
        spoilt[partition] = spoil(partition / name, make, elsewhere)
    output = run_all(cluster, kind)
    began = time.monotonic()
    objects = client.get("c1").decode().split()
    for name in objects:
        assert client.get("c1", name) == b"x"
        client.put("c1", name, body=b"again")
    assert time.monotonic() - began < 60
    output += run_all(cluster, kind)
    output += cluster.log()
    # A link to nothing is nothing, and is replaced; a hash that is none is one to be computed.
    tacit = {PARTITION.index(("hashes.pkl", dangling)), LATE}
    assert [path for number, path in enumerate(spoilt.values()) if number not in tacit and not is_named(path, output)] == []
    assert all(client.get("c1", name) == b"again" for name in objects)
    assert [path for path in spoilt.values() if is_in_the_way(path)] == []
    whole(client)
    assert everything(elsewhere) == before


def is_in_the_way(path):
    """Whether something that is no file is where one belongs."""
    return os.path.lexists(path) and (path.is_symlink() or not path.is_file())


def rows(path):
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("select name from object where deleted = 0 order by name")]
        return connection.execute("select container from container_stat").fetchone()[0], names


def test_strange_files_of_a_database(filled, kind, tmp_path):
    """Each in place of or beside one replica of a container, which is whole again afterwards."""
    cluster, client = filled
    elsewhere = outside(tmp_path)
    before = everything(elsewhere)
    containers, spoilt = [f"d{number}" for number in range(len(DATABASE))], {}
    for container in containers:
        client.put(container)
        client.put(container, "before", body=b"x")
    files = {rows(path)[0]: path for path in disk.databases(cluster.srv, "containers")}
    for container, (ending, make) in zip(containers, DATABASE):
        path = files[container]
        path = path.parent / ending if ending == ".lock" else Path(f"{path}{ending}")
        spoilt[container] = spoil(path, make, elsewhere)
    began = time.monotonic()
    for container in containers:
        client.put(container, "object", body=b"x")
        # A spoilt `.pending` takes the row of "before" with it, and "object" comes to two of the three before its writer hears of it.
        client.do("GET", container, expect=(200, 204))
    assert time.monotonic() - began < 60
    output = "".join(run_all(cluster, kind) for _ in range(3))
    assert everything(elsewhere) == before
    whole(client)
    served = cluster.log()
    assert [path for path in spoilt.values() if not is_named(path.parent, output + served)] == []
    found = [rows(path) for path in disk.databases(cluster.srv, "containers") if path.is_file()]
    for container in containers:
        assert found.count((container, ["before", "object"])) == 3, container
    assert [path for path in spoilt.values() if is_in_the_way(path)] == []
