"""`martlet recon` beside `swift-recon`: the same lines of the same servers, fake servers and real ones of both makes."""

import contextlib
import difflib
import hashlib
import json
import re
import socket
import threading
import time

import pytest

from harness.cluster import Cluster
from harness.layout import ROLES, Layout
from harness.places import martlet, openstack_command
from harness.process import run
from harness.fake_recon import FakeReconServer, write_rings

SCAN = {"errors": 1, "passes": 4, "quarantined": 2, "bytes_processed": 120000, "start_time": 1.0, "audit_time": 2.5}


def both(etc, *arguments, all_answer=False):
    """What both programs print and how they end, OpenStack's first. Where not `all_answer`, the hosts that are "ok" are not
    compared: OpenStack's counts those that do not answer."""
    theirs = run(openstack_command(etc, "swift-recon", *arguments, "--swiftdir", etc), timeout=240, check=False)
    ours = run([martlet(), "recon", *arguments, "--swiftdir", etc], timeout=240, check=False)
    assert "Traceback" not in theirs.stderr, theirs.stderr
    assert not ours.stderr, ours.stderr
    texts = [done.stdout if all_answer else re.sub(r"^\d+/(\d+) hosts ok, \d+ error", r"N/\1 hosts ok, N error", done.stdout, flags=re.M) for done in (theirs, ours)]
    return [(done.returncode, comparable(text)) for done, text in zip((theirs, ours), texts, strict=True)]


def comparable(text):
    """Without what differs from one moment to the next; hosts come in any order within a check of OpenStack's."""
    text = re.sub(r"^\[\d{4}-.*?\] ", "[now] ", text, flags=re.M)
    text = re.sub(r"current time is .*, but remote is .*, differs", "current time is now, but remote is then, differs", text)
    text = re.sub(r"differs by [\d.]+", lambda found: f"differs by {round(float(found.group().split()[-1]), -1)}", text)
    text = re.sub(r"\((-?\d+) seconds ago\)", "(seconds ago)", text)
    text = re.sub(r"(recon/time: )[\d.]+", r"\1N", text)
    parts = [sorted(part.splitlines()) for part in text.removesuffix("=" * 79 + "\n").split("=" * 79 + "\n")]
    kinds, begins = [], [at for at, part in enumerate(parts) if part and part[0].startswith("--> Starting")]
    for begin, end in zip(begins, [*begins[1:], None]):
        kinds.append(parts[begin:end])
    kinds.sort()  # these come in any order, too
    return [line for kind in kinds or [parts] for part in kind for line in [*part, "=" * 9]]


def same(etc, *arguments, **how):
    """What ours said. Where both differ they are asked again: a minute may have passed in between that changes "2 minutes ago"."""
    for _ in range(3):
        theirs, ours = both(etc, *arguments, **how)
        assert theirs[0] == ours[0], (arguments, theirs, ours)
        differing = [line for line in difflib.ndiff(theirs[1], ours[1]) if not line.startswith(" ")]
        if not differing:
            break
    assert not differing, "\n".join([f"{arguments}: - only OpenStack's, + only ours", *differing])
    return ours


