"""`martlet advise look` on live clusters of both makes: each mistuned on purpose in one way, and the cause stands first.

The clusters are small and real: servers, rings, devices with sizes, access logs. A test makes one mistake and mends it at its end.
"""

import contextlib
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import disk
from harness.client import Client
from harness.fake_recon import FakeReconServer, write_rings
from harness.martlet_up import MartletUp
from harness.places import martlet, openstack_command
from harness.process import run
from harness.tuned import NODES, TunedCluster
from harness.waiting import until
from harness.wire import begin_upload

CLOCK = Path(__file__).parents[1] / "storm/clock.c"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="devices are mounted")


def tuned(kind, root):
    """A running cluster; `untended` is what a look said of it before any daemon had run."""
    cluster = TunedCluster(root, kind)
    try:
        cluster.start()
        fill(cluster, [f"c{number}" for number in range(8)], 24)
        cluster.untended = cluster.look()
        cluster.run_daemons()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    yield from tuned("martlet", tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    yield from tuned("openstack", tmp_path_factory.mktemp("theirs"))


# In the short run as well.
BOTH = pytest.mark.parametrize("either", ["ours", "theirs"], indirect=True)


@pytest.fixture(params=["ours", pytest.param("theirs", marks=pytest.mark.extra)])
def either(request):
    return request.getfixturevalue(request.param)


def fill(cluster, containers, count, body=b"x" * 100):
    """`count` objects, in turn in these containers, by several users; how many PUT that were."""
    first = Client(cluster.auth_url)
    for container in containers:
        first.put(container)

    def some(user):
        client = Client(cluster.auth_url)
        for number in range(user, count, 6):
            client.put(containers[number % len(containers)], f"o{number}", body=body)
    with ThreadPoolExecutor(6) as users:
        list(users.map(some, range(6)))
    return len(containers) + count


def first(report):
    assert report["causes"], report
    return report["causes"][0]


def names(report):
    return [cause["name"] for cause in report["causes"]]


def seen(cause):
    return "\n".join(f"{one['figure']} ({one['read_at']})" for one in cause["evidence"])


def do(step):
    """A step of a remedy, as it stands."""
    words = shlex.split(step.partition("#")[0])
    assert words[0] == "martlet", step
    done = run([martlet(), *words[1:]], check=False)
    assert done.returncode < 2, (step, done.stdout, done.stderr)


@pytest.fixture
def rings(either):
    """The cluster, whose rings and builders are at the end what they were."""
    kept = {path: path.read_bytes() for path in either.etc.iterdir() if path.suffix in (".gz", ".builder")}
    yield either
    for path, content in kept.items():
        path.write_bytes(content)


@contextlib.contextmanager
def other_conf(cluster, role, node, *changes):
    """One server with another configuration than the rest."""
    conf = cluster.etc / cluster.layout.conf_name(role, node)
    right = conf.read_text()
    text = right
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    conf.write_text(text)
    cluster.stop_service(role, node)
    cluster.start_service(role, node)
    try:
        yield
    finally:
        conf.write_text(right)
        cluster.stop_service(role, node)
        cluster.start_service(role, node)


@BOTH
def test_a_tuned_cluster_has_no_cause(either):
    since = either.log_end()
    either.await_lines(since, fill(either, [f"c{number}" for number in range(8)], 240))
    report = either.look("--gateway", f"127.0.0.1:{either.port}", "--access-log", either.access_log(since))
    assert report["causes"] == []
    assert report["asked"] == report["answered"] == 3 * NODES + 1
    capacity = report["capacity"][0]
    assert capacity["size"] == 6 * (64 << 20) and 0 < capacity["used"] < capacity["usable"] and capacity["days"] is None
    text = either.look(as_json=False)
    assert "Nothing was found that is worth a change." in text and "gateways: no ring names them; say --gateway" in text


@BOTH
def test_replication_that_never_ran(either):
    cause = first(either.untended)
    assert cause["name"] == "replication-does-not-end"
    url = f"http://127.0.0.1:{either.layout.ports['object', 0]}/recon/replication/object"
    assert f"object-replicator: no pass has ended yet ({url})" in seen(cause)
    assert any("systemctl start martlet-object-replicator" in step for step in cause["remedy"])


def test_two_replicas(rings):
    rings.ring("object", "set_replicas", "2")
    rings.ring("object", "rebalance", "--force")
    cause = first(rings.look())
    assert cause["name"] == "two-replicas-only"
    assert f"object: 2 replicas ({rings.etc}/object.ring.gz)" in seen(cause)
    # The commands do what they say.
    for step in cause["remedy"][:2]:
        do(step)
    assert "two-replicas-only" not in names(rings.look())


def test_one_zone(rings):
    rings.ring("object", "set_zone", "127.0.0.2", "1", "127.0.0.3", "1", "--yes")
    rings.ring("object", "rebalance", "--force")
    cause = first(rings.look())
    assert cause["name"] == "one-zone"
    assert "object: 1 zone(s), 3 server(s), 6 devices" in seen(cause)
    for step in cause["remedy"][:2]:
        do(step)
    assert names(rings.look()) == []


def test_too_few_partitions(rings):
    for name in ("object.builder", "object.ring.gz"):
        (rings.etc / name).unlink()
    ports = [rings.layout.ports["object", node] for node in range(NODES)]
    rings.ring("object", "create", "3", "3", "1")
    for index in range(3, 9):
        node = rings.layout.node_of(index)
        rings.ring("object", "add", f"r1z{node + 1}-127.0.0.{node + 1}:{ports[node]}/{rings.layout.devices[index]}", "64")
    rings.ring("object", "rebalance")
    cause = first(rings.look())
    assert cause["name"] == "too-few-partitions"
    assert "part power 3, 4 replicas of partitions for each device" in seen(cause)
    assert "prepare_increase_partition_power" in cause["remedy"][0] and "to part power 8" in cause["remedy"][0]


def test_weights_that_do_not_fit_sizes(rings):
    index = 5
    rings.unmount(index)
    rings.mount(index, 16 << 20)
    try:
        cause = first(rings.look())
        assert cause["name"] == "weights-not-by-size"
        assert f"/{rings.layout.devices[index]} is full first" in seen(cause)
        assert "d5 has 17 % of all weight and 4.8 % of all room (16.0 MiB)" in seen(cause)
        for step in cause["remedy"][:2]:
            do(step)
        rings.ring("object", "pretend_min_part_hours_passed")
        rings.ring("object", "rebalance")
        assert "weights-not-by-size" not in names(rings.look())
    finally:
        rings.unmount(index)
        rings.mount(index)


def test_a_device_that_is_not_mounted(either):
    either.unmount(4)
    try:
        cause = first(either.look())
        assert cause["name"] == "device-away"
        assert f"d4 {either.layout.devices[4]} is not mounted and should hold 256 replicas" in seen(cause)
    finally:
        either.mount(4)


def test_one_hot_container(either):
    since = either.log_end()
    either.await_lines(since, fill(either, ["hot"], 400) + fill(either, ["cool"], 40))
    log = either.access_log(since)
    cause = first(either.look("--access-log", log))
    assert cause["name"] == "one-hot-container"
    packed = log.with_suffix(".gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert first(either.look("--access-log", packed))["evidence"][0]["figure"] == cause["evidence"][0]["figure"]
    assert "400 of 440 rows go to AUTH_test/hot" in seen(cause)
    assert "it holds 400 rows (HEAD http://127.0.0." in seen(cause)


def test_a_ring_that_differs(either):
    node = 1
    away = either.root / "old-etc"
    shutil.copytree(either.etc, away, ignore=shutil.ignore_patterns("backups"))
    run([martlet(), "ring-builder", away / "object.builder", "rebalance", "--seed", "7", "--force"], check=False)
    ring = run([martlet(), "ring-builder", away / "object.builder", "set_info", "d3", "_old", "--yes"], check=False)
    assert ring.returncode == 0, ring.stdout
    run([martlet(), "ring-builder", away / "object.builder", "write_ring"], check=False)
    with other_conf(either, "object", node, (f"swift_dir = {either.etc}", f"swift_dir = {away}")):
        cause = first(either.look())
    assert cause["name"] == "rings-differ"
    assert f"object server 127.0.0.2:{either.layout.ports['object', node]}: object.ring.gz is" in seen(cause)
    assert cause["remedy"] == [f"scp {either.etc}/object.ring.gz 127.0.0.2:/etc/swift/"]


def test_memcached_is_away(either):
    port = either.memcached.port
    either.memcached.stop()
    try:
        cause = first(either.look())
        assert cause["name"] == "memcached-away"
        assert f"memcached 127.0.0.1:{port}:" in seen(cause) and f"{either.etc}/proxy-server.conf" in seen(cause)
    finally:
        either.memcached.start()
        # A gateway leaves one that was away alone for a minute.
        either.stop_service("proxy")
        either.start_service("proxy")


def test_servers_that_refuse_and_that_hang(either):
    refuses, hangs = ("container", 0), ("object", 2)
    either.stop_service(*refuses)
    either.services[hangs].signal(signal.SIGSTOP)
    try:
        report = either.look("--gateway", f"127.0.0.1:{either.port}", silent=2)
        cause = first(report)
        assert cause["name"] == "server-does-not-answer"
        assert f"container server 127.0.0.1:{either.layout.ports[refuses]}: /recon/diskusage: cannot connect" in seen(cause)
        assert f"object server 127.0.0.3:{either.layout.ports[hangs]}: /recon/diskusage: no answer within 4.0 s" in seen(cause)
        assert report["asked"] - report["answered"] == 2
        # What is not known is no cause.
        assert names(report) == ["server-does-not-answer"]
    finally:
        either.services[hangs].signal(signal.SIGCONT)
        either.start_service(*refuses)


@BOTH
def test_updates_pile_up(either, tmp_path):
    before = tmp_path / "before.json"
    before.write_text(json.dumps(either.look()))
    either.stop_service("container", 1)
    fill(either, [f"c{number}" for number in range(8)], 150, body=b"late")
    for node in range(NODES):
        run([martlet(), "recon-cron", either.etc / either.layout.conf_name("object", node)])
    either.start_service("container", 1)
    try:
        cause = first(either.look("--before", before))
        assert cause["name"] == "updates-pile-up"
        assert "more than in the earlier look" in seen(cause)
        assert "/recon/async)" in seen(cause) or "/metrics)" in seen(cause)
    finally:
        either.run_daemons()


def test_a_swift_conf_that_differs(ours):
    away = ours.root / "other-etc"
    shutil.copytree(ours.etc, away, ignore=shutil.ignore_patterns("backups"))
    with (away / "swift.conf").open("a") as conf:
        conf.write("[swift-constraints]\nmax_file_size = 5000000000\n")
    with other_conf(ours, "container", 2, (f"swift_dir = {ours.etc}", f"swift_dir = {away}")):
        cause = first(ours.look())
    assert cause["name"] == "swift-conf-differs"
    assert f"container server 127.0.0.3:{ours.layout.ports['container', 2]}: swift.conf is" in seen(cause)


def test_a_server_without_recon(ours):
    with other_conf(ours, "account", 0, ("pipeline = healthcheck recon account-server", "pipeline = healthcheck account-server")):
        report = ours.look()
    assert names(report) == ["no-recon"]
    assert f"http://127.0.0.1:{ours.layout.ports['account', 0]}" in seen(first(report))


@contextlib.contextmanager
def clock_ahead(cluster, role, node, seconds):
    """One server with a wrong clock; the others keep the time."""
    library, clock = cluster.root / "clock.so", cluster.root / "clock"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
    clock.write_bytes(struct.pack("q", seconds * 10**9))
    cluster.stop_service(role, node)
    environment = {"LD_PRELOAD": str(library), "STORM_CLOCK": str(clock)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        cluster.launch(role, node)
    cluster.await_service(role, node)
    try:
        yield environment
    finally:
        cluster.stop_service(role, node)
        cluster.start_service(role, node)


@pytest.mark.parametrize("seconds, said", [(90, "90.0 s ahead"), (-10800, "3.0 h behind")])
def test_a_storage_server_with_a_wrong_clock(either, seconds, said):
    place, (number, unit, way) = f"127.0.0.2:{either.layout.ports['object', 1]}", said.split()

    def is_measured():
        """What is known "at least" is less where the answer was late: a look of a moment without that is waited for."""
        cause = first(either.look())
        assert cause["name"] == "clock-off"
        measured = re.search(rf"object server {place}: its clock is ([\d.]+) (s|h) (ahead|behind) at least \(http://{place}/recon/time\)", seen(cause))
        assert measured and measured.groups()[1:] == (unit, way) and float(measured[1]) == pytest.approx(float(number), abs=1), seen(cause)
        return cause
    with clock_ahead(either, "object", 1, seconds):
        cause = until(is_measured, what="the distance of the clock")
    assert cause["remedy"][0].startswith("on 127.0.0.2: ") and "chronyc makestep" in cause["remedy"][0]


def test_a_gateway_with_a_wrong_clock(either):
    def is_measured():
        cause = first(either.look("--gateway", f"127.0.0.1:{either.port}"))
        # OpenStack's says the time in the Date of its answers alone.
        assert cause["name"] == "clock-off"
        measured = re.search(rf"gateway 127.0.0.1:{either.port}: its clock is ([\d.]+) s ahead at least", seen(cause))
        assert measured and 26 < float(measured[1]) <= 30, seen(cause)
        return True
    with clock_ahead(either, "proxy", 0, 30):
        until(is_measured, what="the distance of the clock")


def test_ages_are_as_of_the_servers_own_clock(either):
    # Two days behind: what the node's daemons wrote down just now is not two days old.
    with clock_ahead(either, "object", 1, -2 * 86400) as environment:
        for daemon in ("object-replicator", "object-updater"):
            conf = either.etc / either.layout.conf_name("object", 1)
            command = {"openstack": openstack_command(either.etc, f"swift-{daemon}", conf, "once"),
                       "martlet": [martlet(), daemon, conf, "once"]}[either.kind]
            subprocess.run([str(word) for word in command], env={**os.environ, **environment}, check=True, capture_output=True, timeout=120)
        assert names(either.look()) == ["clock-off"]
    either.run_daemons()


def test_damaged_objects(ours):
    for path in disk.objects(ours.layout.srv_of(1))[:3]:
        with path.open("r+b") as file:
            file.write(b"rotten")
    run([martlet(), "object-auditor", ours.etc / ours.layout.conf_name("object", 1), "once"])
    cause = first(ours.look())
    assert cause["name"] == "quarantined"
    port = ours.layout.ports["object", 1]
    assert f"3 damaged objects were put aside (http://127.0.0.2:{port}/recon/quarantined)" in seen(cause)
    for folder in ours.layout.srv_of(1).glob("*/quarantined"):
        shutil.rmtree(folder)
    ours.run_daemons()


def test_drives_that_fail(ours):
    figures = ours.layout.run_of(2) / "drive.recon"
    figures.write_text(json.dumps({"drive_audit_errors": 4}))
    try:
        cause = first(ours.look())
    finally:
        figures.unlink()
    assert cause["name"] == "failing-drives" and "4 errors of drives" in seen(cause)


def test_copies_of_the_dispersion_sample_that_are_missing(ours, tmp_path):
    conf = tmp_path / "dispersion.conf"
    conf.write_text(f"[dispersion]\nauth_url = {ours.auth_url}\nauth_user = test:tester\nauth_key = testing\nswift_dir = {ours.etc}\n"
                    "dispersion_coverage = 20\n")
    # Gateways leave servers alone for a while that failed in tests before: copies would lie on handoffs.
    ours.stop_service("proxy")
    ours.start_service("proxy")
    run([martlet(), "dispersion-populate", conf])
    report = tmp_path / "dispersion.json"
    report.write_text(run([martlet(), "dispersion-report", conf, "--dump-json"]).stdout)
    assert ours.look("--dispersion", report)["causes"] == []
    for path in disk.objects(ours.layout.srv_of(0)):
        if "dispersion" in str(disk.metadata(path)):
            shutil.rmtree(path.parent)
    report.write_text(run([martlet(), "dispersion-report", conf, "--dump-json"], check=False).stdout)
    cause = first(ours.look("--dispersion", report))
    assert cause["name"] == "copies-missing" and "copies of the sample are missing" in seen(cause)


def test_listings_on_the_drives_of_objects(ours):
    since = ours.log_end()
    ours.await_lines(since, fill(ours, [f"c{number}" for number in range(8)], 240))
    log = ours.access_log(since)
    kept = {name: (ours.etc / name).read_bytes() for name in ("container.builder", "container.ring.gz")}
    try:
        for name in kept:
            (ours.etc / name).unlink()
        ours.ring("container", "create", "9", "3", "1")
        for index in range(3, 9):
            node = ours.layout.node_of(index)
            place = f"{ours.layout.ip(node)}:{ours.layout.ports['container', node]}/{ours.layout.devices[index]}"
            ours.ring("container", "add", f"r1z{node + 1}-{place}", "64")
        ours.ring("container", "rebalance")
        causes = ours.look("--access-log", log)["causes"]
        cause = next(cause for cause in causes if cause["name"] == "listings-on-drives-of-objects")
        assert "6 of 6 devices of listings hold objects too" in seen(cause)
        assert not [other for other in causes if other["rank"] < cause["rank"]] and cause["is_bought"]
    finally:
        for name, content in kept.items():
            (ours.etc / name).write_bytes(content)


def open_at(port):
    """Sockets of connections at this port, of 127.0.0.1, that the server has not closed."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [line for line in lines if line[1] == f"0100007F:{port:04X}" and line[3] in ("01", "08")]  # established, and closed by the client alone


def test_limits_that_refuse(ours):
    with other_conf(ours, "proxy", 0, ("[DEFAULT]\n", "[DEFAULT]\nmax_connections = 6\n")):
        client = Client(ours.auth_url)
        client.put("c0")
        headers = {"X-Auth-Token": client.token}
        client.close()
        open_ones = [begin_upload(ours.port, client.path("c0", f"slow{number}"), headers, 1000, b"x") for number in range(6)]
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", ours.port)) as refused:
                refused.settimeout(10)
                assert refused.recv(100)[9:12] in (b"503", b"")  # some are only closed
        for one in open_ones:
            one.close()
        # A look that comes before the gateway has noticed would find no room, too.
        until(lambda: not open_at(ours.port), what="the end of all connections")
        cause = first(ours.look("--gateway", f"127.0.0.1:{ours.port}"))
    assert cause["name"] == "limits-refuse"
    assert "20 connections that found no room" in seen(cause) and "6 may be open" in seen(cause)
    assert "max_connections" in cause["remedy"][0] and "proxy-server.conf" in cause["remedy"][0]


def test_a_gateway_whose_processor_is_full(ours):
    place = f"127.0.0.1:{ours.port}"
    pid, is_over = ours.services["proxy", 0].child.pid, threading.Event()
    # The process that was started watches the one that serves.
    for one in run(["pgrep", "-g", str(os.getpgid(pid))]).stdout.split():
        subprocess.run(["taskset", "-a", "-c", "-p", "0", one], check=True, capture_output=True)
    # Before all else that runs on this machine: what it gets shall be what it uses.
    subprocess.run(["renice", "-n", "-19", "-g", str(os.getpgid(pid))], check=True, capture_output=True)
    group = Path(f"/proc/{pid}/autogroup")
    if group.exists():
        group.write_text("-19")  # the niceness of a session, where the kernel groups processes by them
    burst = f"GET /info HTTP/1.1\r\nHost: {place}\r\n\r\n".encode() * 50

    def ask():
        with socket.create_connection(("127.0.0.1", ours.port)) as connection:
            while not is_over.is_set():
                connection.sendall(burst)
                answers = b""
                while answers.count(b"HTTP/1.1 200") < 50:
                    answers += connection.recv(1 << 16)
    askers = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for asker in askers:
        asker.start()

    def is_first():
        report = ours.look("--gateway", place)
        assert names(report)[:1] == ["processor-full"], report
        return first(report)
    try:
        cause = until(is_first, within=60, what="a full processor")
        assert re.search(rf"proxy gateway {place}: \d+ % of 1 processor\(s\) busy \(http://{place}/metrics, twice\)", seen(cause)), seen(cause)
        assert "another gateway" in cause["remedy"][0]
    finally:
        is_over.set()
        for asker in askers:
            asker.join(30)
        ours.stop_service("proxy")
        ours.start_service("proxy")
    assert names(ours.look("--gateway", place)) == []


def test_workers_of_a_gateway_of_ours_that_shows_no_metrics(ours):
    # One process of Martlet's uses all processors.
    with other_conf(ours, "proxy", 0, ("workers = 1", "workers = 1\nmetrics_clients = 192.0.2.1")):
        report = ours.look("--gateway", f"127.0.0.1:{ours.port}")
    assert any(line.startswith(f"metrics of 127.0.0.1:{ours.port}: ") for line in report["unseen"]), report
    assert names(report) == []


def test_too_few_workers_of_openstacks(theirs):
    place = f"127.0.0.1:{theirs.port}"
    with other_conf(theirs, "proxy", 0, ("workers = 2", "workers = 1")):
        cause = first(theirs.look("--gateway", place))
    assert cause["name"] == "too-few-workers"
    assert f"proxy server: workers = 1: one process, which uses one of {os.cpu_count()} processors ({theirs.etc}/proxy-server.conf)" in seen(cause)
    assert cause["remedy"] == [f"workers = auto in [DEFAULT] of {theirs.etc}/proxy-server.conf, then swift-init proxy-server reload"]


def drive_page(milliseconds, operations=1000):
    """What an object server says of the drive of its device."""
    return (f'martlet_device_operations_total{{device="DEVICE"}} {operations}\n'
            f'martlet_device_operation_seconds_total{{device="DEVICE"}} {operations * milliseconds / 1e3}\n')


def drives_seen(tmp_path, times):
    """Servers of which each has a drive that takes so many milliseconds."""
    servers = []
    try:
        for number, milliseconds in enumerate(times):
            usage = [{"device": f"sd{number}", "mounted": True, "size": 1 << 40, "used": 1 << 30, "avail": 1 << 39}]
            page = drive_page(milliseconds).replace("DEVICE", f"sd{number}").encode()
            servers.append(FakeReconServer({"/recon/diskusage": usage, "/metrics": page}, f"127.0.0.{number + 1}"))
        write_rings(tmp_path, [(server.ip, server.port) for server in servers], policies=("gold",))
        report = json.loads(run([martlet(), "advise", "look", "--swift-dir", tmp_path, "--timeout", "5", "--json", "--top", "50"]).stdout)
        return next((cause for cause in report["causes"] if cause["name"] == "slow-drive"), None)
    finally:
        for server in servers:
            server.stop()


def test_a_drive_slower_than_its_equals(tmp_path):
    cause = drives_seen(tmp_path / "slow", (8, 9, 48, 8))
    assert "sd2 on 127.0.0.3: 48.0 ms for each of 1000 reads and writes; its equals take 9.0 ms (http://127.0.0.3:" in seen(cause)
    assert not [line for line in seen(cause).splitlines() if "sd2" not in line] and "smartctl" in cause["remedy"][0]
    # All are slow, or all are quick: none is slower than its equals.
    assert drives_seen(tmp_path / "alike", (48, 45, 50, 49)) is None
    assert drives_seen(tmp_path / "quick", (0.2, 0.2, 2, 0.2)) is None


def test_when_capacity_ends_and_how_devices_come_in(ours, tmp_path):
    # Enough to grow by and to move in steps, whichever tests stored something before.
    fill(ours, ["grown"], 30, body=b"x" * 100_000)
    report = ours.look()
    # As if it had been written a day ago, with 20 MiB less on the devices.
    report["seen"]["at"] -= 86400
    report["seen"]["used"] -= min(report["seen"]["used"], 20 << 20)
    grown = ours.look()["seen"]["used"] - report["seen"]["used"]
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(report))
    now = ours.look("--before", earlier)
    capacity = now["capacity"][0]
    assert capacity["growth"] == pytest.approx(grown, rel=0.01)
    assert capacity["days"] == pytest.approx((capacity["usable"] - capacity["used"]) / grown, rel=0.02)
    assert first(now)["name"] == "capacity-ends"
    said = ours.look("--growth", "1MB", as_json=False)
    assert "with 977 KiB more a day (--growth)" in said
    builder = ours.etc / "object.builder"
    kept = builder.read_bytes()
    try:
        port = ours.layout.ports["object", 0]
        for name in ("new1", "new2"):
            ours.ring("object", "add", f"r1z4-127.0.0.4:{port}/{name}", "64")
        ours.ring("object", "pretend_min_part_hours_passed")
        ramp = ours.look("--max-move", "1MB")["ramps"][0]
        assert ramp["devices"] == ["d0", "d1"] and " ramp r1z4 " in ramp["command"], ramp
        assert len(ramp["steps"]) > 1, ramp
        # Nothing was written, and the steps lead to the weights that were wished for.
        moved = ours.look("--max-move", "1MB")["ramps"][0]
        assert moved == ramp
        for step in ramp["steps"]:
            for command in step["commands"]:
                do(command)
            ours.ring("object", "pretend_min_part_hours_passed")
        assert ours.look()["ramps"] == []
    finally:
        builder.write_bytes(kept)
        for path in ours.etc.glob("object.ring.gz"):
            run([martlet(), "ring-builder", builder, "write_ring"], check=False)


def test_a_cluster_in_one_process(tmp_path):
    up = MartletUp(tmp_path / "data")
    up.start()
    try:
        command = [martlet(), "advise", "look", "--swift-dir", up.etc, "--timeout", "5"]
        report = json.loads(run([*command, "--gateway", f"127.0.0.1:{up.port}", "--json"]).stdout)
        assert names(report) == ["one-server"] and report["asked"] == report["answered"] == 1
        assert "inside of the gateway's process" in "".join(report["unseen"])
        assert "where `martlet up` serves them: name its address with --gateway" in run(command).stdout
    finally:
        up.stop()


class EndlessServer:
    """Answers any request with a body that does not end."""

    def __init__(self, ip):
        self.socket = socket.create_server((ip, 0))
        self.port, self.is_over = self.socket.getsockname()[1], threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._pour, args=(connection,), daemon=True).start()

    def _pour(self, connection):
        with connection:
            try:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
                while not self.is_over.is_set():
                    connection.sendall(b"1," * 30000)
            except OSError:
                pass

    def stop(self):
        self.is_over.set()
        self.socket.close()


HUGE = {"device": "x" * 5000, "mounted": True, "size": 1e308, "used": -5}
NONSENSE = {"/recon/diskusage": [HUGE, [], {"device": "sd0", "mounted": True, "size": "many", "used": None}, 7], "/recon/ringmd5": ["no", {}],
            "/recon/swiftconfmd5": {"swift.conf": "\x1b[31mred"}, "/recon/quarantined": {"objects": 1e308, "containers": 1e308}, "/recon/driveaudit": {"drive_audit_errors": "x"},
            "/recon/replication/object": {"object_replication_last": "never"}, "/recon/async": None, "/recon/updater/object": 5,
            "/recon/replication/container": 3, "/recon/replication/account": []}


def test_hostile_answers_are_bounded(tmp_path):
    nonsense, endless = FakeReconServer(NONSENSE, "127.0.0.1"), EndlessServer("127.0.0.2")
    try:
        write_rings(tmp_path / "etc", [("127.0.0.1", nonsense.port), ("127.0.0.2", endless.port)])
        took = []
        while not took or min(took) >= 10 and len(took) < 5:  # the machine may be busy with something else
            begun = time.monotonic()
            done = run(["/usr/bin/time", "-f", "%M", martlet(), "advise", "look", "--swift-dir", tmp_path / "etc", "--top", "50"], check=False)
            took.append(time.monotonic() - begun)
        assert done.returncode == 0 and min(took) < 10, (done, took)
        assert f"object server 127.0.0.2:{endless.port}" in done.stdout
        assert "\x1b" not in done.stdout and "0" * 20 not in done.stdout
        assert int(done.stderr.split()[-1]) < 300_000, done.stderr
    finally:
        nonsense.stop()
        endless.stop()


def test_json_names_what_a_text_only_counts(tmp_path):
    write_rings(tmp_path, [(f"127.0.0.{number}", 1) for number in range(1, 6)])
    look = [martlet(), "advise", "look", "--swift-dir", tmp_path]
    cause = next(one for one in json.loads(run([*look, "--json"]).stdout)["causes"] if one["name"] == "server-does-not-answer")
    assert len({one["figure"] for one in cause["evidence"]}) == len(cause["evidence"]) == 15
    assert "   seen    7 more like these: --json names them" in run([*look, "--top", "50"]).stdout


def test_mistakes_are_named(tmp_path):
    def fails(*arguments, status=1):
        done = run([martlet(), "advise", "look", *arguments], check=False)
        assert done.returncode == status, done
        return done.stderr
    assert f"cannot read {tmp_path}/swift.conf: No such file or directory (os error 2): look on a node of the cluster, or name" in fails(
        "--swift-dir", tmp_path)
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = x\n")
    assert "there is no ring: name the directory with --swift-dir" in fails("--swift-dir", tmp_path)
    (tmp_path / "object.ring.gz").write_text("no ring")
    assert f"{tmp_path}/object.ring.gz" in fails("--swift-dir", tmp_path)
    write_rings(tmp_path, [("127.0.0.1", 1)])
    # What is there and cannot be read, or is named and is not there, was not seen.
    conf = tmp_path / "proxy-server.conf"
    look = [martlet(), "advise", "look", "--swift-dir", tmp_path]
    assert str(conf) not in run(look).stdout
    assert f"memcached: cannot read {conf}" in run([*look, "--proxy-conf", conf]).stdout
    conf.write_text("[pipeline:main]\npipelin = proxy-server\n")
    assert f"memcached: {conf}: there is no pipeline in [pipeline:main]" in run(look).stdout
    conf.write_bytes(b"\xff\xfe")
    assert f"memcached: cannot read {conf}" in run(look).stdout
    conf.unlink()
    other = tmp_path / "other"
    other.write_text("{}")
    assert f"{other}: expected what `martlet advise look --json` prints" in fails("--swift-dir", tmp_path, "--before", other)
    assert f"{other}: expected what `martlet dispersion-report --dump-json` prints" in fails("--swift-dir", tmp_path, "--dispersion", other)
    assert f"{other}: no line of it is one of a gateway's access log" in fails("--swift-dir", tmp_path, "--access-log", other)
    assert "expected HOST:PORT" in fails("--gateway", "nowhere", status=2)
