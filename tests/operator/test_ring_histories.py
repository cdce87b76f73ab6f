"""Random histories of a ring, run with OpenStack's builder and with ours: which one places replicas better, and moves fewer.

Devices come, go, change weight and place, replicas and overload change, time passes or does not, and a rebalance
follows. Between its steps our builder file is read and written again by OpenStack's library (that is how time passes in
it), so each reads what the other wrote all along. When the history is over, time passes until nothing moves any more.

Chance decides what has to move: a region that changes its name may put two replicas of many partitions together, or of
none. A history in which ours moves more, and ends no better for it, is run again with other seeds for the rebalances.

MARTLET_RING_HISTORIES is how many (20), MARTLET_RING_SEED the first.
"""

import os
import random
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from unittest import mock

import pytest
from swift.common.ring import Ring, RingBuilder, builder as openstack
from swift.common.ring.utils import tiers_for_dev

from harness.places import martlet

HISTORIES = int(os.environ.get("MARTLET_RING_HISTORIES", 20))
FIRST = int(os.environ.get("MARTLET_RING_SEED", 1))
# Small rings are quick; a long run takes larger ones too.
POWERS = [6, 7, 8] if HISTORIES < 100 else [6, 7, 8, 9, 10]
START = 1_700_000_000
HOUR = 3600
# How much more than OpenStack's ours may move, and with how many seeds for the rebalances chance is averaged.
MORE_MOVED = 1.01
CHANCES = 8
# What floats may differ by.
EPSILON = 1e-6


@dataclass
class Outcome:
    """What a history led to with one builder."""
    moved: int = 0
    balance: float = 0.0
    dispersion: float = 0.0
    reached: bool = False  # every device has what its builder planned for it


@dataclass
class History:
    """Steps, each a list of words as the command line has them, and `pass HOURS`."""
    seed: int
    steps: list = field(default_factory=list)
    devices: dict = field(default_factory=dict)  # id → weight
    leaving: set = field(default_factory=set)

    def __post_init__(self):
        self.random = random.Random(self.seed)
        pick = self.random.choice
        self.zones, self.regions, self.servers = pick([1, 2, 3, 4, 5]), pick([1, 1, 1, 2, 3]), pick([1, 2, 3, 5])
        self.weights = pick([[100], [100], [100, 200], [50, 100, 400], [1, 10, 100, 1000]])
        self.replicas = pick([1, 2, 3, 3, 3, 3, 4, 2.5, 3.25])
        self.power, self.hours = pick(POWERS), pick([1, 1, 1, 2])
        self.numbers = 0
        for _ in range(self.random.randint(int(self.replicas) + 3, 24)):
            self.add()
        self.steps.append(("rebalance", self.seed))
        for _ in range(self.random.randint(3, 9)):
            for _ in range(self.random.randint(1, 3)):
                self.change()
            self.steps += [("pass", pick([0, 0.5, 1, 2, 24])), ("rebalance", self.random.randint(1, 10**6))]
            for number in self.leaving:
                del self.devices[number]  # and the id is given again
            self.leaving.clear()

    def add(self, zone=None):
        self.numbers += 1
        region, zone = self.random.randint(1, self.regions), zone or self.random.randint(1, self.zones)
        taken = set(self.devices)
        number = next(number for number in range(len(taken) + 1) if number not in taken)
        self.devices[number] = weight = self.random.choice(self.weights)
        server = f"10.{region}.{zone}.{self.random.randint(1, self.servers)}"
        self.steps.append(("add", region, zone, server, f"sd{self.numbers}", weight))

    def change(self):
        what = self.random.choice(["add", "add", "add", "new zone", "remove", "weight", "weight", "drain", "zone", "region",
                                   "overload", "replicas"])
        one = self.random.choice(sorted(set(self.devices) - self.leaving))
        if what == "add":
            self.add()
        elif what == "new zone":
            self.zones += 1
            for _ in range(self.random.randint(1, 4)):
                self.add(self.zones)
        elif what == "overload":
            self.steps.append(("overload", self.random.choice([0, 0.05, 0.1, 0.3, 1])))
        elif what == "replicas":
            self.replicas = max(1, self.replicas + self.random.choice([-1, -0.5, 0.25, 0.5, 1]))
            self.steps.append(("replicas", self.replicas))
        elif what == "zone":
            self.steps.append(("zone", one, self.random.randint(1, self.zones)))
        elif what == "region":
            self.steps.append(("region", one, self.random.randint(1, self.regions)))
        elif what == "weight":
            self.devices[one] = self.random.choice(self.weights) * self.random.choice([0.5, 0.9, 1, 1.5])
            self.steps.append(("weight", one, self.devices[one]))
        elif sum(weight > 0 for weight in self.devices.values()) > self.replicas + 3:
            self.devices[one] = 0
            self.steps.append(("weight", one, 0) if what == "drain" else ("remove", one))
            if what == "remove":
                self.leaving.add(one)

    def enough_devices(self):
        """Whether every rebalance has more devices with weight than replicas; the ids of removed ones are given again."""
        return sum(weight > 0 for weight in self.devices.values()) > self.replicas


