"""Servers exchanged for another build, or another configuration, under load: no request fails."""

import os
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from swift.common.ring import RingBuilder

from harness.client import Client
from harness.cluster import Cluster, healthy
from harness.layout import ROLES, Layout
from harness.load import Load
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import run
from harness.waiting import free_port, until
from harness.wire import begin_upload, finish_upload

ALL = ("proxy", *ROLES)


@pytest.fixture
def builds(tmp_path, monkeypatch):
    """`builds()` puts another build in the place of the program; where that one lies."""
    original, program = tmp_path / "bin/original", tmp_path / "bin/martlet"
    program.parent.mkdir()
    run(["strip", "--strip-debug", "-o", original, martlet()])  # four fifths are for debuggers, and it is copied often
    monkeypatch.setenv("MARTLET_BIN", str(program))
    made = []

    def another():
        build = program.with_name(f"build-{len(made)}")
        shutil.copy(original, build)
        with open(build, "ab") as file:
            file.write(f"build {len(made)}".encode())
        made.append(build)
        place(program, build)
        return build

    another.program = program
    another()
    return another


def place(program, build):
    new = program.with_suffix(".new")
    new.symlink_to(build)
    new.rename(program)


@pytest.fixture
def cluster(tmp_path, builds):
    memcached = Memcached().start()
    cluster = Cluster(Layout(tmp_path / "c", memcached_port=memcached.port).write(), "martlet").start()
    yield cluster
    cluster.stop()
    memcached.stop()


def workers(process):
    """The processes a server's process has, those that have ended and are not reaped included."""
    return [pid for pid in process.tree() if pid != process.child.pid]


def has_successor(process, worker):
    """Whether one worker is there, and not `worker`. Lists the processes once: one may be reaped between two lists."""
    found = workers(process)
    return len(found) == 1 and found != [worker]


def await_successor(process, worker):
    until(lambda: has_successor(process, worker), within=60, what="another worker")


def build_of(pid):
    return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")


def reload(process, build):
    """SIGUSR1, until only `build` runs."""
    process.child.send_signal(signal.SIGUSR1)
    until(lambda: {build_of(pid) for pid in process.tree()} == {str(build)} and len(workers(process)) == 1,
          within=60, what="only the new build running")


def test_every_server_is_exchanged_under_load_without_one_failed_request(cluster, builds):
    with Load(cluster.auth_url, threads=6) as load:
        for role in (*ALL, *ALL):
            process, before = cluster.services[role, 0], load.acknowledged
            until(lambda: load.acknowledged > before + 20, within=60, what="the load going on")
            pid = process.child.pid
            reload(process, builds())
            assert process.alive() and process.child.pid == pid
        before = load.acknowledged
        until(lambda: load.acknowledged > before + 50, within=60, what="the load going on")
    assert load.failed == [] and load.wrong == []
    assert load.read_all() > 100 and load.failed == [] and load.wrong == []
    assert cluster.stop() == [0, 0, 0, 0]


def test_nothing_is_amiss_with_a_metrics_port_when_the_worker_is_exchanged(tmp_path, builds):
    port = free_port()
    cluster = Cluster(Layout(tmp_path / "c", policies=("gold",), overrides={"object": {"DEFAULT": {"metrics_port": port}}}).write(), "martlet")
    cluster.start_service("object")
    try:
        process = cluster.services["object", 0]
        for _ in range(2):
            reload(process, builds())
            until(lambda: listens(port, workers(process)[0]), what="the metrics port of the new worker")
        assert "metrics_port" not in process.text(), process.text()
    finally:
        cluster.stop()


def listens(port, pid):
    """Whether process `pid` listens on this port."""
    sockets = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"}
    files = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            files.add(os.readlink(file))
    return any(f"socket:[{inode}]" in files for inode in sockets)


