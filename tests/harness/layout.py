"""The files of a cluster, as an operator would write them: swift.conf, rings, server configurations.

Both makes read the very same files; that is the point. A layout starts nothing.
"""

import getpass
import hashlib
from pathlib import Path

from swift.common import utils
from swift.common.ring import RingBuilder

from harness import filters
from harness.waiting import free_port

ROLES = ("account", "container", "object")
USERS = {
    "user_admin_admin": "admin .admin .reseller_admin",
    "user_test_tester": "testing .admin",
    "user_test_tester2": "testing2 .admin",
    "user_test_tester3": "testing3",
    "user_test2_tester2": "testing2 .admin",
    "user_test3_tester": "testing .admin",
    "user_test5_tester5": "testing5 service",
    "user_test_tester6": "testing6 .reseller_admin",
}

# A busy machine is no dead one: without this a late answer becomes a handoff, a pending update or a replica left out, and
# no daemon runs in the tests to finish those, or just once.
PATIENCE = {"conn_timeout": 5, "node_timeout": 20}
# Martlet's: nor is a slow disk a node that hangs.
HEARING = {"silence_timeout": 20}
AUDIT_FAST = {"files_per_second": 10000, "bytes_per_second": 10**10, "zero_byte_files_per_second": 10000}


PREFIX, SUFFIX = "before", "after"
# OpenStack's library in this process would look for them in /etc/swift.
utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = PREFIX.encode(), SUFFIX.encode()


def hash_path(name):
    """What an account, a container or an object ("/a/c/o") is called on disk."""
    return hashlib.md5(f"{PREFIX}{name}{SUFFIX}".encode()).hexdigest()


def ini(sections):
    """The text of a configuration file."""
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in options.items()), ""]
    return "\n".join(lines)


class Layout:
    """A directory with etc/ and srv/: `nodes` storage nodes share `devices` devices between them.

    All nodes have them in one folder, so that a daemon of any finds those of all. With `apart` each has a folder of its own, as machines
    have (`srv_of`). `overrides` maps a server ("proxy", "object", …) to sections to options to set on top.
    """

    def __init__(self, root, *, nodes=1, devices=4, replicas=3, part_power=8, policies=("gold", "silver"),
                 memcached_port=None, workers=1, overrides=None, start_delay=0, pipeline=filters.PIPELINE, apart=False):
        self.root = Path(root)
        self.etc, self.srv, self.run = self.root / "etc", self.root / "srv", self.root / "run"
        self.nodes, self.replicas, self.part_power, self.apart = nodes, replicas, part_power, apart
        self.policies, self.workers, self.pipeline = policies, workers, pipeline
        self.memcached_port, self.overrides = memcached_port, overrides or {}
        self.devices = [f"sdb{number + 1}" for number in range(devices)]
        self.proxy_port = free_port()
        self.ports = {(role, node): free_port() for role in ROLES for node in range(nodes)}
        devices = (self.srv_of(self.node_of(index)) / name for index, name in enumerate(self.devices))
        for folder in (self.etc, *map(self.run_of, range(nodes)), *devices):
            folder.mkdir(parents=True, exist_ok=True)

    def node_of(self, index):
        return index % self.nodes

    def srv_of(self, node):
        return self.srv / f"node{node + 1}" if self.apart else self.srv

    def run_of(self, node):
        return self.run / f"node{node + 1}" if self.apart else self.run

    def write(self):
        """Write every file; call again after changing a field."""
        self._swift_conf()
        for name in self.ring_names():
            self._ring(name)
        self._write("proxy-server.conf", "proxy", self._proxy())
        for role, node in self.ports:
            self._write(self.conf_name(role, node), role, self._storage(role, node))
        return self

    def ring_names(self):
        return ["account", "container", "object"] + [f"object-{i}" for i in range(1, len(self.policies))]

    def conf_name(self, role, node=0):
        return f"{role}-server.conf" if self.nodes == 1 or role == "proxy" else f"{role}-server-{node + 1}.conf"

    def _swift_conf(self):
        sections = {"swift-hash": {"swift_hash_path_prefix": PREFIX, "swift_hash_path_suffix": SUFFIX}}
        for index, name in enumerate(self.policies):
            sections[f"storage-policy:{index}"] = {"name": name, **({"default": "yes"} if index == 0 else {})}
        self._write("swift.conf", "swift", sections)

    def _ring(self, name):
        role = name.split("-")[0]
        builder = RingBuilder(self.part_power, self.replicas, 1)
        for index, device in enumerate(self.devices):
            port = self.ports[role, self.node_of(index)]
            builder.add_dev({"id": index, "region": 1, "zone": index + 1, "weight": 100.0, "device": device,
                             "ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1",
                             "replication_port": port, "meta": ""})
        builder.rebalance(seed=1)
        builder.save(str(self.etc / f"{name}.builder"))
        builder.get_ring().save(str(self.etc / f"{name}.ring.gz"))

    def _common(self, port):
        return {"bind_ip": "127.0.0.1", "bind_port": port, "workers": self.workers, "user": getpass.getuser(),
                "swift_dir": self.etc}

    def _proxy(self):
        # without a memcached of its own, a cluster must not find another's at the default port: nothing listens at port 1; and to OpenStack's
        # TempAuth a token that memcached does not give in time is none
        cache = {"use": "egg:swift#memcache", "connect_timeout": 5, "pool_timeout": 20, "io_timeout": 20,
                 "memcache_servers": f"127.0.0.1:{self.memcached_port or 1}"}
        return {
            **filters.overrides(self.pipeline)["proxy"],
            "DEFAULT": self._common(self.proxy_port),
            "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true",
                                 "allow_account_management": "true", "post_quorum_timeout": 20, **PATIENCE, **HEARING},
            "filter:tempauth": {"use": "egg:swift#tempauth", "reseller_prefix": "AUTH, SERVICE",
                                "SERVICE_require_group": "service", **USERS},
            "filter:cache": cache,
        }

    def _storage(self, role, node):
        return {
            "DEFAULT": {**self._common(self.ports[role, node]), "devices": self.srv_of(node), "mount_check": "false",
                        "recon_cache_path": self.run_of(node)},
            "pipeline:main": {"pipeline": f"healthcheck recon {role}-server"},
            f"app:{role}-server": {"use": f"egg:swift#{role}", **({} if role == "account" else PATIENCE | HEARING),
                                   **({"container_update_timeout": 10} if role == "object" else {})},
            "filter:recon": {"use": "egg:swift#recon", "recon_cache_path": self.run_of(node)},
            "filter:healthcheck": {"use": "egg:swift#healthcheck"},
            f"{role}-replicator": PATIENCE, f"{role}-auditor": AUDIT_FAST if role == "object" else {},
            ("account-reaper" if role == "account" else f"{role}-updater"): PATIENCE,
        }

    def _write(self, file_name, server, sections):
        merged = {name: dict(options) for name, options in sections.items()}
        for section, options in self.overrides.get(server, {}).items():
            merged.setdefault(section, {}).update(options)
        (self.etc / file_name).write_text(ini(merged))
