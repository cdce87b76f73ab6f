"""The module of etc/ansible that makes rings: it follows a list of devices, and refuses what would lose data."""

import json

import pytest

from harness import ansible
from harness.places import martlet
from harness.process import run

pytestmark = pytest.mark.long  # short, but it needs the environment that `make ansible-test` makes

MODULE = ansible.PLAYBOOK / "roles/martlet/library/martlet_ring.py"


class Ring:
    def __init__(self, folder):
        self.folder, self.builder, self.python = folder, folder / "object.builder", ansible.program("python")
        (folder / "martlet").symlink_to(martlet())

    def follow(self, devices, **options):
        """What the module answers to a list of devices, given as {"1/d1": weight}: the node and its zone, and the drive."""
        listed = [{"node": f"storage{node}", "region": 1, "zone": node, "ip": f"10.0.0.3{node}", "port": 6200, "device": drive, "weight": weight}
                  for (node, drive), weight in ((name.split("/"), weight) for name, weight in devices.items())]
        arguments = {"builder": str(self.builder), "part_power": 8, "replicas": 3, "min_part_hours": 24, "devices": listed, **options}
        (self.folder / "arguments").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        done = run([self.python, MODULE, self.folder / "arguments"], check=False, env={"PATH": f"{self.folder}:/usr/bin:/bin"})
        return json.loads(done.stdout.strip().splitlines()[-1])

    def ask(self, *words):
        return run([martlet(), "ring-builder", self.builder, *words], check=False).stdout

    def a_day_passes(self):
        self.ask("pretend_min_part_hours_passed")

    def weights(self):
        return {row.split()[3].partition(":")[0][-1] + "/" + row.split()[5]: float(row.split()[6]) for row in self.ask().splitlines() if ":6200" in row}


THREE = {f"{node}/{drive}": 100.0 for node in (1, 2, 3) for drive in ("d1", "d2")}
FOUR = {**THREE, "4/d1": 100.0, "4/d2": 100.0}


@pytest.fixture
def ring(tmp_path):
    ring = Ring(tmp_path)
    made = ring.follow(THREE)
    assert made["changed"] and made["rebalanced"] and (tmp_path / "object.ring.gz").exists(), made
    return ring


def test_a_list_that_has_not_changed_changes_nothing(ring):
    before = ring.builder.read_bytes(), (ring.folder / "object.ring.gz").read_bytes()
    assert ring.follow(THREE)["changed"] is False
    assert ring.follow(FOUR, follow=False)["changed"] is False
    assert ring.follow(FOUR, _ansible_check_mode=True)["did"] == [
        "added 10.0.0.34:6200/d1 of storage4", "added 10.0.0.34:6200/d2 of storage4", "rebalanced"]
    assert (ring.builder.read_bytes(), (ring.folder / "object.ring.gz").read_bytes()) == before


def test_a_node_comes_when_partitions_may_move(ring):
    early = ring.follow(FOUR)
    assert early["changed"] and not early["rebalanced"] and "min_part_hours" in str(early["warnings"]), early
    # What could not be done is tried by the next run, and is no change while it still cannot.
    again = ring.follow(FOUR)
    assert not again["changed"] and "min_part_hours" in str(again["warnings"]), again
    ring.a_day_passes()
    assert ring.follow(FOUR)["rebalanced"]
    assert ring.weights() == FOUR and not ring.follow(FOUR)["changed"]


def test_a_drive_is_drained_before_it_leaves(ring):
    fewer = {name: weight for name, weight in THREE.items() if name != "2/d2"}
    before = ring.builder.read_bytes()
    refused = ring.follow(fewer)
    assert refused["failed"] and "10.0.0.32:6200/d2 would leave" in refused["msg"] and ring.builder.read_bytes() == before, refused
    drained = ring.follow({**THREE, "2/d2": 0.0})
    assert drained["changed"], drained
    ring.a_day_passes()
    rebalanced = ring.follow({**THREE, "2/d2": 0.0}, rebalance=True)
    assert rebalanced["undrained"] == [], rebalanced
    left = ring.follow(fewer)
    assert left["rebalanced"] and ring.weights() == fewer, left
    assert not ring.follow(fewer)["changed"]


def test_a_lost_node_leaves_at_once_when_it_is_said(ring):
    two = {name: weight for name, weight in THREE.items() if not name.startswith("3/")}
    assert ring.follow(two)["failed"]
    assert ring.follow(two, forget_undrained=True)["rebalanced"]
    assert ring.weights() == two


def test_what_a_ring_keeps_and_what_it_may_change(ring):
    assert "keeps it" in ring.follow(THREE, part_power=9)["msg"]
    assert ring.follow({})["msg"] == "a ring without devices is not made"
    changed = ring.follow({**THREE, "1/d1": 50.0}, replicas=2, min_part_hours=1)
    assert changed["changed"], changed
    assert "2.000000 replicas" in ring.ask() and "can be reassigned is 1 (" in ring.ask() and ring.weights()["1/d1"] == 50.0
