"""What `martlet bench` costs beside the benchmarks that it replaces, COSBench and swift-bench, for the same load on one server.

    python tests/bench/beside_others.py [BINARY] [--cosbench FOLDER] [--workers 32] [--scale 1] [--rounds 3] [--verbs GET PUT] [--server BINARY]

Each reads or writes 4 KiB with so many workers on one `martlet up`, in turns and on one processor, for the processor time (user and
system, children too, `wait4`) of each request. A run of each is followed by one that is three times as long: what the longer one costs more
is what requests cost, without the start of a Java machine or of Python, and without most of what a compiler does in them meanwhile.

`--cosbench` (or COSBENCH_HOME) names a COSBench 0.4 as its releases are unpacked, with `osgi/libs` and `osgi/plugins`. Of it the driver runs
(`CosbenchMission.java`, which needs a JDK), without its controller and the web pages of both.
"""

import argparse
import json
import os
import re
import signal
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.beside_wrk import SIZE, measured  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.martlet_up import MartletUp  # noqa: E402
from harness.places import martlet, openstack  # noqa: E402
from harness.process import run  # noqa: E402

OURS, SWIFT_BENCH, COSBENCH = "martlet bench", "swift-bench", "COSBench"
# Requests of a short run, by what each does in a second or two on one processor.
REQUESTS = {
    OURS: {"GET": 40_000, "PUT": 4_000},
    COSBENCH: {"GET": 10_000, "PUT": 4_000},
    SWIFT_BENCH: {"GET": 1_000, "PUT": 1_000},
}
LONGER = 3
OBJECTS = 200
CONTAINER, PREFIX = "beside1", "beside"
OPERATION = {"GET": "read", "PUT": "write"}
WORKLOAD = """
name = "beside-others"
[storage]
type = "swift"
storage_url = "{store.url}"
token = "{store.token}"
[[stage]]
name = "main"
workers = {workers}
total_operations = {requests}
operations = [{{ type = "{operation}", cprefix = "{prefix}", containers = "c(1)", objects = "{objects}", sizes = "c({size})B" }}]
"""
READING = WORKLOAD.replace(', sizes = "c({size})B"', "")
MISSION = """<?xml version="1.0" encoding="UTF-8"?>
<mission name="main" workers="{workers}" totalWorkers="{workers}" totalOps="{requests}">
  <auth type="none" config=""/>
  <storage type="swift" config="storage_url={store.url};token={store.token}"/>
  <operation id="op1" type="{operation}" ratio="100" config="cprefix={prefix};containers=c(1);objects={objects};sizes=c({size})B"/>
</mission>
"""


@dataclass
class Store:
    """Where requests go, and with what."""

    auth_url: str
    url: str
    token: str

    @classmethod
    def of(cls, system):
        """The store of a running system, with a container of objects that can be read."""
        client = Client(system.auth_url)
        client.put(CONTAINER)
        for number in range(1, OBJECTS + 1):
            client.put(CONTAINER, f"myobjects{number}", body=b"m" * SIZE)
        client.close()
        return cls(system.auth_url, f"http://{client.host}:{client.port}{client.root}", client.token)


@dataclass
class Cost:
    """Requests of a run, and its processor time in seconds."""

    requests: int
    cpu: float


