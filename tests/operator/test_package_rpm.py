"""The rpm package: the files of the Debian package, the same scripts, signable; installed, started, upgraded and removed on a copy of this machine."""

import os
import re
import shutil

import pytest

from harness.machine import on_a_copy
from harness.packages import MONITORING, arch, build_rpm, life, lived, old_and_new
from harness.places import REPOSITORY, martlet
from harness.process import run
from harness.waiting import free_port

pytestmark = pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not installed")
DEBIANS_OWN = ("/usr/share/lintian", "/usr/share/doc/martlet/changelog.gz")
RPMS_OWN = ("/usr/share/doc/martlet/LICENSE",)


@pytest.fixture(scope="module")
def rpms(tmp_path_factory):
    return old_and_new(tmp_path_factory.mktemp("rpms"), build_rpm)


@pytest.fixture(scope="module")
def new(rpms):
    [found] = rpms.glob("martlet-0.1.0~one-*.rpm")
    return found


@pytest.mark.extra
def test_its_files_are_those_of_the_debian_package(new, packages):
    listed = run(["dpkg-deb", "--contents", packages / f"martlet_0.1.0~one_{arch()}.deb"]).stdout
    debian = {line.split()[5].lstrip(".") for line in listed.splitlines() if not line.startswith("d")}
    told = run(["rpm", "--query", "--package", "--queryformat", "[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME}\\n]", new]).stdout
    lines = [line.split() for line in told.splitlines()]
    files = {line[0] for line in lines if not line[1].startswith("d")}
    assert files - set(RPMS_OWN) == {name for name in debian if not name.startswith(DEBIANS_OWN)}
    assert set(MONITORING) <= files
    assert {line[2] for line in lines} == {"root:root"}
    modes = {line[0]: line[1] for line in lines}
    assert modes["/usr/bin/martlet"] == "-rwxr-xr-x" and modes["/etc/swift/swift.conf-sample"] == "-rw-r--r--"
    configuration = run(["rpm", "--query", "--package", "--configfiles", new]).stdout.split()
    assert configuration == sorted(f"/etc/swift/{sample.name}" for sample in (REPOSITORY / "etc").glob("*-sample"))


def test_its_scripts_are_those_of_the_debian_package(new):
    told = run(["rpm", "--query", "--package", "--scripts", new]).stdout
    for script in ("postinst", "prerm", "postrm"):
        text = (REPOSITORY / "packaging/debian" / script).read_text().split("\n", 1)[1].strip()
        assert text in told, script
    needed = run(["rpm", "--query", "--package", "--requires", new]).stdout
    assert "/usr/sbin/useradd" in needed
    # What Fedora and its relatives call glibc; the newest that the program needs is its own.
    symbols = run(["objdump", "-T", martlet()]).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    if versions:
        assert f"libc.so.6(GLIBC_{'.'.join(map(str, max(versions)))})(64bit)" in needed


@pytest.mark.extra
def test_two_builds_are_the_same(new, tmp_path):
    again = old_and_new(tmp_path, build_rpm) / new.name
    assert again.read_bytes() == new.read_bytes()


@pytest.mark.extra
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install a package, also where it is thrown away")
def test_installs_starts_upgrades_and_goes(rpms, tmp_path):
    # Debian's rpm asks for a word that Fedora's does not know, and has none of Debian's packages among its own.
    rpm = "rpm --force-debian" if "--force-debian" in run(["sh", "-c", "rpm -i /nothing 2>&1 || true"]).stdout else "rpm"
    script = life(
        free_port(), install=f"{rpm} --install --nodeps /package/martlet-0.1.0~old-1.*.rpm",
        upgrade=f"{rpm} --upgrade --nodeps /package/martlet-0.1.0~one-1.*.rpm && rpm --verify --nodeps martlet",
        query="rpm --query --queryformat '%{VERSION} %{RELEASE}\\n' martlet", remove=f"{rpm} --erase martlet && test -e /etc/default/martlet")
    lived(on_a_copy(tmp_path / "copy", rpms, script), "0.1.0~one 1")


@pytest.mark.extra
def test_it_can_be_signed(new, tmp_path):
    keys, database = tmp_path / "keys", tmp_path / "database"
    keys.mkdir(mode=0o700)
    environment = {**os.environ, "GNUPGHOME": str(keys)}
    signed = tmp_path / new.name
    shutil.copy(new, signed)
    try:
        run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "ours@localhost", "rsa3072", "sign", "1d"], env=environment)
        # Debian's looks for gpg2 unless it is told.
        run(["rpmsign", "--define", f"__gpg {shutil.which('gpg')}", "--define", "_gpg_name ours@localhost", "--addsign", signed], env=environment)
        run(["gpg", "--batch", "--armor", "--output", tmp_path / "key", "--export", "ours@localhost"], env=environment)
    finally:
        run(["gpgconf", "--kill", "all"], env=environment)
    check = ["rpm", "--dbpath", database, "--checksig"]
    assert "SIGNATURES NOT OK" in run([*check, signed], check=False).stdout, "the key is not known yet"
    run(["rpm", "--dbpath", database, "--import", tmp_path / "key"])
    assert "digests signatures OK" in run([*check, signed]).stdout
    changed = bytearray(signed.read_bytes())
    changed[-100] ^= 1
    signed.write_bytes(changed)
    assert "NOT OK" in run([*check, signed], check=False).stdout
