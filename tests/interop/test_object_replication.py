"""Objects come to where they belong, whichever make serves them, whichever replicates, and however they travel."""

import os
import shutil
import time
from urllib.parse import quote

import pytest

from harness.cluster import Cluster
from harness.layout import Layout, hash_path
from harness.places import martlet, openstack_command
from harness.process import run
from harness.rsyncd import Rsyncd
from harness.wire import exchange, message
from swift.common.ring import RingData
from swift.obj.diskfile import read_metadata

NODES = 4
LONG = bytes(number % 251 for number in range(300_000))


class Replicas:
    """A cluster without proxy whose objects are written to directly, and replicators run once at will."""

    def __init__(self, root, servers, replicators, method):
        self.servers, self.replicators = servers, replicators
        layout = Layout(root, nodes=NODES, devices=NODES)
        self.rsyncd = Rsyncd(root, layout.srv, ("object",)) if method == "rsync" else None
        module = {"rsync_module": self.rsyncd.module("object")} if self.rsyncd else {}
        layout.overrides = {"object": {"object-replicator": {"sync_method": method, "interval": 1, **module}}}
        layout.write()
        self.layout, self.srv = layout, layout.srv
        self.cluster = Cluster(layout, "openstack")
        for node in range(NODES):
            self.cluster.launch("object", node, servers[node])
        for node in range(NODES):
            self.cluster.await_service("object", node)
        self.now = time.time() - 1000

    def stop(self):
        self.cluster.stop()
        if self.rsyncd:
            self.rsyncd.stop()

    def at(self, seconds):
        return f"{self.now + seconds:.5f}"

    def place(self, name):
        """Partition, devices that should hold it, and one that should not."""
        ring = RingData.load(str(self.layout.etc / "object.ring.gz"))
        partition = int(hash_path(name)[:8], 16) >> ring._part_shift
        primaries = [ring.devs[row[partition]]["device"] for row in ring._replica2part2dev_id]
        (other,) = set(self.layout.devices) - set(primaries)
        return partition, primaries, other

    def ask(self, device, method, name, seconds, body=b"", **headers):
        node = self.layout.devices.index(device)
        headers_sent = {key.replace("_", "-"): str(value) for key, value in headers.items()}
        target = f"/{device}/{self.place(name)[0]}{quote(name)}"
        headers_sent["X-Timestamp"] = self.at(seconds)
        reply = exchange(self.layout.ports["object", node], message(method, target, headers_sent, body), method=method)
        assert reply.status in (200, 201, 202, 204, 404), (method, name, reply)
        return reply

    def put(self, device, name, seconds, body=b"hello", **headers):
        self.ask(device, "PUT", name, seconds, body, Content_Type="text/x", Content_Length=len(body), **headers)

    def replicate(self, *nodes):
        """One pass of the replicator of each node, one after the other; what they said."""
        printed = ""
        for node in nodes or range(NODES):
            conf = self.layout.etc / self.layout.conf_name("object", node)
            if self.replicators[node] == "openstack":
                command = openstack_command(self.layout.etc, "swift-object-replicator", conf, "once", "-v")
            else:
                command = [martlet(), "object-replicator", conf, "once", "-v"]
            done = run(command, timeout=180)
            output = done.stdout + done.stderr
            assert done.returncode == 0 and "panicked" not in output, output
            printed += output
        return printed

    def directory(self, device, name):
        partition, hashed = self.place(name)[0], hash_path(name)
        return self.srv / device / "objects" / str(partition) / hashed[-3:] / hashed

    def files(self, device, name):
        """File name → body and metadata."""
        place = self.directory(device, name)
        if not place.is_dir():
            return {}
        return {path.name: (path.read_bytes(), read_metadata(str(path))) for path in place.iterdir()}

    def level(self, name):
        """The content of the primaries. Fails unless they are equal and no other device has any."""
        _, primaries, other = self.place(name)
        first, *others = (self.files(device, name) for device in primaries)
        assert first, name
        for replica in others:
            assert replica == first, name
        assert self.files(other, name) == {}, name
        # rsync leaves two POSTs side by side where one has the newer metadata and the other the newer content type.
        return {os.path.splitext(file)[1]: first[file] for file in sorted(first)}

    def inodes(self):
        """What moves when anything is written again."""
        return {path: path.stat().st_ino for path in self.srv.rglob("*") if path.suffix in (".data", ".meta", ".ts")}