def full(k, now):
    """Everything that may be asked of server `k`."""
    stats = {"attempted": 4 + k, "failure": 1, "success": 3, "hashmatch": 3, "start": now - 100, "failure_nodes": {"127.0.0.1": {"it's": 1}}}
    scan = {**SCAN, "errors": k, "bytes_processed": 120000 + k * 7777, "audit_time": 0.015625 + k}
    audits = {"audits_passed": 3 * k, "auditor_pass_completed": 1.5 + k, "audits_since": now - 1000 * k, "audits_failed": k}
    replicated = {"replication_time": 0.25 + k, "replication_last": now - 90 - 4000 * k, "replication_stats": stats}
    return {
        "/recon/async": {"async_pending": 7 * k, "async_pending_last": 1.5},
        "/recon/replication/object": {**replicated, "object_replication_time": 0.25 + k * 3, "object_replication_last": now - 100 * k - 5},
        "/recon/replication/account": replicated, "/recon/replication/container": replicated,
        "/recon/reconstruction/object": {"object_reconstruction_last": now - 100_000 * k - 90, "object_reconstruction_time": 1.5 + k},
        **{f"/recon/auditor/{kind}": {f"{kind}_{name}": value for name, value in audits.items()} for kind in ("account", "container")},
        "/recon/auditor/object": {"object_auditor_stats_ALL": {"sda": scan, "sdb": SCAN} if k == 1 else scan, "object_auditor_stats_ZBF": scan},
        "/recon/updater/container": {"container_updater_sweep": 0.5 + k},
        "/recon/updater/object": {"object_updater_sweep": 0.75 + k},
        "/recon/expirer/object": {"object_expiration_pass": 1.5 + k, "expired_last_pass": 12 * k},
        "/recon/sharding": {"sharding_stats": {"attempted": 3, "failure": k, "success": 2, "sharding": {}}, "sharding_time": 3.5, "sharding_last": now - 90 * (k + 1)},
        "/recon/unmounted": [{"device": f"sd{k}", "mounted": False}, {"device": "sdx", "mounted": "[Errno 5] I/O"}] if k else [],
        "/recon/diskusage": [{"device": f"sd{k}", "mounted": True, "size": 1000000 * (k + 1), "used": 123456 + 11111 * k, "avail": 876544},
                             {"device": "sdx", "mounted": False, "size": "", "used": "", "avail": ""},
                             {"device": "sdy", "mounted": "[Errno 5]", "size": "", "used": "", "avail": ""},
                             {"device": "sdz", "mounted": True, "size": 500000000000, "used": 450000000000 + k * 10**10, "avail": 50000000000 - k * 10**10}],
        "/recon/load": {"1m": 0.5 + k, "5m": 1.25, "15m": -2.0, "tasks": "3/456", "processes": 7890},
        "/recon/quarantined": {"objects": k + 5, "containers": k, "accounts": 0, "policies": {"0": {"objects": k + 3}, "1": {"objects": 2}}},
        "/recon/sockstat": {"tcp_in_use": 10 + k, "orphan": k, "time_wait": 3, "tcp_mem_allocated_bytes": 4096 * k, "tcp6_in_use": 6},
        "/recon/driveaudit": {"drive_audit_errors": k},
        "/recon/time": lambda: time.time() + (0 if k < 2 else 500),
        "/recon/version": {"version": "2.38.3" if k < 2 else "2.30.0"},
        "OPTIONS": "object-server" if k < 2 else "account-server",
    }


def sums(etc):
    return {str(path): hashlib.md5(path.read_bytes()).hexdigest() for path in [*etc.glob("*.ring.gz"), etc / "swift.conf"]}


class ReconCluster:
    """Servers that say things, one that says nothing of value, one that fails, and one that is not there."""

    def __init__(self, etc, answers, dead=True):
        self.etc, self.servers = etc, [FakeReconServer(output, f"127.0.0.{number + 1}") for number, output in enumerate(answers)]
        self.dead_server = socket.socket()
        self.dead_server.bind(("127.0.0.99", 0))
        places = [(server.ip, server.port) for server in self.servers] + ([self.dead_server.getsockname()] if dead else [])
        write_rings(etc, places)
        right = sums(etc)
        conf = str(etc / "swift.conf")
        for server in self.servers:
            if 500 not in server.answers.values():
                server.answers["/recon/swiftconfmd5"] = {conf: right[conf]}
                server.answers["/recon/ringmd5"] = {path: value for path, value in right.items() if path != conf}
        last = self.servers[-1].answers
        last["/recon/ringmd5"] = {**right, str(etc / "object-1.ring.gz"): "abc", str(etc / "object.ring.gz"): None, str(etc / "object-7.ring.gz"): "abc", str(etc / "account.ring.gz"): "abc"}
        last["/recon/swiftconfmd5"] = {conf: "abc"}

    def stop(self):
        self.dead_server.close()
        for server in self.servers:
            server.stop()


@pytest.fixture(scope="module")
def recon_cluster(tmp_path_factory):
    now = round(time.time(), 3)
    null = {path: {name: None for name in output} if isinstance(output, dict) else output for path, output in full(1, now).items()}
    null["/recon/quarantined"] = {"objects": 5, "containers": 1, "accounts": 0}
    null["/recon/version"] = {"version": "2.38.3"}
    null["OPTIONS"] = "object-server"
    broken = dict.fromkeys(full(0, now), 500)
    kept = ReconCluster(tmp_path_factory.mktemp("recon") / "etc", [full(0, now), null, broken, full(1, now), full(2, now)])
    yield kept
    kept.stop()


