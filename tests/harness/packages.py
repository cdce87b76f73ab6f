"""Debian packages of the build under test."""

import os

from harness.places import REPOSITORY, martlet
from harness.process import run


def arch():
    return run(["dpkg", "--print-architecture"]).stdout.strip()


def build(folder, binary, version, *, keep_symbols=True):
    """A package of `binary`, quickly made: uncompressed and, unless asked for, without the package of its debug information."""
    env = {**os.environ, "MARTLET_PACKAGE_VERSION": version, "MARTLET_PACKAGE_KEEP_SYMBOLS": "yes" if keep_symbols else "", "MARTLET_PACKAGE_COMPRESSION": "none"}
    run([REPOSITORY / "packaging/build-deb.sh", binary, folder], env=env)
    return folder / f"martlet_{version}_{arch()}.deb"


def old_and_new(folder):
    """The folder with the package twice, as versions 0.1.0~old and 0.1.0~one; they differ in a few bytes of the program."""
    binary = folder / "martlet"
    for version in ("0.1.0~old", "0.1.0~one"):
        run(["strip", "--strip-debug", "-o", binary, martlet()])
        with open(binary, "ab") as file:
            file.write(version.encode())
        assert build(folder, binary, version).exists()
    binary.unlink()
    return folder
