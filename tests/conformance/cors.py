"""Runs OpenStack's CORS tests (test/cors of the sdist) in headless Chromium against Martlet.

The page is served from one origin, the cluster is another; what a browser may see of it is what the tests ask. Their
output lies in target/conformance/cors.txt. The tests named "s3 obj" speak the S3 dialect, with signatures of both versions.
"""

import argparse
import re
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import sdist  # noqa: E402
from conformance.ground import ground  # noqa: E402
from conformance.variants import VARIANTS, Stand  # noqa: E402
from harness.places import REPOSITORY  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.waiting import free_port, until  # noqa: E402

FEWEST = 80  # as many as Swift 2.38.3 has; less, and the page did not run


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="default", choices=VARIANTS)
    parser.add_argument("--make", default="martlet", choices=("martlet", "openstack"))
    options = parser.parse_args()
    out = REPOSITORY / "target/conformance"
    out.mkdir(parents=True, exist_ok=True)
    with ground() as root:
        stand = Stand(VARIANTS[options.variant], options.make, root)
        try:
            stand.start()
            tap = run(stand, out)
        finally:
            stand.stop()
    sys.exit(summarize(tap))


def run(stand, out):
    """main.py's report, in TAP."""
    report, log = out / "cors.txt", out / "cors.log"
    for old in (report, log):
        old.unlink(missing_ok=True)
    script = sdist.unpacked() / "test/cors/main.py"
    process = Process(
        [sys.executable, Path(__file__).with_name("browser.py"), script, "--port", free_port(), "-o", report, "chrome"],
        log, env={"OS_AUTH_URL": stand.system.auth_url, "SE_OFFLINE": "true", "PYTHONPATH": str(sdist.unpacked())})
    try:
        until(lambda: not process.alive(), within=300, every=0.5, what="the end of the CORS tests")
    finally:
        process.kill()  # the browser's whole family
    return report.read_text() if report.exists() else f"not ok - main.py gave no report:\n{process.tail()}"


def summarize(tap):
    """Print what there is to know; the exit status."""
    asked = re.findall(r"^(ok|not ok) \d+ - (.*)\n((?:  .*\n)*)", tap, re.MULTILINE)
    bad = [(name, details) for outcome, name, details in asked if outcome == "not ok" or "# skip" in name]
    for name, details in bad:
        print(f"failed or skipped: {name}\n{details}", end="")
    if len(asked) < FEWEST:
        print(f"only {len(asked)} of {FEWEST} tests ran:\n{tap}")
    print(f"CORS in Chromium: {len(asked) - len(bad)} passed, {len(bad)} did not")
    return 1 if bad or len(asked) < FEWEST else 0


if __name__ == "__main__":
    main()
