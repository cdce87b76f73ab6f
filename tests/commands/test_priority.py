"""Scheduling priorities: `nice_priority` and the related options, and their defaults."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import daemons
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.places import martlet
from harness.process import Process
from harness.waiting import until

AUDITOR = 10
OWN = os.nice(0)


def niceness(stat):
    return int(Path(stat).read_text().rpartition(")")[2].split()[16])


def threads(process):
    """Name and niceness of each thread; of those that just end nothing."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            found.append(((task / "comm").read_text().strip(), niceness(task / "stat")))
        except OSError:
            continue
    return found


@pytest.fixture
def running(tmp_path):
    """Starts a daemon with further options, and stops it."""
    started = []

    def start(daemon, options, default=None):
        role = daemons.DAEMONS[daemon]
        overrides = {role: {daemon: options, **({"DEFAULT": default} if default else {})}}
        layout = Layout(tmp_path / f"{len(started)}", overrides=overrides).write()
        process = Process([martlet(), daemon, layout.etc / layout.conf_name(role), "-v"], tmp_path / f"{len(started)}.log")
        started.append(process)
        return process

    yield start
    for process in started:
        process.stop()


def settled(process, expected):
    pid = process.child.pid
    # All of its threads, not only the first.
    until(lambda: len(threads(pid)) > 1 and {nice for _, nice in threads(pid)} == {expected}, what=f"niceness {expected} of {pid}")
    assert niceness(f"/proc/{pid}/stat") == expected


@pytest.mark.parametrize("daemon", sorted(daemons.DAEMONS))
def test_only_the_auditor_of_objects_makes_room_by_itself(running, daemon):
    settled(running(daemon, {}), max(OWN, AUDITOR) if daemon == "object-auditor" else OWN)


def test_a_daemon_is_as_nice_as_its_section_says(running):
    settled(running("object-updater", {"nice_priority": 17}, default={"nice_priority": 18}), 17)
    settled(running("container-updater", {}, default={"nice_priority": 18}), 18)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may be less nice than it was")
def test_the_auditor_of_objects_may_be_no_nicer_than_others(running):
    settled(running("object-auditor", {"nice_priority": 0}), 0)


@pytest.mark.skipif(not shutil.which("ionice"), reason="needs ionice")
@pytest.mark.parametrize("options, expected", [
    ({"ionice_class": "IOPRIO_CLASS_BE", "ionice_priority": 6}, "best-effort: prio 6"),
    ({"ionice_class": "IOPRIO_CLASS_IDLE"}, "idle"),
])
def test_disks_serve_it_as_its_section_says(running, options, expected):
    process = running("object-updater", options)

    def classes():
        tasks = [task.name for task in Path(f"/proc/{process.child.pid}/task").iterdir()]
        return {subprocess.run(["ionice", "-p", task], capture_output=True, text=True).stdout.strip() for task in tasks}

    until(lambda: len(threads(process.child.pid)) > 1 and classes() == {expected}, what=f"{expected} everywhere")


@pytest.mark.parametrize("option, value, expected", [
    ("nice_priority", "low", "a whole number from -20 (most favoured) to 19 (least favoured)"),
    ("nice_priority", "20", "a whole number from -20 (most favoured) to 19 (least favoured)"),
    ("ionice_class", "idle", "IOPRIO_CLASS_RT, IOPRIO_CLASS_BE or IOPRIO_CLASS_IDLE"),
    ("ionice_priority", "8", "a whole number from 0 (most favoured) to 7 (least favoured)"),
])
def test_a_wrong_value_is_refused_by_name(tmp_path, option, value, expected):
    layout = Layout(tmp_path, overrides={"object": {"object-updater": {option: value}}}).write()
    conf = layout.etc / "object-server.conf"
    ended = subprocess.run([martlet(), "object-updater", conf, "--once"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == f'martlet: {conf} [object-updater] {option} = "{value}": expected {expected}\n'


def test_a_server_is_as_nice_as_it_is_told_to_be(tmp_path):
    layout = Layout(tmp_path, overrides={"object": {"DEFAULT": {"nice_priority": 19}}}).write()
    cluster = Cluster(layout, "martlet", verbose=False).start()
    try:
        for role, expected in (("object", 19), ("container", OWN)):
            overseer = cluster.services[role, 0].child.pid
            worker, = Path(f"/proc/{overseer}/task/{overseer}/children").read_text().split()
            until(lambda: {nice for _, nice in threads(worker)} == {expected}, what=f"niceness {expected} of {role}")
    finally:
        cluster.stop()


def test_in_one_process_the_auditor_of_objects_makes_room(tmp_path):
    up = MartletUp(tmp_path / "data")
    up.start()
    try:
        client = Client(up.auth_url)
        client.put("c")
        client.put("c", "o", body=b"1")
        pid = up.process.child.pid
        seen = set()  # threads end when there is nothing to do for them: those of the auditor between its passes

        def both():
            seen.update(nice for name, nice in threads(pid) if name.startswith("io-"))
            return {max(OWN, AUDITOR), OWN} <= seen

        until(both, within=90, what="threads of the auditor and of others")
        # A thread that just begins may have its niceness before its name.
        until(lambda: {nice for name, nice in threads(pid) if not name.startswith("io-")} == {OWN}, what="niceness of all others")
    finally:
        up.stop()
