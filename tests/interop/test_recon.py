"""`/recon/…` of storage servers: both makes over the same directory say the same, and `swift-recon` finds ours healthy."""

import json
import re
from pathlib import Path

import pytest

from harness.layout import ROLES
from harness.places import openstack_command
from harness.process import run
from harness.wire import exchange, message

CHECKS = ["mem", "load", "async", "replication", "devices", "mounted", "unmounted", "diskusage", "ringmd5", "swiftconfmd5",
          "quarantined", "sockstat", "version", "driveaudit", "time", "sharding", "relinker",
          *(f"{check}/{kind}" for check in ("replication", "auditor", "updater", "expirer", "reconstruction")
            for kind in ("account", "container", "object")),
          # What is no question.
          "", "nonsense", "replication/", "replication/object/x", "reconciler", "mem/x", "memory", "auditor", "async/x/y", "n%20o", "ringmd5?x=y"]
# Of these only the names and kinds of what they say are the same from one moment to the next.
MOVING = {"mem", "mem/x", "load", "sockstat", "time"}


def ask(one, role, path, method="GET"):
    reply = exchange(one.layout.ports[role, 0], message(method, f"/recon/{path}", {}), method=method)
    headers = {name.lower(): value for name, value in reply.headers}
    output = reply.body.decode()
    if reply.status == 200 and method == "GET":
        output = json.loads(output)
    return reply.status, headers["content-type"], output


def shape(output):
    if isinstance(output, dict):
        return {name: shape(value) for name, value in output.items()}
    return type(output).__name__


def ordered(output):
    """Directories are listed in no order."""
    if isinstance(output, list):
        return sorted(map(ordered, output), key=repr)
    return {name: ordered(value) for name, value in output.items()} if isinstance(output, dict) else output


def comparable(path, answer):
    status, kind, output = answer
    if path == "version":
        assert output["version"].startswith("2.38.3")
        output = shape(output)
    return status, kind, shape(output) if path in MOVING else ordered(output)


def mounts():
    """What is mounted on this machine; other tests mount devices of their own meanwhile."""
    return {tuple(line.split()[:2]) for line in Path("/proc/mounts").read_text().splitlines()}


def lasting(answer, standing):
    """An answer to `mounted`, without what was not there all the time."""
    status, kind, output = answer
    return status, kind, [mount for mount in output if (mount["device"], mount["path"]) in standing]


# As daemons of either make leave them.
TIMES = {"replication_time": 0.25, "replication_last": 1795210972.1237426, "replication_stats": {
    "attempted": 4, "failure": 1, "failure_nodes": {"127.0.0.1": {"sdb1": 1}}, "hashmatch": 3, "success": 3, "start": 1795210971.5}}
AUDITS = {"audits_passed": 3, "auditor_pass_completed": 1.5, "audits_since": 1795210971.5, "audits_failed": 0}
SCAN = {"errors": 0, "passes": 4, "quarantined": 0, "bytes_processed": 12, "start_time": 1795210971.25, "audit_time": 0.015625}
FIGURES = {
    "account.recon": {**TIMES, **{f"account_{name}": value for name, value in AUDITS.items()}},
    "container.recon": {**TIMES, **{f"container_{name}": value for name, value in AUDITS.items()}, "container_updater_sweep": 0.0009765625},
    "object.recon": {**TIMES, "object_replication_time": 0.25, "object_replication_last": 1795210972.1237426, "async_pending": 7,
                     "async_pending_last": 1795210972.5, "object_updater_sweep": 0.5, "object_auditor_stats_ALL": {"ü": SCAN},
                     "object_auditor_stats_ZBF": SCAN, "object_expiration_pass": 1.5, "expired_last_pass": 12},
    "drive.recon": {"drive_audit_errors": 3, "/dev/sdb": 1},
}


def season(one):
    """Figures, and something of each kind in quarantine."""
    for name, figures in FIGURES.items():
        (one.root / "run" / name).write_text(json.dumps(figures))
    for place, count in (("objects", 2), ("objects-1", 1), ("containers", 1)):
        for number in range(count):
            (one.srv / "sdb2/quarantined" / place / f"{number:032x}").mkdir(parents=True)
    (one.srv / "no device").write_text("")


def swift_recon(one):
    """What the program says of the cluster, without what differs from one moment to the next."""
    done = run(openstack_command(one.etc, "swift-recon", *ROLES, "--all", "--timeout=30", "--swiftdir", one.etc), timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and "Traceback" not in text, text
    # Sockets and load are those of the whole machine.
    text = re.sub(r"\[(\w*tcp\w*|orphan|time_wait|\d+m_load_avg)\] low.*", r"\1", text)
    text = re.sub(r"Oldest.*|Most recent.*|\[.*?\] |\(.*?ago\)", "", text)
    # Kinds of servers come in no order.
    return sorted(re.sub(r"\d+\.\d+\S*|\d\d+", "N", text).splitlines())


@pytest.mark.timeout(400)
def test_both_say_the_same_and_swift_recon_finds_ours_healthy(cluster, ours):
    one = cluster(dict.fromkeys(("proxy", *ROLES), "openstack"))
    season(one)
    answers, output, standing = {}, {}, mounts()
    for kind in ("openstack", ours):
        if kind != "openstack":
            for role in ROLES:
                one.stop_service(role)
                one.start_service(role, kind=kind)
        for role in ROLES:
            for path in CHECKS:
                answers.setdefault((role, path), []).append(comparable(path, ask(one, role, path)))
        answers.setdefault("verbs", []).append([ask(one, "object", "devices", verb)[:2] for verb in ("HEAD", "POST", "OPTIONS")])
        output[kind] = swift_recon(one)
        # Figures that cannot be read are null.
        (one.root / "run/object.recon").write_text("{ half")
        (one.root / "run/account.recon").unlink()
        paths = ("async", "expirer/object", "replication/account", "auditor/account")
        answers.setdefault("unreadable", []).append([ask(one, "object", path) for path in paths])
        for name in ("object.recon", "account.recon"):
            (one.root / "run" / name).write_text(json.dumps(FIGURES[name]))
    standing &= mounts()
    for role in ROLES:
        answers[role, "mounted"] = [lasting(answer, standing) for answer in answers[role, "mounted"]]
        assert len(answers[role, "mounted"][0][2]) >= len(standing) > 0
    wrong = {asked: both for asked, both in answers.items() if both[0] != both[1]}
    assert not wrong, wrong
    assert output["openstack"] == output[ours], output
    healthy = [line for line in output[ours] if "hosts matched, 0 error" in line]
    assert len(healthy) >= 6 and all(line.startswith("1/1") for line in healthy), output[ours]
