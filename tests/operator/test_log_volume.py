"""What storage servers and replicators write into their logs: who asked, and no line for each partition of a node that is down."""

import json
import re
import shutil
import time

import pytest
from swift.common import direct_client
from swift.common.ring import Ring

from harness import upkeep
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.places import martlet
from harness.process import run
from harness.waiting import until
from harness.wire import exchange, message

DEVICES = 4


def replicate(port, path, body=b""):
    return exchange(port, message("REPLICATE", path, [("Content-Length", str(len(body))), ("Connection", "close")], body))


@pytest.fixture
def cluster(tmp_path):
    made = []

    def make(level="INFO", nodes=1):
        layout = Layout(tmp_path, nodes=nodes, devices=DEVICES, overrides={role: {"DEFAULT": {"log_level": level}} for role in ("account", "container", "object")}).write()
        made.append(Cluster(layout, "martlet").start())
        return made[0]
    yield make
    for one in made:
        one.stop()


def access_lines(cluster, role, verb):
    """They are written behind the answers."""
    return [line for line in cluster.services[role, 0].text().splitlines() if f'"{verb} /' in line]


@pytest.mark.parametrize("level, expected", [("INFO", 0), ("DEBUG", 1)])
def test_access_lines_name_the_peer_and_requests_of_replication_are_for_debugging(cluster, level, expected):
    running = cluster(level)
    Client(running.auth_url).put("c")
    replicate(running.layout.ports["object", 0], "/sdb1/7")
    for role in ("account", "container"):
        replicate(running.layout.ports[role, 0], "/sdb1/7/" + 32 * "0", json.dumps(["sync", 0, "", "", "", 0, 0, 0, "{}"]).encode())
    puts = until(lambda: access_lines(running, "container", "PUT"), what="a line of a PUT")
    for role in ("account", "container", "object"):
        until(lambda role=role: len(access_lines(running, role, "REPLICATE")) >= expected, what=f"a line of the {role} server")
        assert len(access_lines(running, role, "REPLICATE")) == expected, (role, running.services[role, 0].text())
    assert all(re.search(r"[ \]]127\.0\.0\.1 - - \[", line) for line in puts), puts
    if expected:
        assert re.search(r" 127\.0\.0\.1 - - \[", access_lines(running, "object", "REPLICATE")[0])


@pytest.mark.parametrize("role", ["container", "object"])
def test_a_node_that_is_down_is_one_line_of_a_pass(cluster, role):
    running = cluster(nodes=DEVICES)
    client = Client(running.auth_url)
    for number in range(30):
        client.put(f"c{number}")
        client.put(f"c{number}", "o", body=b"x")
    down = running.layout.ports[role, 1]
    running.kill_service(role, 1)
    conf = running.etc / running.layout.conf_name(role, 0)
    done = run([martlet(), f"{role}-replicator", conf, "once", "-v"], timeout=120)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if f"127.0.0.1:{down}" in line and " DEBUG " not in line]
    assert len(lines) == 1 and " WARN " in lines[0] and re.search(r"cannot connect.*, \d+ times in this pass", lines[0]), done.stderr


def lines_about(output, what):
    return [line for line in output.splitlines() if what in line and " DEBUG " not in line]


def pass_over(cluster, daemon, role):
    done = run([martlet(), daemon, cluster.etc / cluster.layout.conf_name(role, 0), "once", "-v"], timeout=120)
    return done.stdout + done.stderr


def fill(cluster, containers, after=None):
    client = Client(cluster.auth_url)
    for number in range(containers):
        client.put(f"c{number}")
    if after:
        after()
    for number in range(containers):
        client.put(f"c{number}", "o", body=b"x")


def test_a_device_that_is_gone_is_one_line_for_each_server_and_pass(cluster):
    """The server answers (507), for each container, object and figure again."""
    running = cluster(nodes=DEVICES)
    gone = running.srv / "sdb2"
    fill(running, 30, after=lambda: gone.rename(running.srv / "unplugged"))
    for daemon, role, asked in (("object-updater", "object", "container"), ("container-updater", "container", "account")):
        output = pass_over(running, daemon, role)
        lines = lines_about(output, f"127.0.0.1:{running.layout.ports[asked, 1]}")
        expected = r"507 Insufficient Storage, \d+ times in this pass" if asked == "container" else "507 Insufficient Storage"
        assert len(lines) == 1 and " WARN " in lines[0] and re.search(expected, lines[0]), output
    ring = Ring(str(running.etc), ring_name="account")
    partition, nodes = ring.get_nodes("AUTH_test")
    for node in nodes:
        if node["device"] != "sdb2":
            direct_client.direct_delete_account(node, partition, "AUTH_test")
    time.sleep(0.1)  # delay_reaping = 0 is a deletion that is over
    lines = lines_about(pass_over(running, "account-reaper", "account"), f"127.0.0.1:{running.layout.ports['object', 1]}")
    assert len(lines) == 1 and re.search(r"507 Insufficient Storage, \d+ times in this pass", lines[0]), lines


def test_tasks_that_fail_alike_are_one_line(cluster):
    running = cluster()
    client = Client(running.auth_url)
    client.put("c")
    for number in range(12):
        client.put("c", f"o{number}", body=b"x", headers={"X-Delete-After": "1"})
    due = time.time() + 1.5
    for device in running.layout.devices:
        shutil.rmtree(running.srv / device / "objects")
    upkeep.once(running, "openstack", "container-updater", running.etc / "container-server.conf")
    conf = upkeep.write_conf(running, "object-expirer.conf", "object-expirer")
    time.sleep(max(0, due - time.time()))
    output = upkeep.once(running, "martlet", "object-expirer", conf)
    lines = lines_about(output, "Unexpected response while deleting object")
    assert len(lines) == 1 and "404, 12 times in this pass" in lines[0], output


def test_lines_on_standard_error_say_whose_they_are(cluster):
    running = cluster()
    Client(running.auth_url).put("c")
    for (role, _), process in running.services.items():
        lines = process.text().splitlines()
        assert lines and all(re.match(rf"\S+Z {role}-server: ", line) for line in lines), lines
    conf = running.etc / "container-server.conf"
    output = pass_over(running, "container-updater", "container")
    assert re.search(r"Z container-updater:  INFO \d+ done, ", output) and not re.search(r"container-updater: .*container-updater: ", output), output
    Client(running.auth_url).put("another")  # or there is nothing to report
    conf.write_text(conf.read_text().replace("[DEFAULT]", "[DEFAULT]\nlog_name = rack7", 1))
    assert re.search(r"Z rack7:  INFO container-updater: ", pass_over(running, "container-updater", "container"))
