"""One storm from one seed: rounds of load and faults, calm after each, and then everything must be right.

Comes in: a plan's options (run.py), an empty directory on a machine of its own (machine.py). What comes out: a report.
"""

import os
import threading
import time
from collections import Counter
from pathlib import Path

from storm import faults, plan, upkeep, verify
from storm.device import Device
from storm.layout import Layout
from storm.network import Network
from storm.nodes import NOT_NEEDED, Nodes, programs
from storm.recorder import Recorder, dice_of

MOST_LINES = 25


class Storm:
    def __init__(self, options, root, out):
        self.seed, self.rounds, self.seconds = options["seed"], options["rounds"], options["seconds"]
        self.only = options.get("only")
        self.began = time.monotonic()
        self.logs = Path(out)
        self.report_file = open(self.logs / "storm.txt", "w", buffering=1)
        self.layout = Layout(Path(root)).write()
        hidden = Path(root) / "drives"
        self.devices = {node: [Device(name, self.layout.srv(node) / name, hidden, options["megabytes"]) for name in names]
                        for node, names in self.layout.devices.items()}
        self.network = Network(self.layout.addresses)
        self.cut, self.join = self.network.cut, self.network.join
        self.nodes = Nodes(self.layout, self.network, programs(options["make"], options["fill"], options["theirs"] or ()), self.logs)
        self.missing = sorted(name for name, kind in self.nodes.kinds.items() if kind is None)
        # OpenStack's look at the mount point once, and may come too late; they leave temporary files to a week later.
        self.tidy = "openstack" not in self.nodes.kinds.values()
        self.whole = not set(self.missing) - NOT_NEEDED  # without all its upkeep nothing heals
        self.wrong, self.broken, self.damaged, self.met = [], [], set(), Counter()
        self.dark = False  # something is to be found by the watcher for dark data
        self.recorders = [Recorder(self.layout.auth_url(gateway), container=f"{policy}-{gateway}", policy=policy, seed=f"{self.seed}-{policy}-{gateway}")
                          for gateway in self.layout.gateways for policy in self.layout.policies.values()]

    def say(self, line):
        print(f"{time.monotonic() - self.began:6.1f}  {line}", file=self.report_file)

    def pause(self, seconds):
        time.sleep(seconds)

    # Places

    def files_of(self, device):
        return [Path(folder) / name for folder, _, names in os.walk(device.disk) for name in names]

    def files(self, node):
        return [path for device in self.devices[node] for path in self.files_of(device)]

    def devices_by_path(self, path):
        return next(device.name for devices in self.devices.values() for device in devices if device.disk in path.parents)

    def ring(self, name):
        if name not in self._rings:
            self._rings[name] = self.layout.ring(name)
        return self._rings[name]

    # The course of it

    def blow(self):
        """The whole storm; violations, the first ones if there are many."""
        if not self.whole:
            self.say(f"no {', '.join(self.missing)}: nothing is destroyed, and what needs healing is not looked at")
        self.nodes.start_everything()
        self.nodes.await_everything()
        for recorder in self.recorders:
            recorder.make_container()
        for number, this in enumerate(self._plan()):
            self.say(f"round {number + 1}: {', '.join(this.losses) or 'nothing destroyed'}{f' on {this.victim}' if this.victim else ''}")
            if violations := self._round(number, this):
                return violations
        return []

    def _plan(self):
        def lane(name):
            kind = name.rstrip("0123456789")
            if kind == "rings" and not self.whole:
                return []  # nothing would move with them
            return [each for each in faults.HIDING[kind] if not self.only or each in self.only]
        lanes = {name: lane(name) for name in (*self.layout.addresses, "memcached", "rings", "hostile")}
        losses = [each for each in faults.LOSSES if self.whole and (not self.only or each in self.only)]
        return plan.draw(self.seed, self.rounds, self.seconds, lanes, losses, faults.lasts)

    def _round(self, number, this):
        for name in this.losses:
            self.met[name] += 1
            faults.LOSSES[name](self, this.victim, dice_of(self.seed, number, name))
        self.began_round = time.monotonic()
        for recorder in self.recorders:
            recorder.begin(number)
        lanes = [threading.Thread(target=self._lane, args=([event for event in this.events if event.lane == lane],))
                 for lane in {event.lane for event in this.events}]
        for thread in lanes:
            thread.start()
        time.sleep(max(0, self.began_round + self.seconds - time.monotonic()))
        for thread in lanes:
            thread.join()
        for recorder in self.recorders:
            recorder.stopping.set()
        for recorder in self.recorders:
            recorder.stop()
        if self.broken:
            raise RuntimeError("; ".join(self.broken))
        return self._calm()

    def _lane(self, events):
        """The faults of one place, one after the other."""
        for event in events:
            time.sleep(max(0, self.began_round + event.start - time.monotonic()))
            self.say(f"  {event}")
            self.met[event.name] += 1
            kind = event.lane.rstrip("0123456789")
            try:
                course = faults.HIDING[kind][event.name](self, event.lane, dice_of(event.seed))
                next(course)
                time.sleep(event.seconds)
                next(course, None)
            except Exception as error:  # the storm itself does not work: said as such, not as a violation
                self.broken.append(f"{event}: {error!r}")

    def _calm(self):
        """Everything heals; then everything is looked at."""
        self._rings = {}
        for holder in self.layout.addresses:
            self.layout.roll_out(holder)
        self.nodes.check_alive()
        self.nodes.start_everything()
        self.nodes.await_everything()
        self.say(f"{self.acknowledged()} changes acknowledged, {self.uncertain()} uncertain, {self.reads()} reads")
        violations = (self.wrong if self.tidy else []) + self.nodes.fallen
        self.nodes.end_daemons()
        # Dates are of whole seconds: one more, and the expirer finds due what readers find gone.
        time.sleep(max(0, max(recorder.expired_by for recorder in self.recorders) + 1 - time.time()))
        violations += upkeep.until_calm(self)
        if self.dark:
            violations += upkeep.run_passes(self, ["object-auditor"], conf="server-long-after") + upkeep.until_calm(self)
            self.dark = False
        self._new_gateways()
        violations += verify.everything(self)
        self.say("looked at")
        self.nodes.check_alive()
        violations = list(dict.fromkeys([*violations, *self.nodes.fallen]))
        for line in violations:
            self.say(f"VIOLATION {line}")
        if not violations:
            self.nodes.start_everything()
            self.nodes.await_everything()
        return violations[:MOST_LINES] + ([f"… and {len(violations) - MOST_LINES} more"] if len(violations) > MOST_LINES else [])

    def _new_gateways(self):
        """What a gateway remembers of nodes that failed a moment ago must not stand for what is there."""
        self.nodes.kill("memcached", "memcached")
        self.nodes.launch("memcached", "memcached")
        for gateway in self.layout.gateways:
            self.nodes.kill(gateway, "proxy-server")
            self.nodes.launch(gateway, "proxy-server")
        self.nodes.await_everything()

    def acknowledged(self):
        return sum(recorder.acknowledged for recorder in self.recorders)

    def uncertain(self):
        return sum(recorder.uncertain for recorder in self.recorders)

    def reads(self):
        return sum(recorder.reads for recorder in self.recorders)

    def report(self, violations):
        return {"seed": self.seed, "rounds": self.rounds, "seconds": round(time.monotonic() - self.began), "violations": violations,
                "acknowledged": self.acknowledged(), "uncertain": self.uncertain(), "reads": self.reads(), "met": dict(self.met),
                "objects": sum(len(recorder.expected) for recorder in self.recorders), "missing": self.missing}