class Theirs:
    """OpenStack's library, with its clock in our hands."""

    def __init__(self, history):
        self.builder, self.now = RingBuilder(history.power, history.replicas, history.hours), START

    def do(self, step):
        word, *rest = step
        builder = self.builder
        if word == "add":
            region, zone, ip, name, weight = rest
            builder.add_dev({"region": region, "zone": zone, "ip": ip, "port": 6200, "replication_ip": ip,
                             "replication_port": 6200, "device": name, "weight": float(weight), "meta": ""})
        elif word == "pass":
            self.now += int(rest[0] * HOUR)
        elif word == "rebalance":
            with mock.patch.object(openstack, "time", lambda: self.now):
                builder.rebalance(seed=str(rest[0]))
        else:
            {"remove": builder.remove_dev, "weight": builder.set_dev_weight, "zone": builder.set_dev_zone,
             "region": builder.set_dev_region, "overload": builder.set_overload, "replicas": builder.set_replicas}[word](*rest)

    def read(self):
        return self.builder


class Ours:
    """The command line. Time passes in the file: OpenStack's library sets its clock back."""

    def __init__(self, history, folder):
        self.path = folder / "ours.builder"
        self.adding = []
        self.run("create", history.power, history.replicas, history.hours)

    def run(self, *words):
        command = [martlet(), "ring-builder", self.path, *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode < 2, f"{command} gave {done.returncode}:\n{done.stdout}{done.stderr}"

    def do(self, step):
        word, *rest = step
        if word == "add":
            region, zone, ip, name, weight = rest
            self.adding += [f"r{region}z{zone}-{ip}:6200/{name}_", weight]
            return
        if self.adding:
            self.run("add", *self.adding)
            self.adding = []
        if word == "pass":
            builder = self.read()
            builder._last_part_moves_epoch -= int(rest[0] * HOUR)
            builder.save(str(self.path))
        elif word == "rebalance":
            self.run("rebalance", "--force", "--seed", rest[0])
        elif word == "remove":
            self.run("remove", "--yes", f"d{rest[0]}")
        elif word in ("weight", "zone", "region"):
            self.run(f"set_{word}", "--yes", f"d{rest[0]}", rest[1])
        else:
            self.run(f"set_{word}", rest[0])

    def read(self):
        return RingBuilder.load(str(self.path))


def moved(before, after):
    """How many replicas of partitions have another device than before."""
    pairs = zip(after, before + [[]] * len(after))
    return sum(sum(1 for part, device in enumerate(row) if part >= len(old) or old[part] != device) for row, old in pairs)


def dispersion(builder):
    """OpenStack's measure over all partitions; its own leaves some out where the replica count is a fraction."""
    most, rows, over = builder._build_max_replicas_by_tier(), builder._replica2part2dev, 0
    for part in range(builder.parts):
        here = Counter(tier for row in rows if part < len(row) for tier in tiers_for_dev(builder.devs[row[part]]))
        levels = Counter()
        for tier, count in here.items():
            levels[len(tier)] += max(0, count - most.get(tier, 0))
        over += max(levels.values())
    return 100.0 * over / sum(len(row) for row in rows)


def live(side, history, chance=0):
    """Runs a history, lets time pass until nothing moves, and says what came of it. `chance` changes the seeds of its rebalances."""
    outcome, before, rows = Outcome(), [], None
    end = [("pass", 48), ("rebalance", 1)] * 6
    for step in history.steps + end:
        if step[0] != "rebalance":
            side.do(step)
            continue
        side.do(("rebalance", step[1] + chance * 1_000_003))
        builder = side.read()
        builder.validate()
        rows = [list(row) for row in builder._replica2part2dev]
        outcome.moved += moved(before, rows)
        before = rows
    outcome.balance, outcome.dispersion = builder.get_balance(), dispersion(builder)
    # OpenStack wants a device without weight to have less than nothing.
    outcome.reached = all(dev["parts_wanted"] == 0 if dev["weight"] else dev["parts"] == 0 for dev in builder._iter_devs())
    return outcome


def histories():
    seed = FIRST
    for _ in range(HISTORIES):
        while not History(seed).enough_devices():
            seed += 1
        yield seed
        seed += 1


def check_moved_by_other_chances(history, their_moved, our_moved, folder):
    """That all chances together move no more than with OpenStack."""
    for chance in range(1, CHANCES):
        place = folder / f"chance-{chance}"
        place.mkdir()
        their_moved += live(Theirs(history), history, chance).moved
        our_moved += live(Ours(history, place), history, chance).moved
    print(f"history {history.seed} with {CHANCES} chances: moved by theirs {their_moved}, by ours {our_moved}")
    assert our_moved <= their_moved * MORE_MOVED, "more moved than with OpenStack"


TOTALS = Counter()


@pytest.mark.parametrize("seed", list(histories()))
def test_a_history_ends_no_worse_than_with_openstack(seed, tmp_path):
    history = History(seed)
    theirs, ours = Theirs(history), Ours(history, tmp_path)
    their_end, our_end = live(theirs, history), live(ours, history)
    print(f"history {seed}: theirs {their_end}, ours {our_end}")
    TOTALS["theirs"] += their_end.moved
    TOTALS["ours"] += our_end.moved

    assert our_end.reached, "time enough has passed for every device to get what the plan gives it"
    better = our_end.balance < their_end.balance - EPSILON or our_end.dispersion < their_end.dispersion - EPSILON
    worse = [our_end.balance > their_end.balance + EPSILON, our_end.dispersion > their_end.dispersion + EPSILON]
    if their_end.reached:
        assert worse == [False, False], "balance or dispersion is worse than OpenStack's"
    # Where OpenStack's own plan is reached by us and not by them, theirs may stand closer to the bare weights (the
    # overload says they should not), or farther apart (the weights say they cannot), but not both.
    assert not all(worse), "balance and dispersion are worse than OpenStack's"
    if our_end.moved > their_end.moved * MORE_MOVED:
        TOTALS["histories that move more"] += 1
        if better:
            assert our_end.moved <= their_end.moved * 1.04 + 1, "more moved than what is better is worth"
        else:
            check_moved_by_other_chances(history, their_end.moved, our_end.moved, tmp_path)

    # Each opens what the other wrote.
    ring = Ring(str(tmp_path), ring_name="ours")
    assert [list(row) for row in ring._replica2part2dev_id] == [list(row) for row in ours.read()._replica2part2dev if row]
    path = tmp_path / "theirs.builder"
    theirs.builder.save(str(path))
    for words in (["validate"], ["rebalance", "--force"], ["write_ring"]):
        done = subprocess.run([martlet(), "ring-builder", path, *words], capture_output=True, text=True)
        assert done.returncode < 2, done.stdout + done.stderr
    Ring(str(tmp_path), ring_name="theirs")


def test_no_more_is_moved_in_all_histories_together():
    print(f"moved by OpenStack's builder {TOTALS['theirs']}, by ours {TOTALS['ours']}; more in {TOTALS['histories that move more']}")
    assert TOTALS["ours"] <= TOTALS["theirs"], TOTALS
    assert TOTALS["histories that move more"] <= 0.05 * HISTORIES, TOTALS
