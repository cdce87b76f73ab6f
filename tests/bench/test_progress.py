"""What `martlet bench run` shows in a terminal while it runs."""

import os
import pty
import re
import subprocess

from harness.places import martlet


def test_a_terminal_shows_rates_percentiles_failures_and_the_remaining_time():
    ours, theirs = pty.openpty()
    run = subprocess.Popen([martlet(), "bench", "run", "SmlRead", "--storage", "mock:delay=1;errors=3", "--stages", "main", "--runtime", "3s"],
                           stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # How Linux says that a terminal's other end was closed.
        pass
    os.close(ours)
    run.wait(60)
    lines = re.findall(rb"\r\x1b\[\?7l(.*?)\x1b\[\?7h\x1b\[K", shown)
    line = rb"main: [1-9]\d* op/s, \d+\.\d MB/s, p50 \d+\.\d\d ms, p99 \d+\.\d\d ms, 3 failed, 00:0[0-3] left"
    assert lines and all(re.fullmatch(line, one) for one in lines), shown
    # The line goes away before the table comes.
    assert b"\r\x1b[Kmain / main: 16 workers" in shown
