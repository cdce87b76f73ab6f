"""object-info, container-info and account-info: what both makes say of the same files.

Nothing they look at may change; OpenStack's own look at databases through a copy here, for they merge what waits.
"""

import contextlib
import json
import os
import pickle
import re
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from swift.account.backend import AccountBroker
from swift.common.ring import RingBuilder
from swift.common.utils import ShardRange, Timestamp
from swift.container.backend import ContainerBroker

from harness import disk, layout
from harness.tools import both, command, many, run

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
    output = [run("martlet", tool, *call) for call in calls]
    for call, theirs, ours in zip(calls, many(tool, calls), output, strict=True):
        assert call and ours.status == theirs.status, (call, theirs, ours)
        agree(theirs, ours)
    return output


OPTIONS = [(), ("-n",), ("--drop-prefixes",), ("-P", "gold"), ("-P", "Policy-0"), ("--policy-name", "silver"), ("-P", "nope")]


def test_objects_of_clusters(our_files, their_files):
    for made in (our_files, their_files):
        files = [path for suffix in (".data", ".meta", ".ts") for path in disk.objects(made.srv, suffix)]
        kinds = {(path.suffix, path.stat().st_size): path for path in files}
        assert len(kinds) >= 5
        for output in look("object-info", *(("-d", made.etc, *options, path) for path in kinds.values() for options in OPTIONS)):
            assert "  Account: AUTH_test" in output.lines and output.status == 0


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


CRYPTO = [("X-Object-Sysmeta-Crypto-Body-Meta", "Data"), ("X-Object-Transient-Sysmeta-Crypto-Meta", "Metadata")]
DETAILS = {"iv": "AAECAw==", "cipher": "AES_CTR_256", "key_id": {"path": "/a/c/ö 😀", "v": "2"}, "body_key": {"key": "x+/=", "iv": "y"},
           "B": [1, 1.50, None, True, [], {}, [{"z": 1e30, "a": "\x7f\n"}]]}


def test_how_an_object_was_encrypted(etc, tmp_path):
    good = [quote_plus(json.dumps(DETAILS)), json.dumps({"a": "b"}), "+%7B%7D+", '{"a":"%ff%zz"}', '{"a":1,"a":2}']
    bad = ["", "junk", "%5B1%5D", "null", "%7B%7Dx", "%EF%BB%BF%7B%7D", '{"a":"%01"}', "[" * 2_000]
    metadata = [{name: value} for value in good + bad for name, _ in CRYPTO]
    metadata += [{CRYPTO[0][0]: good[0], CRYPTO[1][0]: value} for value in (good[1], bad[1])]
    metadata += [{name.lower(): good[0]} for name, _ in CRYPTO] + [{"X-Object-Sysmeta-Crypto-Etag": "x; swift_meta=" + good[0]}]
    paths = [craft(tmp_path / str(number) / "1.data", {**BASE, **more}) for number, more in enumerate(metadata)]
    output = look("object-info", *(("-d", etc, *options, path) for path in paths for options in ((), ("-n",), ("--drop-prefixes",))))
    for word in ("Data", "Metadata"):
        assert sum(f"{word} crypto details: {{" in report.lines for report in output) >= 6


def test_what_terminals_obey_is_spelled(etc, tmp_path):
    path = craft(tmp_path / "1.data", {**BASE, "X-Object-Meta-N": "a\nETag: x\x1b[31m", "name": "/a/c/o\nx"})
    output = run("martlet", "object-info", "-d", etc, path)
    assert output.status == 0 and "  X-Object-Meta-N: a\\x0aETag: x\\x1b[31m" in output.lines and "  Object: o\\x0ax" in output.lines
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
    look("object-info", ("",), ("-d", etc, ""), ("-d", etc, "-P", "-n", path), ("-d", etc, tmp_path / "nosuch"), ("-d", tmp_path / "nosuch", path), ("-d", tmp_path, path))
    for arguments in ((), (path, path)):
        theirs, ours = both("object-info", "-d", etc, *arguments)
        assert ours.status == theirs.status == 0 and ours.out.startswith("Usage: swift-object-info [options] OBJECT_FILE")
    theirs, ours = both("object-info", "--nonsense", path)
    assert ours.status == theirs.status == 2


def at(seconds):
    return Timestamp(1_700_000_000 + seconds)


