"""Runs OpenStack Swift's probe tests, unmodified: they start, stop and break a cluster of four nodes through `swift-init`.

Each file of the suite gets a machine of its own (host.py). With `--make martlet` the daemons on its PATH are links to
Martlet; a daemon Martlet does not have fails to start. `--fill openstack` puts OpenStack's in its place, to see what
the others do beside it. Results lie in target/probe/MAKE: a JUnit file, pytest's output and the daemons' log of each
file of the suite, of the last run that ran the whole of it; what ran a part of files lies in target/probe/part.
"""

import argparse
import json
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from swift.common.manager import ALL_SERVERS  # noqa: E402

from conformance import results, sdist  # noqa: E402
from harness import places  # noqa: E402
from probe import host, page  # noqa: E402
from probe.later import LATER  # noqa: E402

HERE = Path(__file__).resolve().parent
LONGEST_FIRST = ("test_sharder.py", "test_container_sync.py", "test_object_expirer.py",
                 "test_object_metadata_replication.py", "test_signals.py", "test_object_async_update.py")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="files of the suite (test_signals.py, test_signals.py::TestX); "
                                                 "all that Martlet has the features for unless given")
    parser.add_argument("-k", dest="keyword", help="pytest's -k")
    parser.add_argument("-x", dest="first", action="store_true", help="stop a file at its first failure")
    parser.add_argument("--make", default="martlet", choices=("martlet", "openstack"), help="whose daemons")
    parser.add_argument("--fill", choices=("openstack",), help="whose daemons where Martlet has none")
    parser.add_argument("--only", help="daemons Martlet is to do, the others OpenStack's: object-server,object-updater")
    parser.add_argument("--erasure", action="store_true", help="with the erasure-coded policy of the documentation")
    parser.add_argument("--workers", type=int, default=2, help="machines at the same time")
    parser.add_argument("--write", action="store_true", help="write the section of docs/reference/conformance.md")
    return parser.parse_args()


def links(options):
    """Daemon → the program that is to be it; None where there is none."""
    beside = Path(sys.executable).parent
    theirs = {f"swift-{name}": str(beside / f"swift-{name}") for name in [*ALL_SERVERS, "object-relinker"]}
    if options.make == "openstack":
        return theirs
    fill = options.fill or options.only
    wanted = {f"swift-{name}" for name in options.only.split(",")} if options.only else set(theirs)
    return {link: str(places.martlet().resolve()) if link in wanted and has(link) else (program if fill else None)
            for link, program in theirs.items()}


def has(link):
    """Whether Martlet has that daemon."""
    command = [places.martlet(), link.removeprefix("swift-"), "--help"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def run_file(options, test, programs, out, rings):
    """One file of the suite on a new machine; its cases."""
    file, label = test.partition("::")[0], test.replace("::", "-")
    junit = out / f"{label}.xml"
    for old in out.glob(f"{label}*"):
        old.unlink()
    more = (["-k", options.keyword] if options.keyword else []) + (["-x"] if options.first else [])
    with tempfile.TemporaryDirectory(prefix="probe-") as root:
        plan = {"root": root, "sdist": str(sdist.unpacked()), "links": programs, "erasure": options.erasure,
                "rings": rings,
                "command": [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir",
                            str(sdist.unpacked()), f"--junitxml={junit}", *more, f"test/probe/{test}"]}
        Path(root, "plan.json").write_text(json.dumps(plan))
        with open(out / f"{label}.txt", "w") as sink:
            done = subprocess.run(host.enter(f"{root}/plan.json"), stdin=subprocess.DEVNULL, stdout=sink,
                                  stderr=subprocess.STDOUT)
        for log in Path(root).glob("*.log"):
            shutil.copy(log, out / f"{label}-{log.name}")
    if done.returncode not in (0, 1, 5) or not junit.exists():  # 1: tests failed, 5: the keyword chose none
        return [results.Case(file, "the run itself", "error", f"ended with {done.returncode}: {out / label}.txt", 0)]
    return results.read(junit, file)


def work(options, waiting, programs, out, rings, cases):
    """Takes files from the queue until there is none."""
    while True:
        try:
            test = waiting.get_nowait()
        except queue.Empty:
            return
        begun = time.monotonic()
        try:
            found = run_file(options, test, programs, out, rings)
        except Exception as error:  # the run goes on with the other files, and fails
            found = [results.Case(test.partition("::")[0], "the run itself", "error", repr(error), 0)]
        cases += found
        print(results.line(test, found), f"{time.monotonic() - begun:9.0f}", flush=True)


def place(options):
    """Where the results belong."""
    if options.keyword or options.first or any("::" in test for test in options.tests):
        return "part"
    return f"{options.make}-mixed" if options.fill or options.only else options.make


def chosen(options):
    """The files to run, the longest first."""
    files = options.tests or [path.name for path in (sdist.unpacked() / "test/probe").glob("test_*.py")
                              if path.name not in LATER]
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    return sorted(files, key=lambda test: (rank.get(test, len(rank)), test))


def report(cases, missing, out):
    """Print what there is to know; whether all is well."""
    (out / "missing.json").write_text(json.dumps(missing))
    bad = [case for case in cases if case.outcome in ("failed", "error")]
    print()
    for case in bad:
        print(f"{case.outcome:8} {case.file}::{case.name}: {case.reason.splitlines()[0] if case.reason else ''}")
    for case in cases:
        if case.outcome == "skipped":
            print(f"skipped  {case.file}::{case.name}: {case.reason}")
    if missing:
        print(f"missing  {', '.join(missing)}")
    print(f"\n{results.summary(cases)}\n\nMore in {out}")
    return bool(cases) and not bad


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = arguments()
    programs = links(options)
    missing = [name.removeprefix("swift-") for name, program in programs.items() if not program]
    out = page.RESULTS / place(options)
    out.mkdir(parents=True, exist_ok=True)
    waiting, cases = queue.Queue(), []
    for test in chosen(options):
        waiting.put(test)
    with tempfile.TemporaryDirectory(prefix="probe-rings-") as rings:
        workers = [threading.Thread(target=work, args=(options, waiting, programs, out, rings, cases), daemon=True)
                   for _ in range(min(options.workers, waiting.qsize()))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    well = report(cases, missing, out)
    if options.write:
        page.write()
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
