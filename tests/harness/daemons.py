"""Daemons beside the servers of a cluster: of either make, on the configuration files both read, with an rsync of its own."""

import os
import subprocess
from pathlib import Path

from harness.places import martlet, openstack_command
from harness.process import Process
from harness.waiting import free_port, listening, until

# Daemon → the role whose configuration it reads.
DAEMONS = {"object-replicator": "object", "container-replicator": "container", "account-replicator": "account",
           "object-updater": "object", "container-updater": "container", "object-auditor": "object",
           "container-auditor": "container", "account-auditor": "account"}

# So that a test sees in seconds what an operator sees in minutes.
SWIFTLY = {
    "object-replicator": {"interval": 2, "replicator_interval": 2, "rsync_timeout": 60, "http_timeout": 60},
    "container-replicator": {"interval": 2, "per_diff": 1000}, "account-replicator": {"interval": 2},
    "object-updater": {"interval": 2, "slowdown": 0}, "container-updater": {"interval": 2, "slowdown": 0},
    "object-auditor": {"interval": 5}, "container-auditor": {"interval": 5}, "account-auditor": {"interval": 5},
}


def overrides(rsync_port):
    """What a layout's servers are to say for daemons that come to an end in a test."""
    sections = {}
    for daemon, role in DAEMONS.items():
        options = dict(SWIFTLY[daemon])
        if daemon.endswith("-replicator"):
            options["rsync_module"] = f"rsync://127.0.0.1:{rsync_port}/{role}"
        sections.setdefault(role, {})[daemon] = options
    return sections


def has(daemon):
    """Whether Martlet has that daemon."""
    return subprocess.run([martlet(), daemon, "--help"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


class Rsync:
    """rsync's server over the devices of one layout."""

    def __init__(self, port=None):
        self.port = port or free_port()

    def start(self, layout):
        modules = "".join(f"[{role}]\npath = {layout.srv}\nread only = false\nmax connections = 50\n"
                          f"lock file = {layout.root}/rsync-{role}.lock\n" for role in ("account", "container", "object"))
        conf = Path(layout.root) / "rsyncd.conf"
        # By default, a server that root started runs as the user nobody.
        conf.write_text(f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n{modules}")
        self.process = Process(["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.port}",
                                "--address=127.0.0.1"], layout.root / "log/rsync.log")
        until(lambda: listening(self.port), what="rsync")
        return self

    def stop(self):
        self.process.stop()


class Upkeep:
    """The daemons of a cluster's nodes, each of its own make."""

    def __init__(self, cluster):
        self.cluster, self.running = cluster, {}

    def command(self, daemon, node, kind, *arguments):
        layout = self.cluster.layout
        conf = layout.etc / layout.conf_name(DAEMONS[daemon], node)
        if kind == "openstack":
            return openstack_command(layout.etc, f"swift-{daemon}", conf, "-v", *arguments)
        return [martlet(), daemon, conf, *arguments]

    def start(self, daemon, node, kind):
        log = self.cluster.root / f"log/{daemon}-{node}.log"
        self.running[daemon, node] = Process(self.command(daemon, node, kind), log)

    def stop(self, daemon, node):
        process = self.running.pop((daemon, node))
        assert process.alive(), f"{daemon} of node {node} has ended:\n{process.tail()}"
        process.stop()

    def exchange(self, daemon, node, kind):
        self.stop(daemon, node)
        self.start(daemon, node, kind)

    def stop_all(self):
        for process in self.running.values():
            process.stop()
        self.running = {}
