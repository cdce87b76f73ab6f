"""Lines and bytes that the servers and daemons of a four-node cluster log, of each make, healthy and with a node down.

    python tests/operator/log_volume.py --seconds 120

The same requests go to both makes at the same rate, whether earlier ones were answered or not; all log at INFO to files. Lines of
servers are counted for each request, lines of daemons for each interval, the same for both, at which a daemon begins a pass. Exits with 1 where
Martlet logs more.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import ROLES, Layout  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.places import martlet, openstack_command  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.rsyncd import Rsyncd  # noqa: E402

NODES, CONTAINERS = 4, 20
DAEMONS = {"account": ["account-replicator", "account-auditor", "account-reaper"],
           "container": ["container-replicator", "container-auditor", "container-updater"],
           "object": ["object-replicator", "object-auditor", "object-updater"]}
# Passes as often in both, so that an hour's share of them is in a short run.
INTERVAL = 15
TIME = re.compile(rb"^\d{4}-\S+Z ", re.M)
# Requests that may be under way at a time: enough for a second of them, and each user's own connection is used again.
USERS = 16


class LoggingCluster:
    """A cluster whose servers and daemons all run, in processes of their own."""

    def __init__(self, root, make):
        self.make, self.memcached = make, Memcached().start()
        layout = Layout(root, nodes=NODES, devices=NODES, policies=("gold",), part_power=6, memcached_port=self.memcached.port, apart=True)
        # One daemon stands for those of all nodes: its modules are named by the device, as a node has one.
        self.rsyncd = Rsyncd(layout.root, None, {f"{role}_{device}": layout.srv_of(layout.node_of(index))
                                                 for role in ROLES for index, device in enumerate(layout.devices)})
        patience = {"conn_timeout": 0.5, "node_timeout": 5}
        layout.overrides = {role: {"DEFAULT": {"log_level": "INFO"}, **{daemon: {"interval": INTERVAL, **patience} for daemon in daemons}} for role, daemons in DAEMONS.items()}
        for role in ROLES:
            layout.overrides[role][f"{role}-replicator"]["rsync_module"] = self.rsyncd.module(f"{role}_{{device}}")
        layout.overrides["proxy"] = {"DEFAULT": {"log_level": "INFO"}, "app:proxy-server": patience}
        self.cluster, self.daemons = Cluster(layout.write(), make), []

    def start(self):
        self.cluster.start()
        for (role, node), daemon in ((place, daemon) for place in self.cluster.layout.ports for daemon in DAEMONS[place[0]]):
            conf = self.cluster.etc / self.cluster.layout.conf_name(role, node)
            command = [martlet(), daemon, conf] if self.make == "martlet" else openstack_command(self.cluster.etc, f"swift-{daemon}", conf, "-v")
            self.daemons.append((node, Process(command, self.cluster.root / f"log/{daemon}-{node}.log")))
        return self

    def lose_node(self, lost):
        """Its servers and its daemons; the other nodes are not told."""
        for role in ROLES:
            self.cluster.kill_service(role, lost)
        for process in (process for node, process in self.daemons if node == lost):
            process.kill()

    def load(self, seconds, rate):
        """PUT, GET, HEAD, DELETE and listings in turn, `rate` in a second; how many were answered well, and how long the whole took.

        Each is sent at its time, whether those before it were answered or not.
        """
        clients = [Client(self.cluster.auth_url) for _ in range(USERS)]
        for number in range(CONTAINERS):
            clients[0].send("PUT", f"{clients[0].root}/c{number}")
        began = time.monotonic()

        def use(user):
            return sum(self.request(clients[user], number, began + number / rate) for number in range(user, int(seconds * rate), USERS))
        with ThreadPoolExecutor(USERS) as users:
            return sum(users.map(use, range(USERS))), time.monotonic() - began

    def request(self, client, number, due):
        time.sleep(max(0.0, due - time.monotonic()))
        turn, path = number % 10, f"{client.root}/c{number // 10 % CONTAINERS}"
        method = "PUT" if turn < 4 else "GET" if turn < 7 else "HEAD" if turn < 8 else "GET" if turn < 9 else "DELETE"
        # Four are written, three of them read, one looked at, the container is listed, one deleted.
        name = "" if turn == 8 else f"/o{number // 10}-{turn % 4}"
        reply = client.send(method, path + name, body=b"x" * 2000 if method == "PUT" else None)
        return reply.status < 500

    def logs(self):
        return {path.name: path.read_bytes() for path in (self.cluster.root / "log").glob("*.log")}

    def stop(self):
        for _, process in self.daemons:
            process.kill()
        self.cluster.kill()
        self.rsyncd.stop()
        self.memcached.stop()


@dataclass
class Volume:
    """What was logged meanwhile, by servers and by daemons; `intervals` are those of all daemons."""

    rate: float
    requests: int
    answered: int
    seconds: float
    intervals: float
    server_lines: int
    daemon_lines: int
    size: int

    def figures(self):
        """What the makes are compared by. An hour has as many requests for both, however long these took to be answered."""
        per_request, per_interval = self.server_lines / self.requests, self.daemon_lines / self.intervals
        lines = (per_request * self.rate + self.daemon_lines / self.seconds) * 3600
        return per_request, per_interval, lines, lines * self.size / (self.server_lines + self.daemon_lines)

    def row(self, state, make):
        per_request, per_interval, lines, size = self.figures()
        return (f"| {state} | {make} | {per_request:.2f} | {per_interval:.2f} | {lines:,.0f} | {size / 1e6:,.1f} "
                f"| {100 * self.answered / self.requests:.0f} % |")


def measured(make, is_degraded, seconds, rate):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = LoggingCluster(Path(folder), make)
        try:
            running.start()
            running.load(10, rate)
            if is_degraded:
                running.lose_node(1)
            before, requests = running.logs(), int(seconds * rate)
            answered, took = running.load(seconds, rate)
            written = {name: content[len(before.get(name, b"")):] for name, content in running.logs().items()}
            if keep := os.environ.get("MARTLET_KEEP_LOGS"):
                for name, content in written.items():
                    (Path(keep) / f"{make}-{'degraded' if is_degraded else 'healthy'}-{name}").write_bytes(content)
            lines = {name: content.count(b"\n") for name, content in written.items()}
            servers = {name for name in lines if re.match(r"(proxy|account|container|object)-\d+\.log$", name)}
            # The system's log has the time of a line besides: OpenStack's lines on standard error lack it, and so do ours here.
            size = sum(map(len, written.values())) - sum(len(time) for content in written.values() for time in TIME.findall(content))
            intervals = took / INTERVAL * sum(process.alive() for _, process in running.daemons)
            return Volume(rate, requests, answered, took, intervals, sum(lines[name] for name in servers), sum(lines[name] for name in lines.keys() - servers),
                          size)
        finally:
            running.stop()


HEAD = """| cluster | make | lines of servers for a request | lines of a daemon for a pass | lines in an hour | MB in an hour | requests answered |
|---|---|---:|---:|---:|---:|---:|"""


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=120, help="of each of the four runs")
    options.add_argument("--rate", type=float, default=10, help="requests in a second")
    chosen, is_more = options.parse_args(), False
    print(HEAD, flush=True)
    for is_degraded in (False, True):
        volumes = {}
        for make, name in (("openstack", "OpenStack Swift"), ("martlet", "Martlet")):
            volumes[make] = measured(make, is_degraded, chosen.seconds, chosen.rate)
            print(volumes[make].row("one node of four down" if is_degraded else "healthy", name), flush=True)
        is_more |= any(ours > theirs for ours, theirs in zip(volumes["martlet"].figures(), volumes["openstack"].figures(), strict=True))
    return int(is_more)


if __name__ == "__main__":
    sys.exit(main())
