"""The section of docs/reference/conformance.md on the probe tests: what whole runs of both makes gave.

Comes in: the JUnit files of both makes. Always holds: no time on the page, so that runs that gave the same write the
same; the rest of the page, which the functional tests' run writes, stays as it is.
"""

import json
from collections import Counter

from conformance import results
from conformance.results import OUTCOMES
from harness.places import REPOSITORY
from probe.later import LATER, reason

PAGE = REPOSITORY / "docs/reference/conformance.md"
RESULTS = REPOSITORY / "target/probe"
TITLE = "## Probe tests"

INTRODUCTION = """
OpenStack Swift's own multi-server failure tests (`test/probe` of the `swift` 2.38.3 source distribution, unmodified), run
by `make probe`; this section is what the runs wrote. They start, stop and break the daemons of four nodes through
OpenStack's `swift-init`, on the set-up of Swift's documentation (`doc/saio`), without its erasure-coded policy. First with
OpenStack's own programs, then with links to Martlet in their place. The figures of a file are those of the last run of the
whole of it; a dash stands where there was none. How to run a part:
[tests/probe](../../tests/probe/README.md).
"""


def load(make):
    """The cases of the make's last runs, and the daemons it had none of."""
    folder = RESULTS / make
    cases = [case for junit in sorted(folder.glob("test_*.py.xml"))
             for case in results.read(junit, junit.name.removesuffix(".xml"))]
    missing = folder / "missing.json"
    return cases, json.loads(missing.read_text()) if missing.exists() else []


def write():
    """Put the section on the page, in place of the one that is there."""
    before = PAGE.read_text().partition(TITLE)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section()}")


def section():
    """The section."""
    theirs, _ = load("openstack")
    ours, missing = load("martlet")
    files = sorted({case.file for case in theirs + ours} | set(LATER))
    lines = [TITLE, INTRODUCTION, "| file | OpenStack: " + " | ".join(OUTCOMES) + " | Martlet: " + " | ".join(OUTCOMES) + " |",
             "|---|" + "---:|" * (2 * len(OUTCOMES))]
    for file in files:
        lines.append(f"| {file} | {counted(theirs, file)} | {counted(ours, file)} |")
    lines += ["", *reasons(theirs, ours)]
    if missing:
        lines += ["", "Daemons Martlet does not have yet: " + ", ".join(f"`{name}`" for name in missing) + "."]
    return "\n".join([*lines, ""])


def counted(cases, file):
    counts = Counter(case.outcome for case in cases if case.file == file)
    return " | ".join(str(counts[outcome]) if counts else "–" for outcome in OUTCOMES)


def reasons(theirs, ours):
    """Why what does not pass does not."""
    lines = ["| file | tests | make | do not pass because |", "|---|---|---|---|"]
    lines += [f"| {file} | all | both | not run: {feature} comes later |" for file, feature in sorted(LATER.items())]
    rows = Counter()
    for make, cases in (("OpenStack", theirs), ("Martlet", ours)):
        for case in cases:
            if case.outcome != "passed":
                label = case.name.partition("::")[0] if case.outcome == "skipped" else case.name
                rows[case.file, label, make, reason(case) or f"**not explained**: {first_line(case.reason)}"] += 1
    return lines + [f"| {file} | {label} | {make} | {why} |" for file, label, make, why in sorted(rows)]


def first_line(text):
    return (text.splitlines() or [""])[0][:120].replace("|", "/")
