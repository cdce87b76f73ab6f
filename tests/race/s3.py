"""The S3 API beside Swift's: one Martlet, the same objects, asked by the same loader through either API, turn and turn about.

    python tests/race/s3.py [--seconds 10] [--rounds 2] [--gib 1] [--events GET PUT] [--write FILE]

The loader is `martlet bench`. A request through S3 is one of Swift with a signature to be verified and an answer to be translated; the table says what is
left of Swift's rate, beside a goal. The upload in parts of S3 is compared with one stream into one object, and the resident memory of the server is looked
at meanwhile. A run with a single answer that is not 2xx, or a broken connection, is void and ends the race.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.places import REPOSITORY, martlet  # noqa: E402
from race import page  # noqa: E402
from race.race import KIB, MIB, Score, result  # noqa: E402
from race.sides import MOST, Martlet  # noqa: E402

APIS = ("Swift", "S3")
PART = 64 * MIB


@dataclass
class Cell:
    """One row: `names` is how many objects there are to read, 0 makes a new name for each request; `goal` is the share of Swift's rate."""

    name: str
    verb: str
    container: str
    connections: int
    size: int
    goal: float
    names: int = 0
    in_parts: bool = False
    uploads: int = 0  # so many, however long they take

    def operation(self, api, mark):
        """What is asked for, as a workload has it."""
        kind = {"GET": "read", "PUT": "write"}[self.verb]
        objects = f"u(1,{self.names})" if self.names else f"s(1,{MOST})"
        prefix = "read-" if self.names else mark
        sizes = f', sizes = "c({self.size})B"' if self.verb == "PUT" else ""
        parts = f', part_size = "{PART}B"' if self.in_parts and api == "S3" else ""
        return (f'{{ type = "{kind}", ratio = 100, cprefix = "{self.container}", containers = "c(1)", oprefix = "{prefix}", '
                f'objects = "{objects}"{sizes}{parts} }}')


CELLS = [
    Cell("GET 4 KiB", "GET", "small", 32, 4 * KIB, 0.85, names=500),
    Cell("PUT 4 KiB", "PUT", "small", 32, 4 * KIB, 0.90),
    Cell("GET 1 MiB", "GET", "large", 8, MIB, 0.95, names=20),
    Cell("PUT 1 MiB", "PUT", "large", 8, MIB, 0.95),
    Cell("upload in parts of 64 MiB", "PUT", "large", 1, 1024 * MIB, 0.90, in_parts=True, uploads=1),
]


class Memory:
    """The most that the resident memory of the server grew by, looked at ten times a second."""

    def __init__(self, system):
        self.system, self.first, self.done = system, system.rss(), threading.Event()
        self.most, self.thread = self.first, threading.Thread(target=self.look)

    def look(self):
        while not self.done.wait(0.1):
            self.most = max(self.most, self.system.rss())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def growth(self):
        return (self.most - self.first) / MIB


def load(side, cell, api, seconds, mark):
    """One run of the loader: what race.result() makes of its report, with the server's processor time and growth of memory."""
    where = urlsplit(side.system.auth_url)
    storage = {"S3": f'type = "s3"\nendpoint = "{where.scheme}://{where.netloc}"\naccesskey = "test:tester"\nsecretkey = "testing"\n',
               "Swift": f'type = "swift"\n[auth]\ntype = "tempauth"\nauth_url = "{side.system.auth_url}"\nusername = "test:tester"\npassword = "testing"\n'}
    until = f"total_operations = {cell.uploads}" if cell.uploads else f'runtime = "{seconds}s"'
    with tempfile.TemporaryDirectory() as folder:
        workload, report = Path(folder, "workload.toml"), Path(folder, "report.json")
        workload.write_text(f'name = "race"\n[storage]\n{storage[api]}[[stage]]\nname = "main"\nworkers = {cell.connections}\n{until}\n'
                            f"operations = [{cell.operation(api, mark)}]\n")
        command = [martlet(), "bench", "run", workload, "--anything-goes", "--threads", "2", "--json", report]
        before = side.cpu_seconds()
        with Memory(side.system) as memory:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if not report.exists():
            raise SystemExit(f"void: {done.stdout}{done.stderr}")
        results = result(json.loads(report.read_text()), side.root)
    os.sync()  # what one run left dirty is not the next one's burden
    return {**results, "cpu": side.cpu_seconds() - before, "growth": memory.growth()}


def race(side, cells, seconds, rounds):
    """{cell name: {api: Score}}."""
    side.start()
    scores = {cell.name: {api: Score() for api in APIS} for cell in cells}
    for cell in cells:
        for number in range(cell.names):
            side.client.put(f"{cell.container}1", f"read-{number + 1}", body=b"m" * cell.size)
        if not cell.names and not cell.uploads:
            # The first writes of all find empty directories and databases, and cost less: they count for neither.
            load(side, cell, APIS[0], seconds, f"first-{cell.size}-")
        for number in range(rounds):
            for api in APIS if number % 2 == 0 else APIS[::-1]:
                mark = f"{api}-{cell.size}-{number}-".lower()
                results = load(side, cell, api, seconds, mark)
                scores[cell.name][api].add(results)
                rate = results["requests"] / results["seconds"]
                print(f"{cell.name:26} {api:6} {rate:10,.2f}/s {rate * cell.size / MIB:8,.1f} MiB/s  +{results['growth']:.0f} MiB", flush=True)
    return scores


def table(scores, cells):
    """The result as Markdown."""
    heads = ["", *(f"{api} {unit}" for api in APIS for unit in ("ops/s", "MiB/s", "p50 ms", "p99 ms", "CPU s/1000", "memory")), "S3's share", "goal"]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for cell in cells:
        row = [cell.name]
        for api in APIS:
            score = scores[cell.name][api]
            growth = max(results["growth"] for results in score.rounds)
            rate, *others = score.cells()
            row += [f"{score.rate():,.2f}" if cell.uploads else rate, f"{score.rate() * cell.size / MIB:,.0f}", *others, f"+{growth:.0f} MiB"]
        share = scores[cell.name]["S3"].rate() / scores[cell.name]["Swift"].rate()
        lines.append("| " + " | ".join([*row, f"**{share:.0%}**", f"{cell.goal:.0%}"]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--gib", type=float, default=1.0, help="size of what is uploaded in parts")
    parser.add_argument("--events", nargs="+", help="only cells whose name contains one of these")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race", help="where the server keeps its devices")
    options = parser.parse_args()
    cells = [cell for cell in CELLS if not options.events or any(part in cell.name for part in options.events)]
    for cell in cells:
        if cell.in_parts:
            cell.size = int(options.gib * 1024) * MIB
            cell.name = f"upload of {options.gib:g} GiB, in parts of 64 MiB by S3"
    side = Martlet("martlet", options.dir / "s3")
    try:
        scores = race(side, cells, options.seconds, options.rounds)
    finally:
        side.stop()
    text = table(scores, cells)
    print("\n" + text)
    if options.write:
        page.write(options.write, "race-s3", f"Made by `make race-s3` on {page.machine()}; {options.rounds} rounds of {options.seconds} s for each cell.\n\n{text}\n")


if __name__ == "__main__":
    main()
