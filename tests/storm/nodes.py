"""The running cluster: every server and every daemon of every node a process of its own, on that node's network and clock.

`kinds` maps each program to its make: Martlet's, OpenStack's, or none.
"""

import os
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from harness.layout import ROLES
from harness.places import martlet, openstack, openstack_command
from harness.process import Process
from harness.waiting import until
from storm.layout import DAEMONS, PORTS
from storm.network import HOST

SERVERS = [f"{role}-server" for role in ROLES]
NOT_NEEDED = {"account-reaper"}  # to heal: no account is deleted
ALL_DAEMONS = [daemon for role in ROLES for daemon in DAEMONS[role]]


def programs(make, fill, theirs=()):
    """Program → "martlet", "openstack" or None where there is none."""
    def kind(name):
        if make == "openstack" or name in theirs:
            return "openstack"
        return "martlet" if has(name) else fill
    return {name: kind(name) for name in ("proxy-server", *SERVERS, *ALL_DAEMONS)}


def has(name):
    return subprocess.run([martlet(), name, "--help"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


class Nodes:
    """`launch`, `kill`, `revive`: by node and program. What ended by itself is in `fallen`."""

    def __init__(self, layout, network, kinds, logs):
        self.layout, self.network, self.kinds, self.logs = layout, network, kinds, logs
        self.running, self.fallen = {}, []
        self.lock = threading.RLock()
        self.clocks = {}
        library = layout.root / "clock.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("clock.c"), "-ldl"], check=True)
        for holder in layout.addresses:
            self.clocks[holder] = layout.root / "run" / holder / "clock"
            self.set_clock(holder, 0)
        self.preload = {"LD_PRELOAD": str(library)}

    def set_clock(self, holder, seconds):
        """Put the clock of a node or a gateway wrong; programs that run notice at once."""
        with open(self.clocks[holder], "r+b" if self.clocks[holder].exists() else "wb") as clock:
            clock.write(struct.pack("q", int(seconds * 10**9)))

    def programs_of(self, holder):
        if holder == "memcached":
            return ["memcached"]
        if holder in self.layout.gateways:
            return ["proxy-server"]
        return [name for name in (*SERVERS, *ALL_DAEMONS) if self.kinds[name]] + ["rsyncd"]

    def command(self, holder, name, *arguments, conf="server"):
        etc = self.layout.etc(holder)
        if name == "memcached":
            return ["memcached", "-l", HOST, "-p", "11211", "-u", "root", "-m", "64"]
        if name == "rsyncd":
            return [*self.network.inside(holder), "rsync", "--daemon", "--no-detach", f"--config={etc}/rsyncd.conf"]
        role = "proxy" if name == "proxy-server" else name.split("-")[0]
        conf = etc / f"{role}-{conf}.conf"
        if self.kinds[name] == "openstack":
            return [*self.network.inside(holder), *openstack_command(etc, f"swift-{name}", conf, *arguments, "-v")]
        return [*self.network.inside(holder), martlet(), name, conf, *arguments]

    def environment(self, holder, name):
        """Only the expirer goes by the right clock: a fast one would delete too soon, with a date that wins over later writes."""
        path = f"{openstack('swift-init').parent}:{os.environ['PATH']}"  # OpenStack's auditor looks for its likes
        clock = {**self.preload, "STORM_CLOCK": str(self.clocks[holder])} if holder in self.clocks and name != "object-expirer" else {}
        return {"PATH": path, **clock}

    def launch(self, holder, name):
        with self.lock:
            if (holder, name) not in self.running:
                if name == "rsyncd":
                    (self.layout.root / "run" / holder / "rsyncd.pid").unlink(missing_ok=True)
                self.running[holder, name] = Process(self.command(holder, name), self.logs / f"{holder}-{name}.log", env=self.environment(holder, name))

    def kill(self, holder, name, with_signal=signal.SIGKILL):
        """kill -9. That it was still running is looked at first."""
        with self.lock:
            process = self.running.pop((holder, name), None)
        if process:
            self._look(holder, name, process)
            process.signal(with_signal)
            process.signal(signal.SIGCONT)
            process.child.wait(60)
            until(lambda: not process.members(), within=60, what=f"the workers of {name} on {holder} going")

    def _look(self, holder, name, process):
        if not process.alive():
            self.fallen.append(f"{name} of {holder} ended by itself with {process.child.returncode}: {process.tail(600)!r}")

    def start(self, holder):
        for name in self.programs_of(holder):
            self.launch(holder, name)

    def kill_all(self, holder):
        for name in self.programs_of(holder):
            self.kill(holder, name)

    def signal(self, holder, names, number):
        for name in names:
            if process := self.running.get((holder, name)):
                process.signal(number)

    def start_everything(self):
        for holder in ("memcached", *self.layout.nodes, *self.layout.gateways):
            self.start(holder)

    def await_everything(self):
        """Memcached first: what a gateway cannot keep there, a token say, is lost without a word."""
        until(self.memcached_listens, within=60, what="memcached listening")
        for node in self.layout.nodes:
            for role in ROLES:
                self.await_answer(node, PORTS[role])
                self.await_drives(node, PORTS[role])
        for gateway in self.layout.gateways:
            self.await_answer(gateway, 8080)

    def memcached_listens(self):
        socket.create_connection((HOST, 11211), timeout=2).close()
        return True

    def await_answer(self, holder, port):
        url = f"http://{self.layout.addresses[holder]}:{port}/healthcheck"
        def answers():
            return subprocess.run(["curl", "-s", "-o", "/dev/null", "-m", "2", url], stdin=subprocess.DEVNULL).returncode == 0
        until(answers, within=60, every=0.2, what=f"{url} answering")

    def await_drives(self, holder, port):
        """A server of ours keeps a drive that was read-only or gone out of service until it has tried it twice; who brings it
        something meanwhile comes in vain. OpenStack's servers have no such page, nor such drives."""
        url = f"http://{self.layout.addresses[holder]}:{port}/metrics"
        def serve():
            page = subprocess.run(["curl", "-s", "-m", "2", url], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
            return all(line.endswith(" 1.0") for line in page.splitlines() if line.startswith("martlet_device_in_service"))
        until(serve, within=60, every=0.2, what=f"all drives of {url} serving")

    def end_daemons(self):
        """Stop upkeep, as an operator would. A program that does not end on SIGTERM is recorded."""
        names = [name for name in ALL_DAEMONS if self.kinds[name]]
        with self.lock:
            ending = [(key, self.running.pop(key)) for key in list(self.running) if key[1] in names]
        for (holder, name), process in ending:
            self._look(holder, name, process)
            if process.alive():
                process.child.terminate()
        deadline = time.monotonic() + 40
        for (holder, name), process in ending:
            try:
                process.child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fallen.append(f"{name} of {holder} did not end on SIGTERM: {process.tail(600)!r}")
            process.kill()

    def check_alive(self):
        with self.lock:
            for (holder, name), process in list(self.running.items()):
                if not process.alive():
                    self._look(holder, name, process)
                    del self.running[holder, name]

    def end(self):
        with self.lock:
            for process in self.running.values():
                process.kill()
            self.running = {}
