"""A network in which nodes can be cut off from one another: a namespace and an address each, one bridge between them.

Loopback addresses would not do: what is sent to them never leaves the kernel, and nothing can lose it on the way.
A partition is a wrong neighbour: packets for the other side go to a station that does not exist, as behind a dead
switch. Connections are neither refused nor closed; they are silent.
"""

import subprocess
import threading
from collections import Counter
from pathlib import Path

NOBODY = "02:00:00:00:00:fe"
HOST = "10.77.0.254"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Network:
    """`addresses` maps a node's name to its address in 10.77.0.0/24."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.lost, self.lock = Counter(), threading.Lock()  # pair → how many want it cut
        Path("/run/netns").mkdir(exist_ok=True)
        ip("link", "set", "lo", "up")
        ip("link", "add", "storm", "type", "bridge")
        ip("addr", "add", f"{HOST}/24", "dev", "storm")
        ip("link", "set", "storm", "up")
        for number, (name, address) in enumerate(addresses.items()):
            ip("netns", "add", name)
            ip("link", "add", f"storm{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"storm{number}", "master", "storm", "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def inside(self, name):
        """What a command is prefixed with to run on this node."""
        return ["nsenter", f"--net=/run/netns/{name}"]

    def cut(self, one, other):
        """Lose everything between two nodes, until all who cut them have joined them."""
        pair = frozenset((one, other))
        with self.lock:
            self.lost[pair] += 1
            if self.lost[pair] == 1:
                for here, there in ((one, other), (other, one)):
                    ip("-n", here, "neigh", "replace", self.addresses[there], "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

    def join(self, one, other):
        pair = frozenset((one, other))
        with self.lock:
            self.lost[pair] -= 1
            if not self.lost[pair]:
                for here, there in ((one, other), (other, one)):
                    ip("-n", here, "neigh", "del", self.addresses[there], "dev", "eth0")
