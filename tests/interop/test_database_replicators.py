"""Replicas of accounts and containers become equal, whichever make serves them and whichever replicates."""

import json
import shutil
import sqlite3
import time

import pytest

from harness.cluster import Cluster
from harness.layout import Layout, hash_path
from harness.places import martlet, openstack_command
from harness.process import run
from harness.rsyncd import Rsyncd
from harness.waiting import until
from harness.wire import exchange, message
from swift.common.ring import RingData

NODES = 4
TABLES = {
    "container": ("object", "name, created_at, size, content_type, etag, deleted, storage_policy_index"),
    "account": ("container", "name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, storage_policy_index"),
}
INFO = {"container": "container_info", "account": "account_stat"}
# Little is far, so that few rows show what many would.
FAR = {"per_diff": 20, "max_diffs": 3}


class Replicas:
    """A cluster without proxy whose databases are written to directly, and replicators run once at will."""

    def __init__(self, root, role, servers, replicators, **options):
        self.role, self.replicators = role, replicators
        layout = Layout(root, nodes=NODES, devices=NODES)
        self.rsyncd = Rsyncd(root, layout.srv)
        patience = {"conn_timeout": 10, "node_timeout": 60}  # not what a busy machine takes longer for than OpenStack's replicators wait
        section = {f"{role}-replicator": {"rsync_module": self.rsyncd.module(role), "interval": 1, **patience, **options}}
        layout.overrides = {role: section}
        layout.write()
        self.layout, self.srv = layout, layout.srv
        self.cluster = Cluster(layout, {"proxy": "openstack", "account": "openstack", "container": "openstack", "object": "openstack"})
        for node in range(NODES):
            self.cluster.launch(role, node, servers[node])
        for node in range(NODES):
            self.cluster.await_service(role, node)
        self.now = time.time() - 1000

    def stop(self):
        self.cluster.stop()
        self.rsyncd.stop()

    def at(self, seconds):
        return f"{self.now + seconds:.5f}"

    def place(self, name):
        """Partition, devices that should hold it, and one that should not."""
        ring = RingData.load(str(self.layout.etc / f"{self.role}.ring.gz"))
        partition = int(hash_path(name)[:8], 16) >> ring._part_shift
        primaries = [ring.devs[row[partition]]["device"] for row in ring._replica2part2dev_id]
        (other,) = set(self.layout.devices) - set(primaries)
        return partition, primaries, other

    def ask(self, device, method, name, body=b"", **headers):
        node = self.layout.devices.index(device)
        partition = self.place("/".join(name.split("/")[: 3 if self.role == "container" else 2]))[0]
        stats_page = {key.replace("_", "-"): str(value) for key, value in headers.items()}
        reply = exchange(self.layout.ports[self.role, node], message(method, f"/{device}/{partition}{name}", stats_page, body), method=method)
        assert reply.status in (200, 201, 202, 204), (method, name, reply)
        return reply

    def make(self, device, name, seconds, policy="0", **metadata):
        if self.role == "container":
            metadata = {"X_Backend_Storage_Policy_Index": policy, **metadata}
        self.ask(device, "PUT", name, X_Timestamp=self.at(seconds), **metadata)

    def rows(self, device, name, seconds, names, deleted=False, policy=0):
        """Rows as a server of the level below sends them."""
        if self.role == "container":
            items = [{"name": row, "created_at": self.at(seconds), "size": 0 if deleted else 3, "content_type": "text/x", "etag": "e",
                      "deleted": int(deleted), "storage_policy_index": policy} for row in names]
            self.ask(device, "UPDATE", name, json.dumps(items).encode(), X_Timestamp=self.at(seconds), X_Backend_Storage_Policy_Index=policy)
            return
        for row in names:
            times = {"X_Put_Timestamp": "0", "X_Delete_Timestamp": self.at(seconds)} if deleted else {"X_Put_Timestamp": self.at(seconds), "X_Delete_Timestamp": "0"}
            self.ask(device, "PUT", f"{name}/{row}", X_Timestamp=self.at(seconds), X_Object_Count=0, X_Bytes_Used=0,
                     X_Backend_Storage_Policy_Index=policy, X_Account_Override_Deleted="yes", **times)

    def replicate(self, *nodes):
        """One pass of the replicator of each node, one after the other; what they said."""
        printed = ""
        for node in nodes or range(NODES):
            conf = self.layout.etc / self.layout.conf_name(self.role, node)
            kind = self.replicators[node]
            if kind == "openstack":
                command = openstack_command(self.layout.etc, f"swift-{self.role}-replicator", conf, "once", "-v")
            else:
                command = [martlet(), f"{self.role}-replicator", conf, "once", "-v"]
            done = run(command, timeout=120)
            output = done.stdout + done.stderr
            assert done.returncode == 0 and "panicked" not in output, output
            printed += output
        return printed

    def file(self, device, name):
        partition, hashed = self.place(name)[0], hash_path(name)
        return self.srv / device / f"{self.role}s" / str(partition) / hashed[-3:] / hashed / f"{hashed}.db"

    def read(self, device, name):
        """What a replica says: its rows, metadata, timestamps."""
        table, columns = TABLES[self.role]
        with sqlite3.connect(self.file(device, name), timeout=20) as connection:
            rows = sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall())
            info = connection.execute(f"SELECT hash, put_timestamp, delete_timestamp, metadata FROM {INFO[self.role]}").fetchone()
        return {"rows": rows, "hash": info[0], "times": info[1:3], "metadata": json.loads(info[3] or "{}")}

    def level(self, name):
        """The content of the primaries. Fails unless they are equal and no other device has any."""
        _, primaries, other = self.place(name)
        first, *others = (self.read(device, name) for device in primaries)
        for replica in others:
            assert replica == first
        assert not self.file(other, name).exists()
        return first


