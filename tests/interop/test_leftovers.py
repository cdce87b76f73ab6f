"""What crashed writers left in a device's `tmp`: replicators of both makes remove what is older than `reclaim_age`."""

import fcntl
import os
import time

import pytest

from harness.layout import Layout
from harness.places import martlet, openstack_command
from harness.process import run

WEEK = 604800
DAEMONS = ("object-replicator", "container-replicator", "account-replicator")


def command(layout, kind, daemon):
    conf = layout.etc / layout.conf_name(daemon.split("-")[0])
    if kind == "openstack":
        return openstack_command(layout.etc, f"swift-{daemon}", conf, "once", "-v")
    return [martlet(), daemon, conf, "once"]


@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("kind", ["openstack", "ours"])
def test_what_is_old_in_tmp_goes(tmp_path, ours, kind, daemon):
    layout = Layout(tmp_path).write()
    device = layout.srv / layout.devices[0]
    now = time.time()
    for place in ("tmp", "tmp-1"):
        (device / place / "directory").mkdir(parents=True)
        for name, age in (("old", WEEK + 100), ("young", WEEK - 100), (".hidden", WEEK + 100), ("future", -WEEK)):
            (device / place / name).write_text("x")
            os.utime(device / place / name, (now - age, now - age))
    run(command(layout, ours if kind == "ours" else kind, daemon))
    left = {place: set(os.listdir(device / place)) for place in ("tmp", "tmp-1")}
    spared = {"directory", "future", "young"}
    assert left["tmp"] == spared
    # Databases are made in `tmp` only.
    assert left["tmp-1"] == (spared if daemon == "object-replicator" else spared | {"old", ".hidden"})


@pytest.mark.parametrize("daemon", DAEMONS)
def test_what_a_killed_writer_left_goes_at_once(tmp_path, daemon):
    """Its lock is gone with it; a file that is still being written has one."""
    layout = Layout(tmp_path).write()
    tmp = layout.srv / layout.devices[0] / "tmp"
    tmp.mkdir(parents=True)
    word = {"object-replicator": ""}.get(daemon, f"{daemon.split('-')[0]}-")
    dead, alive = (tmp / f".martlet-{word}{end}" for end in ("dead", "alive"))
    dead.write_text("x")
    with open(alive, "w") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        run(command(layout, "martlet", daemon))
        assert os.listdir(tmp) == [alive.name]
