"""Upkeep side by side: the same damage on two grounds, OpenStack Swift's daemons let loose on one, Martlet's on the other.

Each daemon runs one pass (`once`) against servers of its own make, unthrottled on both sides; its wall time, its CPU
time and that of the servers it spoke to are what counts. What must be so afterwards is checked: a pass that left work
undone fails the run.
"""

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import Layout  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.places import REPOSITORY, martlet, openstack_command  # noqa: E402
from race import damage  # noqa: E402

MAKES = ("openstack", "martlet")
FAST = {"object": {"object-updater": {"objects_per_second": 1000000, "concurrency": 8,
                                      "max_objects_per_container_per_second": 0}}}


@dataclass
class Pass:
    """What one pass of a daemon took."""
    wall: float
    cpu: float
    servers: float


class Ground:
    """A cluster of one make, one node with four devices, that upkeep is let loose on."""

    def __init__(self, make, root):
        shutil.rmtree(root, ignore_errors=True)
        self.make = make
        self.memcached = Memcached().start()
        self.layout = Layout(root, policies=("gold",), memcached_port=self.memcached.port, overrides=FAST).write()
        self.cluster = Cluster(self.layout, make, verbose=False).start()
        self.client = Client(self.cluster.auth_url)

    def once(self, daemon, conf):
        """One pass of `daemon`; what it took."""
        path = self.layout.etc / conf
        command = ([martlet(), daemon, path, "--once"] if self.make == "martlet"
                   else openstack_command(self.layout.etc, f"swift-{daemon}", path, "once"))
        servers, began, used = self.cluster.cpu_seconds(), time.monotonic(), children_cpu()
        with open(self.layout.root / f"log-{daemon}", "w") as log:
            subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
        return Pass(time.monotonic() - began, children_cpu() - used, self.cluster.cpu_seconds() - servers)

    def stop(self):
        self.cluster.stop()
        self.memcached.stop()
        shutil.rmtree(self.layout.root, ignore_errors=True)


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pendings(ground, count):
    """Rows that no container server took at once, drained."""
    containers = [f"late{number}" for number in range(50)]
    for container in containers:
        ground.client.put(container)
    damage.pendings(ground.layout, containers, count)
    took = ground.once("object-updater", "object-server.conf")
    left = damage.pendings_left(ground.layout)
    told = sum(int(ground.client.do("HEAD", container, expect=204)["X-Container-Object-Count"]) for container in containers)
    if left or told != count:
        raise RuntimeError(f"{ground.make}: {left} records left, the containers know {told} of {count} objects")
    return took


EVENTS = {"pendings": (pendings, 50_000, "async pendings drained")}


def table(counts, scores):
    """The result as Markdown."""
    lines = ["| | things | OpenStack s | per s | CPU s | Martlet s | per s | CPU s | ratio | CPU ratio |", "|---" + "|---:" * 9 + "|"]
    for event, by_make in scores.items():
        count, (theirs, ours) = counts[event], (by_make.get(make) for make in MAKES)
        cells = [cell for score in (theirs, ours) for cell in
                 (("—",) * 3 if score is None else (f"{score.wall:.2f}", f"{count / score.wall:,.0f}", f"{score.cpu + score.servers:.2f}"))]
        ratios = ("—", "—") if None in (theirs, ours) else (
            f"**{theirs.wall / ours.wall:.1f}×**", f"{(theirs.cpu + theirs.servers) / (ours.cpu + ours.servers):.1f}×")
        lines.append("| " + " | ".join([EVENTS[event][2], f"{count:,}", *cells, *ratios]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MAKES)
    parser.add_argument("--events", nargs="+", choices=EVENTS, default=list(EVENTS))
    parser.add_argument("--count", type=int, help="this many things instead of what the event has")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-upkeep")
    options = parser.parse_args()
    scores, counts = {}, {}
    for event in options.events:
        work, count, _ = EVENTS[event]
        counts[event] = options.count or count
        for make in [options.only] if options.only else MAKES:
            ground = Ground(make, options.dir / make)
            try:
                took = work(ground, counts[event])
            finally:
                ground.stop()
            scores.setdefault(event, {})[make] = took
            print(f"{event:12} {make:10} {took.wall:8.2f} s, {counts[event] / took.wall:10,.0f}/s, "
                  f"CPU {took.cpu:.2f} s and {took.servers:.2f} s of servers", flush=True)
    print(f"\n{os.cpu_count()} processors, Linux {platform.release()}\n\n{table(counts, scores)}")


if __name__ == "__main__":
    main()
