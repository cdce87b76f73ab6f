"""Devices that cannot be written or are not there: 507 inside, the next node outside, one clear line in the log."""

import os
import subprocess
import time

import pytest

from harness import disk
from harness.backend import Call, call
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.upkeep import once


@pytest.fixture
def kind(request):
    return "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"


def servers(root, kind, role, **defaults):
    """One storage server with these options on top."""
    cluster = Cluster(Layout(root, overrides={role: {"DEFAULT": defaults}}).write(), kind)
    cluster.start_service(role)
    return cluster


def put(role, device="sdb1"):
    path = {"object": "/a/c/o", "container": "/a/c", "account": "/a"}[role]
    headers = {"Content-Type": "text/x", "Content-Length": "1"} if role == "object" else {}
    return Call("PUT", path, "5", headers, b"x" if role == "object" else b"", device=device)


ROLES = ["object", "container", "account"]


@pytest.mark.parametrize("role", ROLES)
def test_mount_check_refuses_what_is_not_mounted(tmp_path, kind, role):
    cluster = servers(tmp_path / "c", kind, role, mount_check="true")
    try:
        for method in ("PUT", "GET", "HEAD", "POST", "DELETE"):
            request = put(role)
            request.method = method
            assert call(cluster.layout.ports[role, 0], request).status == 507, method
        assert disk.files(cluster.srv) == []
    finally:
        cluster.stop()


@pytest.mark.parametrize("role", ROLES)
def test_a_missing_device_is_refused_by_name(tmp_path, kind, role):
    cluster = servers(tmp_path / "c", kind, role)
    try:
        reply = call(cluster.layout.ports[role, 0], put(role, device="sdz9"))
        assert reply.status == 507 and b"sdz9" in reply.body
        assert not (cluster.srv / "sdz9").exists()
        for evil in ("..", "%2e%2e", "..%2f..%2ftmp", ".", "%00"):
            assert call(cluster.layout.ports[role, 0], put(role, device=evil)).status in (400, 404, 507), evil
    finally:
        cluster.stop()


def test_a_device_past_its_reserve_is_full(tmp_path, kind):
    cluster = servers(tmp_path / "c", kind, "object", fallocate_reserve="100%")
    try:
        assert call(cluster.layout.ports["object", 0], put("object")).status == 507
        assert not disk.temporary(cluster.srv) and not disk.objects(cluster.srv)
    finally:
        cluster.stop()


