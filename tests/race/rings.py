"""Rings side by side: the first rebalance of a ring and a change of 5 %, by OpenStack's builder and by ours.

Both do the same: they load the builder file, rebalance with a seed and write it again; what counts is the wall time of the
program, the largest memory it had, and what came of it. The large ring is placed by ours alone: OpenStack's takes hours for it.

Loading is timed for both on the same `.ring.gz`, the one that ours wrote. For OpenStack it is what a server does to have
its ring, `Ring(...)` in a process that runs already; for us all of `martlet get-nodes RING -p 0`, which starts, loads the
ring as our servers do, and prints where a partition lies. The median of several.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.places import REPOSITORY, martlet, openstack  # noqa: E402

BEGIN, END = "<!-- rings -->", "<!-- /rings -->"
READ = """
import json, sys, time
from swift.common.ring import RingBuilder
builder = RingBuilder.load(sys.argv[1])
json.dump([builder.get_balance(), builder.dispersion, [list(row) for row in builder._replica2part2dev or []]], sys.stdout)
"""
PASS = """
import sys
from swift.common.ring import RingBuilder
builder = RingBuilder.load(sys.argv[1])
builder._last_part_moves_epoch -= 48 * 3600
builder.save(sys.argv[1])
"""
LOAD = """
import json, os, resource, sys, time
from swift.common import utils
utils.HASH_PATH_SUFFIX = b"x"
from swift.common.ring import Ring
folder, name = os.path.split(sys.argv[1][:-len(".ring.gz")])
took = []
for _ in range(int(sys.argv[2])):
    began = time.monotonic()
    ring = Ring(folder, ring_name=name)
    took.append(time.monotonic() - began)
    ring.get_part_nodes(0)
json.dump([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss], sys.stdout)
"""
# How often a ring is loaded.
LOADS = 7


@dataclass
class Took:
    """What a program took, and what it left."""
    seconds: float
    megabytes: float
    balance: float = 0.0
    dispersion: float = 0.0
    moved: int = 0


def run(command, most=1):
    """Runs a program, which may end with a status of `most` (the ring builder warns with 1); its wall time and the largest memory it had."""
    began = time.monotonic()
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode > most:
        raise RuntimeError(f"{command} gave {child.returncode}:\n{output.decode()[-3000:]}")
    return Took(time.monotonic() - began, used.ru_maxrss / 1024)


def tool(make, *words):
    return [openstack("swift-ring-builder"), *words] if make == "openstack" else [martlet(), "ring-builder", *words]


def add(path, numbers, zones, disks):
    """Devices of weight 100, so many per server, the servers dealt out to zones."""
    words = []
    for number in numbers:
        server = number // disks
        zone, place = server % zones, server // zones
        words += [f"r1z{zone + 1}-10.{zone}.{place // 250}.{place % 250}:6200/sd{number % disks}", "100"]
    for start in range(0, len(words), 8000):
        run(tool("martlet", path, "add", *words[start:start + 8000]))


def python(script, *words):
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def rebalance(make, path, before):
    took = run(tool(make, path, "rebalance", "--force", "--seed", "1"))
    took.balance, took.dispersion, rows = json.loads(python(READ, path))
    took.moved = sum(sum(a != b for a, b in zip(row, old)) for row, old in zip(rows, before)) if before else sum(map(len, rows))
    return took, rows


def race(folder, make, power, devices):
    """First rebalance, then 5 % more devices when the hours have passed."""
    path = folder / f"{make}-{power}.builder"
    path.unlink(missing_ok=True)
    run(tool("martlet", path, "create", power, 3, 1))
    add(path, range(devices), 5, 20)
    first, rows = rebalance(make, path, None)
    python(PASS, path)
    add(path, range(devices, devices + devices // 20), 5, 20)
    change, _ = rebalance(make, path, rows)
    return {"first rebalance": first, "5 % more devices": change}


def load(folder, make, power):
    """Loads the ring that ours wrote."""
    path = folder / f"martlet-{power}.ring.gz"
    if make == "openstack":
        seconds, kilobytes = json.loads(python(LOAD, path, LOADS))
        return Took(statistics.median(seconds), kilobytes / 1024)
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = race\n")
    runs = [run([martlet(), "get-nodes", path, "-p", "0", "-d", folder], most=0) for _ in range(LOADS)]
    return Took(statistics.median(it.seconds for it in runs), max(it.megabytes for it in runs))


def table(rows):
    yield "| ring | | program | s | MiB | moved | balance % | dispersion % | faster |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    for (power, devices), makes in rows.items():
        for make, steps in makes.items():
            for what, took in steps.items():
                theirs = makes["openstack"].get(what) if make != "openstack" and "openstack" in makes else None
                placed = f"{took.moved:,} | {took.balance:.2f} | {took.dispersion:.2f}" if took.moved else " | | "
                yield (f"| 2^{power} × 3, {devices:,} devices | {what} | {make} | {took.seconds:.3f} | {took.megabytes:.0f} | "
                       f"{placed} | {f'**{theirs.seconds / took.seconds:.0f}×**' if theirs else ''} |")


def write(path, text):
    """Puts the table between its marks in a page, or at its end."""
    page = path.read_text()
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2] if rest else "\n"
    path.write_text(f"{head if rest else page.rstrip() + chr(10) * 2}{BEGIN}\n{text}\n{END}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--power", type=int, default=18)
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--only", choices=["martlet", "openstack"])
    parser.add_argument("--large", action="store_true", help="also 2^20 partitions over 10,000 devices, placed by ours alone")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-rings")
    parser.add_argument("--write", type=Path, help="the page the table goes to")
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    makes = [options.only] if options.only else ["openstack", "martlet"]
    size = options.power, options.devices
    rows = {size: {make: race(options.dir, make, *size) for make in makes}}
    if options.large:
        large = 20, 10_000
        rows[large] = {make: race(options.dir, make, *large) if make == "martlet" else {} for make in makes}
    for (power, _), sides in rows.items():
        if "martlet" in sides:
            for make, steps in sides.items():
                steps["load the ring"] = load(options.dir, make, power)
    text = "\n".join(table(rows))
    print(text)
    if options.write:
        write(options.write, text)


if __name__ == "__main__":
    main()
