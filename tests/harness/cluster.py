"""A running cluster of separate server processes, each of either make, on one layout."""

import http.client

from harness.layout import ROLES
from harness.places import martlet, openstack_command
from harness.process import Process
from harness.waiting import until


def healthy(port, timeout=2):
    """Whether the server on this loopback port answers its healthcheck."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", "/healthcheck")
        return connection.getresponse().status == 200
    except http.client.HTTPException:
        return False
    finally:
        connection.close()


class Cluster:
    """`kinds` is "openstack" or "martlet" for all, or maps roles ("proxy", "object", …) to one.

    `python` is the interpreter of OpenStack's, when it needs more than is beside the tests' own (harness/keystone.py).
    """

    def __init__(self, layout, kinds="openstack", *, verbose=True, python=None):
        roles = ("proxy", *ROLES)
        self.layout, self.verbose, self.python = layout, verbose, python
        self.kinds = {role: kinds if isinstance(kinds, str) else kinds[role] for role in roles}
        self.etc, self.srv, self.root = layout.etc, layout.srv, layout.root
        self.services = {}

    @property
    def port(self):
        return self.layout.proxy_port

    @property
    def auth_url(self):
        return f"http://127.0.0.1:{self.port}/auth/v1.0"

    def start(self):
        """Start every service and wait until the cluster answers."""
        for role, node in self.layout.ports:
            self.launch(role, node)
        self.launch("proxy")
        for role, node in self.services:
            self.await_service(role, node)
        return self

    def launch(self, role, node=0, kind=None):
        """Start one service without waiting for it."""
        command = self.command(role, self.etc / self.layout.conf_name(role, node), kind)
        process = Process(command, self.root / f"log/{role}-{node}.log")
        self.services[role, node] = process
        return process

    def command(self, role, conf, kind=None):
        """What starts a service on a configuration file."""
        if (kind or self.kinds[role]) == "openstack":
            return openstack_command(self.etc, f"swift-{role}-server", conf, *(["-v"] if self.verbose else []), python=self.python)
        return [martlet(), f"{role}-server", conf]

    def await_service(self, role, node=0):
        port = self.port if role == "proxy" else self.layout.ports[role, node]
        self.services[role, node].wait_for(lambda: healthy(port))

    def start_service(self, role, node=0, kind=None):
        self.launch(role, node, kind)
        self.await_service(role, node)

    def stop_service(self, role, node=0):
        self.services.pop((role, node)).stop()

    def shut_down_service(self, role, node=0):
        self.services.pop((role, node)).shut_down()

    def kill_service(self, role, node=0):
        self.services.pop((role, node)).kill()

    def alive(self):
        return all(process.alive() for process in self.services.values())

    def stop(self):
        for process in self.services.values():
            if process.alive():
                process.child.terminate()
        statuses = [process.stop() for process in self.services.values()]
        self.services = {}
        return statuses

    def kill(self):
        """SIGKILL everything, as a power cut would."""
        for process in self.services.values():
            process.kill()
        self.services = {}

    def rss(self):
        return sum(process.rss() for process in self.services.values())

    def cpu_seconds(self):
        return sum(process.cpu_seconds() for process in self.services.values())

    def log(self):
        return "".join(process.text() for process in self.services.values())

    def await_silence(self):
        until(lambda: not healthy(self.port), what="the proxy going away")