@pytest.fixture
def small_device(tmp_path):
    """A file system of 8 MiB of its own; needs root and mount."""
    image, place = tmp_path / "image", tmp_path / "mounted"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(8 * 2**20)
    made = subprocess.run(["mkfs.ext4", "-q", "-I", "512", str(image)], capture_output=True)
    if made.returncode or subprocess.run(["mount", "-o", "loop", str(image), str(place)], capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def with_device(root, kind, device, **options):
    """A cluster whose sdb1 is the mounted file system."""
    layout = Layout(root, **options)
    layout.write()
    (layout.srv / "sdb1").rmdir()
    os.symlink(device, layout.srv / "sdb1")
    return Cluster(layout, kind)


def test_a_full_device_is_refused_and_recovers(tmp_path, kind, small_device):
    cluster = with_device(tmp_path / "c", kind, small_device)
    cluster.start_service("object")
    try:
        port = cluster.layout.ports["object", 0]
        big = b"x" * 3_000_000
        statuses = [call(port, Call("PUT", f"/a/c/o{n}", "5", {"Content-Type": "t/x", "Content-Length": str(len(big))}, big)).status for n in range(4)]
        assert statuses[0] == 201 and statuses[-1] == 507, statuses
        assert not disk.temporary(cluster.srv)
        small = call(port, Call("DELETE", "/a/c/o0", "6"))
        assert small.status in (204, 507)
    finally:
        cluster.stop()


def test_a_read_only_device_is_left_out(tmp_path, kind, small_device, memcached):
    """Remounted read-only, as the kernel does on errors: writes go elsewhere, what it holds is still read."""
    cluster = with_device(tmp_path / "c", kind, small_device, memcached_port=memcached.port)
    cluster.start()
    try:
        client = Client(cluster.auth_url)
        client.put("c")
        for number in range(10):
            client.put("c", f"o{number}", body=b"before")
        cluster.stop()
        subprocess.run(["mount", "-o", "remount,ro", str(small_device)], check=True)
        cluster.start()
        client = Client(cluster.auth_url)
        for number in range(10):
            assert client.get("c", f"o{number}") == b"before"
            client.put("c", f"o{number}", body=b"after")
            assert client.do("GET", "c", f"o{number}", headers={"X-Newest": "true"}, expect=200).body == b"after"
        assert cluster.alive()
    finally:
        cluster.stop()


def in_its_place(path):
    """A pipe without a writer, in place of a file."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def test_a_pipe_in_place_of_a_file_blocks_nothing(tmp_path, kind):
    """Neither a server nor a daemon: what is no file holds nothing up."""
    cluster = Cluster(Layout(tmp_path / "c").write(), kind).start()
    try:
        client = Client(cluster.auth_url, timeout=30)
        client.put("c")
        for name in ("o", "posted", "other"):
            client.put("c", name, body=b"x")
        client.do("POST", "c", "posted", headers={"X-Object-Meta-A": "b"}, expect=202)
        replicas = disk.find_object(cluster.srv, client.root.removeprefix("/v1") + "/c/o")
        assert len(replicas) == 3
        for path in replicas:
            in_its_place(path)
            in_its_place(path.parents[2] / "hashes.pkl")
            in_its_place(path.parents[2] / "hashes.invalid")
        for path in disk.objects(cluster.srv, ".meta"):
            in_its_place(path)
        for device in cluster.srv.iterdir():
            in_its_place(device / "async_pending" / "abc" / f"{'d' * 29}abc-1700000000.00000")
        began = time.monotonic()
        assert client.do("GET", "c", "o").status in (404, 503)
        assert client.do("GET", "c", "other", expect=200).body == b"x"
        client.put("c", "o", body=b"again")
        assert client.get("c", "o") == b"again"
        for daemon in ("object-auditor", "object-updater", "object-replicator"):
            once(cluster, kind, daemon, cluster.etc / "object-server.conf")
        assert time.monotonic() - began < 60
        assert client.get("c", "o") == b"again"
    finally:
        cluster.stop()


def test_what_a_link_leads_to_is_left_alone(tmp_path, kind):
    """No daemon changes anything outside a device: a partition that is a symbolic link is passed over, and named."""
    outside = tmp_path / "outside"
    for folder in ("abc/def", "empty/emptier"):
        (outside / folder).mkdir(parents=True)
    (outside / "file").write_text("kept")
    (outside / "abc" / f"{'d' * 29}abc-1700000000.00000").write_text("kept")
    before = sorted(path.relative_to(outside) for path in outside.rglob("*"))
    cluster = Cluster(Layout(tmp_path / "c").write(), kind).start()
    try:
        client = Client(cluster.auth_url, timeout=30)
        client.put("c")
        client.put("c", "o", body=b"x")
        output, links = "", []
        for device in cluster.srv.iterdir():
            for place in ("objects/7", "containers/46", "accounts/46", "async_pending/abc"):
                (device / place).parent.mkdir(exist_ok=True)
                if not (device / place).exists():
                    (device / place).symlink_to(outside)
                    links.append(device / place)
        for daemon in ("object-auditor", "object-updater", "object-replicator", "container-auditor", "container-updater",
                       "container-replicator", "account-auditor", "account-replicator", "account-reaper"):
            output += once(cluster, kind, daemon, cluster.etc / f"{daemon.split('-')[0]}-server.conf")
        assert sorted(path.relative_to(outside) for path in outside.rglob("*")) == before
        assert [link for link in links if str(link) not in output] == []
        assert client.get("c", "o") == b"x"
    finally:
        cluster.stop()
