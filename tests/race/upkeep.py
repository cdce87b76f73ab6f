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
from harness.upkeep import write_conf  # noqa: E402
from race import bare, damage  # noqa: E402

MAKES = ("openstack", "martlet")
# More on the same wire and the same threads for both: what OpenStack's documentation suggests for fast drives.
REPLICATOR = {"sync_method": "ssync", "concurrency": 4, "rsync_timeout": 3600, "http_timeout": 600, "node_timeout": 600,
              "lockup_timeout": 3600}
FAST = {"object": {"object-updater": {"objects_per_second": 1000000, "concurrency": 8,
                                      "max_objects_per_container_per_second": 0},
                   "object-replicator": REPLICATOR}}
MOST_PASSES = 5


@dataclass
class Pass:
    """What one pass of a daemon took."""
    wall: float
    cpu: float
    servers: float
    calls: int | None = None
    things: int = 0
    passes: int = 1

    def __add__(self, other):
        calls = self.calls + other.calls if self.calls and other.calls else None
        return Pass(self.wall + other.wall, self.cpu + other.cpu, self.servers + other.servers, calls, self.things,
                    self.passes + other.passes)

    def whole(self):
        """CPU seconds of the daemon and of the servers it spoke to."""
        return self.cpu + self.servers


class Ground:
    """A cluster of one make, one node with four devices, that upkeep is let loose on."""

    def __init__(self, make, root, options):
        make_room(root, options.drives)
        self.make, replicas = make, options.replicas
        self.memcached = Memcached().start()
        self.layout = Layout(root, replicas=replicas, policies=("gold",), memcached_port=self.memcached.port, overrides=FAST).write()
        self.cluster = Cluster(self.layout, make, verbose=False).start()
        self.client = Client(self.cluster.auth_url)

    def once(self, daemon, conf, seconds=None):
        return once(self.layout, self.cluster, self.make, daemon, conf, seconds)

    def exchange(self, make):
        """Servers of another make on the same devices."""
        self.cluster.stop()
        self.make = make
        self.cluster = Cluster(self.layout, make, verbose=False).start()

    def stop(self):
        self.cluster.stop()
        self.memcached.stop()
        make_room(self.layout.root, [])


def make_room(root, drives):
    """Nothing is left at `root`, and nothing where its devices led; each of those to come is on a drive of its own, if there are any."""
    devices = root / "srv"
    for device in devices.iterdir() if devices.is_dir() else ():
        if device.is_symlink():
            shutil.rmtree(device.resolve(), ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)
    for number, drive in enumerate(drives):
        place = drive / root.name / f"sdb{number + 1}"
        place.mkdir(parents=True)
        devices.mkdir(parents=True, exist_ok=True)
        (devices / place.name).symlink_to(place)


