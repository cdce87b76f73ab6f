"""The Debian package: installed, started, upgraded and removed on a copy of this machine that is thrown away.

What it does under systemd: test_package_systemd.py.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.machine import on_a_copy
from harness.packages import MONITORING, ONE_MACHINE, arch, build, life, lived
from harness.places import REPOSITORY, martlet
from harness.process import run
from harness.waiting import free_port

pytestmark = [
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can install a package, also where it is thrown away"),
]


def test_what_is_in_it(packages):
    package = packages / f"martlet_0.1.0~one_{arch()}.deb"
    listed = run(["dpkg-deb", "--contents", package]).stdout
    names = {line.split()[5].lstrip(".") for line in listed.splitlines()}
    for name in ("/usr/bin/martlet", "/usr/share/martlet/default", "/usr/lib/martlet/bin/swift-object-server"):
        assert name in names, name
    assert {f"/etc/swift/{sample.name}" for sample in (REPOSITORY / "etc").glob("*-sample")} <= names
    assert set(MONITORING) <= names
    for role in ("proxy", "account", "container", "object"):
        assert {f"/usr/lib/systemd/system/martlet-{role}.service", f"/usr/lib/systemd/system/martlet-{role}@.service"} <= names
    assert not [line for line in listed.splitlines() if line.split()[1] != "root/root"]
    assert "Version: 0.1.0~one" in run(["dpkg-deb", "--field", package]).stdout


def test_the_licences_of_all_that_is_linked_go_along(packages):
    package = packages / f"martlet_0.1.0~one_{arch()}.deb"
    text = run(["sh", "-c", f"dpkg-deb --fsys-tarfile '{package}' | tar -xO ./usr/share/doc/martlet/copyright"]).stdout
    linked = {line.split()[1].rsplit("-", 1)[0] for line in text.splitlines() if line.startswith("Files: ")}
    assert {"hyper", "libsqlite3-sys", "zlib-rs", "libmimalloc-sys", "ring"} <= linked
    assert not linked & {"proptest", "syn", "cc"}, "what only builds or tests the program is not in it"
    for words in ("May you do good and not evil.", "Trifecta Tech Foundation", "The Chromium Authors"):
        assert words in text, words


@pytest.mark.extra
def test_debug_information_lies_beside_it(tmp_path):
    """The program is stripped but keeps its functions' names; the second package has its lines, where debuggers look."""
    def sections(file):
        return set(re.findall(r"\] (\.\S+)", run(["readelf", "--sections", "--wide", file]).stdout))

    if ".debug_line" not in sections(martlet()):
        pytest.skip("this build has no debug information")
    program, symbols = tmp_path / "program", tmp_path / "symbols"
    package = build(tmp_path, martlet(), "0.1.0~stripped", keep_symbols=False)
    run(["dpkg-deb", "--extract", package, program])
    run(["dpkg-deb", "--extract", package.with_name(package.name.replace("martlet_", "martlet-dbgsym_")), symbols])
    stripped = program / "usr/bin/martlet"
    assert {".symtab", ".gnu_debuglink"} <= sections(stripped) and not {".debug_info", ".debug_line"} & sections(stripped)
    [debug] = [path for path in symbols.glob("usr/lib/debug/.build-id/*/*.debug")]
    build_id = re.search("Build ID: ([0-9a-f]+)", run(["readelf", "--notes", stripped]).stdout).group(1)
    assert debug.parent.name + debug.stem == build_id
    assert debug.name in run(["readelf", "--string-dump=.gnu_debuglink", stripped], errors="replace").stdout
    address = re.search(r"^([0-9a-f]+) t \S*martlet4main\S*$", run(["nm", stripped]).stdout, re.M).group(1)
    assert re.search(r"crates/martlet/src/main\.rs:\d+", run(["addr2line", "-e", debug, address]).stdout)


