"""The files of a cluster of machines: each node and each gateway has its own /etc/swift, rings included.

Time-outs are short, so that a fault can outlast every one of them, and upkeep is brisk. A layout starts nothing.
"""

import shutil

from swift.common import utils
from swift.common.ring import Ring, RingBuilder

from harness.filters import LEAN
from harness.layout import PREFIX, ROLES, SUFFIX, USERS, ini
from storm.network import HOST

PORTS = {"object": 6200, "container": 6201, "account": 6202}
HASH = {"swift_hash_path_prefix": PREFIX, "swift_hash_path_suffix": SUFFIX}
utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = PREFIX.encode(), SUFFIX.encode()  # else looked for in /etc/swift
SOON = {"conn_timeout": 0.5, "node_timeout": 3}
BRISK = {**SOON, "interval": 3}
DAEMONS = {
    "account": ("account-replicator", "account-auditor", "account-reaper"),
    "container": ("container-replicator", "container-updater", "container-auditor"),
    "object": ("object-replicator", "object-updater", "object-auditor", "object-expirer"),
}
OPTIONS = {
    "object-replicator": {**BRISK, "sync_method": "ssync", "http_timeout": 8, "lockup_timeout": 60, "concurrency": 2, "ring_check_interval": 2},
    "object-auditor": {"interval": 5, "files_per_second": 10000, "bytes_per_second": 10**10, "zero_byte_files_per_second": 10000},
    "object-updater": {**BRISK, "objects_per_second": 1000},
    "container-updater": {**BRISK, "account_suppression_time": 1},
    "container-auditor": {"interval": 5},
    "account-auditor": {"interval": 5},
}