def once(layout, cluster, make, daemon, conf, seconds=None):
    """One pass of `daemon` of this make, or so many seconds of it; what it took."""
    path = layout.etc / conf
    command = ([martlet(), daemon, path, "--once"] if make == "martlet"
               else openstack_command(layout.etc, f"swift-{daemon}", path, "once"))
    if seconds:
        command = ["timeout", "--kill-after=10", seconds, *command]
    counted = layout.root / f"calls-{daemon}"
    counter = ["perf", "stat", "-x", ";", "-e", "raw_syscalls:sys_enter", "-o", counted, "--"] if shutil.which("perf") else []
    servers, began, used = cluster.cpu_seconds(), time.monotonic(), children_cpu()
    output = layout.root / f"log-{make}-{daemon}"
    with open(output, "w") as log:
        done = subprocess.run([str(part) for part in [*counter, *command]], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    if done.returncode and not seconds:
        raise RuntimeError(f"{command} gave {done.returncode}:\n{output.read_text()[-3000:]}")
    return Pass(time.monotonic() - began, children_cpu() - used, cluster.cpu_seconds() - servers, calls(counted))


def calls(counted):
    """What perf counted; None where there is no perf."""
    rows = counted.read_text().splitlines() if counted.exists() else []
    found = [row.split(";")[0] for row in rows if "raw_syscalls" in row]
    return int(found[0]) if found and found[0].isdigit() else None


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
    result = sum(int(ground.client.do("HEAD", container, expect=204)["X-Container-Object-Count"]) for container in containers)
    if left or result != count:
        raise RuntimeError(f"{ground.make}: {left} records left, the containers know {result} of {count} objects")
    return took


def expired(ground, count):
    """Objects whose time has come, deleted; their names and tasks gone with them."""
    took = ground.once("object-expirer", expire(ground, count))
    left = files_left(ground)
    if left:
        raise RuntimeError(f"{ground.make}: {left} files of expired objects are left")
    return took


def expire(ground, count):
    """Leaves objects whose time has come; the configuration of an expirer without a limit."""
    written, due = int(time.time()) - 100_000, int(time.time()) - 50_000
    ground.client.put("many")
    damage.expired(ground.layout, count, written, due)
    return write_conf(ground.cluster, "object-expirer.conf", "object-expirer", tasks_per_second=0, concurrency=8).name


def files_left(ground):
    return sum(damage.data_files(ground.layout, device) for device in ground.layout.devices)


def expired_in_turns(options, count, makes):
    """One ground for both: OpenStack's works for a while, and then ours on what is left."""
    if set(makes) != set(MAKES):
        raise SystemExit("expired-in-turns needs both makes")
    scores, event, seconds = {}, "expired-in-turns", options.theirs_for
    ground = Ground("openstack", options.dir / "both", options)
    try:
        conf = expire(ground, count)
        took = ground.once("object-expirer", conf, seconds)
        left = files_left(ground) // options.replicas
        scores[event, "openstack"] = report(event, "openstack", count - left, took)
        ground.exchange("martlet")
        scores[event, "martlet"] = report(event, "martlet", left, ground.once("object-expirer", conf))
        if files_left(ground):
            raise RuntimeError(f"{files_left(ground)} files of expired objects are left")
    finally:
        ground.stop()
    return scores


class Replicas:
    """One tree of objects, two replicas over two devices, that either make's replicator goes over in turn."""

    def __init__(self, root, count):
        shutil.rmtree(root, ignore_errors=True)
        self.count, self.second = count, 1_700_000_000
        self.layout = Layout(root, devices=2, replicas=2, policies=("gold",), overrides=FAST).write()
        damage.objects(self.layout, range(count), self.second)

    def run(self, make, spoil, left=lambda: ""):
        """Passes over what `spoil` left, with servers of the same make, until nothing is `left`; what they took together. (One is
        enough, but OpenStack's may give up partitions while others keep a device's lock.)"""
        cluster = Cluster(self.layout, make, verbose=False)
        cluster.start_service("object")
        try:
            once(self.layout, cluster, make, "object-replicator", "object-server.conf")  # hashes are there
            spoil()
            os.sync()
            took = once(self.layout, cluster, make, "object-replicator", "object-server.conf")
            while why := left():
                print(f"{make}: {why} after {took.passes} passes", flush=True)
                if took.passes == MOST_PASSES:
                    raise RuntimeError(f"{make}: {why}")
                took += once(self.layout, cluster, make, "object-replicator", "object-server.conf")
            return took
        finally:
            cluster.stop()

    def unchanged(self, make):
        return self.run(make, lambda: None)

    def changed(self, make):
        self.second += 10
        share = range(0, self.count, 50)

        def left():
            found = damage.newest_everywhere(self.layout, self.second)
            return "" if found == [len(share)] * 2 else f"{found} changed objects instead of {len(share)} on each device"
        return self.run(make, lambda: damage.objects(self.layout, share, self.second, only=self.layout.devices[0]), left)

    def lost(self, make):
        device = self.layout.devices[1]

        def left():
            found = damage.data_files(self.layout, device)
            return "" if found == self.count else f"{found} of {self.count} objects came back"
        return self.run(make, lambda: damage.lose(self.layout, device), left)


EVENTS = ("unchanged", "changed", "lost")


def replication(options, count, makes):
    """The passes of each make over one tree: `(event, make) -> Pass`."""
    disk = bare.fastest(options.dir / "bare", min(count, 20_000), damage.BODY)
    print(f"disk       {disk:10,.0f}/s written and synced by system calls alone", flush=True)
    replicas = Replicas(options.dir / "replicas", count)
    try:
        return {(event, make): report(event, make, count, getattr(replicas, event)(make))
                for event in options.events for make in makes}
    finally:
        shutil.rmtree(replicas.layout.root, ignore_errors=True)


def on_grounds(event, work):
    """A race in which each make has a cluster of its own, damaged alike: `(event, make) -> Pass`."""
    def race(options, count, makes):
        scores = {}
        for make in makes:
            ground = Ground(make, options.dir / make, options)
            things = options.theirs if make == "openstack" and options.theirs else count
            try:
                scores[event, make] = report(event, make, things, work(ground, things))
            finally:
                ground.stop()
        return scores
    return race


def report(event, make, count, took):
    took.things = count
    print(f"{event:10} {make:10} {took.wall:8.2f} s, {count / took.wall:10,.0f}/s, CPU {took.cpu:.2f} s and "
          f"{took.servers:.2f} s of servers, {took.calls or 0:,} system calls", flush=True)
    return took


RACES = {"pendings": (on_grounds("pendings", pendings), 50_000), "expired": (on_grounds("expired", expired), 20_000),
         "expired-in-turns": (expired_in_turns, 1_000_000), "replication": (replication, 200_000)}
TITLES = {"pendings": "async pendings drained", "expired": "expired objects deleted",
          "expired-in-turns": "expired objects deleted, one ground", "unchanged": "replication, nothing changed",
          "changed": "replication, 2 % changed", "lost": "replication, a device lost"}


def table(scores, makes):
    """The result as Markdown. Factors are of what each thing takes."""
    columns = ["things", "s", "per s", "CPU s", "system calls"]
    head = ["", *(f"{make} {column}" for make in makes for column in columns), *(["time", "CPU", "calls"] if len(makes) == 2 else [])]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for event in dict.fromkeys(event for event, _ in scores):
        found = [scores[event, make] for make in makes]
        cells = [cell for took in found for cell in (f"{took.things:,}", f"{took.wall:.2f}", f"{took.things / took.wall:,.0f}",
                                                     f"{took.whole():.2f}", f"{took.calls:,}" if took.calls else "—")]
        if len(found) == 2:
            theirs, ours = found
            more = ours.things / theirs.things
            calls = f"{more * theirs.calls / ours.calls:.1f}×" if theirs.calls and ours.calls else "—"
            cells += [f"**{more * theirs.wall / ours.wall:.1f}×**", f"**{more * theirs.whole() / ours.whole():.1f}×**", calls]
        lines.append("| " + " | ".join([TITLES[event], *cells]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MAKES)
    parser.add_argument("--races", nargs="+", choices=RACES, default=["pendings", "expired", "replication"])
    parser.add_argument("--events", nargs="+", choices=EVENTS, default=list(EVENTS), help="of replication")
    parser.add_argument("--count", type=int, help="this many things instead of what the race has")
    parser.add_argument("--theirs", type=int, help="so many for OpenStack's where each make has its own; factors are then of each thing")
    parser.add_argument("--theirs-for", type=int, default=120, help="how many seconds OpenStack's has of expired-in-turns")
    parser.add_argument("--replicas", type=int, default=3, help="of each thing, where each make has its own")
    parser.add_argument("--size", type=int, default=len(damage.BODY), help="bytes of each object")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-upkeep", help="where the devices are")
    parser.add_argument("--drives", type=Path, nargs=4, default=[], help="where each of the four devices is instead; not of replication")
    options = parser.parse_args()
    if options.drives and "replication" in options.races:
        raise SystemExit("replication takes devices away and has them in one directory: leave --drives out")
    damage.BODY = b"x" * options.size
    makes = [options.only] if options.only else list(MAKES)
    scores = {}
    for name in options.races:
        race, count = RACES[name]
        scores.update(race(options, options.count or count, makes))
    print(f"\n{os.cpu_count()} processors, Linux {platform.release()}\n\n{table(scores, makes)}")


if __name__ == "__main__":
    main()
