"""OpenStack Swift and Martlet on one machine, asked the same by the same loader, turn and turn about.

    python tests/race/race.py [--seconds 10] [--rounds 2] [--only martlet] [--before BINARY] [--events PUT GET] [--write FILE] [--reports DIR]

The loader is `martlet bench`; `--reports` keeps what it reports of each cell, with its version, its seed and the workload. Every event alternates between the two, which
begin in turn. A run with a single answer that is not 2xx, or a broken connection, is void
and ends the race. What is acknowledged has been synced on both sides: neither runs with weaker settings.
"""

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.places import REPOSITORY  # noqa: E402
from race import page  # noqa: E402
from race.sides import Martlet, OpenStack  # noqa: E402

KIB, MIB = 2**10, 2**20
SHORTER = 4  # DELETEs take a part of the time of the PUTs before them, so that there is always something to delete


@dataclass
class Event:
    """One discipline. `names` is how many objects there are to read; 0 makes a new name for each request."""

    name: str
    verb: str
    container: str
    connections: int
    size: int = 0
    names: int = 0
    floor: float | None = None

    def prepare(self, side):
        """Store what is to be read."""
        for number in range(self.names):
            side.client.put(f"{self.container}1", f"read-{number + 1}", body=b"m" * self.size)

    def run(self, side, seconds, mark, most=0, report=None):
        mark = "read-" if self.names else mark
        before = side.cpu_seconds()
        results = result(side.load(self.verb, self.container, connections=self.connections, seconds=seconds, size=self.size, names=self.names,
                               most=most, mark=mark, report=report), side.root)
        results["cpu"] = side.cpu_seconds() - before
        os.sync()  # what one run left dirty is not the next one's burden
        return results


SMALL = dict(container="small", connections=32)
EVENTS = [
    Event("PUT 4 KiB", "PUT", size=4 * KIB, floor=10, **SMALL),
    Event("DELETE 4 KiB", "DELETE", floor=10, **SMALL),
    Event("GET 4 KiB", "GET", size=4 * KIB, names=500, floor=30, **SMALL),
    Event("HEAD 4 KiB", "HEAD", size=4 * KIB, names=500, floor=30, **SMALL),
    Event("PUT 1 MiB", "PUT", "large", 8, size=MIB, floor=4),
    Event("GET 1 MiB", "GET", "large", 8, size=MIB, names=20, floor=5),
    Event("listing of 100,000", "LIST", "listing", 8),
]


# Of a file system; storage servers keep some of it free and answer 507 then (`fallocate_reserve`).
LEAST_FREE = 0.02


def result(report, folder):
    """What the loader measured; anything but plain success is an error. `folder` holds the devices."""
    (work,) = report["stages"][0]["works"]
    total = work["total"]
    if total["failed"] or not total["succeeded"]:
        room = shutil.disk_usage(folder)
        full = f"; {folder} is full: free more of it, or ask for fewer --seconds" if room.free < LEAST_FREE * room.total else ""
        raise SystemExit(f"void: {total['succeeded']} requests succeeded, {total['failed']} failed: {total['failures']}{full}")
    if work["client_is_limit"]:
        print("the loader was busy all the time: it may have been the limit", file=sys.stderr)
    times = total["latency"]["percentiles"]
    return {"requests": total["succeeded"], "seconds": work["measured"], "p50": times["50"], "p99": times["99"]}


class Score:
    """What one side did in one event, over all its rounds."""

    def __init__(self):
        self.rounds = []

    def add(self, results):
        self.rounds.append(results)

    def rate(self):
        return sum(results["requests"] for results in self.rounds) / sum(results["seconds"] for results in self.rounds)

    def milliseconds(self, percentile):
        return sum(results[percentile] for results in self.rounds) / len(self.rounds)

    def cpu_per_thousand(self):
        return sum(results["cpu"] for results in self.rounds) / sum(results["requests"] for results in self.rounds) * 1000

    def cells(self):
        return [f"{self.rate():,.0f}", f"{self.milliseconds('p50'):.2f}", f"{self.milliseconds('p99'):.2f}", f"{self.cpu_per_thousand():.3f}"]


