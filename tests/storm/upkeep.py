"""Upkeep until nothing changes: passes of every daemon on every node, compared by what lies on the drives after them."""

import hashlib
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

from harness.process import Process
from storm.nodes import ALL_DAEMONS

# What a pass may rewrite without changing anything.
RESTLESS = {"hashes.pkl", "hashes.invalid", ".lock", ".lock-replication", "auditor_status_ALL.json", "auditor_status_ZBF.json"}
ORDER = ("object-auditor", "container-auditor", "account-auditor", "object-replicator", "container-replicator", "account-replicator",
         "object-updater", "object-expirer", "container-updater", "account-reaper")
PASS = 150.0
assert set(ORDER) == set(ALL_DAEMONS)


def until_calm(storm, most=12):
    """Circles of passes until two in a row leave the same; lines saying what was wrong with them."""
    before, wrong = state(storm), []
    for number in range(1, most + 1):
        wrong += run_passes(storm)
        after = state(storm)
        if after == before and number > 1:
            storm.say(f"calm after {number} rounds of upkeep passes")
            return wrong
        changed, before = before.keys() ^ after.keys() | {key for key in before.keys() & after.keys() if before[key] != after[key]}, after
        storm.say(f"pass {number}: {len(changed)} files changed")
    return [*wrong, f"upkeep did not come to rest in {most} rounds of passes; the last changed {sorted(changed)[:5]}"]


def run_passes(storm, names=ORDER, besides=None, conf="server"):
    """One pass of each daemon on each node, the nodes at the same time."""
    wrong = []

    def walk(node):
        for name in names:
            if storm.nodes.kinds[name]:
                wrong.extend(run_pass(storm, node, name, conf))
    walks = [threading.Thread(target=walk, args=(node,)) for node in storm.layout.nodes if node != besides]
    for thread in walks:
        thread.start()
    for thread in walks:
        thread.join()
    return wrong


def run_pass(storm, node, name, conf):
    process = Process(storm.nodes.command(node, name, "once", conf=conf), storm.logs / f"{node}-{name}-once.log", env=storm.nodes.environment(node, name))
    try:
        status = process.child.wait(PASS)
    except subprocess.TimeoutExpired:
        process.kill()
        return [f"a pass of {name} on {node} did not end in {PASS:.0f} s: {process.tail(600)!r}"]
    process.kill()
    return [f"a pass of {name} on {node} ended with {status}: {process.tail(600)!r}"] if status else []


def state(storm):
    """File → what it holds, in as few words as show a change."""
    found = {}
    for node in storm.layout.nodes:
        for path in storm.files(node):
            if path.suffix == ".db" and "quarantined" not in path.parts:
                found[str(path)] = rows(path)
            elif path.name not in RESTLESS and ".db" not in path.name:
                found[str(path)] = path.stat().st_size if path.exists() else None
    return found


def rows(path):
    """What a database holds, as one short word; for one that does not open, the error."""
    tables = {"containers": "object", "accounts": "container"}
    table = next((name for kind, name in tables.items() if kind in Path(path).parts), None)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as connection:
            columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})") if column[1] != "ROWID"]
            lines = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY name").fetchall()
        return hashlib.md5(repr(lines).encode()).hexdigest()
    except sqlite3.Error as error:
        return repr(error)
