"""The tarball: named after what it needs, installed, started, upgraded and removed on a copy of this machine."""

import os
import re
import tarfile

import pytest

from harness.machine import on_a_copy
from harness.packages import MONITORING, life, lived, old_and_new, quick
from harness.places import REPOSITORY, martlet
from harness.process import Process, run
from harness.waiting import free_port, until


def build(folder, binary, version):
    """A tarball of `binary`; its path."""
    run([REPOSITORY / "packaging/build-tarball.sh", binary, folder / version], env=quick(version))
    [found] = (folder / version).glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def tarballs(tmp_path_factory):
    return old_and_new(tmp_path_factory.mktemp("tarballs"), build)


@pytest.fixture(scope="module")
def new(tarballs):
    [found] = (tarballs / "0.1.0~one").iterdir()
    return found


@pytest.mark.extra
def test_its_name_says_what_it_needs(new):
    """`static`, or the newest glibc version of any symbol, which a system must have at least."""
    kind = new.name.removesuffix(".tar.gz").rsplit("-", 1)[1]
    headers = run(["readelf", "--program-headers", "--wide", martlet()]).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", run(["objdump", "-T", martlet()]).stdout)}
    if " INTERP " in headers:
        assert kind == f"glibc{'.'.join(map(str, max(versions)))}"
        # Nothing but the C library and the compiler's own.
        needed = set(re.findall(r"NEEDED\s+(\S+)", run(["objdump", "-p", martlet()]).stdout))
        assert needed <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    else:
        assert kind == "static" and not versions


def test_what_is_in_it(new):
    top = new.name.removesuffix(".tar.gz")
    with tarfile.open(new) as tar:
        entries = {entry.name.removeprefix(f"{top}/"): entry for entry in tar if entry.name != top}
        listed = tar.extractfile(f"{top}/scripts/files").read().decode().split()
        instructions = tar.extractfile(f"{top}/INSTALL").read().decode()
    files = {name for name, entry in entries.items() if not entry.isdir()}
    assert files - {"INSTALL", "install.sh", *[f"scripts/{name}" for name in ("files", "postinst", "prerm", "postrm")]} == set(listed)
    assert {"usr/bin/martlet", "usr/lib/systemd/system/martlet.target", "usr/share/man/man8/martlet.8.gz", "usr/share/doc/martlet/LICENSE"} <= files
    assert {f"etc/swift/{sample.name}" for sample in (REPOSITORY / "etc").glob("*-sample")} <= files
    assert {name.lstrip("/") for name in MONITORING} <= files
    assert {(entry.uid, entry.gid, entry.uname) for entry in entries.values()} == {(0, 0, "")}
    assert "usr/bin/martlet up" in instructions and entries["usr/bin/martlet"].mode == 0o755


@pytest.mark.extra
def test_two_builds_are_the_same(new, tmp_path):
    again = old_and_new(tmp_path, build) / "0.1.0~one" / new.name
    assert again.read_bytes() == new.read_bytes()


@pytest.mark.extra
def test_it_runs_where_it_is_unpacked(new, tmp_path):
    with tarfile.open(new) as tar:
        tar.extractall(tmp_path, filter="data")
    [top] = tmp_path.glob("martlet-*")
    port = free_port()
    process = Process([top / "usr/bin/martlet", "up", "--dir", tmp_path / "cluster", "--bind", f"127.0.0.1:{port}"], tmp_path / "log")
    try:
        until(lambda: f"ready http://127.0.0.1:{port}" in (tmp_path / "log").read_text(), within=60, what="a cluster from the tarball")
    finally:
        assert process.stop(within=120) == 0


@pytest.mark.extra
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install, also where it is thrown away")
def test_installs_starts_upgrades_and_goes(tarballs, tmp_path):
    unpack = "rm -rf /tmp/unpacked; mkdir /tmp/unpacked; tar -xzf /package/0.1.0~{}/*.tar.gz -C /tmp/unpacked; /tmp/unpacked/*/install.sh"
    script = life(
        free_port(), install=f"true; {unpack.format('old').replace('/tmp/unpacked/*/', 'MARTLET_ONE_NODE=yes /tmp/unpacked/*/')}",
        upgrade=unpack.format("one"), query="tail -c 9 /usr/bin/martlet; echo",
        remove="echo mine >> /etc/swift/swift.conf-sample; /tmp/unpacked/*/install.sh remove"
               "; test -e /etc/swift/swift.conf-sample; test ! -e /etc/swift/proxy-server.conf-sample; test ! -e /usr/lib/martlet"
               "; test -z \"$(find /usr -name '*martlet*' -not -path '/usr/src/*')\"")
    lived(on_a_copy(tmp_path / "copy", tarballs, script), "0.1.0~one")
