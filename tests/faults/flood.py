"""The flood in full: idle connections, slow writers, slow readers and many connects, beside ordinary requests that are timed.

    flood.py                                  what `make flood` runs
    flood.py --idle 1000 --slow 100 --connects 200 --seconds 10
    flood.py --gateways 2                     gateways of their own before separate storage servers, not one process

It fails when an ordinary request is not answered as it should, when the slowest hundredth takes longer than --p99, when memory
grows beyond its bounds, or when requests are not as fast as before five seconds after the flood. A server must be allowed more
open files than it has connections: where that is too few for all of them, --gateways shares them out.
"""

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.flood import Clients, connects, go_first, idle, message, ordinary, percentile, processor, shares, slow  # noqa: E402
from harness.gateways import Gateways  # noqa: E402
from harness.systems import make  # noqa: E402

KIB = 1024
PER_IDLE, PER_SLOW = 20 * KIB, 256 * KIB
SLACK = 64 * KIB * KIB  # what ordinary requests take
FILES = 1000  # that a process has open besides connections


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=20000, help="idle connections")
    parser.add_argument("--slow", type=int, default=2000, help="slow writers, and as many slow readers")
    parser.add_argument("--connects", type=int, default=5000, help="further connections a second")
    parser.add_argument("--seconds", type=float, default=30, help="how long it lasts")
    parser.add_argument("--rate", type=int, default=200, help="ordinary requests a second")
    parser.add_argument("--p99", type=float, default=0.25, help="seconds for 99 of 100 ordinary requests")
    parser.add_argument("--max-connections", type=int, default=0, help="the option of that name")
    parser.add_argument("--gateways", type=int, default=0, help="so many gateway processes and a server for each kind; 0: one process for all")
    parser.add_argument("--first", action="store_true", help="servers and ordinary clients run before other work of the machine (root)")
    return parser.parse_args()


class Flood:
    """A system and what floods it."""

    def __init__(self, system, asked):
        self.system, self.asked, self.wrong = system, asked, []
        self.ports = getattr(system, "gateway_ports", [system.port])
        self.most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - FILES
        self.running = []

    def pids(self):
        processes = self.system.services.values() if isinstance(self.system, Cluster) else [self.system.process]
        return [pid for process in processes for pid in process.tree()]

    def run(self):
        """What is wrong afterwards, in sentences."""
        asked = self.asked
        client = Client(self.system.auth_url, timeout=120)
        client.put("flood")
        client.put("flood", "small", body=b"small")
        client.put("flood", "large", body=b"x" * 2**22)
        write = message("PUT", client.path("flood", "slow"), client.token, length=2**20, stay=True)
        read = message("GET", client.path("flood", "large"), client.token, stay=True)
        self.requests = [("healthcheck", message("GET", "/healthcheck", "")), ("GET", message("GET", client.path("flood", "small"), client.token)),
                         ("PUT", message("PUT", client.path("flood", "other"), client.token, length=4) + b"body")]
        self.ask("before", asked.seconds / 6)
        with contextlib.ExitStack() as stack:
            self.stack = stack
            with self.growth(asked.idle, PER_IDLE, "idle connection"):
                self.begin(idle, asked.idle)
            with self.growth(2 * asked.slow, PER_SLOW, "slow client"):
                self.begin(slow, asked.slow, write)
                self.begin(slow, asked.slow, read, receive_buffer=4096)
                for port in self.ports:
                    self.enter(Clients(connects, port, asked.connects / len(self.ports)))
                self.ask("during", asked.seconds)
        self.running = []
        time.sleep(5)
        self.ask("after", asked.seconds / 6)
        return self.wrong

    def begin(self, kind, count, *head, **options):
        """So many clients of a kind, shared out among gateways and processes."""
        for port, its in zip(self.ports, shares(count, -(-count // len(self.ports)))):
            for number in shares(its, self.most):
                self.enter(Clients(kind, port, *head, number, **options))

    def enter(self, clients):
        self.running.append(self.stack.enter_context(clients))

    @contextlib.contextmanager
    def growth(self, count, bound, what):
        before = self.system.rss()
        yield
        grown = self.system.rss() - before
        print(f"memory: {grown / KIB / max(count, 1):.1f} KiB per {what}", flush=True)
        if grown > count * bound + SLACK:
            self.wrong.append(f"{count} of one {what} each took {grown // count} bytes")

    def ask(self, when, seconds):
        with contextlib.ExitStack() as stack:
            asking = [stack.enter_context(Clients(ordinary, port, self.requests, self.asked.rate / len(self.ports))) for port in self.ports]
            if self.asked.first:
                for clients in asking:
                    go_first(clients.process.pid)
            spent = Spent({"servers": self.pids(), "ordinary clients": [clients.process.pid for clients in asking],
                           **{f"{kind} clients": [clients.process.pid for clients in self.running if clients.kind == kind]
                              for kind in ("idle", "slow", "connects")}})
            time.sleep(seconds)
            spent.print(when)
            answers = [clients.finish() for clients in asking]
        for name, _ in self.requests:
            self.judge(when, name, [answer for each in answers for answer in each[name]])

    def judge(self, when, name, seen):
        failed = [status for _, status in seen if status not in (200, 201, 202)]  # 202: another gateway's write won
        median, slowest = (percentile([took for took, _ in seen], share) for share in (0.5, 0.99))
        print(f"{when}: {len(seen)} {name}, {len(failed)} failed {sorted(set(map(str, failed)))}, "
              f"median {median * 1000:.0f} ms, p99 {slowest * 1000:.0f} ms", flush=True)
        if failed:
            self.wrong.append(f"{when} the flood, {len(failed)} of {len(seen)} {name} failed")
        if slowest > self.asked.p99:
            self.wrong.append(f"{when} the flood, {name} took {slowest:.3f} s (p99)")


class Spent:
    """Whose processor time it was, and how long threads waited for a processor: what a busy machine adds to the figures."""

    def __init__(self, groups):
        self.groups, self.began = groups, time.monotonic()
        self.before = {name: processor(pids) for name, pids in groups.items()}

    def print(self, when):
        took = time.monotonic() - self.began
        parts = []
        for name, pids in self.groups.items():
            ran, waited = (after - before for after, before in zip(processor(pids), self.before[name]))
            if pids:
                parts.append(f"{name} ran {max(ran, 0) / took:.2f} and waited {max(waited, 0) / took:.2f}")
        print(f"{when}: processors: {', '.join(parts)}", flush=True)


def main():
    asked = arguments()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = max(asked.gateways, 1) * (limit - FILES) - (0 if asked.gateways else 5 * asked.slow)
    if asked.idle + 2 * asked.slow > most:
        print(f"only {limit} files may be open in a process here: idle connections are fewer than asked for", flush=True)
        asked.idle = max(most - 2 * asked.slow, 0)
    with tempfile.TemporaryDirectory(prefix="flood") as root:
        overrides = {"proxy": {"DEFAULT": {"max_connections": asked.max_connections}}}
        system = Gateways(Path(root) / "system", asked.gateways, overrides) if asked.gateways else make("up", Path(root) / "system", overrides=overrides)
        system.start()
        try:
            flood = Flood(system, asked)
            if asked.first:
                for pid in flood.pids():
                    go_first(pid)
            wrong = flood.run()
        finally:
            system.stop()
    for sentence in wrong:
        print(f"WRONG: {sentence}", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