def ranges(*states, **more):
    """Shard ranges next to each other, in these states."""
    last = len(states) - 1
    return [ShardRange(f".shards_a/c-{i}", at(i), lower=f"o{i:02}" if i else "", upper=f"o{i + 1:02}" if i < last else "",
                       object_count=i, bytes_used=i * 10, state=state, **more) for i, state in enumerate(states)]


class Databases:
    """Databases that OpenStack's brokers made, each with a story."""

    def __init__(self, root):
        self.root, self.files = root, {}

    def make(self, name, kind=ContainerBroker):
        folder = self.root / name / "sda" / ("containers" if kind is ContainerBroker else "accounts") / "12/abc" / ("0" * 29 + "abc")
        folder.mkdir(parents=True)
        self.files[name] = (kind, folder / f"{folder.name}.db")
        broker = kind(str(self.files[name][1]), account="a", **({"container": "c"} if kind is ContainerBroker else {}))
        broker.initialize(Timestamp(1700000000.12345).internal, *([1] if kind is ContainerBroker else []))
        return broker

    def shard(self, name, states, upto):
        """A container with rows and ranges, as far as being sharded."""
        broker = self.make(name)
        for row in "xy":
            broker.put_object(row, at(3).internal, 100, "t/p", "e", storage_policy_index=1)
        broker.get_info()
        broker.merge_shard_ranges(ranges(*states))
        if upto != "unsharded":
            broker.enable_sharding(at(70))
            broker.set_sharding_state()
            broker.put_object("z", at(80).internal, 1000, "t", "e", storage_policy_index=1)
        if upto == "sharded":
            broker.set_sharded_state()
        return broker

    def fill(self):
        items = {"X-Container-Meta-Z": "z", "x-container-meta-a": "a", "X-Container-Sysmeta-Foo": "s", "X-Container-Meta-Gone": "", "X-Versions-Location": "v",
                 "some-other-thing": "o", "X-Container-Read": "", "X-Container-Meta-Ü": "ö", "X-Account-Meta-Q": "q"}
        broker = self.make("metadata")
        broker.update_metadata({name: (value, at(1).internal) for name, value in items.items()})
        for number in range(3):
            broker.put_object(f"o{number}", at(number).internal, 10, "t/p", "etag", storage_policy_index=1)
        broker.get_info()
        broker.put_object("p0", at(5).internal, 7, "t/p", "etag", storage_policy_index=0)
        broker.put_object("o0", at(6).internal, 7, "t/p", "etag", storage_policy_index=1)
        broker.delete_object("o1", at(9).internal, storage_policy_index=1)  # these wait
        broker = self.make("syncs")
        broker.merge_syncs([{"sync_point": 5, "remote_id": "r1"}, {"sync_point": 7, "remote_id": "r2-with-a-long-name"}], incoming=True)
        broker.merge_syncs([{"sync_point": 12345678901, "remote_id": "r3"}], incoming=False)
        self.make("deleted").delete_db(at(50).internal)
        broker = self.make("reported")
        broker.reported(at(1).internal, at(0).internal, 5, 6)
        broker.set_x_container_sync_points(3, 4)
        mixed = (ShardRange.ACTIVE, ShardRange.SHARDING, ShardRange.CLEAVED, ShardRange.SHRINKING, ShardRange.CREATED, ShardRange.FOUND, ShardRange.SHARDED)
        for upto in ("unsharded", "sharding", "sharded"):
            self.shard(upto, mixed, upto)
        self.make("many ranges").merge_shard_ranges(ranges(*[ShardRange.FOUND] * 30))
        self.make("quotes").merge_shard_ranges([ShardRange(".shards_a/c-1", at(1), lower="o'q", upper="p\"'\n\\ü")])
        self.make("gone range").merge_shard_ranges([ShardRange(".shards_a/c-d", at(1), lower="x", upper="y", deleted=1, state=ShardRange.SHRUNK)])
        for name, item, value in (("shard", "Quoted-Root", "a/%C3%B6"), ("old shard", "Root", "a/other"), ("own root", "Quoted-Root", "a/c")):
            self.make(name).set_sharding_sysmeta(item, value)
        self.make("own range").merge_shard_ranges([ShardRange("a/c", at(1), lower="x", upper="y", object_count=2, state=ShardRange.ACTIVE)])
        self.make("collapsed").enable_sharding(at(70))
        collapsed = ContainerBroker(str(self.files["collapsed"][1]), account="a", container="c")
        collapsed.set_sharding_state()
        collapsed.set_sharded_state()
        broker = self.make("account", AccountBroker)
        broker.put_container("c1", at(1).internal, 0, 5, 50, 0)
        broker.put_container("c2", at(1).internal, 0, 7, 70, 1)
        broker.get_info()
        broker.put_container("c2", at(1).internal, at(2).internal, 0, 0, 1)
        broker.put_container("c2", at(1).internal, at(2).internal, 0, 0, 1)  # and once more
        broker.put_container("c3", at(3).internal, 0, 9, 90, 1)
        broker.update_metadata({name: (value, at(1).internal) for name, value in {"X-Account-Meta-Z": "z", "X-Account-Sysmeta-Foo": "s", "X-Account-Access-Control": "{}"}.items()})
        self.make("deleted account", AccountBroker).delete_db(at(50).internal)
        return self


