"""Lines and bytes that the servers and daemons of a four-node cluster log in an hour, of each make, healthy and with a node down.

    python tests/operator/log_volume.py --seconds 120

The same requests at the same rate go to both makes; all log at INFO to files. Exits with 1 where Martlet logs more.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import ROLES, Layout  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.places import martlet, openstack_command  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.rsyncd import Rsyncd  # noqa: E402

NODES = 4
DAEMONS = {"account": ["account-replicator", "account-auditor", "account-reaper"],
           "container": ["container-replicator", "container-auditor", "container-updater"],
           "object": ["object-replicator", "object-auditor", "object-updater"]}
# Passes as often in both, so that an hour's share of them is in a short run.
INTERVAL = {"interval": 15}


class LoggingCluster:
    """A cluster whose servers and daemons all run, in processes of their own."""

    def __init__(self, root, make):
        self.make, self.memcached = make, Memcached().start()
        layout = Layout(root, nodes=NODES, devices=NODES, policies=("gold",), part_power=6, memcached_port=self.memcached.port)
        self.rsyncd = Rsyncd(layout.root, layout.srv)
        patience = {"conn_timeout": 0.5, "node_timeout": 5}
        layout.overrides = {role: {"DEFAULT": {"log_level": "INFO"}, **{daemon: {**INTERVAL, **patience} for daemon in daemons}} for role, daemons in DAEMONS.items()}
        for role in ROLES:
            layout.overrides[role][f"{role}-replicator"]["rsync_module"] = self.rsyncd.module(role)
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
        """PUT, GET, HEAD, DELETE and listings in turn, `rate` in a second; how many were answered well."""
        client, answered, began = Client(self.cluster.auth_url), 0, time.monotonic()
        for number in range(20):
            client.send("PUT", f"{client.root}/c{number}")
        for number in itertools.count():
            due = began + number / rate
            if due > began + seconds:
                return answered
            time.sleep(max(0.0, due - time.monotonic()))
            container, turn, name = number % 20, number % 10, f"o{number // 10}"
            method, path = ("PUT", name) if turn < 4 else ("GET", name) if turn < 7 else ("HEAD", name) if turn < 8 else ("GET", "") if turn < 9 else ("DELETE", name)
            reply = client.send(method, f"{client.root}/c{container}/{path}".rstrip("/"), body=b"x" * 2000 if method == "PUT" else None)
            answered += reply.status < 500

    def logs(self):
        return {path.name: path.read_bytes() for path in (self.cluster.root / "log").glob("*.log")}

    def stop(self):
        for _, process in self.daemons:
            process.kill()
        self.cluster.kill()
        self.rsyncd.stop()
        self.memcached.stop()


def measured(make, is_degraded, seconds, rate):
    """Lines and bytes in an hour, and the share of requests that were answered well."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = LoggingCluster(Path(folder), make)
        try:
            running.start()
            running.load(10, rate)
            if is_degraded:
                running.lose_node(1)
            before, began = running.logs(), time.monotonic()
            answered = running.load(seconds, rate)
            took = time.monotonic() - began
            written = [content[len(before.get(name, b"")):] for name, content in running.logs().items()]
            if keep := os.environ.get("MARTLET_KEEP_LOGS"):
                for name, content in running.logs().items():
                    (Path(keep) / f"{make}-{'degraded' if is_degraded else 'healthy'}-{name}").write_bytes(content[len(before.get(name, b"")):])
            hour = 3600 / took
            return round(sum(part.count(b"\n") for part in written) * hour), round(sum(map(len, written)) * hour), answered / (seconds * rate)
        finally:
            running.stop()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=120, help="of each of the four runs")
    options.add_argument("--rate", type=float, default=10, help="requests in a second")
    chosen, is_more = options.parse_args(), False
    print("| cluster | make | lines in an hour | bytes in an hour | requests answered |\n|---|---|---:|---:|---:|")
    for is_degraded in (False, True):
        figures = {}
        for make in ("openstack", "martlet"):
            figures[make] = lines, count, answered = measured(make, is_degraded, chosen.seconds, chosen.rate)
            name = {"openstack": "OpenStack Swift", "martlet": "Martlet"}[make]
            print(f"| {'one node of four down' if is_degraded else 'healthy'} | {name} | {lines:,} | {count:,} | {100 * answered:.0f} % |", flush=True)
        is_more |= any(ours > theirs for ours, theirs in zip(figures["martlet"][:2], figures["openstack"][:2], strict=True))
    return int(is_more)


if __name__ == "__main__":
    sys.exit(main())
