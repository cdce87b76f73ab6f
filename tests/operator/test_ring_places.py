"""Where builders and rings lie: behind links, of other owners, on disks that are full or cannot be written."""

import os
import subprocess

import pytest

from harness import ring_builder as builders
from harness.places import openstack

MADE = ["b.builder create 6 3 0", "b.builder add r1z1-1.1.1.1:1/a 1 r1z2-1.1.1.2:1/a 1 r1z3-1.1.1.3:1/a 1", "b.builder rebalance"]
# Full and read-only disks and other owners take mounts and chown, which only root may do; the mounts stay away from this machine.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts in a namespace of its own and chown need root")


@pytest.mark.parametrize("make", [builders.openstack, builders.ours])
def test_a_builder_behind_a_link_is_changed_where_it_is(tmp_path, make):
    builders.ours(tmp_path, MADE)
    (tmp_path / "kept").mkdir()
    (tmp_path / "b.builder").rename(tmp_path / "kept/real.builder")
    (tmp_path / "b.builder").symlink_to("kept/real.builder")
    assert [step.status for step in make(tmp_path, ["b.builder set_weight d0 7", "b.builder rebalance -f", "b.builder write_ring"])] == [0, 1, 0]
    assert (tmp_path / "b.builder").is_symlink() and " 7.00 " in builders.openstack(tmp_path, ["kept/real.builder"])[0].out
    assert {file.name for file in (tmp_path / "kept").iterdir()} - {"backups"} == {"real.builder"}


@as_root
def test_a_builder_keeps_its_owner(tmp_path):
    """Otherwise its owner could not read it any longer after root has changed it."""
    builders.ours(tmp_path, MADE)
    for name in ("b.builder", "b.ring.gz"):
        os.chown(tmp_path / name, 12345, 54321)
        os.chmod(tmp_path / name, 0o640)
    assert [step.status for step in builders.ours(tmp_path, ["b.builder set_weight d0 7", "b.builder rebalance -f"])] == [0, 1]
    for name in ("b.builder", "b.ring.gz"):
        stat = (tmp_path / name).stat()
        assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o777) == (12345, 54321, 0o640)


def on_a_disk(folder, options, before, line, program="./swift-ring-builder"):
    """Status and both outputs, on a file system mounted with `options` below `folder`; `before` fills it. The builder is as it was."""
    script = f'mount -t tmpfs -o size=1m none disk && cp -a b.* swift-ring-builder disk/ && cd disk && {before} && mount -o remount,{options} . && "$@"; s=$?; cmp b.builder ../b.builder >&2; exit $s'
    (folder / "disk").mkdir(exist_ok=True)
    ended = subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", program, *line.split()], cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, builders.shown(ended.stdout), ended.stderr


@as_root
def test_a_directory_that_cannot_be_written(tmp_path):
    """Who only looks needs to write nowhere."""
    builders.ours(tmp_path, MADE)
    for line in ("b.builder", "b.builder dispersion -v", "b.builder validate", "b.builder search z1"):
        theirs, ours = (on_a_disk(tmp_path, "ro", "mkdir backups", line, program) for program in (openstack("swift-ring-builder"), "./swift-ring-builder"))
        assert ours == theirs and ours[0] == 0, (line, ours, theirs)
    for line in ("b.builder set_weight d0 5", "b.builder rebalance -f", "b.builder dispersion --recalculate", "c.builder create 4 1 1", "b.builder dispersion --svg x.svg"):
        status, out, err = on_a_disk(tmp_path, "ro", "true", line)
        assert status == 2 and "Read-only file system" in out and not err, (line, out, err)


@as_root
def test_a_disk_that_is_full(tmp_path):
    """The line names the file, which stays as it was; OpenStack's program leaves a builder that is cut off."""
    builders.ours(tmp_path, MADE)
    fill = "touch .lock && mkdir backups && { cat /dev/zero > fill; true; } 2>/dev/null"
    for line, name in (("b.builder set_weight d0 5", "b.builder"), ("b.builder rebalance -f", "b.builder"), ("b.builder write_ring", "b.ring.gz"), ("c.builder create 4 1 1", "c.builder")):
        status, out, err = on_a_disk(tmp_path, "rw", fill, line)
        assert status == 2 and "cannot write " in out and f"{name}: No space left" in out and not err, (line, out, err)


def test_a_picture_goes_where_it_is_told(tmp_path):
    builders.ours(tmp_path, MADE)
    [step] = builders.ours(tmp_path, ["b.builder dispersion --svg nowhere/x.svg"])
    assert step.status == 2 and "cannot write nowhere/x.svg: no such directory" in step.out
