"""object-info, container-info and account-info: what both makes say of the same files.

Nothing they look at may change; OpenStack's own look at databases through a copy here, for they merge what waits.
"""

import os
import pickle
import shutil

import pytest
from swift.common.ring import RingBuilder

from harness import disk, layout
from harness.tools import both, many, run

CRASH = "Traceback (most recent call last)"


def agree(theirs, ours):
    """OpenStack's traceback becomes a line with the same exit status; all else is the same."""
    assert ours.status == theirs.status, (theirs, ours)
    assert "panicked" not in ours.err
    if CRASH in theirs.err:
        assert ours.err, "no line says what is wrong"
    else:
        assert (ours.out, ours.err) == (theirs.out, theirs.err)


def look(tool, *calls):
    """Compares what both say to each list of arguments; what ours said."""
    said = [run("martlet", tool, *call) for call in calls]
    for call, theirs, ours in zip(calls, many(tool, calls), said, strict=True):
        assert call and ours.status == theirs.status, (call, theirs, ours)
        agree(theirs, ours)
    return said


OPTIONS = [(), ("-n",), ("--drop-prefixes",), ("-P", "gold"), ("-P", "Policy-0"), ("--policy-name", "silver"), ("-P", "nope")]


def test_objects_of_clusters(our_files, their_files):
    for made in (our_files, their_files):
        files = [path for suffix in (".data", ".meta", ".ts") for path in disk.objects(made.srv, suffix)]
        kinds = {(path.suffix, path.stat().st_size): path for path in files}
        assert len(kinds) >= 5
        for said in look("object-info", *(("-d", made.etc, *options, path) for path in kinds.values() for options in OPTIONS)):
            assert "  Account: AUTH_test" in said.lines and said.status == 0


BASE = {"name": "/a/c/o", "Content-Type": "t/p", "X-Timestamp": "1402017432.46642", "ETag": "d41d8cd98f00b204e9800998ecf8427e", "Content-Length": "0"}
ODD = {
    "all groups": {**BASE, "X-Object-Sysmeta-A": "1", "X-Object-Transient-Sysmeta-B": "2", "X-Object-Meta-C": "3", "X-Object-Other": "4",
                   "x-object-meta-low": "l", "X-Container-Meta-Q": "q", "Zed": "z", "Alpha": "a"},
    "bad etag": {**BASE, "ETag": "bad"},
    "bad length": {**BASE, "Content-Length": "2"},
    "length no number": {**BASE, "Content-Length": "x"},
    "no name": {key: value for key, value in BASE.items() if key != "name"},
    "no time": {key: value for key, value in BASE.items() if key != "X-Timestamp"},
    "only a name": {"name": "/a/c/o"},
    "name of two parts": {**BASE, "name": "/a/c"},
    "name without slash": {**BASE, "name": "a/c/o"},
    "time of words": {**BASE, "X-Timestamp": "junk"},
    "time with offset": {**BASE, "X-Timestamp": "1402017432.46642_0000000000000001"},
    "time in seconds": {**BASE, "X-Timestamp": "1402017432"},
    "bytes": {key.encode(): value.encode() for key, value in BASE.items()},
    "fragment": {**BASE, "X-Object-Sysmeta-Ec-Frag-Index": "2", "X-Object-Sysmeta-Ec-Etag": "x"},
    "a list": [1, 2],
    "nothing": {},
    "truncated": pickle.dumps(BASE, 2)[:-5],
    "junk": b"garbage",
    "a call": b"cos\nsystem\n(S'touch EVIL'\ntR.",
    "deep": b"(" * 2_000 + b".",
    "huge": b"\x80\x02X\xff\xff\xff\x7f",
    "checksum": (BASE, b"0" * 32),
}


