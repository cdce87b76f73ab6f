"""What storms leave behind: a line each on the terminal, and docs/reliability.md as a summary."""

from collections import Counter

PAGE = """# Reliability

Written by `make storm ARGS=--record`. A storm is a cluster of four nodes of two drives each, two gateways and memcached, every
server and every daemon a process of its own, each node on its own network, clock and file systems. Eight users put, describe,
read, list and delete objects while faults strike, drawn from a seed. Then everything heals, upkeep runs until
nothing changes, and all of this must hold:

- every acknowledged write reads back whole and newest; what was deleted stays deleted; no reader ever got bytes that were never stored;
- listings and the counters of containers and account equal the objects;
- every replica is on each of its three primaries and equal to the others in bytes and metadata, every database in rows;
- no data that was never stored, no stray file, no pending update, no handoff, no quarantine where nothing was damaged;
- no program ended by itself, none failed to end on SIGTERM, no pass hung.

## Storms

    {command}

| seeds | rounds | s of load each | held | did not hold | changes acknowledged | uncertain | reads | faults |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| {first} to {last} | {rounds} | {seconds:g} | {held} | {failed} | {acknowledged:,} | {uncertain:,} | {reads:,} | {faults:,} |

{failures}`.venv/bin/python tests/storm/run.py --seed N{more}` replays one.

## Faults

How often each struck. `tests/storm/faults.py` says what each does.

| fault | times |
|---|---:|
{met}
"""


def line(report):
    """A storm in a line."""
    if "error" in report:
        return f"seed {report['seed']}: the storm itself failed"
    outcome = f"{len(report['violations'])} violations" if report["violations"] else "held"
    missing = f", without {', '.join(report['missing'])}" if report["missing"] else ""
    return (f"seed {report['seed']}: {outcome}: {report['acknowledged']} changes acknowledged, {report['uncertain']} uncertain, {report['reads']} reads, "
            f"{sum(report['met'].values())} faults, {report['seconds']} s{missing}")


def write(path, options, reports):
    met = Counter()
    for report in reports:
        met.update(report.get("met", {}))
    ran = [report for report in reports if "error" not in report]
    held = [report for report in ran if not report["violations"]]
    failures = [failure(report) for report in reports if report not in held]
    more = f" --rounds {options.rounds} --seconds {options.seconds:g}" + (f" --fill {options.fill}" if options.fill else "")
    first, last = reports[0]["seed"], reports[-1]["seed"]
    path.write_text(PAGE.format(
        command=f".venv/bin/python tests/storm/run.py --seeds {first}-{last}{more} --record", more=more,
        first=first, last=last, rounds=options.rounds, seconds=options.seconds, held=len(held), failed=len(failures),
        **{name: sum(report[name] for report in ran) for name in ("acknowledged", "uncertain", "reads")}, faults=sum(met.values()),
        failures="Did not hold:\n\n" + "\n".join(failures) + "\n\n" if failures else "",
        met="\n".join(f"| {name} | {times} |" for name, times in met.most_common())))


def failure(report):
    """A storm that did not hold, as an item of a list."""
    if "error" in report:
        return f"- seed {report['seed']}: the storm itself failed"
    return f"- seed {report['seed']}: {len(report['violations'])} violations: {report['violations'][0][:160]}"