CHECKS = ["-a", "-r", "-R", "--auditor", "--updater", "--expirer", "--sharding", "-u", "-d", "-l", "-q", "--validate-servers", "--md5",
          "--sockstat", "--driveaudit", "-T", "-T --jitter 1000", "-d --human-readable"]


@pytest.mark.parametrize("kind", ROLES)
def test_every_check_says_the_same(recon_cluster, kind):
    if kind == "object":
        for check in CHECKS:
            same(recon_cluster.etc, *check.split())
    same(recon_cluster.etc, kind, *" ".join(CHECKS).replace("--jitter 1000", "").split())


def test_verbose_shows_what_each_said(recon_cluster):
    arguments = " ".join(check for check in CHECKS if "jitter" not in check).split()
    status, output = same(recon_cluster.etc, "object", "-v", *arguments)
    assert status == 0 and "it's" in "".join(output)
    same(recon_cluster.etc, "object", "--suppress", *arguments)
    same(recon_cluster.etc, "object", "--suppress", "-v", *arguments)


@pytest.mark.parametrize("arguments", ["--region 1 -a", "--zone 1 -a -l", "-z 77 -a -r -d -q --sharding -T --md5 --validate-servers", "-p silver -a", "-p 1 -a",
                                       "account -p 1 -l", "--policy= -a", "-z -1 -a", "--region=-2 -l", "-z 0x2 -a -t 05", "", "account", "object object -l", "container account --sharding -r"])
def test_choices(recon_cluster, arguments):
    same(recon_cluster.etc, *arguments.split())


def test_servers_with_addresses_of_version_six(tmp_path):
    now = round(time.time(), 3)
    server = FakeReconServer(full(1, now), "::1")
    try:
        write_rings(tmp_path, [(server.ip, server.port)])
        # OpenStack's ranks of devices (-d) lose the address.
        checks = [check for check in CHECKS if not check.startswith("-d")]
        status, output = same(tmp_path, "object", "-v", *" ".join(checks).replace("--jitter 1000", "").split(), all_answer=True)
        assert status == 0 and f"::1:{server.port}" in "".join(output), output
    finally:
        server.stop()