class Loaders:
    """The benchmarks that are there, each with a way to run it."""

    def __init__(self, store, binary, workers, cosbench=None):
        self.store, self.binary, self.workers = store, binary, workers
        self.folder = tempfile.TemporaryDirectory()
        self.runs = {OURS: self.by_ours, SWIFT_BENCH: self.by_swift_bench}
        if cosbench:
            self.cosbench = classes_of(cosbench, Path(self.folder.name))
            self.runs[COSBENCH] = self.by_cosbench

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def words(self, verb, requests):
        # Names that are written are so many that hardly two are written at a time.
        objects = f"u(1,{OBJECTS if verb == 'GET' else 1_000_000})"
        return dict(store=self.store, workers=self.workers, requests=requests, operation=OPERATION[verb], prefix=PREFIX, objects=objects, size=SIZE)

    def by_ours(self, verb, requests):
        with tempfile.TemporaryDirectory() as folder:
            workload, report = Path(folder, "w.toml"), Path(folder, "r.json")
            workload.write_text((READING if verb == "GET" else WORKLOAD).format(**self.words(verb, requests)))
            # The container was made by this program.
            _, cpu, _ = measured([self.binary, "bench", "run", workload, "--threads", 1, "--anything-goes", "--json", report])
            total = json.loads(report.read_text())["stages"][0]["works"][0]["total"]
        assert (total["succeeded"], total["failed"]) == (requests, 0) and total["bytes"] == requests * SIZE, total
        return Cost(requests, cpu)

    def by_cosbench(self, verb, requests):
        with tempfile.TemporaryDirectory() as folder:
            mission = Path(folder, "mission.xml")
            mission.write_text(MISSION.format(**self.words(verb, requests)))
            text, cpu, _ = measured(["java", "-cp", self.cosbench, "CosbenchMission", mission], cwd=folder)
        succeeded, all_of_them = map(int, re.search(r"^operations: (\d+) of (\d+)$", text, re.MULTILINE).groups())
        # Each worker has as many as the others.
        assert succeeded == all_of_them == requests // self.workers * self.workers, text
        return Cost(succeeded, cpu)

    def by_swift_bench(self, verb, requests):
        """A run of GETs has as many PUTs before it at any length, and one of PUTs leaves what it made."""
        puts, gets = (OBJECTS, requests) if verb == "GET" else (requests, 0)
        text, cpu, _ = measured([openstack("swift-bench"), "-A", self.store.auth_url, "-U", "test:tester", "-K", "testing", "-c", self.workers, "-s", SIZE,
                                 "-n", puts, "-g", gets, "-C", 1, "--container-name", "beside-swift-bench", "--no-delete"])
        assert f"{requests} {verb}S **FINAL** [0 failures]" in text, text
        return Cost(requests, cpu)


def classes_of(cosbench, folder):
    """The class path of a COSBench, with `CosbenchMission` compiled into the folder."""
    parts = [Path(cosbench, "osgi", part).absolute() for part in ("libs", "plugins")]
    for part in parts:
        if not list(part.glob("*.jar")):
            raise SystemExit(f"{part} has no .jar: expected the folder of a COSBench 0.4")
    path = ":".join(f"{part}/*" for part in parts)
    run(["javac", "-proc:none", "-cp", path, "-d", folder, Path(__file__).with_name("CosbenchMission.java")])
    return f"{folder}:{path}"


def costs(loaders, verb, *, scale=1, rounds=1):
    """{loader: [(microseconds for a request, those of the longer run with all that is around it), …]} of loaders that take turns."""
    found = {loader: [] for loader in loaders.runs}
    for _ in range(rounds):
        for loader, one_run in loaders.runs.items():
            requests = max(int(REQUESTS[loader][verb] * scale), loaders.workers)
            short, long = one_run(verb, requests), one_run(verb, requests * LONGER)
            of_one = (long.cpu - short.cpu) / (long.requests - short.requests)
            found[loader].append((of_one * 1e6, long.cpu / long.requests * 1e6))
    return found


def medians(found):
    """{loader: (microseconds for a request, those with all that is around it)}"""
    return {loader: tuple(map(statistics.median, zip(*figures))) for loader, figures in found.items()}


def table(of_verbs):
    """Medians of all loaders as Markdown."""
    lines = ["| | | CPU µs for a request | requests for a CPU second | beside ours | CPU µs with its start |", "|---|---" + "|---:" * 4 + "|"]
    for verb, found in of_verbs.items():
        of_one = medians(found)
        for loader, (micros, with_start) in of_one.items():
            lines.append(f"| {verb} | {loader} | {micros:,.1f} | {1e6 / micros:,.0f} | {micros / of_one[OURS][0]:.1f} × | {with_start:,.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", type=Path)
    parser.add_argument("--cosbench", type=Path, default=os.environ.get("COSBENCH_HOME"))
    parser.add_argument("--server", type=Path, help="the martlet that is loaded, if it is another one")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--scale", type=float, default=1, help="of the numbers of requests")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--verbs", nargs="+", choices=list(OPERATION), default=list(OPERATION))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends what was started, too
    binary = (options.binary or martlet()).absolute()
    with tempfile.TemporaryDirectory() as folder:
        system = MartletUp(Path(folder, "store"), binary=(options.server or binary).absolute()).start()
        try:
            with Loaders(Store.of(system), binary, options.workers, options.cosbench) as loaders:
                found = {verb: costs(loaders, verb, scale=options.scale, rounds=options.rounds) for verb in options.verbs}
        finally:
            system.stop()
    print(f"{options.workers} workers, {SIZE} bytes:\n\n{table(found)}")


if __name__ == "__main__":
    main()
