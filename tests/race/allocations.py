"""How often, and how much, the whole of `martlet up` allocates for one request.

    python tests/race/allocations.py BINARY [BINARY …]

Each binary is built with the feature `count-allocations` (`make allocations`). It serves one client on one connection, which
sends the same request REQUESTS times; what the process allocates meanwhile without requests is taken off. Gateway, three
object servers and, for writes, three container servers are all in that process.
"""

import http.client
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.waiting import free_port  # noqa: E402

REQUESTS = 2000
BODY = b"m" * 4096
KINDS = {"GET 4 KiB": ("GET", None), "HEAD 4 KiB": ("HEAD", None), "PUT 4 KiB": ("PUT", BODY)}


class Counted:
    """A cluster in one process that says on demand how much it has allocated."""

    def __init__(self, binary, root):
        self.port = free_port()
        self.process = subprocess.Popen([binary, "up", "--dir", root, "--bind", f"127.0.0.1:{self.port}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while not self.process.stdout.readline().startswith("ready "):
            assert self.process.poll() is None, f"{binary} ended with {self.process.returncode}"
        self.client = Client(f"http://127.0.0.1:{self.port}/auth/v1.0")

    def allocated(self):
        """(allocations, bytes) since the process began."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while not (match := re.match(r"allocations (\d+) reallocations (\d+) bytes (\d+)", self.process.stdout.readline())):
            pass
        fresh, grown, size = map(int, match.groups())
        return fresh + grown, size

    def idle(self, seconds):
        """What is allocated in that time without requests."""
        before = self.allocated()
        time.sleep(seconds)
        return [now - then for now, then in zip(self.allocated(), before)]

    def cost(self, verb, body):
        """(allocations, bytes) of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        before, began = self.allocated(), time.monotonic()
        for number in range(REQUESTS):
            name = f"written-{number}" if verb == "PUT" else "read"
            connection.request(verb, self.client.path("counted", name), body=body, headers={"X-Auth-Token": self.client.token})
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 201), answer.status
        took = time.monotonic() - began
        after = self.allocated()
        idle = self.idle(took)
        return [(now - then - rest) / REQUESTS for now, then, rest in zip(after, before, idle)]

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def measure(binary):
    with tempfile.TemporaryDirectory() as root:
        counted = Counted(binary, root)
        try:
            counted.client.put("counted")
            counted.client.put("counted", "read", body=BODY)
            counted.cost("GET", None)  # caches are filled, pools have their size
            return {name: counted.cost(*kind) for name, kind in KINDS.items()}
        finally:
            counted.stop()


def main():
    binaries = sys.argv[1:]
    results = [measure(binary) for binary in binaries]
    for name in KINDS:
        first = results[0][name][0]
        for binary, result in zip(binaries, results):
            count, size = result[name]
            print(f"{name:11} {count:8.1f} allocations {size:10,.0f} bytes  {count / first:5.2f} of the first  {binary}")


if __name__ == "__main__":
    main()
