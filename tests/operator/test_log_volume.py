"""What storage servers and replicators write into their logs: who asked, and no line for each partition of a node that is down."""

import json
import re

import pytest

from harness import upkeep
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.places import martlet
from harness.process import run
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
    return [line for line in cluster.services[role, 0].text().splitlines() if f'"{verb} /' in line]


@pytest.mark.parametrize("level, expected", [("INFO", 0), ("DEBUG", 1)])
def test_access_lines_name_the_peer_and_requests_of_replication_are_for_debugging(cluster, level, expected):
    running = cluster(level)
    Client(running.auth_url).put("c")
    replicate(running.layout.ports["object", 0], "/sdb1/7")
    for role in ("account", "container"):
        replicate(running.layout.ports[role, 0], "/sdb1/7/" + 32 * "0", json.dumps(["sync", 0, "", "", "", 0, 0, 0, "{}"]).encode())
    for role in ("account", "container", "object"):
        assert len(access_lines(running, role, "REPLICATE")) == expected, (role, running.services[role, 0].text())
    puts = access_lines(running, "container", "PUT")
    assert puts and all(re.search(r"[ \]]127\.0\.0\.1 - - \[", line) for line in puts), puts
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