def craft(path, metadata, body=b""):
    """An object's file with these metadata, pickled or raw."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    if isinstance(metadata, tuple):
        metadata, checksum = metadata
        os.setxattr(path, "user.swift.metadata_checksum", checksum)
    raw = metadata if isinstance(metadata, bytes) else pickle.dumps(metadata, 2)
    os.setxattr(path, "user.swift.metadata", raw)
    return path


@pytest.fixture(scope="module")
def etc(tmp_path_factory):
    """A configuration with a ring of twelve devices, IPv6 among them."""
    made = layout.Layout(tmp_path_factory.mktemp("etc")).write()
    for name, hosts in (("object", ["::1", "fe80::1", "10.0.0.1", "host.name"]), ("container", ["10.0.0.1", "::2"]), ("account", ["::1", "::2"])):
        builder = RingBuilder(8, 3, 1)
        for number in range(12):
            builder.add_dev({"id": number, "region": 1 + number % 2, "zone": number % 4, "weight": 100.0, "device": f"d{number}",
                             "ip": hosts[number % len(hosts)], "port": 6000 + number, "replication_ip": f"10.9.9.{number}",
                             "replication_port": 7000 + number, "meta": "m"})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(made.etc / f"{name}.ring.gz"))
    return made.etc


def test_odd_metadata(etc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [craft(tmp_path / str(number) / "1402017432.46642.data", metadata) for number, metadata in enumerate(ODD.values())]
    before = [path.stat() for path in paths]
    look("object-info", *(("-d", etc, path) for path in paths))
    assert not (tmp_path / "EVIL").exists()
    assert [path.stat().st_ctime_ns for path in paths] == [stat.st_ctime_ns for stat in before]


def test_what_terminals_obey_is_spelled(etc, tmp_path):
    path = craft(tmp_path / "1.data", {**BASE, "X-Object-Meta-N": "a\nETag: x\x1b[31m", "name": "/a/c/o\nx"})
    said = run("martlet", "object-info", "-d", etc, path)
    assert said.status == 0 and "  X-Object-Meta-N: a\\x0aETag: x\\x1b[31m" in said.lines and "  Object: o\\x0ax" in said.lines
    latin = craft(tmp_path / "2.data", {**{key.encode(): value.encode() for key, value in BASE.items()}, b"X-Object-Meta-L": b"\xff\xfe"})
    assert "  X-Object-Meta-L: \\xff\\xfe" in run("martlet", "object-info", "-d", etc, latin).lines


def test_policies_of_paths(etc, tmp_path):
    places = ("objects", "objects-1", "objects-7", "objects-x", "quarantined/objects-1", "async_pending-1", "objects-1/x/objects", "xobjects-1")
    paths = [craft(tmp_path / place / "1.data", BASE) for place in places]
    for number, rings in enumerate([("object", "object-1"), ("object",), ("object-1",), ()]):
        conf = tmp_path / f"etc{number}"
        conf.mkdir()
        for name in ("swift.conf", *(f"{ring}.ring.gz" for ring in rings)):
            shutil.copy(etc / name, conf)
        look("object-info", *(("-d", conf, *options, path) for path in paths for options in ((), ("-P", "gold"), ("-P", "SILVER"), ("-P", "nope"))))


def test_what_cannot_be_looked_at(etc, tmp_path):
    path = craft(tmp_path / "1.data", BASE)
    plain = tmp_path / "plain"
    plain.write_bytes(b"no metadata")
    os.mkfifo(tmp_path / "pipe")
    theirs, ours = both("object-info", "-d", etc, plain)
    assert (ours.out, ours.status) == (theirs.out, theirs.status) == ("Invalid metadata\n", 1)
    assert run("martlet", "object-info", "-d", etc, tmp_path).status == 1
    assert run("martlet", "object-info", "-d", etc, tmp_path / "pipe").status == 1
    (tmp_path / "swift.conf").write_bytes((etc / "swift.conf").read_bytes())
    (tmp_path / "object.ring.gz").write_bytes(b"no ring")
    look("object-info", ("-d", etc, tmp_path / "nosuch"), ("-d", tmp_path / "nosuch", path), ("-d", tmp_path, path))
    for arguments in ((), (path, path)):
        theirs, ours = both("object-info", "-d", etc, *arguments)
        assert ours.status == theirs.status == 0 and ours.out.startswith("Usage: swift-object-info [options] OBJECT_FILE")
    theirs, ours = both("object-info", "--nonsense", path)
    assert ours.status == theirs.status == 2
