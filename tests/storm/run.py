"""Storms: a cluster of several nodes under load and faults drawn from a seed, then calm, then proof that nothing was lost.

    run.py --seed 7                  one storm        run.py --seeds 1-20     many
    run.py --seed 7 --only EIO       one fault   run.py --list           their names
    run.py --make openstack          OpenStack Swift's programs instead: proves the storm itself

What happened is in target/storm/MAKE/seed-N: storm.txt, and every program's log. --record writes docs/reliability.md.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.places import REPOSITORY  # noqa: E402
from storm import machine, faults, record  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="one storm")
    parser.add_argument("--seeds", default="1-5", help="several: 1-20")
    parser.add_argument("--rounds", type=int, default=3, help="load and faults, then calm: so many times")
    parser.add_argument("--seconds", type=float, default=20, help="how long a round's load lasts")
    parser.add_argument("--megabytes", type=int, default=160, help="size of a drive (there are eight, in memory)")
    parser.add_argument("--only", help="these faults, separated by commas")
    parser.add_argument("--make", default="martlet", choices=("martlet", "openstack"), help="whose programs")
    parser.add_argument("--fill", choices=("openstack",), help="whose programs where Martlet has none")
    parser.add_argument("--theirs", help="programs that are OpenStack's although Martlet has them: object-server,proxy-server")
    parser.add_argument("--out", help="where reports and logs go")
    parser.add_argument("--jobs", type=int, default=1, help="storms at the same time")
    parser.add_argument("--record", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--list", action="store_true", help="name the faults")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    options.seeds = [options.seed] if options.seed is not None else range(int(first), int(last or first) + 1)
    return options


running = set()  # machines


def interrupted(*_):
    for child in running.copy():
        machine.end(child)
    os._exit(130)


def run_seed(options, seed, out):
    """One storm on a new machine; its report."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    task = {"seed": seed, "rounds": options.rounds, "seconds": options.seconds, "megabytes": options.megabytes, "make": options.make,
            "fill": options.fill, "only": options.only.split(",") if options.only else None,
            "theirs": options.theirs.split(",") if options.theirs else None}
    (out / "options.json").write_text(json.dumps(task))
    longest = options.rounds * (options.seconds + 900)
    with open(out / "machine.txt", "w") as sink:
        child = subprocess.Popen(machine.enter(out / "options.json"), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        running.add(child)
        try:
            child.wait(longest)
        except subprocess.TimeoutExpired:
            sink.write(f"the storm did not end in {longest:.0f} s")
            machine.end(child)
            child.wait()
        finally:
            running.discard(child)
    result = out / "result.json"
    return json.loads(result.read_text()) if result.exists() else {"seed": seed, "error": (out / "machine.txt").read_text()[-2000:]}


def again(options, seed):
    """The command that replays a storm."""
    more = [f"--{name} {value}" for name, value in (("only", options.only and f"'{options.only}'"), ("fill", options.fill), ("theirs", options.theirs)) if value]
    if options.make != "martlet":
        more.append(f"--make {options.make}")
    return " ".join([".venv/bin/python tests/storm/run.py", f"--seed {seed} --rounds {options.rounds} --seconds {options.seconds:g}", *more])


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupted)
    options = arguments()
    if options.list:
        names = [*faults.LOSSES, *(name for lane in faults.HIDING.values() for name in lane)]
        print("\n".join(names))
        return 0
    if obstacle := machine.obstacle():
        print(f"no storm is possible: {obstacle}")
        return 2
    base = Path(options.out) if options.out else REPOSITORY / "target/storm" / options.make
    reports = []
    pool = ThreadPoolExecutor(options.jobs)
    for report in pool.map(lambda seed: run_seed(options, seed, base.resolve() / f"seed-{seed}"), options.seeds):
        reports.append(report)
        seed = report["seed"]
        print(record.line(report), flush=True)
        for wrong in report.get("violations") or ([report["error"]] if "error" in report else []):
            print(f"    {wrong}")
        if report.get("violations") or "error" in report:
            print(f"  seed {seed}, again: {again(options, seed)}\n  see {base}/seed-{seed}", flush=True)
    if options.record:
        record.write(REPOSITORY / "docs/reliability.md", options, reports)
    return 1 if any(report.get("violations") or "error" in report for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
