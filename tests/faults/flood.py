"""The flood in full: idle connections, slow writers, slow readers and many connects, beside ordinary requests that are timed.

    flood.py                                  what `make flood` runs
    flood.py --idle 1000 --slow 100 --connects 200 --seconds 10

It fails when an ordinary request is not answered as it should, when the slowest hundredth takes longer than --p99, when memory
grows beyond its bounds, or when requests are not as fast as before five seconds after the flood. The machine must let a process
open more files than there are connections.
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
from harness.flood import Clients, connects, idle, message, ordinary, percentile, slow  # noqa: E402
from harness.systems import make  # noqa: E402

KIB = 1024
PER_IDLE, PER_SLOW = 20 * KIB, 256 * KIB
SLACK = 64 * KIB * KIB  # what ordinary requests take


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=20000, help="idle connections")
    parser.add_argument("--slow", type=int, default=2000, help="slow writers, and as many slow readers")
    parser.add_argument("--connects", type=int, default=5000, help="further connections a second")
    parser.add_argument("--seconds", type=float, default=30, help="how long it lasts")
    parser.add_argument("--rate", type=int, default=200, help="ordinary requests a second")
    parser.add_argument("--p99", type=float, default=0.25, help="seconds for 99 of 100 ordinary requests")
    parser.add_argument("--max-connections", type=int, default=0, help="the option of that name")
    return parser.parse_args()


def flood(system, asked):
    """What is wrong afterwards, in sentences."""
    client = Client(system.auth_url, timeout=120)
    client.put("flood")
    client.put("flood", "small", body=b"small")
    client.put("flood", "large", body=b"x" * 2**22)
    write = message("PUT", client.path("flood", "slow"), client.token, length=2**20, stay=True)
    read = message("GET", client.path("flood", "large"), client.token, stay=True)
    requests = [("healthcheck", message("GET", "/healthcheck", "")), ("GET", message("GET", client.path("flood", "small"), client.token)),
                ("PUT", message("PUT", client.path("flood", "other"), client.token, length=4) + b"body")]
    wrong = ask(system, requests, asked, "before", asked.seconds / 6)
    memory = system.rss()
    with contextlib.ExitStack() as stack:
        stack.enter_context(Clients(idle, system.port, asked.idle))
        wrong += grown(system, memory, asked.idle, PER_IDLE, "idle connection")
        memory = system.rss()
        stack.enter_context(Clients(slow, system.port, write, asked.slow))
        stack.enter_context(Clients(slow, system.port, read, asked.slow, receive_buffer=4096))
        stack.enter_context(Clients(connects, system.port, asked.connects))
        wrong += ask(system, requests, asked, "during", asked.seconds)
        wrong += grown(system, memory, 2 * asked.slow, PER_SLOW, "slow client")
    time.sleep(5)
    return wrong + ask(system, requests, asked, "after", asked.seconds / 6)


def ask(system, requests, asked, when, seconds):
    with Clients(ordinary, system.port, requests, asked.rate) as clients:
        time.sleep(seconds)
        answers = clients.finish()
    wrong = []
    for name, seen in answers.items():
        failed = [status for _, status in seen if status not in (200, 201)]
        slowest = percentile([took for took, _ in seen], 0.99)
        print(f"{when}: {len(seen)} {name}, {len(failed)} failed {sorted(set(map(str, failed)))}, p99 {slowest * 1000:.0f} ms", flush=True)
        if failed:
            wrong.append(f"{when} the flood, {len(failed)} of {len(seen)} {name} failed")
        if slowest > asked.p99:
            wrong.append(f"{when} the flood, {name} took {slowest:.3f} s (p99)")
    return wrong


def grown(system, before, count, bound, what):
    grown = system.rss() - before
    print(f"memory: {grown / KIB / max(count, 1):.1f} KiB per {what}", flush=True)
    return [f"{count} of one {what} each took {grown // count} bytes"] if grown > count * bound + SLACK else []


def main():
    asked = arguments()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if asked.idle + asked.slow > limit - 1000:
        print(f"only {limit} files may be open here: idle connections beyond half of that are closed for others", flush=True)
        asked.idle = min(asked.idle, limit - 1000)
    with tempfile.TemporaryDirectory(prefix="flood") as root:
        options = {"DEFAULT": {"max_connections": asked.max_connections}}
        system = make("up", Path(root) / "system", overrides={"proxy": options}).start()
        try:
            wrong = flood(system, asked)
        finally:
            system.stop()
    for sentence in wrong:
        print(f"WRONG: {sentence}", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
