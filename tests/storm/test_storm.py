"""A short storm, as every change must pass it; `make storm` has many long ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from storm import machine

RUN = Path(__file__).with_name("run.py")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1])
def test_nothing_acknowledged_is_lost_in_a_storm(seed, tmp_path):
    if obstacle := machine.obstacle():
        # It needs root, namespaces, loop devices and gcc: a storm without its faults would show nothing.
        pytest.skip(f"no storm is possible: {obstacle}")
    command = [sys.executable, RUN, "--seed", str(seed), "--rounds", "2", "--seconds", "10", "--out", tmp_path]
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
