"""Packages of the build under test, Debian's and rpm's, and what is done with one on a machine that is thrown away."""

import os
import platform
from pathlib import Path

import pytest

from harness.places import REPOSITORY, martlet
from harness.process import run

# Where a package lays the rules for Prometheus and the dashboard for Grafana.
MONITORING = [f"/usr/share/martlet/{file.relative_to(REPOSITORY / 'etc')}" for folder in ("prometheus", "grafana") for file in (REPOSITORY / "etc" / folder).iterdir()]


def arch():
    return run(["dpkg", "--print-architecture"]).stdout.strip()


def packages_tool(name):
    """A program of the environment that `make package-tests` makes of tests/requirements-packages.txt."""
    folder = Path(os.environ.get("MARTLET_PACKAGES_VENV", REPOSITORY / ".venv-packages")) / "bin"
    if not (folder / name).exists():
        pytest.skip(f"{folder / name} is not there: run `make package-tests`")
    return folder / name


def quick(version, *, keep_symbols=True):
    """The environment of the packaging scripts: uncompressed and, unless asked for, without the package of the debug information."""
    return {**os.environ, "MARTLET_PACKAGE_VERSION": version, "MARTLET_PACKAGE_KEEP_SYMBOLS": "yes" if keep_symbols else "",
            "MARTLET_PACKAGE_COMPRESSION": "none"}


def build(folder, binary, version, *, keep_symbols=True):
    """A Debian package of `binary`."""
    run([REPOSITORY / "packaging/build-deb.sh", binary, folder], env=quick(version, keep_symbols=keep_symbols))
    return folder / f"martlet_{version}_{arch()}.deb"


def build_rpm(folder, binary, version, *, keep_symbols=True):
    """An rpm package of `binary`."""
    run([REPOSITORY / "packaging/build-rpm.sh", binary, folder], env=quick(version, keep_symbols=keep_symbols))
    return folder / f"martlet-{version}-1.{platform.machine()}.rpm"


def old_and_new(folder, build_one=build):
    """The folder with the package twice, as versions 0.1.0~old and 0.1.0~one; they differ in a few bytes of the program."""
    binary = folder / "martlet"
    for version in ("0.1.0~old", "0.1.0~one"):
        run(["strip", "--strip-debug", "-o", binary, martlet()])
        with open(binary, "ab") as file:
            file.write(version.encode())
        assert build_one(folder, binary, version).exists()
    binary.unlink()
    return folder


def released(folder):
    """The folder with the package as `make deb` names it, of the build under test."""
    folder.mkdir()
    binary = folder / "martlet"
    run(["strip", "--strip-debug", "-o", binary, martlet()])
    assert build(folder, binary, "0.1.0").exists()
    binary.unlink()
    return folder


# What one does with a cluster of one machine, in a shell there that has `port`: start, write to it, read.
ONE_MACHINE = """
        ask() { curl -sS -o /dev/null -w '%{http_code}\\n' "$@"; }
        start() {
            rm -f /tmp/up.log; touch /tmp/up.log; chmod 666 /tmp/up.log
            setpriv --reuid swift --regid swift --init-groups martlet up --dir /var/lib/martlet/cluster --bind 127.0.0.1:$port > /tmp/up.log 2>&1 &
            pid=$!
            for _ in $(seq 900); do grep -q '^ready' /tmp/up.log && return; sleep 0.1; done
            cat /tmp/up.log; exit 1
        }
        token() { curl -sS -i -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' http://127.0.0.1:$port/auth/v1.0 | tr -d '\\r' | sed -n 's/^X-Auth-Token: //p'; }
        url=http://127.0.0.1:$port/v1/AUTH_test
"""


def life(port, *, install, upgrade, query, remove):
    """A script that installs a package, starts a cluster, writes, upgrades, reads, and removes it, by the commands of a package manager."""
    return f"""
        port={port}
        {ONE_MACHINE}
        rm -rf /var/cache/swift /var/lib/martlet /etc/default/martlet
        MARTLET_ONE_NODE=yes {install}
        echo "user $(id -un swift) $(stat -c %U:%a /var/cache/swift /var/lib/martlet | tr '\\n' ' ')"
        martlet --version > /dev/null
        for link in /usr/lib/martlet/bin/swift-*; do test -x $link; done
        /usr/lib/martlet/bin/swift-get-nodes --help > /dev/null
        /usr/lib/martlet/bin/swift-recon --help > /dev/null && echo links
        for kind in swift proxy-server account-server container-server object-server; do cp /etc/swift/$kind.conf-sample /etc/swift/$kind.conf; done
        start
        ask -X PUT -H "X-Auth-Token: $(token)" $url/kept
        ask -X PUT -H "X-Auth-Token: $(token)" -d something $url/kept/object
        echo '# mine' >> /etc/default/martlet
        {upgrade}
        kill $pid; wait $pid
        start
        echo "kept $(curl -sS -H "X-Auth-Token: $(token)" $url/kept/object)"
        kill $pid; wait $pid
        grep -c '# mine' /etc/default/martlet
        {query}
        {remove}
        test ! -e /usr/bin/martlet && test -e /etc/swift/proxy-server.conf && test -d /var/lib/martlet/cluster && id -un swift
        echo the end
    """


def lived(done, version):
    """Whether `life` went as it should."""
    output = done.stdout
    assert done.returncode == 0 and output.endswith("the end\n"), f"{output}\n{done.stderr}"
    assert "start the cluster with: su" in output or "martlet-up.service" in output + done.stderr, output
    assert "user swift swift:750 swift:750" in output and "\nlinks\n" in output, output
    assert "\n201\n201\n" in output and f"kept something\n1\n{version}\n" in output, output
