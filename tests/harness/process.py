"""One program started by a test: its process group, log file, exit, memory and processor time."""

import os
import signal
import subprocess
import time
from pathlib import Path

from harness import forks
from harness.waiting import until

TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """A program in a session of its own, so that its whole tree can be signalled and measured."""

    def __init__(self, command, log, *, cwd=None, env=None):
        self.command = [str(part) for part in command]
        self.log = Path(log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as sink:
            self.child = forks.start(self.command, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True, cwd=cwd,
                                     env={**os.environ, **(env or {})})

    def alive(self):
        return self.child.poll() is None

    def signal(self, number):
        """Send `number` to the whole process group; a group that is gone is no error."""
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass

    def stop(self, within=30.0):
        """SIGTERM, wait, and SIGKILL what is left; the exit status (negative: killed by that signal)."""
        if self.alive():
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(within)
            except subprocess.TimeoutExpired:
                pass
        return self.kill()

    def shut_down(self, within=60.0):
        """What `swift-init shutdown` does: no new connection is taken, what is under way is answered; the exit status."""
        if self.alive():
            self.child.send_signal(signal.SIGHUP)
            until(lambda: self.child.poll() is not None and not self.members(), within=within, what=f"the end of {self.command}")
        return self.kill()

    def members(self):
        """Processes of its group that still run."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.child.pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
        return found

    def kill(self):
        """SIGKILL to the whole group at once, as a power cut would; the exit status."""
        self.signal(signal.SIGKILL)
        return self.child.wait(60)  # a write to a slow disk ends first

    def wait_for(self, question, within=180.0, what="start"):
        """Wait for `question`, failing at once with the log when the program ends before."""
        def still():
            if not self.alive():
                raise RuntimeError(f"{self.command} ended with {self.child.returncode}:\n{self.tail()}")
            return question()
        try:
            return until(still, within=within, what=f"{what} of {self.command}")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.tail()}") from None

    def text(self):
        return self.log.read_text(errors="replace")

    def await_text(self, *wanted):
        """Waits until all of these stand in the log, which a program writes a moment after it has answered."""
        self.wait_for(lambda: all(text in self.text() for text in wanted), within=30.0, what=f"{wanted} in the log")

    def tail(self, characters=3000):
        return self.text()[-characters:]

    def tree(self):
        """Process ids of the program and all its descendants."""
        parents = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, rest = int(entry.parent.name), entry.read_text().rpartition(")")[2].split()
            except (OSError, ValueError):
                continue
            parents.setdefault(int(rest[1]), []).append(pid)
        found, queue = [], [self.child.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            queue.extend(parents.get(pid, []))
        return found

    def rss(self):
        """Resident memory of the tree in bytes."""
        total = 0
        for pid in self.tree():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
        return total

    def cpu_seconds(self):
        """User and system time of the tree, ended children that were waited for included."""
        total = 0
        for pid in self.tree():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += sum(int(field) for field in fields[11:15])
        return total / TICKS


def run(command, *, check=True, timeout=300, **options):
    """Run a command to its end; its CompletedProcess with text output. A failure shows the output."""
    started = time.monotonic()
    done = forks.run(command, timeout=timeout, **options)
    if check and done.returncode:
        raise AssertionError(f"{command} gave {done.returncode} after {time.monotonic() - started:.1f} s\n"
                             f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done