def test_a_worker_that_ends_while_the_server_stops_has_not_died(cluster):
    """Both signals are there before the overseer looks: it was asked to end first."""
    for _ in range(8):
        cluster.start_service("account") if ("account", 0) not in cluster.services else None
        process = cluster.services["account", 0]
        process.child.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{process.child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        os.kill(workers(process)[0], signal.SIGKILL)
        process.child.send_signal(signal.SIGTERM)
        process.child.send_signal(signal.SIGCONT)
        process.child.wait(60)
        assert "has died" not in process.text(), process.text()
        del cluster.services["account", 0]


def port_per_device(layout):
    """The ring of objects with another port for each device; the ports."""
    builder = RingBuilder.load(str(layout.etc / "object.builder"))
    for device in builder.devs:
        device["port"] = device["replication_port"] = free_port()
    builder.save(str(layout.etc / "object.builder"))
    builder.get_ring().save(str(layout.etc / "object.ring.gz"))
    return [device["port"] for device in builder.devs]


def test_with_a_port_for_each_disk_none_is_closed_for_a_moment(tmp_path, builds):
    layout = Layout(tmp_path / "c", policies=("gold",), workers=4,
                    overrides={"object": {"DEFAULT": {"servers_per_port": 2, "ring_ip": "127.0.0.1"}}}).write()
    ports, cluster = port_per_device(layout), Cluster(layout, "martlet")
    refused, asked, over = [], [], threading.Event()

    def ask(port):
        while not over.is_set():
            try:
                asked.append(healthy(port, timeout=60))
            except OSError as error:
                refused.append((port, error))

    users = [threading.Thread(target=ask, args=(port,)) for port in ports]
    cluster.start_service("object")
    process = cluster.services["object", 0]
    try:
        until(lambda: all(healthy(port) for port in ports), what="all ports")
        for user in users:
            user.start()
        for _ in range(3):
            reload(process, builds())
        os.kill(workers(process)[0], signal.SIGHUP)  # by hand: the successor comes later
        reload(process, builds())
        held = len(os.listdir(f"/proc/{process.child.pid}/fd"))
        reload(process, builds())
        until(lambda: len(os.listdir(f"/proc/{process.child.pid}/fd")) <= held, what="no more descriptors than before")
    finally:
        over.set()
        for user in users:
            user.join(90)
        cluster.stop()
    assert refused == [] and len(asked) > 100 and all(asked)


def test_a_worker_that_cannot_read_a_ring_serves_the_ports_of_the_one_before(tmp_path):
    layout = Layout(tmp_path / "c", policies=("gold",), overrides={"object": {"DEFAULT": {"servers_per_port": 2, "ring_ip": "127.0.0.1"}}}).write()
    for ring in ("account", "container"):
        (layout.etc / f"{ring}.ring.gz").unlink()  # an object server needs neither
    ports, cluster, ring = port_per_device(layout), Cluster(layout, "martlet"), layout.etc / "object.ring.gz"
    cluster.start_service("object")
    process = cluster.services["object", 0]
    try:
        until(lambda: all(healthy(port) for port in ports), what="all ports")
        whole = ring.read_bytes()
        ring.write_bytes(whole[:100])
        for _ in range(2):
            old = workers(process)
            os.kill(old[0], signal.SIGKILL)
            until(lambda: workers(process) and workers(process) != old, what="another worker")
            until(lambda: all(healthy(port, timeout=60) for port in ports), what="all ports of the worker before")
        process.await_text("object.ring.gz", "the ports of the worker before are served")
        ring.write_bytes(whole)
        extra = free_port()
        builder = RingBuilder.load(str(layout.etc / "object.builder"))
        builder.devs[0]["port"] = extra
        builder.get_ring().save(str(ring))
        until(lambda: healthy(extra), what="the port of a ring that can be read again")
    finally:
        cluster.stop()


def refuses(port):
    try:
        healthy(port)
        return False
    except ConnectionRefusedError:
        return True
    except OSError:  # reset, or no answer
        return False


def test_ports_that_are_wanted_no_more_are_closed(tmp_path, builds):
    layout = Layout(tmp_path / "c", policies=("gold",), overrides={"object": {"DEFAULT": {"servers_per_port": 2, "ring_ip": "127.0.0.1"}}}).write()
    ports, cluster = port_per_device(layout), Cluster(layout, "martlet")
    cluster.start_service("object")
    process, conf = cluster.services["object", 0], layout.etc / "object-server.conf"
    try:
        until(lambda: all(healthy(port) for port in ports), what="all ports")
        builder = RingBuilder.load(str(layout.etc / "object.builder"))
        left, builder.devs[0]["port"] = builder.devs[0]["port"], free_port()
        builder.get_ring().save(str(layout.etc / "object.ring.gz"))
        reload(process, builds())
        until(lambda: refuses(left), within=10, what="the closed port that left the ring")
        ports = [device["port"] for device in builder.devs]
        until(lambda: all(healthy(port) for port in ports), what="the ports of the new ring")
        conf.write_text(conf.read_text().replace("servers_per_port = 2", "servers_per_port = 0"))
        reload(process, builds())
        until(lambda: all(refuses(port) for port in ports), what="ports that are closed")
    finally:
        cluster.stop()


def test_who_comes_after_sigterm_is_refused_while_others_finish(cluster):
    client = Client(cluster.auth_url)
    client.put("c")
    process = cluster.services.pop(("proxy", 0))
    upload = begin_upload(cluster.port, client.path("c", "o"), {"X-Auth-Token": client.token}, 10, b"x")
    process.child.send_signal(signal.SIGTERM)
    until(lambda: refuses(cluster.port), within=15, what="the closed port")  # the upload is not waited for much longer
    assert process.alive() and finish_upload(upload, b"x" * 9) == 201
    assert process.child.wait(60) == 0


def test_a_request_under_way_is_finished_by_the_build_that_began_it(cluster, builds):
    client = Client(cluster.auth_url)
    client.put("c")
    process = cluster.services["proxy", 0]
    old = workers(process)
    upload = begin_upload(cluster.port, client.path("c", "o"), {"X-Auth-Token": client.token}, 10, b"x")
    process.child.send_signal(signal.SIGUSR1)
    until(lambda: len(workers(process)) == 2, within=60, what="both workers")
    client.close()
    assert Client(cluster.auth_url).do("HEAD", "c", "o").status == 404  # answered by the new one
    assert finish_upload(upload, b"x" * 9) == 201
    await_successor(process, *old)
    assert Client(cluster.auth_url).get("c", "o") == b"x" * 10


def test_what_does_not_run_replaces_nothing(cluster, builds):
    process, client = cluster.services["proxy", 0], Client(cluster.auth_url)
    client.put("c")
    old = process.tree()
    place(builds.program, "/bin/false")
    process.child.send_signal(signal.SIGUSR1)
    until(lambda: "serving as before" in process.text(), what="the refusal of a program that fails")
    builds()
    conf = cluster.etc / "proxy-server.conf"
    good = conf.read_text()
    conf.write_text(good.replace("proxy-logging proxy-server", "proxy-logging nonsense proxy-server"))
    process.child.send_signal(signal.SIGUSR1)
    until(lambda: process.text().count("serving as before") == 2, what="the refusal of a wrong configuration")
    process.await_text("nonsense")
    until(lambda: process.tree() == old, what="the end of what did not run")
    conf.write_text(good)
    client.put("c", "o", body=b"x")
    reload(process, builds())
    assert Client(cluster.auth_url).get("c", "o") == b"x"


def held_up(process, conf):
    """SIGUSR1, and the configuration as a pipe at which the new worker waits; a file is in its place again then."""
    good = conf.rename(conf.with_suffix(".good"))
    os.mkfifo(conf)
    process.child.send_signal(signal.SIGUSR1)
    pipe = open(conf, "w")  # waits for the worker
    good.rename(conf)
    return pipe


@pytest.mark.parametrize("role", ALL)
def test_a_configuration_broken_after_the_worker_has_read_it_ends_nothing(cluster, builds, role):
    process, conf = cluster.services[role, 0], cluster.etc / f"{role}-server.conf"
    good, old = conf.read_text(), workers(process)
    with held_up(process, conf) as pipe:
        conf.write_text("[DEFAULT]\nbind_port = nonsense\n")
        pipe.write(good)
    until(lambda: "has read it before" in process.text() and has_successor(process, *old),
          what="the new worker alone")
    cluster.await_service(role)
    conf.write_text(good)
    reload(process, builds())
    assert process.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_during_a_reload_is_heard(cluster, builds, number):
    """It comes while the new worker waits for its configuration, which a pipe holds back."""
    process, conf = cluster.services["object", 0], cluster.etc / "object-server.conf"
    with held_up(process, conf) as pipe:
        build = builds()
        process.child.send_signal(number)
        if number == signal.SIGTERM:
            assert process.child.wait(60) == 0
            return
        pipe.write(conf.read_text())
    if number == signal.SIGHUP:
        assert process.child.wait(60) == 0
    else:
        until(lambda: {build_of(pid) for pid in process.tree()} == {str(build)}, what="the second reload")


def test_sighup_frees_the_port_and_finishes_what_runs(cluster):
    client = Client(cluster.auth_url)
    client.put("c")
    process = cluster.services.pop(("proxy", 0))
    upload = begin_upload(cluster.port, client.path("c", "o"), {"X-Auth-Token": client.token}, 10, b"x")
    process.child.send_signal(signal.SIGHUP)
    assert process.child.wait(30) == 0
    cluster.start_service("proxy")  # the port is free at once
    assert finish_upload(upload, b"x" * 9) == 201
    assert Client(cluster.auth_url).get("c", "o") == b"x" * 10


def test_a_worker_that_dies_is_replaced_and_an_overseer_that_dies_takes_it_along(cluster):
    process = cluster.services["object", 0]
    for _ in range(2):
        (worker,) = workers(process)
        os.kill(worker, signal.SIGKILL)
        await_successor(process, worker)
    cluster.await_service("object")
    (worker,) = workers(process)
    os.kill(process.child.pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{worker}/exe"), what="the end of the worker")


def test_a_worker_told_to_leave_gets_a_successor(cluster):
    process = cluster.services["object", 0]
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
        (worker,) = workers(process)
        os.kill(worker, number)
        await_successor(process, worker)
        cluster.await_service("object")


def test_called_as_openstacks_it_logs_where_openstacks_does_and_lets_go_of_its_output(cluster, tmp_path):
    """`swift-init` waits for the end of the output; systemd for the message."""
    inbox, notify = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
    inbox.bind(str(tmp_path / "log"))
    notify.bind(str(tmp_path / "notify"))
    for receiver in (inbox, notify):
        receiver.settimeout(60)
    cluster.stop_service("object")
    conf = cluster.etc / "object-server.conf"
    conf.write_text(conf.read_text().replace("[DEFAULT]\n", f"[DEFAULT]\nlog_address = {tmp_path}/log\nlog_facility = LOG_LOCAL2\n"))
    link = tmp_path / "swift-object-server"
    link.symlink_to(martlet())
    server = subprocess.Popen([link, conf], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")})
    try:
        assert server.stdout.read() == b""  # ends although the server does not
        assert server.poll() is None and notify.recv(100).startswith(b"READY=1\n")
        assert os.getpgid(server.pid) == server.pid
        until(lambda: inbox.recv(10_000).startswith(b"<150>object-server:  INFO serving on"), what="a line in the log")
        server.send_signal(signal.SIGUSR1)
        assert [notify.recv(100) for _ in range(2)] == [b"RELOADING=1\nSTATUS=starting another worker", b"READY=1\nSTATUS="]
    finally:
        server.terminate()
        assert server.wait(60) == 0
    assert notify.recv(100).startswith(b"STOPPING=1\n")


def test_a_configuration_can_be_tested(cluster):
    conf = cluster.etc / "proxy-server.conf"
    command = [martlet(), "proxy-server", conf, "--test-config"]
    assert subprocess.run(command, timeout=60).returncode == 0
    conf.write_text(conf.read_text().replace("proxy-logging proxy-server", "nonsense proxy-server"))
    failed = subprocess.run(command, timeout=60, capture_output=True, text=True)
    assert failed.returncode == 1 and "nonsense" in failed.stderr
