"""Runs OpenStack Swift's functional tests, unmodified, against Martlet. See README.md beside it.

Each worker has a cluster of its own, because the tests share their accounts and empty them; a file of the suite is
what a worker takes next, the longest first. Results lie in target/conformance/VARIANT: a JUnit file and the output of
each file of the suite, the cluster's log, and results.json.
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import page, results, sdist, test_conf  # noqa: E402
from conformance.ground import ground  # noqa: E402
from conformance.variants import VARIANTS, Stand  # noqa: E402
from harness import keystone  # noqa: E402

HERE = Path(__file__).resolve().parent
LONGEST_FIRST = ("test_object_versioning.py", "test_slo.py", "test_symlink.py", "test_versioned_writes.py",
                 "tests.py::TestFile", "tests.py::TestFileUTF8", "test_object.py", "test_access_control.py",
                 "s3api/test_input_errors.py", "s3api/test_mpu.py", "functional/s3api/test_multi_upload.py",
                 "tests.py::TestAccount", "tests.py::TestAccountUTF8", "tests.py::TestContainer",
                 "tests.py::TestContainerUTF8")
S3_ACL_FILES = ("functional/s3api/test_acl.py", "functional/s3api/test_bucket.py", "functional/s3api/test_xxe_injection.py",
                "s3api/test_service.py")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="files of the suite (test_slo.py, test_slo.py::TestSlo, s3api/test_mpu.py); default: all")
    parser.add_argument("-k", dest="keyword", help="pytest's -k")
    parser.add_argument("-x", dest="first", action="store_true", help="stop a file at its first failure")
    parser.add_argument("--variant", action="append", choices=[*VARIANTS, "all"],
                        help="which cluster; several times for several. Default: default, and for the whole suite policies and "
                             "s3_acl (with a part of the suite), which together skip only what wants Keystone")
    parser.add_argument("--make", default="martlet", choices=("martlet", "openstack"), help="whose servers")
    parser.add_argument("--workers", type=int, default=4, help="clusters at the same time")
    parser.add_argument("--write", action="store_true", help="with all: write docs/reference/conformance.md")
    return parser.parse_args()


def pytest_command(options, test, junit):
    more = (["-k", options.keyword] if options.keyword else []) + (["-x"] if options.first else [])
    return [sys.executable, "-m", "pytest", "-c", HERE / "pytest.ini", "--rootdir", sdist.unpacked(),
            f"--junitxml={junit}", *more, sdist.place(test)]


def run_test(options, test, conf, out):
    """One file of the suite (or a part of one) against the cluster of `conf`; its cases."""
    file, label = test.partition("::")[0], test.replace("::", "-").replace("/", "-")
    junit, output = out / f"{label}.xml", out / f"{label}.txt"
    environment = {**os.environ, "SWIFT_TEST_CONFIG_FILE": str(conf), "PYTHONPATH": str(sdist.unpacked()),
                   "SWIFT_TEST_IN_PROCESS": "0"}
    with open(output, "w") as sink:
        done = subprocess.run([str(part) for part in pytest_command(options, test, junit)], cwd=sdist.unpacked(),
                              env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT)
    if done.returncode not in (0, 1, 5) or not junit.exists():  # 1: tests failed, 5: the keyword chose none
        return [results.Case(file, "the run itself", "error", f"pytest ended with {done.returncode}: {output}", 0)]
    return results.read(junit, file)


class Worker(threading.Thread):
    """Takes tests from the queue and runs them against a cluster of its own."""

    def __init__(self, options, waiting, out, root):
        super().__init__(daemon=True)
        self.options, self.waiting, self.out, self.root = options, waiting, out, root
        self.stand = Stand(VARIANTS[options.variant], options.make, root)
        self.cases, self.error = [], None

    def run(self):
        try:
            self.stand.start()
            conf = test_conf.write(self.root / "test.conf", self.stand.test_conf())
            while True:
                test = self.waiting.get_nowait()
                found = run_test(self.options, test, conf, self.out)
                self.cases += found
                print(results.line(test, found), flush=True)
        except queue.Empty:
            pass
        except Exception as error:  # raised by the main thread, which fails the run
            self.error = error
        finally:
            self.stand.stop()


def run_variant(options, out):
    """All chosen tests against the variant's clusters; the cases."""
    tests = options.tests or VARIANTS[options.variant].tests()
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    waiting = queue.Queue()
    for test in sorted(tests, key=lambda test: rank.get(test, len(rank))):
        waiting.put(test)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with ground() as root:
        workers = [Worker(options, waiting, out, make_root(root, number))
                   for number in range(min(options.workers, len(tests)))]
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            for worker in workers:
                worker.stand.stop()
            for log in Path(root).glob("*/**/*.log"):
                shutil.copy(log, out / f"{log.parent.name}-{log.name}")
    for worker in workers:
        if worker.error:
            raise worker.error
    return [case for worker in workers for case in worker.cases]


