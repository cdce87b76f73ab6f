"""What a fault costs the requests beside it: the same load on OpenStack Swift and on Martlet before, while and after something is broken.

    python tests/race/degraded.py [--seconds 20] [--only martlet] [--faults hang drive] [--write FILE] [--reports DIR]

Four nodes of an account, a container and an object server each, with a device each, and one gateway: separate processes, of either make on the same
configuration files, with the defaults of OpenStack's for time-outs. The loader is `martlet bench`, whose timed commands break and mend; each fault has a run of its
own, and a gateway that was started anew, since a gateway remembers which nodes failed. A run in which a request fails before the fault is void. Requests carry no
token: a flushed memcached would take those along, and what is flushed here is what gateways remember of accounts and containers.
"""

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import daemons, filters  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import ROLES, Layout  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.places import REPOSITORY, martlet  # noqa: E402
from race import page, picture  # noqa: E402
from race.control import Control  # noqa: E402

NODES, BROKEN = 4, 1  # the second node is the one with faults
KINDS = {"OpenStack": "openstack", "Martlet": "martlet"}
PIPELINE = filters.LEAN.replace(" tempauth", "")
# OpenStack's defaults, and Martlet's; layouts of tests are more patient.
TIMES = {"conn_timeout": 0.5, "node_timeout": 10, "post_quorum_timeout": 0.5, "silence_timeout": 1}
STORAGE_TIMES = {"conn_timeout": 0.5, "node_timeout": 3, "silence_timeout": 1}
CACHE_TIMES = {"connect_timeout": 0.3, "pool_timeout": 1}
PACE = {"files_per_second": 20, "bytes_per_second": 10_000_000, "zero_byte_files_per_second": 50}
DAEMONS = ("object-replicator", "object-updater", "object-auditor", "container-replicator")

WORKLOAD = """
name = "degraded"
[storage]
type = "swift"
storage_url = "http://127.0.0.1:{port}/v1/AUTH_race"
[[stage]]
name = "init"
type = "init"
cprefix = "bench-degraded-"
containers = "r(1,4)"
[[stage]]
name = "prepare"
type = "prepare"
workers = 8
cprefix = "bench-degraded-"
containers = "r(1,4)"
objects = "r(1,{objects})"
sizes = "c(4096)B"
[[stage]]
name = "main"
workers = {workers}
interval = "500ms"
runtime = "{runtime}s"
operations = [
    {{ type = "read", ratio = 80, cprefix = "bench-degraded-", containers = "u(1,4)", objects = "u(1,{objects})" }},
    {{ type = "write", ratio = 20, cprefix = "bench-degraded-", containers = "u(1,4)", objects = "u(1001,2000)", sizes = "c(4096)B" }},
]
[[action]]
name = "{name}"
stage = "main"
at = "{seconds}s"
run = {breaks}
until = "{until}s"
undo = {mends}
"""


