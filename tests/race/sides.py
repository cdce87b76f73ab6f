"""The two who race: each started as its operator would, measured by its process tree."""

import configparser
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness import disk, filters
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached
from harness.places import martlet

ROWS, PAGE = 100_000, 10_000
MOST = 1_000_000_000  # names: more than any run uses
# What containers are called here: `martlet bench` numbers them.
CONTAINERS = ("small", "large", "listing")


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
        for container in CONTAINERS:
            self.client.put(f"{container}1")

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
            if broker.get_info()["container"] == "listing1":
                broker.merge_items(list(rows))
                filled += 1
        assert filled == 3, f"{filled} databases of the container"
        self.start()

    def stop(self):
        self.system.stop()
        self.memcached.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def load(self, verb, container, *, connections, seconds, size=0, names=0, most=0, mark="", report=None):
        """One run of `martlet bench`: its report, which is kept where `report` says.

        Without `names` each request has a name of its own, of `most` at most where that is given."""
        with tempfile.TemporaryDirectory() as folder:
            workload, report = Path(folder, "workload.toml"), report or Path(folder, "report.json")
            operations = self.operations(verb, container, size, names, most, mark)
            workload.write_text(f'name = "race"\n[[stage]]\nname = "main"\nworkers = {connections}\nruntime = "{seconds}s"\n'
                                f'operations = [\n{operations}]\n')
            # The containers were made by the race, and not by the benchmark.
            command = [martlet(), "bench", "run", workload, "-A", self.system.auth_url, "-U", "test:tester", "-K", "testing", "--anything-goes",
                       "--threads", "2", "--json", report]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            if not report.exists():
                raise SystemExit(f"void: {done.stdout}{done.stderr}")
            return json.loads(report.read_text())

    def operations(self, verb, container, size, names, most, mark):
        """What one cell of the table asks for, as a workload has it."""
        place = f'cprefix = "{container}", containers = "c(1)"'
        if verb == "LIST":
            pages = [f"format=json&marker=object-{page * PAGE:06d}" for page in range(ROWS // PAGE)]
            return "".join(f'    {{ type = "list", ratio = {100 // len(pages)}, query = "{page}", {place} }},\n' for page in pages)
        kind = {"GET": "read", "HEAD": "head", "PUT": "write", "DELETE": "delete"}[verb]
        objects = f"u(1,{names})" if names else f"s(1,{most or MOST})"
        sizes = f', sizes = "c({size})B"' if verb == "PUT" else ""
        return f'    {{ type = "{kind}", ratio = 100, {place}, oprefix = "{mark}", objects = "{objects}"{sizes} }},\n'


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