def race(sides, events, seconds, rounds, reports=None):
    """Run it all; {event name: {side name: Score}}."""
    for side in sides:
        side.start()
        if any(event.verb == "LIST" for event in events):
            side.fill_listing()
    scores = {event.name: {side.name: Score() for side in sides} for event in events}
    created = {}
    for event in events:
        for side in sides:
            event.prepare(side)
        for number in range(rounds):
            # Each side begins every other round: what a run leaves behind (dirty pages, upkeep) slows the one after it.
            for side in (sides if number % 2 == 0 else reversed(sides)):
                mark, most, duration = f"{event.size}-{number}-", 0, seconds
                if event.verb == "DELETE":  # of what the PUTs of the same round made
                    mark, most = created.get((side.name, number)) or make_some(side, seconds, number)
                    duration = max(1, seconds // SHORTER)
                report = reports and reports / f"{event.name} {side.name} {number + 1}.json".replace(" ", "-")
                results = event.run(side, duration, mark, most, report)
                if event.verb == "DELETE" and results["requests"] >= most - event.connections:
                    raise SystemExit(f"void: all {most} objects were deleted before {duration} s had passed; ask for more --seconds")
                if event.verb == "PUT" and event.size == 4 * KIB:
                    created[side.name, number] = mark, surely_made(results, event.connections)
                scores[event.name][side.name].add(results)
                print(f"{event.name:20} {side.name:10} {results['requests'] / results['seconds']:10,.0f}/s", flush=True)
    return scores


def surely_made(results, connections):
    """How many objects a run of PUTs has certainly stored: not the last ones, which were cut off."""
    return max(1, results["requests"] - connections)


def make_some(side, seconds, number):
    """Objects to delete when the PUT event was not run."""
    mark = f"doomed-{number}-"
    results = result(side.load("PUT", "small", connections=32, seconds=seconds, size=4 * KIB, mark=mark), side.root)
    return mark, surely_made(results, 32)


def table(scores, sides, events):
    """The result as Markdown."""
    units = ["ops/s", "p50 ms", "p99 ms", "CPU s/1000"]
    head = ["", *(f"{side.name} {unit}" for side in sides for unit in units), *(["ratio", "floor"] if len(sides) == 2 else [])]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for event in events:
        by_side = [scores[event.name][side.name] for side in sides]
        cells = [cell for score in by_side for cell in score.cells()]
        if len(sides) == 2:
            ratio = by_side[1].rate() / by_side[0].rate()
            places = 2 if sides[0].name == "before" else 1
            cells += [f"**{ratio:.{places}f}×**", f"{event.floor}×" if event.floor and places == 1 else "—"]
        lines.append("| " + " | ".join([event.name, *cells]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["martlet", "openstack"])
    parser.add_argument("--before", type=Path, help="an earlier build of Martlet, which takes the place of OpenStack Swift")
    parser.add_argument("--events", nargs="+", help="only events whose name contains one of these")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    parser.add_argument("--reports", type=Path, help="a new folder for the report of `martlet bench` about each cell")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race", help="where both keep their devices")
    options = parser.parse_args()
    events = [event for event in EVENTS if not options.events or any(part in event.name for part in options.events)]
    kinds = {"openstack": OpenStack, "martlet": Martlet}
    if options.only:
        kinds, options.rounds = {options.only: kinds[options.only]}, 1
    if options.reports:
        options.reports.mkdir(parents=True)
    sides = []
    try:
        if options.before:
            sides += [Martlet("before", options.dir / "before", options.before.absolute()), Martlet("now", options.dir / "now")]
        else:
            for name, kind in kinds.items():
                sides.append(kind({"openstack": "OpenStack", "martlet": "Martlet"}[name], options.dir / name))
        scores = race(sides, events, options.seconds, options.rounds, options.reports)
    finally:
        for side in sides:
            side.stop()
    text = table(scores, sides, events)
    print("\n" + text)
    if options.write:
        page.write(options.write, "race", f"Made by `make race` on {page.machine()}; {options.rounds} rounds of {options.seconds} s for each cell.\n\n{text}\n")


if __name__ == "__main__":
    main()