class Nodes:
    """A running cluster of one make, and what can happen to it."""

    def __init__(self, name, root):
        shutil.rmtree(root, ignore_errors=True)
        self.name, self.root = name, root
        self.memcached, self.rsync = Memcached().start(), daemons.Rsync()
        layout = Layout(root, nodes=NODES, devices=NODES, part_power=10, policies=("Policy-0",), memcached_port=self.memcached.port,
                        pipeline=PIPELINE, overrides=self.overrides()).write()
        self.cluster = Cluster(layout, KINDS[name], verbose=False)
        self.upkeep = daemons.Upkeep(self.cluster)
        self.device, self.away = layout.srv / layout.devices[BROKEN], root / "away"

    def overrides(self):
        modules = {role: {f"{role}-replicator": {"rsync_module": f"rsync://127.0.0.1:{self.rsync.port}/{role}"}} for role in ROLES}
        modules["object"] |= {"object-auditor": PACE, "app:object-server": {**STORAGE_TIMES, "container_update_timeout": 1}}
        modules["container"]["app:container-server"] = STORAGE_TIMES
        return {"proxy": {"DEFAULT": {"workers": "auto"}, "app:proxy-server": TIMES, "filter:cache": CACHE_TIMES}, **modules}

    def start(self):
        self.rsync.start(self.cluster.layout)
        self.cluster.start()

    def stop(self):
        self.upkeep.stop_all()
        self.cluster.stop()
        self.rsync.stop()
        self.memcached.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def forget_failures(self):
        self.cluster.stop_service("proxy")
        self.cluster.start_service("proxy")

    def kill_node(self):
        for role in ROLES:
            self.cluster.kill_service(role, BROKEN)

    def start_node(self):
        for role in ROLES:
            self.cluster.launch(role, BROKEN)
        for role in ROLES:
            self.cluster.await_service(role, BROKEN)

    def hang_node(self):
        for role in ROLES:
            self.cluster.services[role, BROKEN].signal(signal.SIGSTOP)

    def wake_node(self):
        for role in ROLES:
            self.cluster.services[role, BROKEN].signal(signal.SIGCONT)

    def lose_device(self):
        self.device.rename(self.away)

    def bring_device_back(self):
        if self.device.exists():  # what a write that was under way made in its place
            self.device.rename(self.root / "made-meanwhile")
        self.away.rename(self.device)

    def flush_memcached(self):
        with socket.create_connection(("127.0.0.1", self.memcached.port), timeout=5) as connection:
            connection.sendall(b"flush_all\r\n")
            answer = connection.recv(64)
            assert answer == b"OK\r\n", answer

    def start_upkeep(self):
        for daemon in DAEMONS:
            for node in range(NODES):
                self.upkeep.start(daemon, node, KINDS[self.name])

    def stop_upkeep(self):
        for daemon, node in list(self.upkeep.running):
            self.upkeep.stop(daemon, node)  # fails for one that has ended by itself

    def nothing(self):
        """A fault that mends itself."""


@dataclass
class Fault:
    """What is broken, and by which functions of Nodes."""

    name: str
    breaks: str
    mends: str


FAULTS = [
    Fault("node killed", "kill_node", "start_node"),
    Fault("node hung", "hang_node", "wake_node"),
    Fault("drive lost", "lose_device", "bring_device_back"),
    Fault("memcached flushed", "flush_memcached", "nothing"),
    Fault("upkeep", "start_upkeep", "stop_upkeep"),  # last: it mends what the others have left behind
]


def bench(workload, report, stages):
    """One run of `martlet bench`: its report."""
    command = [martlet(), "bench", "run", workload, "--stages", stages, "--allow-actions", "--threads", "1", "--json", report, "--html", report.with_suffix(".html")]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"void: {done.stdout}{done.stderr}")
    return json.loads(report.read_text())


def void(report, what):
    raise SystemExit(f"void: {what}: {json.dumps(report['stages'], indent=1)[:3000]}")


class Measured:
    """What one fault did to one make: figures of each phase, and of each half second."""

    def __init__(self, report, fault):
        (stage,) = (stage for stage in report["stages"] if stage["name"] == "main")
        (work,), (action,) = stage["works"], stage["actions"]
        if action["failures"]:
            void(report, f"{fault.name}: {action['failures']} {action['output']}")
        phases = {phase["name"]: phase for phase in stage["phases"]}
        self.phases = [phases.get(name) for name in ("before", fault.name, "after")]
        before = self.phases[0]
        if not before or not before["succeeded"] or before["failed"]:
            void(report, f"{fault.name}: not well before it")
        self.failed, self.band = work["total"]["failed"], (action["begun"], action["undone"])
        self.rates, self.tails, last = [], [], 0.0
        for interval in work["over_time"][:-1]:  # the last one is not whole
            good = [operation for operation in interval["operations"] if operation["succeeded"]]
            rate = sum(operation["succeeded"] for operation in good) / (interval["until"] - last)
            self.rates.append((interval["until"], 100 * rate / before["rate"]))
            # Of reads and writes together the greater: an upper bound of what all of them have.
            self.tails.append((interval["until"], max((operation["p99"] for operation in good), default=None)))
            last = interval["until"]

    def cells(self):
        rates = [f"{phase['rate']:,.0f}" if phase else "—" for phase in self.phases]
        tails = [f"{phase['latency']['percentiles']['99']:,.1f}" if phase and phase["succeeded"] else "—" for phase in self.phases]
        during = self.phases[1]
        return [*rates, f"**{during['rate'] / self.phases[0]['rate']:.0%}**" if during else "—", *tails, f"{self.failed:,}"]


