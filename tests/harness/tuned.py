"""A small cluster without a mistake, for tests that make one: three zones of one server each, with drives of their own for listings.

Servers listen at 127.0.0.1, .2 and .3; each device is a tmpfs of its own, so that it has a size and can go away (needs root).
"""

import json
import subprocess
import time

from harness.cluster import Cluster
from harness.layout import Layout, RingBuilder
from harness.memcached import Memcached
from harness.places import martlet, openstack_command
from harness.process import run
from harness.waiting import until

NODES, LISTINGS, OBJECTS = 3, 3, 6
SIZE = 64 << 20
DAEMONS = [("object-replicator", "object"), ("container-replicator", "container"), ("account-replicator", "account"),
           ("object-updater", "object")]


def more_are_silent(report, expected):
    """Whether a look has missed the answers of more servers than those."""
    is_said = any(cause["name"] == "server-does-not-answer" for cause in report["causes"])
    return is_said and report["asked"] - report["answered"] > expected


class TunedLayout(Layout):
    """Devices 0 to 2 hold listings, one in each node, 3 to 8 objects."""

    def __init__(self, root, **options):
        super().__init__(root, nodes=NODES, devices=LISTINGS + OBJECTS, part_power=9, policies=("gold",), apart=True, **options)

    def ip(self, node):
        return f"127.0.0.{node + 1}"

    def mount(self, index, size=SIZE):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,size={size}", "tmpfs", self.place(index)], check=True)

    def unmount(self, index):
        subprocess.run(["umount", "-l", self.place(index)], check=True)

    def place(self, index):
        return self.srv_of(self.node_of(index)) / self.devices[index]

    def _ring(self, name):
        role = name.split("-")[0]
        indexes = range(LISTINGS, LISTINGS + OBJECTS) if role == "object" else range(LISTINGS)
        builder = RingBuilder(self.part_power, self.replicas, 1)
        for index in indexes:
            node = self.node_of(index)
            ip, port = self.ip(node), self.ports[role, node]
            builder.add_dev({"id": index, "region": 1, "zone": node + 1, "weight": 64.0, "device": self.devices[index],
                             "ip": ip, "port": port, "replication_ip": ip, "replication_port": port, "meta": ""})
        builder.rebalance(seed=1)
        builder.save(str(self.etc / f"{name}.builder"))
        builder.get_ring().save(str(self.etc / f"{name}.ring.gz"))

    def _storage(self, role, node):
        sections = super()._storage(role, node)
        sections["DEFAULT"]["bind_ip"] = self.ip(node)
        return sections


class TunedCluster(Cluster):
    """All of one make, with a memcached."""

    def __init__(self, root, kind):
        self.memcached = Memcached().start()
        # One process of OpenStack's would be a mistake.
        super().__init__(TunedLayout(root, memcached_port=self.memcached.port, workers=2 if kind == "openstack" else 1).write(), kind)
        self.kind, self.mounted = kind, set()
        for index in range(len(self.layout.devices)):
            self.mount(index)

    def mount(self, index, size=SIZE):
        self.layout.mount(index, size)
        self.mounted.add(index)

    def unmount(self, index):
        self.mounted.discard(index)
        self.layout.unmount(index)

    def await_service(self, role, node=0):
        ip, port = self.address(role, node)
        self.services[role, node].wait_for(lambda: self.answers(ip, port))

    def address(self, role, node=0):
        return ("127.0.0.1", self.port) if role == "proxy" else (self.layout.ip(node), self.layout.ports[role, node])

    @staticmethod
    def answers(ip, port):
        return subprocess.run(["curl", "-sf", "-m", "2", f"http://{ip}:{port}/healthcheck"], capture_output=True).returncode == 0

    def run_daemons(self):
        """One pass of each, as a cluster that is looked after has had."""
        for daemon, role in DAEMONS:
            for node in range(NODES):
                conf = self.etc / self.layout.conf_name(role, node)
                if self.kind == "openstack":
                    run(openstack_command(self.etc, f"swift-{daemon}", conf, "once"))
                else:
                    run([martlet(), daemon, conf, "once"])

    def stop(self):
        statuses = super().stop()
        self.memcached.stop()
        for index in list(self.mounted):
            self.unmount(index)
        return statuses

    def ring(self, name, *words):
        """A command of the ring builder on one of the builders; what it said."""
        done = run([martlet(), "ring-builder", self.etc / f"{name}.builder", *words], check=False)
        assert done.returncode < 2, (words, done.stdout, done.stderr)
        return done.stdout

    def look(self, *arguments, within=10, as_json=True, status=0, silent=0):
        """What `martlet advise look` says of it, while so many of its servers are `silent`. On a busy machine one that runs may not answer in
        time, nor the look end in it: it is taken again then, and what is said each time counts."""
        command = [martlet(), "advise", "look", "--swift-dir", self.etc, "--timeout", "4", *arguments, *(["--json"] if as_json else [])]
        for is_last in (False, False, False, False, True):
            begun = time.monotonic()
            done = run(command, check=False, timeout=120)
            took = time.monotonic() - begun
            assert done.returncode == status, (done.stdout, done.stderr)
            answer = json.loads(done.stdout) if as_json else done.stdout
            if is_last or (took < within and not (as_json and more_are_silent(answer, silent))):
                break
        assert took < within, (took, done.stdout, done.stderr)
        return answer

    def access_log(self, since):
        """The lines of the gateway from a place on that `log_end` has said."""
        path = self.root / f"access-{time.monotonic_ns()}.log"
        path.write_text(self.services["proxy", 0].text()[since:])
        return path

    def log_end(self):
        return len(self.services["proxy", 0].text())

    def await_lines(self, since, count):
        """Lines of so many PUT, those of containers among them: they are written behind the answers."""
        until(lambda: self.services["proxy", 0].text()[since:].count(" PUT /v1/") >= count, what="the access log")
