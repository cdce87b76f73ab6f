"""What another gateway adds: the same load over one, two and three of them, for OpenStack Swift and for Martlet.

    python tests/race/scalability.py [--seconds 10] [--gateways 3] [--share 0.1] [--only martlet] [--write FILE] [--reports DIR]

Machines of their own would show how a cluster grows; here are processes of one machine. Control groups keep each gateway to a share of one processor, so that there
is room for all of them, for the storage servers and for the loader, and the table says how much of their shares gateways had and how busy the machine was: where
gateways had theirs, they were what limited the rate. The same without limits shows what one machine makes of several gateways. The loader is `martlet bench`,
whose workers are spread over the gateways. Requests carry no token: no one asks memcached for it. A run in which a request fails is void.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import filters  # noqa: E402
from harness.gateways import Gateways  # noqa: E402
from harness.limits import ProcessorLimit  # noqa: E402
from harness.places import REPOSITORY, martlet  # noqa: E402
from race import page, picture  # noqa: E402
from race.race import result  # noqa: E402

KINDS = {"OpenStack": "openstack", "Martlet": "martlet"}
PIPELINE = filters.LEAN.replace(" tempauth", "")
# Of their shares gateways must have had so much, or of its time the machine must have been so busy, to have been the limit.
SHARES_USED, MACHINE_BUSY = 0.85, 0.9
RAMP_UP = 1  # seconds

WORKLOAD = """
name = "scalability"
[storage]
type = "swift"
storage_url = "{first}"
endpoints = "{all}"
[[stage]]
name = "init"
type = "init"
cprefix = "bench-scalability-"
containers = "r(1,4)"
[[stage]]
name = "prepare"
type = "prepare"
workers = 8
cprefix = "bench-scalability-"
containers = "r(1,4)"
objects = "r(1,100)"
sizes = "c(4096)B"
[[stage]]
name = "main"
workers = {workers}
rampup = "{ramp_up}s"
runtime = "{runtime}s"
operations = [{{ type = "read", cprefix = "bench-scalability-", containers = "u(1,4)", objects = "u(1,100)" }}]
"""


def machine_times():
    """Seconds that processors were busy, and those that have passed on all of them, in units of the kernel."""
    times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = times[3] + times[4]
    return sum(times) - idle, sum(times)


class Cell:
    """One run: figures of the loader, and how busy gateways and the machine were."""

    def __init__(self, results, gateways, share, used, busy):
        self.rate, self.p99, self.gateways, self.share = results["requests"] / results["seconds"], results["p99"], gateways, share
        self.used, self.busy = used, busy

    def limited_by(self):
        if self.share and self.used >= SHARES_USED * self.share * self.gateways:
            return "the gateways' shares"
        return "the machine" if self.busy >= MACHINE_BUSY else "neither"

    def cells(self, first):
        share = f"{self.used / (self.share * self.gateways):.0%}" if self.share else "—"
        return [str(self.gateways), f"{self.share:g}" if self.share else "no limit", f"{self.rate:,.0f}", f"**{self.rate / first.rate:.2f}×**",
                f"{self.p99:,.1f}", f"{self.used:.2f}", share, f"{self.busy:.0%}", self.limited_by()]


class Grown:
    """A cluster of one make, with as many gateways as will be used."""

    def __init__(self, name, root, most):
        shutil.rmtree(root, ignore_errors=True)
        self.name, self.root, self.limits = name, root, [ProcessorLimit(f"gateway-{number + 1}", number) for number in range(most)]
        self.cluster = Gateways(root, most, {"proxy": {"DEFAULT": {"workers": 1}}}, kind=KINDS[name], limits=self.limits, verbose=False,
                                part_power=10, policies=("Policy-0",), pipeline=PIPELINE)

    def stop(self):
        self.cluster.stop()
        for limit in self.limits:
            limit.remove()
        shutil.rmtree(self.root, ignore_errors=True)

    def bench(self, count, stages, report, *, workers=8, seconds=1):
        """One run of `martlet bench` over so many gateways: its report."""
        urls = [f"http://127.0.0.1:{port}/v1/AUTH_race" for port in self.cluster.gateway_ports[:count]]
        workload = report.with_suffix(".toml")
        workload.write_text(WORKLOAD.format(first=urls[0], all=",".join(urls), workers=workers, ramp_up=RAMP_UP, runtime=seconds))
        done = subprocess.run([martlet(), "bench", "run", workload, "--stages", stages, "--threads", "1", "--json", report], capture_output=True, text=True, check=False)
        if done.returncode or not report.exists():
            raise SystemExit(f"void: {done.stdout}{done.stderr}")
        return json.loads(report.read_text())

    def measure(self, count, share, options, folder):
        for limit in self.limits:
            limit.limit(share)
        with Looks(self.limits[:count]) as looks:
            report = self.bench(count, "main", folder / f"{self.name}-{count}-{share or 'unlimited'}.json", workers=options.workers, seconds=options.seconds)
        for limit in self.limits:
            limit.limit(None)
        counted = report["stages"][0]["begun"] + RAMP_UP
        return Cell(result(report, self.root), count, share, *looks.between(counted, counted + options.seconds))


class Looks:
    """Processor time of gateways and of the machine, looked at ten times a second."""

    def __init__(self, limits):
        self.limits, self.seen, self.done, self.thread = limits, [], threading.Event(), threading.Thread(target=self.look)

    def look(self):
        while not self.done.wait(0.1):
            self.seen.append((time.time(), sum(limit.used() for limit in self.limits), *machine_times()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def between(self, first, last):
        """How many processors gateways used in a part of that time, and the busy share of the machine."""
        inside = [look for look in self.seen if first <= look[0] <= last]
        if len(inside) < 2:
            raise SystemExit("void: processor time was looked at less than twice: ask for more --seconds")
        passed, used, busy, all_of_it = (after - before for before, after in zip(inside[0], inside[-1]))
        return used / passed, busy / all_of_it


def race(grown, options, folder):
    """Cells of one make: with shares, then without limits."""
    grown.cluster.start()
    # By one gateway: another one that was asked for a container just before it was made may not know it for seconds.
    grown.bench(1, "init,prepare", folder / f"{grown.name}-prepare.json")
    cells = []
    # What every gateway and server does once, and what the page cache holds.
    grown.bench(options.gateways, "main", folder / f"{grown.name}-warm-up.json", workers=options.workers)
    for share in (options.share, None):
        for count in range(1, options.gateways + 1):
            cells.append(grown.measure(count, share, options, folder))
            print(f"{grown.name:10} " + "  ".join(cells[-1].cells(cells[-count])), flush=True)
    return cells


def firsts(cells):
    """Each cell with the one of a single gateway under the same limits."""
    return [(cell, next(first for first in cells if first.share == cell.share)) for cell in cells]


def table(measured):
    head = ["", "gateways", "share of a processor", "ops/s", "of one", "p99 ms", "processors used by gateways", "of their shares", "machine busy", "limited by"]
    return page.table(head, [[name, *cell.cells(first)] for name, cells in measured.items() for cell, first in firsts(cells)])


def drawing(measured, most, share):
    across = picture.Axis(0.8, most + 0.2, list(range(1, most + 1)), label=lambda count: f"{count} gateway{'s' if count > 1 else ''}")
    up = picture.Axis(0, most + 0.5, list(range(most + 1)), label="{:g}×".format)

    def panel(title, limited):
        lines = {name: [(cell.gateways, cell.rate / first.rate) for cell, first in firsts(cells) if bool(cell.share) == limited]
                 for name, cells in measured.items()}
        return picture.Panel(title, across, up, {"in proportion": [(1, 1), (most, most)], **lines})
    return [[panel(f"each with {share:g} of a processor", True), panel("without limits, on one machine", False)]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="how long each number of gateways is loaded")
    parser.add_argument("--gateways", type=int, default=3, help="so many at most")
    parser.add_argument("--share", type=float, default=0.1, help="of a processor, for each gateway")
    parser.add_argument("--workers", type=int, default=48, help="requests under way at a time")
    parser.add_argument("--only", choices=["martlet", "openstack"])
    parser.add_argument("--write", type=Path, help="the page that holds the table; the picture lies beside it, in pictures/scalability.svg")
    parser.add_argument("--reports", type=Path, help="a new folder for the reports of `martlet bench`")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-scalability", help="where both keep their devices")
    options = parser.parse_args()
    if options.reports:
        options.reports.mkdir(parents=True)
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, kind in KINDS.items():
            if options.only in (None, kind):
                grown = Grown(name, options.dir / kind, options.gateways)
                try:
                    measured[name] = race(grown, options, options.reports or Path(scratch))
                finally:
                    grown.stop()
    text = table(measured)
    print("\n" + text)
    if options.write:
        picture.write(options.write.parent / "pictures/scalability.svg", "Rate over gateways, in multiples of that of one", drawing(measured, options.gateways, options.share))
        page.write(options.write, "race-scalability", f"Made by `make race` on {page.machine()}; GET of 4 KiB, {options.workers} requests under way, {options.seconds} s each.\n\n"
                                                      f"{text}\n\n![Rates over numbers of gateways](pictures/scalability.svg)\n")


if __name__ == "__main__":
    main()
