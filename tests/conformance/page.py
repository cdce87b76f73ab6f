"""docs/reference/conformance.md: what a whole run gave, and why what is still skipped cannot be asked.

Comes in: the results.json of every variant. Always holds: no time or date on the page, so that two runs that gave the
same give the same page; the section on the probe tests stays as it is; a skip that is not explained here fails the run.
"""

import difflib
import json
import re
from collections import Counter, defaultdict

from conformance.results import OUTCOMES, Case
from conformance.variants import VARIANTS
from harness.places import REPOSITORY

PAGE = REPOSITORY / "docs/reference/conformance.md"
RESULTS = REPOSITORY / "target/conformance"
PROBE = "## Probe tests"  # from there on the page is what tests/probe writes

# Why a test is skipped that some other variant runs: its reason as pytest gives it → what it wants.
ELSEWHERE = {
    r"AUTH VERSION 3 SPECIFIC TEST": "asks Keystone's version 3",
    r"keystoneclient is not available": "asks Keystone's version 3",
    r"Allow account management is enabled": "wants `allow_account_management` off",
    r"Multiple policies not enabled|Cross policy test requires multiple policies": "wants two storage policies",
    r"Requires account ACLs": "account ACLs are TempAuth's; Keystone has none",
    r"allow_open_expired is disabled": "wants `allow_open_expired` on",
    r"allow_open_expired is enabled": "wants `allow_open_expired` off",
    r"Absolute URL test requires https": "wants TLS",
    r"s3_acl_tests_enabled is false|s3_acl must be enabled": "wants S3's own ACLs (`s3_acl`)",
}

# Why a test is skipped in every variant: (test, reason) → why no configuration avoids it.
NOWHERE = (
    (r"TestStaticWebUTF8::.*", r"Can't remap UTF8 containers",
     "a domain name cannot carry the container's name; the test skips itself whatever the cluster"),
    (r".*", r"in-process functests required for predictable client_timeout",
     "the test wants OpenStack's servers in its own process"),
    (r".*", r"x-amz-server-side-encryption is not supported", "OpenStack's s3api refuses it; Martlet's own tests are in `tests/clients/test_boto3_encryption.py`"),
)


def load(variants=VARIANTS):
    """Variant → cases, of the last run of each."""
    return {name: [Case(**case) for case in json.loads((RESULTS / name / "results.json").read_text())]
            for name in variants}


def check_or_write(*, write):
    """Write the page, or hold the committed one against what the last runs gave; the exit status."""
    cases = load()
    unknown, given = unexplained(cases), text(cases)
    print("\n".join(unknown))
    committed = PAGE.read_text() if PAGE.exists() else ""
    if write:
        PAGE.write_text(given)
    elif given != committed:
        print("\n".join(difflib.unified_diff(committed.splitlines(), given.splitlines(), "committed", "this run")))
        print(f"{PAGE} is not what the run gave. If that is right: tests/conformance/run.py --variant all --write")
        return 1
    return 1 if unknown else 0


def text(cases):
    """The page."""
    lines = [
        "# Conformance", "",
        "OpenStack Swift's own functional tests (`test/functional` and `test/s3api` of the `swift` 2.38.3 source distribution,",
        "unmodified), run by `make conformance-all`; this page is what the run wrote. How to run a part:",
        "[tests/conformance](../../tests/conformance/README.md).", "",
        "| variant | is | " + " | ".join(OUTCOMES) + " |", "|---|---|" + "---:|" * len(OUTCOMES)]
    for name, variant in VARIANTS.items():
        counts = Counter(case.outcome for case in cases[name])
        lines.append(f"| `{name}` | {variant.about} | " + " | ".join(str(counts[outcome]) for outcome in OUTCOMES) + " |")
    return "\n".join([*lines, "", *nowhere(cases), "", *elsewhere(cases), "", *probes()])


def probes():
    """The section on the probe tests, as it stands."""
    _, title, section = (PAGE.read_text() if PAGE.exists() else "").partition(PROBE)
    return [title + section] if title else []


def nowhere(cases):
    """Tests that no variant runs."""
    skips = runs_nowhere(cases)
    lines = ["## Skipped in every variant", ""]
    if not skips:
        return [*lines, "None: every test of the suite runs in at least one variant."]
    lines += ["| test | reason given | why no configuration avoids it |", "|---|---|---|"]
    return lines + [f"| {file} {name} | {reason} | {explain(name, reason) or '**not explained**'} |"
                    for (file, name), reason in sorted(skips.items())]


def elsewhere(cases):
    """Tests that one variant skips and another runs."""
    never = runs_nowhere(cases)
    lines = ["## Skipped in one variant, run in another", "",
             "| variant | tests | reason given | which is because the test | run in |", "|---|---:|---|---|---|"]
    ran = ran_in(cases)
    for variant in VARIANTS:
        groups = defaultdict(list)
        for case in cases[variant]:
            if case.outcome == "skipped" and key(case) not in never:
                groups[case.reason].append(key(case))
        for reason, tests in sorted(groups.items()):
            others = [name for name in VARIANTS if all(test in ran[name] for test in tests)]
            wants = wanted(reason) or "**not explained**"
            lines.append(f"| `{variant}` | {len(tests)} | {reason} | {wants} | {', '.join(f'`{o}`' for o in others)} |")
    return lines


def unexplained(cases):
    """Skips this module has no words for, a line for each variant, file and reason."""
    never = runs_nowhere(cases)
    counts = Counter((variant, case.file, case.reason)
                     for variant, mine in cases.items() for case in mine if case.outcome == "skipped"
                     if not (explain(case.name, case.reason) if key(case) in never else wanted(case.reason)))
    return [f"unexplained skips in {variant}, {file}: {count} × {reason}"
            for (variant, file, reason), count in sorted(counts.items())]


def key(case):
    return case.file, case.name


def ran_in(cases):
    return {variant: {key(case) for case in mine if case.outcome != "skipped"} for variant, mine in cases.items()}


def runs_nowhere(cases):
    ran = set().union(*ran_in(cases).values())
    return {key(case): case.reason for mine in cases.values() for case in mine if key(case) not in ran}


def wanted(reason):
    return next((wants for pattern, wants in ELSEWHERE.items() if re.fullmatch(pattern, reason)), None)


def explain(name, reason):
    return next((why for test, given, why in NOWHERE if re.fullmatch(test, name) and re.fullmatch(given, reason)), None)