HASH = re.compile(r"^  (Account|Container) Hash: .*$", re.MULTILINE)


def look_at_databases(files, etc, copy, options):
    """`files` are pairs of "account" or "container" and a path. Theirs look at copies, for they merge what waits. Their
    "Container Hash" is made before they read the secrets; ours is what their ring locations say too."""
    for kind in ("account", "container"):
        mine = [path for word, path in files if word == kind]
        theirs = []
        for number, path in enumerate(mine):
            shutil.copytree(path.parent, copy / kind / str(number))
            theirs.append(("-d", etc, *options, copy / kind / str(number) / path.name))
        for path, report in zip(mine, many(f"{kind}-info", theirs, etc), strict=True):
            before = contents(path.parent)
            ours = run("martlet", f"{kind}-info", "-d", etc, *options, path)
            assert contents(path.parent) == before, "looking has changed something"
            assert (ours.err, ours.status) == (report.err, report.status) == ("", 0), path
            assert HASH.sub("HASH", ours.out) == HASH.sub("HASH", report.out), path
            found = HASH.search(ours.out).group(0).split()[-1]
            assert f"Hash     \t{found}" in ours.lines


def contents(folder):
    """SQLite, run by root, hands a journal that it opens to the database's owner, even where it is that already."""
    stats = {path: path.stat() for path in folder.iterdir()}
    return {path.name: (path.read_bytes(), stat.st_mtime_ns, stat.st_uid, path.suffix == ".db-journal" or stat.st_ctime_ns) for path, stat in stats.items()}


@pytest.mark.parametrize("options", [(), ("-s", "--drop-prefixes")], ids=["plain", "all"])
def test_databases_with_a_story(etc, tmp_path, options):
    made = Databases(tmp_path / "made").fill()
    found = [("account" if kind is AccountBroker else "container", max(path.parent.glob("*.db"))) for kind, path in made.files.values()]
    assert len(found) == 17
    look_at_databases(found, etc, tmp_path / "copies", options)
    shards = [("container", path) for word, path in found if word == "container" and "range" in str(path) or "shard" in str(path) or "quotes" in str(path)]
    look_at_databases(shards, etc, tmp_path / "verbose", ("-v",))
    plain = made.files["sharding"][1]
    assert run("martlet", "container-info", "-d", etc, plain) == run("martlet", "container-info", "-d", etc, max(plain.parent.glob("*.db")))


LONG_AGO = {
    "container": """
CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, size INTEGER, content_type TEXT, etag TEXT, deleted INTEGER DEFAULT 0);
CREATE TABLE container_stat (account TEXT, container TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0', delete_timestamp TEXT DEFAULT '0', object_count INTEGER,
    bytes_used INTEGER, reported_put_timestamp TEXT DEFAULT '0', reported_delete_timestamp TEXT DEFAULT '0', reported_object_count INTEGER DEFAULT 0,
    reported_bytes_used INTEGER DEFAULT 0, hash TEXT default '00000000000000000000000000000000', id TEXT, status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0');
INSERT INTO container_stat (account, container, created_at, put_timestamp, object_count, bytes_used, id) VALUES ('a', 'c', '1300000000.00000', '1300000000.00000', 3, 30, 'uuid');
CREATE TRIGGER object_delete AFTER DELETE ON object BEGIN UPDATE container_stat SET object_count = object_count - 1; END;""",
    "account": """
CREATE TABLE container (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, put_timestamp TEXT, delete_timestamp TEXT, object_count INTEGER, bytes_used INTEGER, deleted INTEGER DEFAULT 0);
CREATE TABLE account_stat (account TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0', delete_timestamp TEXT DEFAULT '0', container_count INTEGER, object_count INTEGER DEFAULT 0,
    bytes_used INTEGER DEFAULT 0, hash TEXT default '00000000000000000000000000000000', id TEXT, status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0');
INSERT INTO account_stat (account, created_at, put_timestamp, container_count, object_count, bytes_used, id) VALUES ('a', '1300000000.00000', '1300000000.00000', 3, 30, 300, 'uuid');""",
}
SYNCS = "CREATE TABLE outgoing_sync (remote_id TEXT UNIQUE, sync_point INTEGER); CREATE TABLE incoming_sync (remote_id TEXT UNIQUE, sync_point INTEGER);"


