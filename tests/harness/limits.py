"""Control groups that limit how much of a processor programs may use, of version 2 or 1, as `martlet advise measure` has them."""

import os
from pathlib import Path

from harness.waiting import until

ROOT = Path("/sys/fs/cgroup")
# Microseconds. Shares of periods are given out at the kernel's ticks (4 ms at 250 Hz): a smaller one would be overdrawn.
LEAST_QUOTA, PERIOD = 4000, 10_000
INTO = 'for group in $1; do echo $$ > "$group/cgroup.procs" || exit 1; done; shift; exec "$@"'


def hierarchies():
    """Where groups are made: one folder of version 2, two of version 1; none where processors cannot be limited here."""
    controllers = ROOT / "cgroup.controllers"
    if controllers.exists() and "cpu" in controllers.read_text().split():
        return [ROOT] if os.access(ROOT / "cgroup.subtree_control", os.W_OK) else []
    return [ROOT / name for name in ("cpu", "cpuacct")] if all(os.access(ROOT / name, os.W_OK) for name in ("cpu", "cpuacct")) else []


class ProcessorLimit:
    """A group. Its programs are kept on one processor, `number` of those there are: one that runs on several may use
    its share up at once and then waits for many periods, as no real machine would."""

    def __init__(self, name, number):
        roots = hierarchies()
        if not roots:
            raise SystemExit(f"no control group that limits processors can be made below {ROOT}: run this as root")
        self.is_two = roots == [ROOT]
        allowed = sorted(os.sched_getaffinity(0))
        self.processor = allowed[number % len(allowed)]
        self.folders = [root / f"martlet-test-{os.getpid()}-{name}" for root in roots]
        for root, folder in zip(roots, self.folders):
            if self.is_two:
                (root / "cgroup.subtree_control").write_text("+cpu")
            folder.mkdir()

    def within(self, command):
        """The command, which joins the group before it begins."""
        groups = " ".join(map(str, self.folders))
        return ["sh", "-c", INTO, "sh", groups, "taskset", "-c", str(self.processor), *command]

    def limit(self, processors):
        """Sets how many processors all of the group may use together; None lifts the limit."""
        period = PERIOD if processors is None else round(max(PERIOD, LEAST_QUOTA / processors))
        quota = None if processors is None else round(processors * period)
        if self.is_two:
            (self.folders[0] / "cpu.max").write_text(f"{'max' if quota is None else quota} {period}")
            return
        # The limit is lifted first: a period that is too short for the old quota is refused.
        for name, value in (("quota", -1), ("period", period), ("quota", -1 if quota is None else quota)):
            (self.folders[0] / f"cpu.cfs_{name}_us").write_text(str(value))

    def used(self):
        """Seconds of processor time so far."""
        if not self.is_two:
            return int((self.folders[1] / "cpuacct.usage").read_text()) / 1e9
        lines = (line.split() for line in (self.folders[0] / "cpu.stat").read_text().splitlines())
        return next(int(value) / 1e6 for name, value in lines if name == "usage_usec")

    def remove(self):
        """When its programs have ended."""
        for folder in self.folders:
            until(lambda folder=folder: gone(folder), what=f"the end of {folder}")


def gone(folder):
    folder.rmdir()  # an OSError while something is in it: asked again
    return True
