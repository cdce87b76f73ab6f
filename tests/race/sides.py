"""The two who race: each started as its operator would, measured by its process tree."""

import configparser
import shutil
import subprocess
import urllib.parse
from pathlib import Path

from harness import disk, filters
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached
from harness.places import REPOSITORY

ROWS = 100_000
LUA = Path(__file__).with_name("load.lua")


class Side:
    """A store with a memcached, a token, and a container for each event."""

    def __init__(self, name, root, binary=None):
        self.name, self.root, self.binary = name, root, binary
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        self.memcached = Memcached().start()
        self.system = self.make()

    def start(self):
        self.system.start()
        self.client = Client(self.system.auth_url)
        for container in ("small", "large", "listing"):
            self.client.put(container)

    def url(self):
        return f"http://127.0.0.1:{self.system.port}"

    def cpu_seconds(self):
        return self.system.cpu_seconds()

    def fill_listing(self):
        """Give the container its rows through OpenStack's own database library: both read the same format."""
        self.system.stop()
        rows = [{"name": f"object-{number:06d}", "created_at": "1700000000.00000", "size": 4096, "content_type": "application/octet-stream",
                 "etag": "d41d8cd98f00b204e9800998ecf8427e", "deleted": 0, "storage_policy_index": 0} for number in range(ROWS)]
        from swift.container.backend import ContainerBroker
        filled = 0
        for path in disk.databases(self.system.srv, "containers"):
            broker = ContainerBroker(str(path))
            if broker.get_info()["container"] == "listing":
                broker.merge_items(list(rows))
                filled += 1
        assert filled == 3, f"{filled} databases of the container"
        self.start()

    def stop(self):
        self.system.stop()
        self.memcached.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def load(self, verb, container, *, connections, seconds, size=0, names=0, limits=(0,), mark=""):
        """One run of the loader; its RESULT."""
        if verb == "HEAD":
            arguments = [self.system.port, urllib.parse.quote(self.client.path(container, mark)), self.client.token, names, connections, seconds]
            return subprocess.run([head_load(), *map(str, arguments)], capture_output=True, text=True, check=True).stdout
        prefix = self.client.path(container) if verb == "LIST" else self.client.path(container, mark)
        command = ["wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s", "--latency", "--timeout", "30s",
                   "-s", str(LUA), self.url(), "--", verb, urllib.parse.quote(prefix), self.client.token, str(size), str(names),
                   ",".join(map(str, limits))]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def head_load():
    """The loader for HEAD, compiled when first wanted."""
    binary = REPOSITORY / "target/race/head_load"
    source = Path(__file__).with_name("head_load.c")
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Wall", "-o", str(binary), str(source)], check=True)
    return str(binary)


class OpenStack(Side):
    """OpenStack Swift from PyPI, as many workers as processors in every server."""

    def make(self):
        layout = Layout(self.root, part_power=10, policies=("Policy-0",), memcached_port=self.memcached.port, workers="auto",
                        pipeline=filters.LEAN)
        return Cluster(layout.write(), "openstack", verbose=False)


class Martlet(Side):
    """`martlet up` on a new directory, with memcached written into its configuration as an operator would."""

    def make(self):
        up = MartletUp(self.root, binary=self.binary).start()
        up.stop()
        path = up.etc / "proxy-server.conf"
        conf = configparser.RawConfigParser(strict=False)
        conf.optionxform = str
        conf.read(path)
        if not conf.has_section("filter:cache"):
            conf.add_section("filter:cache")
            conf.set("filter:cache", "use", "egg:swift#memcache")
            pipeline = conf.get("pipeline:main", "pipeline")
            conf.set("pipeline:main", "pipeline", pipeline.replace("proxy-logging", "proxy-logging cache", 1))
        conf.set("filter:cache", "memcache_servers", f"127.0.0.1:{self.memcached.port}")
        with open(path, "w") as file:
            conf.write(file)
        return up