def test_databases_of_long_ago(etc, tmp_path):
    files = []
    for kind, schema in LONG_AGO.items():
        path = tmp_path / f"{kind}s" / kind / f"{kind}.db"
        path.parent.mkdir(parents=True)
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.executescript(schema + SYNCS)
        files.append((kind, path))
    look_at_databases(files, etc, tmp_path / "copies", ())


def test_databases_that_servers_would_mend(etc, tmp_path):
    """Counters below nought are shown as they are; what is wrong is said of the file that was named."""
    made = Databases(tmp_path / "made")
    for name, sql in (("counts", "UPDATE policy_stat SET object_count = -5, bytes_used = -7"), ("metadata", "UPDATE container_info SET metadata = 'junk'")):
        made.make(name)
        with contextlib.closing(sqlite3.connect(made.files[name][1])) as opened:
            opened.executescript(sql)
    look_at_databases([("container", made.files["counts"][1])], etc, tmp_path / "copies", ())
    damaged = made.files["metadata"][1]
    output = run("martlet", "container-info", "-d", etc, damaged)
    assert output.status == 1 and output.err.startswith(f"{damaged} has unreadable metadata")


def killed_amid(path, *statements):
    """A writer runs these on the database, and ends by SIGKILL without having let go of it."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            opened = sqlite3.connect(path, isolation_level=None)
            for statement in statements:
                opened.execute(statement)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    return path


# Enough to make SQLite write pages of the database before the transaction ends.
SPILL = ("PRAGMA cache_size = 1", "BEGIN IMMEDIATE", "CREATE TABLE filler (a)", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO filler SELECT zeroblob(3000) FROM n")


def test_databases_whose_writer_was_killed(etc, tmp_path, monkeypatch):
    """A reader does not see what an open transaction has written; the files on disk do not change, and no copy is left behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    made = Databases(tmp_path / "made")
    broker = made.make("container")
    broker.put_object("o", at(1).internal, 5, "t/p", "e", storage_policy_index=1)
    broker.get_info()
    broker.put_object("waits", at(2).internal, 7, "t/p", "e", storage_policy_index=1)
    broker = made.make("account", AccountBroker)
    broker.put_container("c", at(1).internal, 0, 5, 50, 0)
    broker.get_info()
    for name in ("junk", "wal"):
        made.make(name)
    files = {name: ("account" if kind is AccountBroker else "container", path) for name, (kind, path) in made.files.items()}
    killed_amid(files["container"][1], *SPILL[:-1], "UPDATE container_info SET put_timestamp = '1800000000.00000'", SPILL[-1])
    killed_amid(files["account"][1], *SPILL[:-1], "UPDATE account_stat SET put_timestamp = '1800000000.00000'", SPILL[-1])
    Path(f"{files['junk'][1]}-journal").write_bytes(b"junk" * 200)
    killed_amid(files["wal"][1], "PRAGMA journal_mode = WAL", "UPDATE container_info SET put_timestamp = '1800000000.00000'")
    for name, beside in (("container", "-journal"), ("account", "-journal"), ("wal", "-wal")):
        assert Path(f"{files[name][1]}{beside}").stat().st_size > 512
    look_at_databases(list(files.values()), etc, tmp_path / "copies", ("-s",))
    assert not list(scratch.iterdir())