def make_root(root, number):
    path = Path(root) / f"worker{number}"
    path.mkdir()
    return path


def report(cases, out):
    """Print what there is to know, keep it in results.json; the exit status."""
    (out / "results.json").write_text(json.dumps([asdict(case) for case in cases], indent=1))
    bad = [case for case in cases if case.outcome in ("failed", "error")]
    print()
    skips = Counter((case.file, case.reason) for case in cases if case.outcome == "skipped")
    for (file, reason), count in sorted(skips.items()):
        print(f"skipped  {file}: {count} × {reason}")
    print(f"\n{results.summary(cases)}\n\nMore in {out}")
    for case in bad:  # last, as the end of a long output is what is read
        print(f"{case.outcome:8} {case.file}::{case.name}: {case.reason.splitlines()[0] if case.reason else ''}")
    for file in sorted({case.file for case in bad}):
        print_tracebacks(out, file)
    return 1 if bad or not cases else 0


def print_tracebacks(out, file):
    """What pytest says of the failures in a file of the suite."""
    for output in sorted(out.glob(f"{file.replace('/', '-')}*.txt")):
        _, heading, rest = output.read_text(errors="replace").partition("= FAILURES =")
        if heading:
            print(f"\n{output.name}:\n{rest[-8000:]}")


def run_all(options):
    """Every variant in a process of its own, then the page; the exit status."""
    status = run_each(VARIANTS, ["--workers", str(options.workers)])
    return status or page.check_or_write(write=options.write)


def run_each(names, arguments):
    """These variants, each in a process of its own; the exit status."""
    status = 0
    for name in names:
        print(f"\n=== {name}: {VARIANTS[name].about}", flush=True)
        status = subprocess.run([sys.executable, __file__, "--variant", name, *arguments]).returncode or status
    return status


def run_usual(options, others):
    """What `make conformance` asks: two clusters, and one with S3's own ACLs those files that differ with them."""
    status = run_each(["default", "policies"], others)
    return status if options.keyword else run_each(["s3_acl"], [*others, *S3_ACL_FILES]) or status


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = arguments()
    wanted = options.variant or ["default"]
    if "all" in wanted:
        sys.exit(run_all(options))
    if not (options.variant or options.tests):
        sys.exit(run_usual(options, sys.argv[1:]))
    if len(wanted) > 1:
        others = [word for word in sys.argv[1:] if word not in ("--variant", *wanted)]
        sys.exit(run_each(wanted, others))
    options.variant = wanted[0]
    if VARIANTS[options.variant].keystone and Path(sys.executable) != keystone.python():
        os.execv(keystone.python(), [str(keystone.python()), *sys.argv])  # it has the packages that speak to Keystone
    make = "" if options.make == "martlet" else f"-{options.make}"
    out = page.RESULTS / f"{options.variant}{make}"
    sdist.unpacked()
    sys.exit(report(run_variant(options, out), out))


if __name__ == "__main__":
    main()
