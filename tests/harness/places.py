"""Where the programs under test are."""

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MAIN = Path(__file__).with_name("openstack_main.py")


def martlet():
    """The martlet binary: $MARTLET_BIN, else the release build."""
    binary = Path(os.environ.get("MARTLET_BIN", REPOSITORY / "target/release/martlet")).absolute()
    if not binary.exists():
        raise RuntimeError(f"{binary} is missing: run `make build`, or set MARTLET_BIN")
    return binary


def openstack(tool):
    """A tool OpenStack Swift or its client installed beside the Python that runs the tests."""
    return Path(sys.executable).parent / tool


def openstack_command(swift_dir, tool, *arguments, python=None):
    """The command line of an OpenStack tool that takes everything, policies included, from `swift_dir`.

    `python` is an interpreter that has more than OpenStack Swift beside it, as Keystone's has.
    """
    python = Path(python or sys.executable)
    return [python, "-W", "ignore", MAIN, swift_dir, python.with_name(tool), *arguments]