# A tool of those who build packages, with a hundred packages of its own: `apt-get install lintian`.
@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_debian_finds_nothing_wrong(packages):
    """What it would say stands in packaging/debian/lintian-overrides, with the reason for each."""
    quickly_made = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball"
    done = run(["lintian", "--no-cfg", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", quickly_made, packages / f"martlet_0.1.0~one_{arch()}.deb"], check=False)
    assert done.returncode == 0, done.stdout


def test_units_are_ones(packages, tmp_path):
    run(["dpkg-deb", "--extract", packages / f"martlet_0.1.0~one_{arch()}.deb", tmp_path])
    units = sorted(unit for unit in (tmp_path / "usr/lib/systemd/system").iterdir() if unit.is_file())
    for unit in units:
        text = unit.read_text()
        assert not re.search("@[A-Z_]+@", text), unit
        for command in re.findall(r"^ExecStart=/usr/bin/martlet (\S+)", text, re.M):
            assert run([martlet(), command, "--help"], check=False).returncode == 0, unit
        if unit.suffix == ".service":
            assert "Type=notify" in text or "Type=oneshot" in text, unit
    confined = (tmp_path / "usr/lib/systemd/system/martlet-.service.d/confinement.conf").read_text()
    assert "User=swift" in confined and "NoNewPrivileges=yes" in confined
    if shutil.which("systemd-analyze"):
        done = run(["systemd-analyze", "verify", "--man=no", *[unit for unit in units if "@" not in unit.name]], check=False)
        wrong = [line for line in done.stderr.splitlines() if "martlet" in line and "is not executable" not in line and "No such file" not in line]
        assert not wrong, wrong


def test_installs_starts_upgrades_and_goes(packages, tmp_path):
    script = life(
        free_port(), install="dpkg -i --force-depends /package/martlet_0.1.0~old_*.deb",
        upgrade="dpkg -i --force-depends --force-confold /package/martlet_0.1.0~one_*.deb",
        query="dpkg-query -W -f '${Version} ${Status}\\n' martlet", remove="dpkg --purge --force-depends martlet")
    before = {path: path.exists() for path in map(Path, ("/usr/bin/martlet", "/etc/swift", "/var/lib/martlet", "/etc/default/martlet"))}
    lived(on_a_copy(tmp_path / "copy", packages, script), "0.1.0~one install ok installed")
    assert {path: path.exists() for path in before} == before
    assert subprocess.run(["dpkg-query", "-W", "martlet"], capture_output=True, check=False).returncode != 0


def test_apt_installs_what_is_signed_and_nothing_else(packages, tmp_path):
    """A repository in a folder: apt takes the package from it, and refuses it with a changed list, another key, or no signature."""
    repository, keys = tmp_path / "repository", tmp_path / "keys"
    repository.mkdir()
    keys.mkdir(mode=0o700)
    shutil.copy(packages / f"martlet_0.1.0~one_{arch()}.deb", repository)
    environment = {**os.environ, "GNUPGHOME": str(keys)}
    try:
        for name in ("ours", "others"):
            run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", f"{name}@localhost", "ed25519", "sign", "1d"], env=environment)
        unknown = run([REPOSITORY / "packaging/apt-repository.sh", repository, "nobody@localhost"], env=environment, check=False)
        assert unknown.returncode == 1 and "gpg knows no key nobody@localhost" in unknown.stderr, unknown.stderr
        run([REPOSITORY / "packaging/apt-repository.sh", repository, "ours@localhost"], env=environment)
        run(["gpg", "--batch", "--output", repository / "others.gpg", "--export", "others@localhost"], env=environment)
    finally:
        run(["gpgconf", "--kill", "all"], env=environment)
    script = f"""
        port={free_port()}
        {ONE_MACHINE}
        rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
        sources=/etc/apt/sources.list.d/martlet.list
        from() {{ echo "deb [signed-by=/package/$1] file:/package ./" > $sources; }}
        refused() {{ if apt-get update -qq > /tmp/said 2>&1; then echo "taken: $1"; exit 1; fi; grep -q "$2" /tmp/said || {{ cat /tmp/said; exit 1; }}; }}
        cp -r /package /kept
        from others.gpg
        refused "another key" "is not signed"
        from archive-keyring.gpg
        echo "Description: changed" >> /package/Packages; gzip -9n < /package/Packages > /package/Packages.gz
        refused "a changed list" "Hash Sum mismatch"
        rm /package/InRelease /package/Release.gpg
        refused "no signature" "is not signed"
        cp /kept/* /package
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends martlet > /tmp/said 2>&1 || {{ cat /tmp/said; exit 1; }}
        dpkg --verify martlet
        start
        ask -X PUT -H "X-Auth-Token: $(token)" $url/one
        kill $pid; wait $pid
        echo the end
    """
    done = on_a_copy(tmp_path / "copy", repository, script)
    assert done.returncode == 0 and done.stdout == "201\nthe end\n", f"{done.stdout}\n{done.stderr}"