def race(nodes, faults, options, folder):
    """{fault name: Measured} of one make."""
    nodes.start()
    measured = {}
    with Control({name: getattr(nodes, name) for fault in FAULTS for name in (fault.breaks, fault.mends)}) as control:
        for number, fault in enumerate(faults):
            workload = folder / f"{nodes.name}-{fault.name}.toml".replace(" ", "-")
            workload.write_text(WORKLOAD.format(
                port=nodes.cluster.port, objects=options.objects, workers=options.workers, name=fault.name, seconds=options.seconds,
                until=2 * options.seconds, runtime=3 * options.seconds, breaks=json.dumps(control.words(fault.breaks)), mends=json.dumps(control.words(fault.mends))))
            if number == 0:
                prepared = bench(workload, folder / f"{nodes.name}-prepare.json", "init,prepare")
                if any(work["total"]["failed"] for stage in prepared["stages"] for work in stage["works"]):
                    void(prepared, "not prepared")
            else:
                nodes.forget_failures()
            one = measured[fault.name] = Measured(bench(workload, workload.with_suffix(".json"), "main"), fault)
            print(f"{fault.name:20} {nodes.name:10} " + "  ".join(one.cells()), flush=True)
    return measured


def drawing(measured, faults, seconds):
    """Rows of panels: the rate as a share of that before the fault, and the 99th percentile."""
    time = picture.Axis(0, 3 * seconds, [0, seconds, 2 * seconds, 3 * seconds], label="{:g} s".format)
    tails = picture.decades([value for ones in measured.values() for one in ones.values() for _, value in one.tails if value])
    rates = picture.Axis(0, 150, [0, 50, 100, 150], label="{:g} %".format)
    tails.label = lambda value: f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"

    def row(title, up, points):
        return [picture.Panel(f"{fault.name}: {title}", time, up, {name: points(ones[fault.name]) for name, ones in measured.items()},
                              [next(iter(measured.values()))[fault.name].band]) for fault in faults]
    return [row("rate", rates, lambda one: one.rates), row("p99", tails, lambda one: one.tails)]


def table(measured, faults):
    units = [f"{what} {when}" for what in ("ops/s", "p99 ms") for when in ("before", "during", "after")]
    head = ["", "", *units[:3], "left", *units[3:], "failed"]
    return page.table(head, [[fault.name, name, *measured[name][fault.name].cells()] for fault in faults for name in measured])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="how long each phase is: before, while and after something is broken")
    parser.add_argument("--workers", type=int, default=16, help="requests under way at a time")
    parser.add_argument("--objects", type=int, default=500, help="objects to be read, in each of four containers")
    parser.add_argument("--only", choices=["martlet", "openstack"])
    parser.add_argument("--faults", nargs="+", help="only faults whose name contains one of these")
    parser.add_argument("--write", type=Path, help="the page that holds the table; the picture lies beside it, in pictures/degraded.svg")
    parser.add_argument("--reports", type=Path, help="a new folder for the reports of `martlet bench`, with its pages")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-degraded", help="where both keep their devices")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if not options.faults or any(part in fault.name for part in options.faults)]
    if options.reports:
        options.reports.mkdir(parents=True)
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, kind in KINDS.items():
            if options.only in (None, kind):
                nodes = Nodes(name, options.dir / kind)
                try:
                    measured[name] = race(nodes, faults, options, options.reports or Path(scratch))
                finally:
                    nodes.stop()
    text = table(measured, faults)
    print("\n" + text)
    if options.write:
        picture.write(options.write.parent / "pictures/degraded.svg", "While something is broken (yellow)", drawing(measured, faults, options.seconds))
        page.write(options.write, "race-degraded", f"Made by `make race` on {page.machine()}; {options.workers} requests under way, {options.seconds} s for each phase.\n\n"
                                                   f"{text}\n\n![Rates and 99th percentiles while something is broken](pictures/degraded.svg)\n")


if __name__ == "__main__":
    main()
