"""Several gateways before one set of storage servers, each a process with a port of its own."""

from harness.cluster import Cluster, healthy
from harness.layout import ROLES, Layout
from harness.memcached import Memcached
from harness.process import Process
from harness.waiting import free_port


class Gateways(Cluster):
    """As Cluster, with `count` gateways; `gateway_ports` has the port of each. `layout` is what else a Layout may be given.

    `limits` are control groups (harness/limits.py), one for each gateway.
    """

    def __init__(self, root, count, overrides, *, kind="martlet", limits=(), verbose=True, **layout):
        roles = {role: {"DEFAULT": {"workers": "auto"}} for role in ("proxy", *ROLES)}
        for role, sections in overrides.items():
            for section, options in sections.items():
                roles[role].setdefault(section, {}).update(options)
        self.limits = limits
        self.memcached = Memcached().start()  # a token of one gateway is good for all
        super().__init__(Layout(root, overrides=roles, memcached_port=self.memcached.port, **layout).write(), kind, verbose=verbose)
        self.gateway_ports = [self.port, *(free_port() for _ in range(count - 1))]

    def command(self, role, conf, kind=None, number=0):
        command = super().command(role, conf, kind)
        return self.limits[number].within(command) if role == "proxy" and self.limits else command

    def start(self):
        super().start()
        conf = (self.etc / "proxy-server.conf").read_text()
        for number, port in enumerate(self.gateway_ports[1:], start=1):
            path = self.etc / f"proxy-server-{number}.conf"
            path.write_text(conf.replace(f"bind_port = {self.port}", f"bind_port = {port}"))
            self.start_service("proxy", number)
        return self

    def launch(self, role, node=0, kind=None):
        if role != "proxy" or node == 0:
            return super().launch(role, node, kind)
        path = self.etc / f"proxy-server-{node}.conf"
        self.services[role, node] = Process(self.command("proxy", path, kind, node), self.root / f"log/proxy-{node}.log")
        return self.services[role, node]

    def await_service(self, role, node=0):
        port = self.gateway_ports[node] if role == "proxy" else self.layout.ports[role, node]
        self.services[role, node].wait_for(lambda: healthy(port))

    def stop(self):
        statuses = super().stop()
        self.memcached.stop()
        return statuses
