"""Which nodes are responsible: what both programs print on the same rings."""

import shlex

import pytest

from harness import ring_builder as builders
from harness.tools import both

CONF = """
[swift-hash]
swift_hash_path_suffix = changeme
[storage-policy:0]
name = gold
default = yes
[storage-policy:1]
name = silver
aliases = ag
"""


@pytest.fixture(scope="module")
def swift_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rings")
    (folder / "swift.conf").write_text(CONF, encoding="utf-8")
    for name in ("account", "container", "object", "object-1", "mine"):
        builders.openstack(folder, [f"{name}.builder create 4 3 1",
                                    f"{name}.builder add r1z1-127.0.0.1:1/a 1 r1z2-127.0.0.2:1R9.9.9.9:77/b 1 r1z3-127.0.0.3:1/c 1 r1z3-[::1]:1/d 2 r2z3-127.0.0.5:1/e 2",
                                    f"{name}.builder rebalance --seed 3"])
    (folder / "cut.ring.gz").write_bytes((folder / "object.ring.gz").read_bytes()[:100])
    return folder


LINES = ["object.ring.gz a c o", "-a object.ring.gz a c o", "-a account.ring.gz a", "container.ring.gz a c", "object.ring.gz -p 3", "object.ring.gz -p 99", "-P silver a c o",
         "-P ag a c o", "-P gold a c o", "-P silver -p 4", "-Q object.ring.gz a c%20d o%2Fx", "object.ring.gz|a/c d/o/x", "object.ring.gz /a/c/o", "object.ring.gz a/c",
         "object.ring.gz a c", "container.ring.gz a c o", "account.ring.gz a c", "container.ring.gz a", "account.ring.gz a c/o", "object.ring.gz a c/o p", "object.ring.gz a//o",
         "object.ring.gz|a|c|", "mine.ring.gz a c o", "mine.ring.gz -p 3", "object-1.ring.gz a c o", "object-1.ring.gz -p 3", "object-1.ring.gz a c", "object.ring.gz|a|ü|x y",
         "object.ring.gz -p 3 a c o", "-p3 account.ring.gz", "-Q object.ring.gz a%2Fb c o", "-P silver a", "-P silver a c",
         "-a -a object.ring.gz a c o", "-d . -P silver -P gold a c o", "--swift . --all object.ring.gz a c o", "-p 3 -p 4 object.ring.gz", "object.ring.gz a -p ''", "object.ring.gz //a/c/o",
         "object.ring.gz /a c o", "object.ring.gz a/c/o/", "object.ring.gz /a/c/o//", "object.ring.gz a c o/", "account.ring.gz a/", "-Q object.ring.gz a/c%2Fd/o", "-Q object.ring.gz a%2Fc%2Fo",
         "-Q object.ring.gz a/c%20d/%2Fo", "-Q object.ring.gz %2Fa/c/o"]
WRONG = ["", "-d '' a", "'' a c o", "-P -1 a c o", "object.ring.gz", "object.ring.gz a c o extra", "absent.ring.gz a c o", "object a c o", "-p 3", "-P bronze a c o", "-P silver object.ring.gz a c o", "-Z",
         "object.ring.gz -p x", "object.ring.gz /", "object.ring.gz ''", "cut.ring.gz a c o", "-P silver"]


def words(line):
    return line.split("|") if "|" in line else shlex.split(line)


@pytest.mark.parametrize("line", LINES)
def test_get_nodes(swift_dir, line):
    theirs, ours = both("get-nodes", "-d", ".", *words(line), cwd=swift_dir)
    assert (ours.out, ours.err, ours.status) == (theirs.out, theirs.err, theirs.status)


@pytest.mark.parametrize("line", WRONG)
def test_wrong_lines(swift_dir, line):
    """The reason is OpenStack's where it gives one."""
    theirs, ours = both("get-nodes", "-d", ".", *words(line), cwd=swift_dir)
    assert ours.status == theirs.status and "panicked" not in ours.err and (ours.err.strip() or ours.out == theirs.out)
    if "ERROR" in theirs.err:
        assert ours.err.splitlines()[0] == theirs.err.splitlines()[0]