def test_ranks_and_graph(tmp_path):
    devices = [{"device": f"sd{number}", "mounted": True, "size": 1000, "used": used, "avail": 1000 - used}
               for number, used in enumerate([100, 205, 300, 301, 302, 409, 995, 1000, 1, 0] * 3)]
    for number, disk in enumerate(devices):
        disk["used"] = min(disk["used"] + number // 10, 1000)  # few alike: the order of equal ones is undefined
        disk["avail"] = 1000 - disk["used"]
    recon_cluster = ReconCluster(tmp_path / "etc", [{"/recon/diskusage": devices}, {"/recon/diskusage": [{"device": "big", "mounted": True, "size": 3 * 10**18, "used": 10**12, "avail": 10**18}, {"device": "almost", "mounted": True, "size": 10**12 + 7, "used": 59 * 10**10, "avail": 41 * 10**10}]},
                                   {"/recon/diskusage": []}, *({"/recon/diskusage": [{"device": "sdx", "mounted": mounted, "size": "", "used": "", "avail": ""}]}
                                                               for mounted in (False, "[Errno 5]"))], dead=False)
    try:
        for arguments in ("-d", "-d --human-readable", "-d --top 4 --lowest 5", "-d --top 200", "-d --top -1 --lowest 0x2"):
            same(recon_cluster.etc, *arguments.split())
    finally:
        recon_cluster.stop()


def test_one_that_never_ended_a_pass(tmp_path):
    stats = {"attempted": 4, "failure": 1, "success": 2}
    recon_cluster = ReconCluster(tmp_path / "etc", [{"/recon/replication/object": {"replication_time": 3.75, "replication_last": 0, "replication_stats": stats},
                                    "/recon/reconstruction/object": {"object_reconstruction_last": None, "object_reconstruction_time": None},
                                    "/recon/auditor/object": {"object_auditor_stats_ALL": {}, "object_auditor_stats_ZBF": {"errors": 3}}, "/recon/version": {"version": "x"}}],
                dead=False)
    try:
        same(recon_cluster.etc, "-r", "-R", "--auditor", "--swift-versions")
    finally:
        recon_cluster.stop()


def test_what_makes_no_sense_is_refused(recon_cluster):
    for arguments, status, line in ((["nosuch", "-a"], 1, "Invalid Server Type"), (["-p", "nosuch", "-a"], 0, "Invalid Storage Policy: nosuch"),
                                    (["-p", "7", "-a"], 0, "Invalid Storage Policy: 7"),
                                    (["-p", "-1", "-a"], 0, "Invalid Storage Policy: -1")):
        theirs, ours = both(recon_cluster.etc, *arguments)
        assert theirs[0] == ours[0] == status
        assert all(line in str(output) for _, output in (theirs, ours)), (theirs, ours)
    assert run([martlet(), "recon", "--nosuch"], check=False).returncode == 2
    done = run([martlet(), "recon", "-a", "-t", "-1", "--swiftdir", recon_cluster.etc], check=False)  # OpenStack's ends with a traceback
    assert done.returncode == 1 and "Timeout value out of range" in done.stdout
    done = run([martlet(), "recon", "-a", "--swiftdir", "/nowhere"], check=False)
    assert done.returncode == 1 and "/nowhere/object.ring.gz" in done.stdout


def test_garbage_costs_a_line_about_its_server(tmp_path):
    recon_cluster = ReconCluster(tmp_path / "etc", [{path: garbage for path in full(0, 0)} for garbage in ("text", [1], {"a": [{}]}, [{"device": 5, "mounted": True, "size": -1}], None)], dead=False)
    try:
        done = run([martlet(), "recon", *ROLES, "--all", "-v", "--swiftdir", recon_cluster.etc], timeout=240)
        assert done.returncode == 0 and "panicked" not in done.stderr, done.stderr
    finally:
        recon_cluster.stop()


def test_hosts_that_do_not_say_what_they_are_are_errors(recon_cluster):
    """One is an account-server, one fails, one is not there. OpenStack's takes the last two for good ones."""
    for more in ([], ["--suppress"]):
        done = run([martlet(), "recon", "--validate-servers", *more, "--swiftdir", recon_cluster.etc], timeout=240)
        assert "\n3/6 hosts ok, 3 error[s] while checking hosts.\nInvalid: " in done.stdout and done.stdout.count("Invalid: ") == 1, done.stdout
    done = run([martlet(), "recon", "--validate-servers", "--json", "--swiftdir", recon_cluster.etc], timeout=240)
    summary = json.loads(done.stdout)["object"]["validate"]["summary"]
    assert (summary["ok"], summary["errors"], len(summary["invalid"])) == (3, 3, 1)


def test_hosts_that_do_not_say_the_sum_are_errors(tmp_path):
    """OpenStack's takes an answer without the rings of the kind for one that matches, or ends with a traceback."""
    nonsense = [{}, [], "text", 0.5, None, {"a": "b"}, {"/etc/swift/account.ring.gz": "abc", "swift.conf.bak": "abc"}]
    cluster = ReconCluster(tmp_path / "etc", [{} for _ in nonsense] + [{}, {}], dead=False)
    for server, answer in zip(cluster.servers, nonsense, strict=False):
        server.answers["/recon/ringmd5"] = server.answers["/recon/swiftconfmd5"] = json.dumps(answer).encode()
    # As with OpenStack's, a ring that a server does not name is none that differs.
    del cluster.servers[-2].answers["/recon/ringmd5"][str(cluster.etc / "object-1.ring.gz")]
    try:
        done = run([martlet(), "recon", "--md5", "--swiftdir", cluster.etc], timeout=240)
    finally:
        cluster.stop()
    rings, conf = done.stdout.split("Checking swift.conf md5sum")
    assert rings.count("says no md5sum of the rings\n") == conf.count("says no md5sum of swift.conf\n") == len(nonsense), done.stdout
    assert "\n1/9 hosts matched, 8 error[s] while checking hosts.\n" in rings and "\n1/9 hosts matched, 7 error[s] while checking hosts.\n" in conf, done.stdout


def commands_in(value):
    """The same, with commands to a terminal in every text."""
    if isinstance(value, dict):
        return {f"{name}\x1b]0;title\x07" if "/" in name else name: commands_in(part) for name, part in value.items()}
    if isinstance(value, list):
        return [commands_in(part) for part in value]
    return f"{value}\x1b[31m\x07\r\n\x7f\x9b31m" if isinstance(value, str) else value


def test_answers_cannot_command_the_terminal(tmp_path):
    cluster = ReconCluster(tmp_path / "etc", [{}], dead=False)
    answers = cluster.servers[0].answers
    answers.update(full(1, 0), OPTIONS="object-server\x9b31m")
    for path in [path for path in answers if path.startswith("/recon/") and not callable(answers[path])]:
        answers[path] = commands_in(answers[path])
    try:
        plain, verbose, document = (run([martlet(), "recon", "--all", *more, "--swiftdir", cluster.etc], timeout=240) for more in ([], ["-v"], ["--json"]))
    finally:
        cluster.stop()
    for done in (plain, verbose, document):
        assert done.returncode == 0 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout), repr(done.stdout)
    escaped = r"\x1b[31m\x07\x0d\x0a\x7f\xc2\x9b31m"
    assert f"Not mounted: sd1{escaped} on " in plain.stdout and f"2.38.3{escaped}" in plain.stdout
    answered = json.loads(document.stdout)["object"]["version"]["answers"]
    assert list(answered.values()) == [commands_in({"version": "2.38.3"})]


