"""What upkeep costs those who are being served: the same load with all daemons at their default pace, and without any.

Requests come at a fixed rate, whether or not the one before has been answered, and each is timed from when it was due; so nothing
hides behind a slow answer. Periods with and without daemons take turns. The daemons start anew before each period, which begins when they have
settled; a hundredth of the objects is damaged at its beginning: there is something to do. It should be longer than
the replicators' interval (30 s).
"""

import argparse
import random
import shutil
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import daemons  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import Layout  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.places import REPOSITORY  # noqa: E402
from race import damage  # noqa: E402

BODY = b"y" * 4096
# The daemons' default options; layouts of other tests set a faster auditor.
DEFAULT_PACE = {"files_per_second": 20, "bytes_per_second": 10_000_000, "zero_byte_files_per_second": 50}


class User(threading.Thread):
    """Reads and writes in turn, `rate` times a second, until stopped."""

    def __init__(self, auth_url, number, rate, objects):
        super().__init__(daemon=True)
        self.client, self.number, self.rate, self.objects = Client(auth_url), number, rate, objects
        self.stopping, self.took = threading.Event(), {"GET": [], "PUT": []}

    def run(self):
        dice, began, count = random.Random(self.number), time.monotonic(), 0
        while not self.stopping.is_set():
            due, count = began + count / self.rate, count + 1
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            if count % 2:
                self.client.do("GET", "many", f"object-{dice.randrange(self.objects):07d}", expect=200)
            else:
                self.client.do("PUT", "new", f"{self.number}-{dice.randrange(1000)}", body=BODY, expect=201)
            self.took["GET" if count % 2 else "PUT"].append(time.monotonic() - due)


def period(cluster, options):
    """Milliseconds of every request of one period."""
    users = [User(cluster.auth_url, number, options.rate / options.users, options.objects) for number in range(options.users)]
    for user in users:
        user.start()
    time.sleep(options.seconds)
    for user in users:
        user.stopping.set()
    for user in users:
        user.join()
    return {method: [1000 * each for user in users for each in user.took[method]] for method in ("GET", "PUT")}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="periods of each kind")
    parser.add_argument("--seconds", type=float, default=40, help="how long a period is")
    parser.add_argument("--settling", type=float, default=10, help="how long daemons run before one")
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--users", type=int, default=4, help="over so many connections")
    parser.add_argument("--objects", type=int, default=20_000, help="objects that are there")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target/race-foreground", help="where the devices are")
    options = parser.parse_args()
    shutil.rmtree(options.dir, ignore_errors=True)
    memcached, rsync = Memcached().start(), daemons.Rsync()
    modules = {role: {f"{role}-replicator": {"rsync_module": f"rsync://127.0.0.1:{rsync.port}/{role}"}} for role in ("object", "container", "account")}
    modules["object"]["object-auditor"] = DEFAULT_PACE
    layout = Layout(options.dir, policies=("gold",), memcached_port=memcached.port, overrides=modules).write()
    rsync.start(layout)
    damage.objects(layout, range(options.objects), 1_700_000_000)
    cluster = Cluster(layout, "martlet", verbose=False).start()
    client, found = Client(cluster.auth_url), {False: {"GET": [], "PUT": []}, True: {"GET": [], "PUT": []}}
    client.put("many")
    client.put("new")
    upkeep = daemons.Upkeep(cluster)
    period(cluster, options)  # caches fill
    for number in range(options.rounds):
        for kept in (False, True):
            if kept:
                for daemon in daemons.DAEMONS:
                    upkeep.start(daemon, 0, "martlet")
                time.sleep(options.settling)
                spoilt = range(number, options.objects, 100)
                damage.objects(layout, spoilt, 1_700_000_010 + number, only=layout.devices[0])
            for method, took in period(cluster, options).items():
                found[kept][method] += took
            upkeep.stop_all()
    print(f"{options.rounds} × {options.seconds:g} s each, {options.rate:g} requests/s, {options.objects:,} objects; milliseconds\n")
    print("| | requests | p50 | p99 | p50 with upkeep | p99 with upkeep | p99 changes by |\n|---|---:|---:|---:|---:|---:|---:|")
    for method in ("GET", "PUT"):
        without, with_upkeep = found[False][method], found[True][method]
        cells = [percentile(values, share) for values in (without, with_upkeep) for share in (0.5, 0.99)]
        print(f"| {method} 4 KiB | {len(without) + len(with_upkeep):,} | " + " | ".join(f"{cell:.2f}" for cell in cells)
              + f" | **{100 * (cells[3] / cells[1] - 1):+.0f} %** |")
    cluster.stop()
    rsync.stop()
    memcached.stop()
    shutil.rmtree(options.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
