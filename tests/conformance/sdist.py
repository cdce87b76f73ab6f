"""OpenStack Swift's own tests: the `test` folder of its source distribution, fetched once, kept beside the Python.

What is run is what OpenStack published: pip checks the bytes against swift-sdist.txt, and nothing is edited. Only
`test`, `etc` and `doc/saio` are unpacked, so that the tests import the Swift that is installed.
"""

import ast
import fcntl
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PIN = Path(__file__).with_name("swift-sdist.txt")
PARTS = ("test/", "etc/", "doc/saio/")


def unpacked():
    """The folder with `test` in it; fetched on first use."""
    home = Path(sys.prefix) / "swift-sdist"
    home.mkdir(exist_ok=True)
    with open(home / "lock", "w") as lock:  # several runs may start at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = home / "pin.txt"
        if not mark.exists() or mark.read_text() != PIN.read_text():
            fetch(home)
            mark.write_text(PIN.read_text())
    return next(home.glob("swift-*/"))


def fetch(home):
    for old in home.glob("swift-*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--no-binary", ":all:", "--require-hashes", "--requirement", PIN, "--dest", home], check=True)
    archive = next(home.glob("swift-*.tar.gz"))
    with tarfile.open(archive) as tar:
        wanted = [member for member in tar.getmembers() if member.name.partition("/")[2].startswith(PARTS)]
        tar.extractall(home, wanted, filter="data")


def place(test):
    """Where a test lies below the sdist: `test_slo.py` is one of the functional suite, `s3api/test_mpu.py` of a folder beside it."""
    return f"test/{test}" if "/" in test else f"test/functional/{test}"


def s3_tests():
    """The files that speak S3: of the functional suite, and of a suite of their own that takes no library of Swift's."""
    folders = ("functional/s3api", "s3api")
    return [f"{folder}/{path.name}" for folder in folders for path in sorted((unpacked() / "test" / folder).glob("test_*.py"))]


def functional_tests():
    """The functional suite without its s3api folder, in pieces that can run beside each other: files, and the
    classes of the one file that takes as long as all the others."""
    folder = unpacked() / "test/functional"
    longest = ast.parse((folder / "tests.py").read_text())
    classes = [node.name for node in longest.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
               and not node.name.endswith(("Env", "Dev", "DevUTF8"))]
    return [f"tests.py::{name}" for name in classes] + sorted(path.name for path in folder.glob("test_*.py"))
