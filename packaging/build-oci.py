#!/usr/bin/env python3
"""Makes an OCI image of BINARY and of the files of this repository, without a daemon and without root:

    packaging/build-oci.py BINARY OUTPUT-DIRECTORY

OUTPUT/martlet-VERSION-ARCH.oci is the image's layout (oci-layout, index.json, blobs), and the .oci.tar beside it the same as one file,
which `podman load` and `docker load` take. In the image are the program, OpenStack's names for it, samples of the configuration, certificates
of the public authorities and a user; no shell, no package manager. A program that is not linked statically brings the
libraries of the machine it was built on. Two builds of one source make the same image, bit by bit.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Numbers, so that a runtime can see without the image's files that it is not root.
USER = 10001
PASSWD = f"root:x:0:0:root:/:/usr/sbin/nologin\nswift:x:{USER}:{USER}:object storage:/var/lib/martlet:/usr/sbin/nologin\n"
GROUP = f"root:x:0:\nswift:x:{USER}:\n"
# What a server may write to, unless a volume is mounted there.
WRITABLE = ("var/lib/martlet", "var/cache/swift", "srv/node", "run/lock")
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def version():
    """What the packages say of themselves (common.sh)."""
    told = os.environ.get("MARTLET_PACKAGE_VERSION")
    return told or re.search(r'^version = "(.*)"', (HERE.parent / "Cargo.toml").read_text(), re.MULTILINE).group(1)


def epoch(binary):
    """No file of the image is younger than this."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return int(told)
    done = subprocess.run(["git", "-C", HERE.parent, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(done.stdout or binary.stat().st_mtime)


def libraries(binary):
    """The shared libraries that a program needs here, by the path at which it looks for them; none for a static one."""
    headers = subprocess.run(["readelf", "--program-headers", "--wide", binary], capture_output=True, text=True, check=True).stdout
    interpreter = re.search(r"interpreter: (\S+)\]", headers)
    if not interpreter:
        return {}
    told = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    found = {path: Path(path).resolve() for path in re.findall(r"=> (/\S+)", told)}
    return {**found, interpreter.group(1): Path(interpreter.group(1)).resolve()}


def lay_out(binary, tree):
    """The image's files below `tree`."""
    keep = os.environ.get("MARTLET_PACKAGE_KEEP_SYMBOLS")
    with tempfile.TemporaryDirectory() as symbols:
        command = [HERE / "stage.sh", binary, tree, *([] if keep else [symbols])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree / "usr/lib/systemd")
    shutil.copy(HERE.parent / "LICENSE", tree / "usr/share/doc/martlet/LICENSE")
    for path, source in libraries(binary).items():
        put(tree, path, source.read_bytes(), 0o755)
        owner = subprocess.run(["dpkg", "--search", source], capture_output=True, text=True, check=False).stdout.split(":")[0]
        terms = Path(f"/usr/share/doc/{owner}/copyright")
        if owner and terms.exists():
            put(tree, f"/usr/share/doc/{owner}/copyright", terms.read_bytes(), 0o644)
    put(tree, CERTIFICATES, CERTIFICATES.read_bytes(), 0o644)
    put(tree, "/etc/passwd", PASSWD.encode(), 0o644)
    put(tree, "/etc/group", GROUP.encode(), 0o644)
    for folder in (*WRITABLE, "tmp"):
        (tree / folder).mkdir(parents=True, exist_ok=True)


def put(tree, path, content, mode):
    """A file at an absolute path of the image."""
    target = tree / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def packed(tree, when):
    """The layer, as a tar: sorted, of one time and of numbers for owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(tree.rglob("*")):
            name = str(path.relative_to(tree))
            entry = tar.gettarinfo(path, arcname=name)
            owner = USER if name in WRITABLE else 0
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = owner, owner, "", "", when
            if entry.isdir():
                entry.mode = 0o1777 if name == "tmp" else 0o755
            if entry.isreg():
                with open(path, "rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    return buffer.getvalue()


class Layout:
    """The folder of an image: blobs by their digest."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs/sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, content, media_type):
        """Puts a blob in; its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def document(self, value, media_type):
        """Puts a JSON document in; its descriptor."""
        return self.blob(json.dumps(value, separators=(",", ":")).encode(), media_type)

    def as_one_file(self, when):
        """The folder as a tar beside it."""
        with tarfile.open(f"{self.folder}.tar", "w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(self.folder.rglob("*")):
                entry = tar.gettarinfo(path, arcname=str(path.relative_to(self.folder)))
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mtime, entry.mode = when, 0o755 if entry.isdir() else 0o644
                with open(path, "rb") if entry.isreg() else io.BytesIO() as content:
                    tar.addfile(entry, content)


def image(layout, layer, architecture, when):
    """Writes configuration, manifest and index of an image of one layer."""
    created = datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"org.opencontainers.image.title": "martlet", "org.opencontainers.image.version": version(),
              "org.opencontainers.image.licenses": "Apache-2.0"}
    fast = os.environ.get("MARTLET_PACKAGE_COMPRESSION") == "none"
    config = layout.document({
        "created": created, "architecture": architecture, "os": "linux",
        "config": {
            "User": f"{USER}:{USER}", "WorkingDir": "/var/lib/martlet", "StopSignal": "SIGTERM",
            "Env": ["PATH=/usr/bin:/usr/lib/martlet/bin"], "ExposedPorts": {"8080/tcp": {}},
            "Entrypoint": ["/usr/bin/martlet"], "Cmd": ["up", "--dir", "/var/lib/martlet/cluster", "--bind", "0.0.0.0:8080"],
            "Volumes": {"/var/lib/martlet": {}}, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "packaging/build-oci.py"}]}, CONFIG)
    blob = layout.blob(gzip.compress(layer, 1 if fast else 9, mtime=0), LAYER)
    manifest = layout.document({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [blob], "annotations": labels}, MANIFEST)
    names = {"org.opencontainers.image.ref.name": version(), "io.containerd.image.name": f"localhost/martlet:{version()}"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
             "manifests": [{**manifest, "platform": {"architecture": architecture, "os": "linux"}, "annotations": names}]}
    (layout.folder / "index.json").write_text(json.dumps(index, separators=(",", ":")))


def main():
    """Makes the image."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} BINARY OUTPUT-DIRECTORY")
    binary, output = Path(sys.argv[1]), Path(sys.argv[2])
    if not CERTIFICATES.exists():
        sys.exit(f"{sys.argv[0]}: {CERTIFICATES} is missing; Debian's package ca-certificates has it")
    when = epoch(binary)
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        lay_out(binary, tree)
        layer = packed(tree, when)
    layout = Layout(output / f"martlet-{version()}-{architecture}.oci")
    image(layout, layer, architecture, when)
    layout.as_one_file(when)
    print(f"{layout.folder}.tar")


if __name__ == "__main__":
    main()
