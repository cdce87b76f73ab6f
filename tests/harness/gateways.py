"""Several gateways before one set of storage servers, each a process with a port of its own."""

from harness.cluster import Cluster, healthy
from harness.layout import ROLES, Layout
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import Process
from harness.waiting import free_port


class Gateways(Cluster):
    """As Cluster, with `count` gateways; `gateway_ports` has the port of each."""

    def __init__(self, root, count, overrides):
        roles = {role: {"DEFAULT": {"workers": "auto"}} for role in ("proxy", *ROLES)}
        for role, sections in overrides.items():
            roles[role]["DEFAULT"].update(sections["DEFAULT"])
        self.memcached = Memcached().start()  # a token of one gateway is good for all
        super().__init__(Layout(root, overrides=roles, memcached_port=self.memcached.port).write(), "martlet")
        self.gateway_ports = [self.port, *(free_port() for _ in range(count - 1))]

    def start(self):
        super().start()
        conf = (self.etc / "proxy-server.conf").read_text()
        for number, port in enumerate(self.gateway_ports[1:], start=1):
            path = self.etc / f"proxy-server-{number}.conf"
            path.write_text(conf.replace(f"bind_port = {self.port}", f"bind_port = {port}"))
            process = Process([martlet(), "proxy-server", path], self.root / f"log/proxy-{number}.log")
            self.services["proxy", number] = process
            process.wait_for(lambda port=port: healthy(port), within=60)
        return self

    def stop(self):
        statuses = super().stop()
        self.memcached.stop()
        return statuses
