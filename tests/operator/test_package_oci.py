"""The OCI image: a layout as the specification has it, the same from every build, and a cluster from it without root or daemon."""

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tomllib

import pytest
import yaml

from harness.client import Client
from harness.packages import quick
from harness.places import REPOSITORY, martlet
from harness.process import Process, run
from harness.waiting import free_port, until

NOBODY = 65534


def build(folder):
    """The image's layout in `folder`, and the same as one file."""
    binary = folder / "martlet"
    run(["strip", "--strip-debug", "-o", binary, martlet()])
    run([REPOSITORY / "packaging/build-oci.py", binary, folder], env=quick("0.1.0"))
    binary.unlink()
    [layout] = folder.glob("*.oci")
    return layout


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    return build(tmp_path_factory.mktemp("image"))


def content(layout, descriptor):
    """A blob, after its size and digest were found right."""
    blob = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert len(blob) == descriptor["size"] and descriptor["digest"] == f"sha256:{hashlib.sha256(blob).hexdigest()}"
    return blob


def parts(layout):
    """Manifest, configuration and the one layer, unpacked."""
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((layout / "index.json").read_text())
    [found] = index["manifests"]
    manifest = json.loads(content(layout, found))
    config = json.loads(content(layout, manifest["config"]))
    [layer] = manifest["layers"]
    return index, manifest, config, gzip.decompress(content(layout, layer))


def test_the_layout_is_one(layout):
    index, manifest, config, layer = parts(layout)
    assert index["schemaVersion"] == manifest["schemaVersion"] == 2
    assert index["manifests"][0]["mediaType"] == manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] == "0.1.0"
    assert manifest["config"]["mediaType"] == "application/vnd.oci.image.config.v1+json"
    assert manifest["layers"][0]["mediaType"] == "application/vnd.oci.image.layer.v1.tar+gzip"
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    assert config["os"] == "linux" and config["architecture"] == index["manifests"][0]["platform"]["architecture"]
    used = {manifest["config"]["digest"], manifest["layers"][0]["digest"], index["manifests"][0]["digest"]}
    assert {f"sha256:{blob.name}" for blob in (layout / "blobs/sha256").iterdir()} == used, "no blob that nothing names"
    with tarfile.open(f"{layout}.tar") as tar:
        packed = {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}
    assert packed == {str(path.relative_to(layout)): path.read_bytes() for path in layout.rglob("*") if path.is_file()}


def test_nobody_is_root_in_it(layout):
    _, _, config, layer = parts(layout)
    user, group = map(int, config["config"]["User"].split(":"))
    assert user > 0 and group > 0
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        entries = {entry.name: entry for entry in tar}
        assert f"swift:x:{user}:{group}:" in tar.extractfile("etc/passwd").read().decode()
        assert b"BEGIN CERTIFICATE" in tar.extractfile("etc/ssl/certs/ca-certificates.crt").read()
    owned = {name for name, entry in entries.items() if entry.uid == user}
    assert owned == {"var/lib/martlet", "var/cache/swift", "srv/node", "run/lock"}
    assert {entry.uid for entry in entries.values()} == {0, user}
    loose = {name for name, entry in entries.items() if not entry.issym() and (entry.mode & 0o6000 or entry.mode & 0o002)}
    assert loose == {"tmp"}
    assert {"usr/bin/martlet", "usr/lib/martlet/bin/swift-object-server", "usr/share/doc/martlet/LICENSE", "etc/swift/swift.conf-sample"} <= set(entries)
    assert not [name for name in entries if name.endswith(("/sh", "/bash")) or "systemd" in name]


@pytest.mark.extra
def test_two_builds_are_the_same(layout, tmp_path):
    again = build(tmp_path)
    assert (again.parent / f"{again.name}.tar").read_bytes() == (layout.parent / f"{layout.name}.tar").read_bytes()


@pytest.mark.extra
@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes a user that owns nothing")
def test_a_cluster_starts_from_it_without_root(layout, tmp_path):
    """As a rootless runtime does: a user of the host without a privilege, who is the image's user inside."""
    _, _, config, layer = parts(layout)
    place = tmp_path / "root"
    place.mkdir()
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        tar.extractall(place, filter="data")
    run(["chown", "-R", str(NOBODY), place])
    outside = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    user, group = config["config"]["User"].split(":")
    inside = ["unshare", "--user", f"--map-user={user}", f"--map-group={group}", "--mount", f"--root={place}", f"--wd={config['config']['WorkingDir']}"]
    # The folders that pytest makes are closed to others.
    for folder in place.parents:
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o001)
    if run([*outside, *inside, "/usr/bin/martlet", "--version"], check=False).returncode:
        told = run([*outside, "unshare", "--user", "true"], check=False)
        assert told.returncode, "a user can have a namespace here, but the program of the image does not run in one"
        pytest.skip(f"no user namespaces here: {told.stderr.strip()}")
    port = free_port()
    arguments = [word.replace("0.0.0.0:8080", f"127.0.0.1:{port}") for word in config["config"]["Cmd"]]
    assert arguments != config["config"]["Cmd"]
    log = tmp_path / "log"
    process = Process([*outside, *inside, *config["config"]["Entrypoint"], *arguments], log, env=dict(word.split("=", 1) for word in config["config"]["Env"]))
    try:
        until(lambda: f"ready http://127.0.0.1:{port}" in log.read_text() or not process.alive(), within=60, what="a cluster from the image")
        client = Client(f"http://127.0.0.1:{port}/auth/v1.0")
        client.put("cont")
        client.put("cont", "object", body=b"from a container")
        assert client.get("cont", "object") == b"from a container"
        client.close()
    finally:
        assert process.stop(within=120) == 0, log.read_text()
    assert {path.owner() for path in (place / "var/lib/martlet/cluster").iterdir()} == {"nobody"}


def test_the_compose_file_fits_the_image(layout):
    compose = yaml.safe_load((REPOSITORY / "etc/compose.yaml").read_text())
    [service] = compose["services"].values()
    _, _, config, _ = parts(layout)
    version = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert service["image"] == f"localhost/martlet:{version}"
    assert service["command"] == config["config"]["Cmd"] and service["ports"] == ["127.0.0.1:8080:8080"]
    [volume] = service["volumes"]
    assert volume.split(":")[1] in config["config"]["Volumes"] and volume.split(":")[0] in compose["volumes"]


@pytest.mark.skipif(not shutil.which("umoci"), reason="umoci is not installed")
def test_umoci_takes_it(layout, tmp_path):
    run(["umoci", "unpack", "--image", f"{layout}:0.1.0", tmp_path / "bundle"])
    assert run([tmp_path / "bundle/rootfs/usr/bin/martlet", "--version"]).stdout.startswith("martlet ")