class Layout:
    """`nodes` storage nodes of `devices` drives each, a zone to a node; `gateways` proxies; two policies."""

    def __init__(self, root, *, nodes=4, devices=2, gateways=2, part_power=5):
        self.root, self.part_power = root, part_power
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self.gateways = [f"gateway{number}" for number in range(1, gateways + 1)]
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(self.nodes, 1)}
        self.addresses |= {name: f"10.77.0.{number}" for number, name in enumerate(self.gateways, 101)}
        self.devices = {node: [f"d{node[4:]}{letter}" for letter in "abcdefgh"[:devices]] for node in self.nodes}
        self.policies = {0: "gold", 1: "silver"}
        self.ring_names = ["account", "container", "object", "object-1"]

    def etc(self, holder):
        return self.root / "etc" / holder

    def srv(self, node):
        return self.root / "srv" / node

    def auth_url(self, gateway):
        return f"http://{self.addresses[gateway]}:8080/auth/v1.0"

    def write(self):
        for holder in ("builders", *self.addresses):
            self.etc(holder).mkdir(parents=True)
        for holder in self.addresses:
            (self.root / "run" / holder).mkdir(parents=True)
        for name in self.ring_names:
            self._first_ring(name)
        policies = {f"storage-policy:{index}": {"name": name, **({"default": "yes"} if index == 0 else {})} for index, name in self.policies.items()}
        for holder in self.addresses:
            (self.etc(holder) / "swift.conf").write_text(ini({"swift-hash": HASH, **policies}))
            self.roll_out(holder)
        for gateway in self.gateways:
            (self.etc(gateway) / "proxy-server.conf").write_text(ini(self._proxy(gateway)))
        for node in self.nodes:
            for role in ROLES:
                (self.etc(node) / f"{role}-server.conf").write_text(ini(self._storage(role, node)))
                after = ini(self._long_after(role, node))
                (self.etc(node) / f"{role}-server-long-after.conf").write_text(after)
            (self.etc(node) / "internal-client.conf").write_text(ini(self._internal_client(node)))
            (self.etc(node) / "rsyncd.conf").write_text(self._rsyncd(node))
        return self

    def _first_ring(self, name):
        builder, number = RingBuilder(self.part_power, 3, 1), 0
        for zone, node in enumerate(self.nodes, 1):
            for device in self.devices[node]:
                address, port = self.addresses[node], PORTS[name.split("-")[0]]
                builder.add_dev({"id": number, "region": 1, "zone": zone, "weight": 100.0, "device": device, "ip": address, "port": port,
                                 "replication_ip": address, "replication_port": port, "meta": ""})
                number += 1
        builder.rebalance(seed=1)
        self._save(builder, name)

    def rebalance(self, dice):
        """Change a weight in every ring, as an operator would; no machine has the new rings yet."""
        for name in self.ring_names:
            builder = RingBuilder.load(str(self.etc("builders") / f"{name}.builder"))
            builder.pretend_min_part_hours_passed()  # one replica of a partition moves, whatever the weights
            builder.set_dev_weight(dice.choice([device["id"] for device in builder.devs if device]), dice.choice([25.0, 50.0, 100.0, 200.0]))
            builder.rebalance(seed=dice.randrange(1 << 30))
            self._save(builder, name)

    def _save(self, builder, name):
        builder.save(str(self.etc("builders") / f"{name}.builder"))
        builder.get_ring().save(str(self.etc("builders") / f"{name}.ring.gz"))

    def roll_out(self, holder):
        """Give one machine the newest rings."""
        for name in self.ring_names:
            fresh = self.etc(holder) / f"{name}.ring.new"
            shutil.copy(self.etc("builders") / f"{name}.ring.gz", fresh)
            fresh.rename(self.etc(holder) / f"{name}.ring.gz")

    def ring(self, name):
        return Ring(str(self.etc("builders")), ring_name=name)

    def _proxy(self, gateway):
        return {
            "DEFAULT": {"bind_ip": self.addresses[gateway], "bind_port": 8080, "workers": 1, "user": "root", "swift_dir": self.etc(gateway)},
            "pipeline:main": {"pipeline": LEAN},
            "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true", "allow_account_management": "true", **SOON,
                                 "recoverable_node_timeout": 3, "error_suppression_interval": 5},
            "filter:tempauth": {"use": "egg:swift#tempauth", **USERS},
            "filter:cache": {"use": "egg:swift#memcache", "memcache_servers": f"{HOST}:11211"},
            **{f"filter:{name}": {"use": f"egg:swift#{name.replace('-', '_')}"}
               for name in set(LEAN.split()) - {"cache", "tempauth", "proxy-server"}},
        }

    def _storage(self, role, node):
        run = self.root / "run" / node
        return {
            "DEFAULT": {"bind_ip": self.addresses[node], "bind_port": PORTS[role], "workers": 1, "user": "root", "swift_dir": self.etc(node),
                        "devices": self.srv(node), "mount_check": "true", "recon_cache_path": run},
            "pipeline:main": {"pipeline": f"healthcheck recon {role}-server"},
            f"app:{role}-server": {"use": f"egg:swift#{role}", **(SOON if role != "account" else {}),
                                   **({"container_update_timeout": 1} if role == "object" else {})},
            "filter:recon": {"use": "egg:swift#recon", "recon_cache_path": run},
            "filter:healthcheck": {"use": "egg:swift#healthcheck"},
            **{daemon: OPTIONS.get(daemon, BRISK) for daemon in DAEMONS[role]},
            **({"object-expirer": self._expirer(node)} if role == "object" else {}),
        }

    def _expirer(self, node):
        return {"interval": 2, "dequeue_from_legacy": "true", "internal_client_conf_path": self.etc(node) / "internal-client.conf"}

    def _internal_client(self, node):
        return {
            "DEFAULT": {"swift_dir": self.etc(node)},
            "pipeline:main": {"pipeline": "catch_errors cache proxy-server"},
            "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true", **SOON},
            "filter:cache": {"use": "egg:swift#memcache", "memcache_servers": f"{HOST}:11211"},
            "filter:catch_errors": {"use": "egg:swift#catch_errors"},
        }

    def _long_after(self, role, node):
        """As if reclaim_age had passed: tombstones go, and an object that no listing knows is dark."""
        sections = self._storage(role, node)
        sections["DEFAULT"]["reclaim_age"] = 1
        if role == "object":
            sections["object-auditor"] = {**sections["object-auditor"], "watchers": "swift#dark_data"}
            sections["object-auditor:watcher:swift#dark_data"] = {"action": "delete", "grace_age": 1}
        return sections

    def _rsyncd(self, node):
        common = f"uid = root\ngid = root\naddress = {self.addresses[node]}\nport = 873\npid file = {self.root}/run/{node}/rsyncd.pid\n"
        modules = [f"[{role}]\nmax connections = 8\npath = {self.srv(node)}\nread only = false\nlock file = {self.root}/run/{node}/{role}.lock\n"
                   for role in ROLES]
        return common + "\n".join(modules)