MIXES = {
    "ours by ours": (["ours"] * NODES, ["ours"] * NODES),
    "ours by theirs": (["ours"] * NODES, ["openstack"] * NODES),
    "theirs by ours": (["openstack"] * NODES, ["ours"] * NODES),
    "mixed by both": (["ours", "openstack"] * 2, ["openstack", "ours", "ours", "openstack"]),
}


@pytest.fixture(params=[(role, mix) for role in TABLES for mix in MIXES], ids=lambda param: f"{param[0]}, {param[1]}")
def replicas(request, tmp_path, ours):
    role, mix = request.param
    servers, replicators = ([ours if kind == "ours" else kind for kind in kinds] for kinds in MIXES[mix])
    started = Replicas(tmp_path, role, servers, replicators, **FAR)
    yield started
    started.stop()


def top(replicas, what):
    return f"/AUTH_{what}/c" if replicas.role == "container" else f"/AUTH_{what}"


def meta(replicas, key, value):
    return {f"X_{replicas.role.capitalize()}_Meta_{key}": value}


def test_all_replicas_become_equal(replicas):
    """A few rows apart, far apart, without a database, on a handoff, damaged: in one pass or two all is well again."""
    few, far, lost, stray, rotten = (top(replicas, what) for what in ("few", "far", "lost", "stray", "rotten"))
    names = [f"o{number:03}" for number in range(60)]

    a, b, c = replicas.place(few)[1]
    for number, device in enumerate((a, b, c)):
        replicas.make(device, few, number, **meta(replicas, f"K{number}", device))
        replicas.rows(device, few, 10, ["everywhere", "to-go"])
        replicas.rows(device, few, 20 + number, [f"only here {number}".replace(" ", "-")])
    replicas.rows(b, few, 30, ["to-go"], deleted=True)

    a, b, c = replicas.place(far)[1]
    for device in (a, b, c):
        replicas.make(device, far, 1)
    replicas.rows(a, far, 10, names)
    replicas.rows(b, far, 12, ["mine", names[7]])

    a, b, _ = replicas.place(lost)[1]
    for device in (a, b):
        replicas.make(device, lost, 1, **meta(replicas, "Kept", "yes"))
    replicas.rows(a, lost, 10, names[:30])
    replicas.rows(b, lost, 11, names[25:40])

    _, (a, b, c), other = replicas.place(stray)
    for device in (a, b, other):
        replicas.make(device, stray, 1)
    replicas.rows(other, stray, 10, ["written", "beside"])
    replicas.rows(other, stray, 11, ["beside"], deleted=True)

    a, b, c = replicas.place(rotten)[1]
    for device in (a, b, c):
        replicas.make(device, rotten, 1)
        replicas.rows(device, rotten, 10, names[:5])
    replicas.replicate()
    damaged = replicas.file(b, rotten)
    damaged.write_bytes(b"no database " * 2000)
    replicas.replicate()
    replicas.replicate()

    assert [row[0] for row in replicas.level(few)["rows"]] == ["everywhere", "only-here-0", "only-here-1", "only-here-2", "to-go"]
    assert {row[0]: row[5] for row in replicas.level(few)["rows"]}["to-go"] == 1
    assert len(replicas.level(few)["metadata"]) == 3
    assert {row[0] for row in replicas.level(far)["rows"]} == {"mine", *names}
    assert {row[0] for row in replicas.level(lost)["rows"]} == set(names[:40]) and replicas.level(lost)["metadata"]
    assert {row[0]: row[5] for row in replicas.level(stray)["rows"]} == {"written": 0, "beside": 1}
    assert len(replicas.level(rotten)["rows"]) == 5
    quarantined = replicas.srv / b / "quarantined" / f"{replicas.role}s"
    assert [path.name[:32] for path in quarantined.iterdir()] == [hash_path(rotten)]
    for device in replicas.layout.devices:
        left = [path.name for path in (replicas.srv / device / "tmp").glob("*")]
        assert not left, left


