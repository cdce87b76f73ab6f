"""A storm on paper: what happens when and where, drawn from a seed alone.

What a storm may do is bounded by what the cluster promises. A fault that destroys data strikes one node, and only when
everything has all its replicas; anything that merely hides data may strike anywhere, at any time, several at once.
"""

from dataclasses import dataclass, field

from storm.recorder import dice_of


@dataclass
class Event:
    """One fault on one lane (a node, a gateway, memcached, the rings) from `start` for `seconds`."""

    start: float
    seconds: float
    lane: str
    name: str
    seed: str

    def __str__(self):
        return f"{self.start:5.1f} s  {self.lane:9} {self.name} for {self.seconds:.1f} s"


@dataclass
class Round:
    losses: list = field(default_factory=list)
    victim: str | None = None
    events: list = field(default_factory=list)


def draw(seed, rounds, seconds, lanes, losses, sound=lambda name: 0):
    """`lanes` maps a lane to its faults' names; `sound` says how long a fault must last at least."""
    dice, plan = dice_of("plan", seed), []
    nodes = [lane for lane in lanes if lane.startswith("node")]
    for number in range(rounds):
        this = Round()
        if number and losses:  # at first there is nothing to lose
            this.victim = dice.choice(nodes)
            this.losses = dice.sample(losses, min(len(losses), dice.choice([1, 1, 2])))
        for lane, names in lanes.items():
            if names and dice.random() < (0.75 if lane.startswith("node") else 0.45):
                this.events += lane_events(dice, seed, number, seconds, lane, names, sound)
        this.events.sort(key=lambda event: event.start)
        plan.append(this)
    return plan


def lane_events(dice, seed, number, seconds, lane, names, sound):
    start = dice.uniform(0.5, seconds * 0.5)
    while start < seconds - 1.5:
        name = dice.choice(names)
        lasts = max(dice.uniform(1.5, 6.0), sound(name))
        yield Event(start, lasts, lane, name, f"{seed}/{number}/{lane}/{start}")
        start += lasts + dice.uniform(1.0, seconds * 0.7)