WIRE = {"hangs": None, "closes": b"", "babbles": b"\0\xff\xfe" * 50, "breaks": b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"1m"',
        "leads away": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "is old": b'HTTP/1.0 200 OK\r\n\r\n{"1m": 1.0, "5m": 2, "15m": 3}', "no JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}


def test_whatever_is_on_the_wire_costs_a_line(tmp_path):
    """OpenStack's program ends with a traceback at the first that speaks no HTTP."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server((f"127.0.1.{number + 1}", 0))) for number in range(len(WIRE))]

        def answer(listening, words):
            with contextlib.suppress(OSError):
                taken, _ = listening.accept()
                opened.enter_context(taken)
                taken.recv(4096)
                if words is not None:
                    taken.sendall(words)
                    taken.shutdown(socket.SHUT_RDWR)

        for listening, words in zip(sockets, WIRE.values(), strict=True):
            threading.Thread(target=answer, args=(listening, words), daemon=True).start()
        write_rings(tmp_path / "etc", [made.getsockname() for made in sockets])
        done = run([martlet(), "recon", "-l", "-t", "10", "--swiftdir", tmp_path / "etc"], timeout=240)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and sum(line.startswith("-> http://127.0.1.") for line in lines) == len(WIRE) - 1, done
    assert "[1m_load_avg] low: 1, high: 1, avg: 1.0, total: 1, Failed: 0.0%, no_result: 0, reported: 1" in lines


def test_json_has_answers_and_summaries(recon_cluster):
    done = run([martlet(), "recon", "--all", "account", "object", "--json", "--swiftdir", recon_cluster.etc], timeout=240)
    output = json.loads(done.stdout)
    assert done.returncode == 0 and list(output) == ["account", "object"]
    pendings = output["object"]["async"]
    assert pendings["summary"]["async_pending"] == {"low": 0.0, "high": 14.0, "average": 7.0, "total": 21.0, "no_result": 1, "reported": 3}
    assert len(pendings["answers"]) == output["object"]["hosts"] == 6
    assert sum("error" in answer for answer in pendings["answers"].values()) == 2
    assert output["object"]["ringmd5"]["summary"] == {"matched": 3, "hosts": 6, "errors": 3}
    assert output["object"]["diskusage"]["summary"]["diskusage"]["highest"] == 94.0


@pytest.mark.parametrize("make", ["openstack", "martlet"])
def test_real_servers_of_either_make(tmp_path, make):
    cluster = Cluster(Layout(tmp_path / "cluster").write(), make)
    try:
        for role in ROLES:
            cluster.start_service(role)
        same(cluster.etc, *ROLES, "-a", "-r", "-R", "--auditor", "--updater", "--expirer", "-u", "-q", "--validate-servers", "--md5", "-T", "--driveaudit", "--swift-versions", all_answer=True)
    finally:
        cluster.stop()