def test_a_deleted_row_stays_deleted_after_the_whole_has_travelled(replicas):
    """A replica that was away while a row was deleted, and that gets a whole database, does not bring it back."""
    name = top(replicas, "gone")
    a, b, c = replicas.place(name)[1]
    names = [f"o{number:03}" for number in range(50)]
    for device in (a, b, c):
        replicas.make(device, name, 1)
        replicas.rows(device, name, 10, names[:3])
    away = replicas.file(c, name)
    shutil.copy(away, away.with_suffix(".away"))
    for device in (a, b):
        replicas.rows(device, name, 20, names)
        replicas.rows(device, name, 30, names[:2], deleted=True)
    replicas.replicate()
    replicas.replicate()
    away.with_suffix(".away").unlink(missing_ok=True)
    held = {row[0]: row[5] for row in replicas.level(name)["rows"]}
    assert held == {**dict.fromkeys(names, 0), names[0]: 1, names[1]: 1}


@pytest.mark.parametrize("make", ["openstack", "ours"])
def test_objects_of_another_policy_are_queued_for_the_reconciler(tmp_path, ours, make):
    """Two replicas made under two policies agree on one; what lies under the other is queued as OpenStack queues it."""
    kind = ours if make == "ours" else make
    replicas = Replicas(tmp_path, "container", [kind] * NODES, [kind] * NODES)
    try:
        a, b, c = replicas.place("/AUTH_p/c")[1]
        replicas.make(a, "/AUTH_p/c", 1, policy="1")
        replicas.rows(a, "/AUTH_p/c", 10, ["kept"], policy=1)
        for device in (b, c):
            replicas.make(device, "/AUTH_p/c", 5, policy="0")
            replicas.rows(device, "/AUTH_p/c", 11, ["moved"], policy=0)
            replicas.rows(device, "/AUTH_p/c", 12, ["removed"], policy=0, deleted=True)
        for _ in range(3):
            replicas.replicate()
        assert {row[0]: row[6] for row in replicas.level("/AUTH_p/c")["rows"]} == {"kept": 1, "moved": 0, "removed": 0}
        with sqlite3.connect(replicas.file(a, "/AUTH_p/c")) as connection:
            assert connection.execute("SELECT storage_policy_index FROM container_info").fetchall() == [(1,)]
        # What is acknowledged may wait in a pending file: the servers say what is queued.
        queued = set()
        for path in replicas.srv.glob("*/containers/*/*/*/*.db"):
            with sqlite3.connect(path) as connection:
                account, hour = connection.execute("SELECT account, container FROM container_info").fetchone()
            if account == ".misplaced_objects":
                device, partition = path.parts[-6], path.parts[-4]
                node = replicas.layout.devices.index(device)
                reply = exchange(replicas.layout.ports["container", node], message("GET", f"/{device}/{partition}/{account}/{hour}?format=json"), method="GET")
                queued.update((row["name"], row["bytes"], row["content_type"], row["hash"]) for row in json.loads(reply.body))
        assert queued == {("0:/AUTH_p/c/moved", 0, "application/x-put", replicas.at(11)),
                          ("0:/AUTH_p/c/removed", 0, "application/x-delete", replicas.at(12))}
    finally:
        replicas.stop()


