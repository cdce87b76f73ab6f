"""What storms leave behind: a line each, and docs/reliability.md."""

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

`.venv/bin/python tests/storm/run.py --seed N{more}` replays a storm.

## Storms

{count} seeds, {rounds} rounds of {seconds:g} s of load each: {held} held, {acknowledged} changes acknowledged, {reads} reads.

| seed | result | acknowledged | uncertain | reads | seconds |
|---:|---|---:|---:|---:|---:|
{lines}

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
    lines = []
    for report in reports:
        if "error" in report:
            lines.append(f"| {report['seed']} | the storm itself failed | | | | |")
            continue
        outcome = "held" if not report["violations"] else f"**{len(report['violations'])} violations**: " + report["violations"][0].replace("|", "\\|")[:160]
        lines.append(f"| {report['seed']} | {outcome} | {report['acknowledged']} | {report['uncertain']} | {report['reads']} | {report['seconds']} |")
    ran = [report for report in reports if "error" not in report]
    path.write_text(PAGE.format(
        more=f" --rounds {options.rounds} --seconds {options.seconds:g}" + (f" --fill {options.fill}" if options.fill else ""),
        count=len(reports), rounds=options.rounds, seconds=options.seconds, held=sum(not report["violations"] for report in ran),
        acknowledged=sum(report["acknowledged"] for report in ran), reads=sum(report["reads"] for report in ran),
        lines="\n".join(lines), met="\n".join(f"| {name} | {times} |" for name, times in met.most_common())))