KINDS = {
    "ours to ours": (["ours"] * NODES, ["ours"] * NODES),
    "theirs to ours": (["ours"] * NODES, ["openstack"] * NODES),
    "ours to theirs": (["openstack"] * NODES, ["ours"] * NODES),
    "mixed": (["ours", "openstack"] * 2, ["openstack", "ours", "ours", "openstack"]),
}


@pytest.fixture(params=[(kind, method) for method in ("ssync", "rsync") for kind in KINDS], ids=lambda param: f"{param[0]} by {param[1]}")
def replicas(request, tmp_path, ours):
    kind, method = request.param
    servers, replicators = ([ours if kind == "ours" else kind for kind in kinds] for kinds in KINDS[kind])
    started = Replicas(tmp_path, servers, replicators, method)
    yield started
    started.stop()


def test_everything_comes_to_where_it_belongs(replicas):
    names = [f"/AUTH_a/c/{name}" for name in ("same", "once", "posted", "deleted", "away", "long", "empty", "\u00fc o", "grave")]
    same, once, posted, deleted, away, long, empty, quoted, grave = names
    for name in (same, posted, deleted, grave):
        for device in replicas.place(name)[1]:
            replicas.put(device, name, 1, X_Object_Meta_Taste="sweet")
    replicas.put(replicas.place(once)[1][1], once, 2, X_Object_Sysmeta_A="b", X_Delete_At=str(int(replicas.now) + 90_000))
    first, second, _ = replicas.place(posted)[1]
    replicas.ask(first, "POST", posted, 3, X_Object_Meta_Colour="blue", Content_Type="text/new")
    replicas.ask(second, "POST", posted, 4, X_Object_Meta_Colour="red")
    replicas.ask(replicas.place(deleted)[1][2], "DELETE", deleted, 5)
    replicas.put(replicas.place(away)[2], away, 2)
    replicas.put(replicas.place(long)[1][0], long, 2, LONG)
    replicas.put(replicas.place(empty)[1][0], empty, 2, b"")
    replicas.put(replicas.place(quoted)[1][2], quoted, 2, X_Object_Meta_F="\u00fc")
    replicas.ask(replicas.place(grave)[2], "DELETE", grave, 6)
    for _ in range(3):
        replicas.replicate()
    found = {name: replicas.level(name) for name in names}
    assert set(found[same]) == set(found[once]) == set(found[away]) == {".data"}
    assert set(found[deleted]) == set(found[grave]) == {".ts"}
    assert found[long][".data"][0] == LONG
    assert found[empty][".data"][0] == b""
    assert found[posted][".meta"][1]["X-Object-Meta-Colour"] == "red"
    for device in replicas.place(posted)[1]:
        seen = replicas.ask(device, "HEAD", posted, 8)
        assert (seen.header("Content-Type"), seen.header("X-Object-Meta-Colour")) == ("text/new", "red")
    assert found[once][".data"][1]["X-Object-Sysmeta-A"] == "b"
    before = replicas.inodes()
    replicas.replicate()
    assert replicas.inodes() == before


def test_a_lost_drive_is_filled_again(replicas):
    names = [f"/AUTH_a/c/o{number}" for number in range(12)]
    for name in names:
        for device in replicas.place(name)[1]:
            replicas.put(device, name, 1, name.encode())
    shutil.rmtree(replicas.srv / "sdb2" / "objects")
    # Where rsync is to make partitions, the replicator of the node itself has made their place.
    replicas.replicate(1)
    replicas.replicate(0, 2, 3)
    for name in names:
        replicas.level(name)


def test_nothing_is_given_away_while_a_primary_is_out(replicas):
    name = "/AUTH_a/c/o"
    replicas.replicate()
    _, primaries, other = replicas.place(name)
    replicas.put(other, name, 1)
    drive, out = replicas.srv / primaries[1], replicas.srv / f"{primaries[1]}-out"
    drive.rename(out)
    node = replicas.layout.devices.index(other)
    replicas.replicate(node)
    assert len(replicas.files(other, name)) == 1
    out.rename(drive)
    replicas.replicate(node)
    assert replicas.level(name)[".data"][0] == b"hello"