ENDLESS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"
FOREIGN = {
    "endless": f"CREATE TRIGGER evil AFTER UPDATE ON container_info BEGIN SELECT count(*) FROM {ENDLESS}; END",
    "view": f"ALTER TABLE container_info RENAME TO stored; CREATE VIEW container_info AS SELECT * FROM stored WHERE (SELECT count(*) FROM {ENDLESS})",
    "dropping": "CREATE TRIGGER mild AFTER INSERT ON object BEGIN DELETE FROM object WHERE ROWID = new.ROWID; END",
    "table": "CREATE TABLE more (x)",
    "index": "CREATE INDEX more ON object (abs(size))",
}


def test_a_database_with_a_foreign_schema_is_put_aside_alone(tmp_path, ours):
    """Sent over HTTP it is refused, where it lies it is quarantined; every other database of the drive is served."""
    replicas = Replicas(tmp_path, "container", [ours] * NODES, [ours] * NODES, **FAR)
    try:
        for what, statements in FOREIGN.items():
            name, beside = f"/AUTH_{what}/c", f"/AUTH_{what}-beside/c"
            partition, (a, b, c), _ = replicas.place(name)
            for device in (b, c):
                replicas.make(device, beside, 1)
            replicas.make(a, name, 1)
            replicas.rows(a, name, 2, ["before"])
            replicas.replicate(replicas.layout.devices.index(a))  # nothing waits to be merged any more
            for device in (b, c):
                shutil.rmtree(replicas.file(device, name).parent)
            changed = tmp_path / f"{what}.db"
            shutil.copy(replicas.file(a, name), changed)
            with sqlite3.connect(changed) as connection:
                connection.executescript(statements)

            def ask(device, method, path, body=b"", **headers):
                headers = {key.replace("_", "-"): value for key, value in headers.items()}
                port = replicas.layout.ports["container", replicas.layout.devices.index(device)]
                return exchange(port, message(method, f"/{device}/{partition}{path}", headers, body), method=method).status

            path = f"/{hash_path(name)}"
            assert ask(c, "REPLICATE", path, changed.read_bytes(), X_Martlet_Database="sent") == 201
            assert ask(c, "REPLICATE", path, b'["complete_rsync", "sent"]') == 500, what
            assert ask(c, "GET", name) == 404 and not replicas.file(c, name).exists()
            replicas.file(b, name).parent.mkdir(parents=True)
            shutil.copy(changed, replicas.file(b, name))
            assert [ask(b, "GET", name) for _ in range(2)] == [500, 404], what
            assert (replicas.srv / b / "quarantined/containers" / hash_path(name)).is_dir()
            for device in (b, c):
                replicas.rows(device, beside, 3, ["after"])
            for device in (b, c):
                path = str(replicas.file(device, name))
                until(lambda: path in replicas.cluster.log(), what=f"{path} in the log: {what}")
            replicas.replicate()
            assert [row[0] for row in replicas.level(name)["rows"]] == ["before"]
    finally:
        replicas.stop()


@pytest.mark.parametrize("make", ["openstack", "ours"])
def test_recon_figures_are_those_of_openstack(tmp_path, ours, make):
    kind = ours if make == "ours" else make
    replicas = Replicas(tmp_path, "account", [kind] * NODES, [kind] * NODES)
    try:
        home = replicas.place("/AUTH_r")[1][0]
        replicas.make(home, "/AUTH_r", 1)
        replicas.replicate(replicas.layout.devices.index(home))
        stats_page = json.loads((replicas.layout.run / "account.recon").read_text())
        assert stats_page["replication_last"] > stats_page["replication_time"] >= 0
        stats = stats_page["replication_stats"]
        assert (stats["attempted"], stats["rsync"], stats["failure"]) == (1, 2, 0)
        assert stats.keys() - {"deferred"} == {  # no node failed, so none is named
            "attempted", "diff", "diff_capped", "empty", "failure", "hashmatch", "no_change", "remote_merge", "remove", "rsync", "start", "success", "ts_repl"}
    finally:
        replicas.stop()