def test_a_writer_that_lives_is_waited_for(etc, tmp_path):
    made = Databases(tmp_path)
    made.make("written")
    path = made.files["written"][1]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        for statement in SPILL:
            writer.execute(statement)
        writer.execute("UPDATE container_info SET put_timestamp = '1800000000.00000'")
        tool = subprocess.Popen(command("martlet", "container-info", ["-d", etc, path]), stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            tool.wait(1)
        writer.execute("COMMIT")
    out, _ = tool.communicate(timeout=30)
    assert tool.returncode == 0 and "(1800000000.00000)" in out


def test_databases_of_clusters(our_files, their_files, tmp_path):
    for number, made in enumerate((our_files, their_files)):
        files = [(kind.removesuffix("s"), path) for kind in ("accounts", "containers") for path in disk.databases(made.srv, kind)]
        once = {(kind, path.name): (kind, path) for kind, path in files}
        assert len(once) >= 4
        look_at_databases(list(once.values()), made.etc, tmp_path / str(number), ("-s",))


def test_what_is_no_database(etc, our_files, tmp_path):
    account = disk.databases(our_files.srv, "accounts")[0]
    container = disk.databases(our_files.srv, "containers")[0]
    whole = container.read_bytes()
    files = {"empty.db": b"", "junk.db": b"junk", "half.db": whole[:5000], "zeros.db": bytes(8192), "torn.db": whole[:4096] + bytes(len(whole) - 4096)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    calls = [("container-info", ("-d", etc, account)), ("account-info", ("-d", etc, container)), ("account-info", ("-d", etc, tmp_path / "nosuch.db")),
             ("account-info", ("",)), ("container-info", ("-d", etc, "")), ("account-info", ("-d", etc, tmp_path)), ("container-info", ("-d", etc, tmp_path / "empty.db"))]
    for tool, call in calls:
        theirs, ours = run("openstack", tool, *call), run("martlet", tool, *call)
        assert ours.status == theirs.status == 1
        assert CRASH in theirs.err and ours.err or ours.out == theirs.out
    for name in ("junk.db", "half.db", "torn.db", "zeros.db"):
        for tool in ("account-info", "container-info"):
            output = run("martlet", tool, "-d", etc, tmp_path / name)
            assert output.status == 1 and (output.err or "Does not appear to be" in output.out) and "panicked" not in output.err
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
    for tool in ("account-info", "container-info"):
        theirs, ours = both(tool)
        assert ours.status == theirs.status == 0 and ours.lines[0] == theirs.lines[0]


def test_rings_that_are_damaged(etc, tmp_path, monkeypatch):
    """A database is shown all the same; theirs says nothing of its ring, ours which file is damaged."""
    made = Databases(tmp_path / "made")
    made.make("container")
    made.make("account", AccountBroker)
    paths = {"container": tmp_path / "c.db", "account": tmp_path / "a.db"}
    for name, path in paths.items():
        shutil.copy(made.files[name][1], path)
    whole = (etc / "container.ring.gz").read_bytes()
    craft(tmp_path / "1.data", BASE)
    monkeypatch.chdir(tmp_path)
    for state, content in (("junk", b"junk"), ("empty", b""), ("cut", whole[:100]), ("folder", None)):
        conf = tmp_path / state
        conf.mkdir()
        shutil.copy(etc / "swift.conf", conf)
        for ring in ("account", "container", "object", "object-1"):
            place = conf / f"{ring}.ring.gz"
            place.mkdir() if content is None else place.write_bytes(content)
        for kind, path in paths.items():
            [theirs], ours = many(f"{kind}-info", [("-d", conf, path)], conf), run("martlet", f"{kind}-info", "-d", conf, path)
            assert ours.status == theirs.status == 0
            assert HASH.sub("HASH", ours.out) == HASH.sub("HASH", theirs.out) and "Metadata:" in ours.lines
            assert content is None and not ours.err or f"{kind}.ring.gz" in ours.err
            other = {"container": "account", "account": "container"}[kind]
            look(f"{other}-info", *(("-d", conf, name) for name in (path, path.name, f"./{path.name}", f"../{tmp_path.name}/{path.name}")))
        look("object-info", *(("-d", conf, *options, "1.data") for options in ((), ("-P", "gold"), ("-P", "silver"))))


def test_stale_reads(etc, tmp_path):
    made = Databases(tmp_path)
    broker = made.make("waits")
    broker.put_object("o", at(1).internal, 10, "t/p", "etag", storage_policy_index=1)
    path = made.files["waits"][1]
    assert "  Object Count: 1" in run("martlet", "container-info", "-d", etc, path).lines
    assert "  Object Count: 0" in run("martlet", "container-info", "-d", etc, "--stale-reads-ok", path).lines
