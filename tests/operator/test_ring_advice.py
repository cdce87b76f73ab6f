"""plan, ramp and simulate: what they say comes true when it is done."""

import json
import os
import re
import shlex
import xml.dom.minidom
from collections import Counter

import pytest
from swift.common.ring import RingBuilder

from harness import ring_builder as builders
from harness.places import REPOSITORY

FIVE_ZONES = ["o.builder create 10 3 1",
              "o.builder add " + " ".join(f"r1z{zone}-10.0.{zone}.1:6200/d{drive} 16000" for zone in range(1, 6) for drive in range(1, 5)),
              "o.builder rebalance --seed 1"]


@pytest.fixture
def ring(tmp_path):
    assert [step.status for step in builders.ours(tmp_path, FIVE_ZONES)] == [0, 0, 0]
    return tmp_path


def output(folder, line, status=0):
    [step] = builders.ours(folder, [f"o.builder {line}"])
    assert step.status == status, step
    return step.out


def unchanged(folder, line, status=0):
    before = (folder / "o.builder").read_bytes()
    out = output(folder, line, status)
    assert (folder / "o.builder").read_bytes() == before
    return out


@pytest.mark.parametrize("drives, power", [(1, 7), (5, 9), (10, 10), (48, 13), (5000, 19)])
def test_a_hundred_partitions_for_each_drive_in_the_end(tmp_path, drives, power):
    plan = json.loads(output(tmp_path, f"plan --drives 1 --final-drives {drives} --zones 5 --replicas 1 --json"))
    assert plan["part_power"] == power and plan["partitions"] == 2 ** power >= 100 * drives > 2 ** (power - 1)


def test_the_commands_of_a_plan_make_the_ring(tmp_path):
    (tmp_path / "inventory.toml").write_text("final_drives = 40\n" + "".join(
        f'[[server]]\nzone = {zone}\nip = "{ip}"\ndrives = 2\ndrive_size = "4TB"\n' for zone, ip in enumerate(["10.0.0.1", "node2.example.com", "2001:db8::3", "10.0.0.4", "10.0.0.5"])), encoding="utf-8")
    plan = json.loads(output(tmp_path, "plan --inventory inventory.toml --json"))
    for line in plan["commands"]:
        [step] = builders.ours(tmp_path, [shlex.join(shlex.split(line)[1:])])
        assert step.status == 0, step
    shown = output(tmp_path, "")
    assert "4096 partitions, 3.000000 replicas, 1 regions, 5 zones, 10 devices" in shown and " 0.00 dispersion" in shown


@pytest.mark.parametrize("builder, port", [("account", 6202), ("container", 6201), ("object", 6200), ("object-1", 6200)])
def test_a_plan_names_the_port_of_the_builders_kind(tmp_path, builder, port):
    (tmp_path / "i.toml").write_text('[[server]]\nzone = 1\nip = "10.0.0.1"\nreplication_ip = "10.1.0.1"\ndrives = 1\n[[server]]\nzone = 2\nip = "10.0.0.2"\n'
                                     'port = 7000\ndrives = 1\n[[server]]\nzone = 3\nip = "node3"\ndrives = 1\n', encoding="utf-8")
    [listed, counted] = builders.ours(tmp_path, [f"{builder}.builder plan --inventory i.toml --json", f"{builder}.builder plan --drives 9 --zones 3 --json"])
    create, *adds, rebalance = json.loads(listed.out)["commands"]
    assert f"r1z1-10.0.0.1:{port}R10.1.0.1:{port}/d1" in adds[0] and "r1z2-10.0.0.2:7000/d1" in adds[1] and f"--ip node3 --port {port} " in adds[2], adds
    assert f"add r1z<zone>-<ip>:{port}/<device>" in json.loads(counted.out)["commands"][1]


def test_the_picture_of_a_plan(tmp_path):
    """A zone that is too large has fewer partitions than its weight asks for."""
    (tmp_path / "i.toml").write_text("".join(
        f'[[server]]\nzone = {zone}\nip = "10.0.0.{zone}"\ndevices = ["sdb"]\ndrive_size = "{size}TB"\n' for zone, size in ((1, 4), (2, 1), (3, 1))), encoding="utf-8")
    output(tmp_path, "plan --inventory i.toml --svg plan.svg", status=1)
    drawn = xml.dom.minidom.parse(str(tmp_path / "plan.svg"))
    titles = [title.firstChild.data for title in drawn.getElementsByTagName("title")]
    assert "o.builder as planned, with part power 11" in titles and "10.0.0.1:6200/sdb: 2048 partitions, 50.0% of its share" in titles, titles
    assert "inventory" in output(tmp_path, "plan --drives 9 --no-questions --svg plan.svg", status=2)
    assert {file.name for file in tmp_path.iterdir()} <= {"i.toml", "plan.svg", "swift-ring-builder"}


def test_a_plan_asks_for_what_it_is_not_told(tmp_path):
    [step] = builders.ours(tmp_path, ["12\\n48\\n3\\n |> o.builder plan"])
    assert step.status == 0 and "2^13" in step.out and "12 drives in 3 zone(s)" in step.out
    assert output(tmp_path, "plan", status=2)
    assert "WARNING" in output(tmp_path, "plan --drives 12 --zones 1 --no-questions", status=1)
    for wrong in ("--drives 0", "--drives x", "--drives 2 --no-questions", "--drives 9999999999", "--inventory absent.toml"):
        assert output(tmp_path, f"plan {wrong}", status=2) is not None


INVENTORY = '[[server]]\nzone = 1\nip = "10.0.0.1"\n'


@pytest.mark.parametrize("text, why", [("drives = 3\ndevices = ['a']", "3 drives, and 1 devices"), ("devices = ['a', 'a']", "has a twice"), ("devices = ['$(reboot)']", "choose letters"),
                                       ("drives = 1\nport = 0", "port 0"), ("drives = 1\ndrive_size = '0TB'", "holds nothing"), ("drives = nan", "line 4"), ("", "say `drives`")])
def test_an_inventory_that_makes_no_ring(tmp_path, text, why):
    (tmp_path / "i.toml").write_text(INVENTORY + text, encoding="utf-8")
    assert why in output(tmp_path, "plan --inventory i.toml", status=2)


def test_what_is_said_beside_an_inventory(tmp_path):
    (tmp_path / "i.toml").write_text("final_drives = 40\n" + INVENTORY + "devices = ['sd_a', 'sdb', 'sdc']\n", encoding="utf-8")
    plan = json.loads(output(tmp_path, "plan --inventory i.toml --final-drives 5000 --json", status=1))
    assert plan["part_power"] == 19 and [line.split(" add ")[1][:9] for line in plan["commands"][1:3]] == ["r1z1-10.0", "--region "]
    for line in plan["commands"]:
        assert builders.ours(tmp_path, [shlex.join(shlex.split(line)[1:]).replace("create 19", "create 9")])[0].status in (0, 1), line
    assert " sd_a " in output(tmp_path, "")
    for wrong in ("--drives 3", "--zones 3", "--servers 2"):
        assert "not both" in output(tmp_path, f"plan --inventory i.toml {wrong}", status=2)
    assert "begins with 3" in output(tmp_path, "plan --inventory i.toml --final-drives 2", status=2)


def test_a_plan_for_a_builder_that_exists(ring):
    for drives in (10, 1000):
        assert "create would replace it" in " ".join(unchanged(ring, f"plan --drives 10 --final-drives {drives} --zones 5 --no-questions", status=1).split())


def table(folder):
    """The assignment as OpenStack's program reads it: for each partition, where its replicas are."""
    builder = RingBuilder.load(str(folder / "o.builder"))
    return [Counter(row[partition] for row in builder._replica2part2dev if partition < len(row)) for partition in range(builder.parts)]  # noqa: SLF001


def moved_in(folder, step, seed):
    """How many replicas of partitions a step of a ramp really moves."""
    before = table(folder)
    output(folder, "set_weight " + " ".join(f"d{device} {weight}" for device, weight in step["weights"].items()))
    output(folder, "pretend_min_part_hours_passed")
    [done] = builders.ours(folder, [f"o.builder rebalance --seed {seed} --force"])
    assert done.status in (0, 1), done
    return sum((after - was).total() for was, after in zip(before, table(folder), strict=True))


def walk(folder, line):
    """Does what a ramp says, and sees that no more moves than it says."""
    ramp = json.loads(unchanged(folder, f"ramp {line} --json"))
    for step in ramp["steps"]:
        assert step["bytes"] <= ramp["max_move_bytes_per_hour"] * max(1, step["hours"]) * 1.0001
        assert step["bytes"] == pytest.approx(step["partitions"] * ramp["bytes_per_partition_replica"], rel=1e-6)
        assert moved_in(folder, step, ramp["rebalance_seed"]) == step["partitions"]
    return ramp["steps"]


@pytest.mark.parametrize("search, extra", [("z6", ""), ("z2", "--target-weight 0"), ("z2", "--target-weight 32000"), ("d3", "--target-weight 1000")])
def test_a_ramp_moves_what_it_says(ring, search, extra):
    output(ring, "add " + " ".join(f"r1z6-10.0.6.1:6200/d{drive} 16000" for drive in range(1, 5)))
    if search != "z6":
        output(ring, "rebalance --seed 2", status=1)
        output(ring, "pretend_min_part_hours_passed")
        output(ring, "rebalance --seed 2 --force")
    assert walk(ring, f"{search} --max-move 10TiB/h {extra}")


def test_a_ramp_with_an_overload(tmp_path):
    """A third zone that is small gets more than its weight."""
    builders.ours(tmp_path, ["o.builder create 10 3 1", "o.builder set_overload 1000%",
                             "o.builder add " + " ".join(f"r1z{zone}-10.0.{zone}.1:6200/d{drive} 1" for zone in (1, 2) for drive in range(8)), "o.builder rebalance --seed 1",
                             "o.builder add " + " ".join(f"r1z3-10.0.3.1:6200/d{drive} 0.25" for drive in range(8)), "o.builder pretend_min_part_hours_passed"])
    assert sum(step["partitions"] for step in walk(tmp_path, "z3 --max-move 1TiB/h --weight-unit 1TB")) > 2 * 3072 / 9


def test_a_ramp_of_small_weights(tmp_path):
    builders.ours(tmp_path, ["o.builder create 10 3 1", "o.builder add " + " ".join(f"r1z{zone}-10.0.{zone}.1:6200/d{drive} 0.016" for zone in range(1, 6) for drive in range(4)),
                             "o.builder rebalance --seed 1", "o.builder add r1z6-10.0.6.1:6200/a 0.016 r1z6-10.0.6.1:6200/b 0.016"])
    assert len(walk(tmp_path, "z6 --max-move 2TiB/h --weight-unit 1PB")) > 5


def test_a_ramp_between_devices_that_are_chosen(ring):
    """Those that lose and those that gain, though together they keep their share."""
    output(ring, "set_weight d0 8000 d1 24000")
    output(ring, "pretend_min_part_hours_passed")
    output(ring, "rebalance --seed 1")
    steps = walk(ring, "10.0.1.1 --max-move 2TiB/h --target-weight 16000")
    assert sum(step["partitions"] for step in steps) >= 70


def test_a_ramp_waits_for_other_changes(ring):
    output(ring, "add r1z6-10.0.6.1:6200/d1 16000 r1z7-10.0.7.1:6200/d1 16000")
    assert "rebalance first" in unchanged(ring, "ramp z6 --max-move 1TiB/h", status=2)
    output(ring, "remove z7 --yes")
    assert "hours have passed" in unchanged(ring, "ramp z6 --max-move 1TiB/h")
    output(ring, "remove z1 z2 z3 --yes")
    assert unchanged(ring, "ramp z6 --max-move 1TiB/h --target-weight 0", status=2)


def test_a_ramp_says_when_it_ends(ring):
    output(ring, "add r1z6-10.0.6.1:6200/d1 16000")
    out = unchanged(ring, "ramp z6 --max-move 1TiB/h")
    assert re.search(r"1 devices, \d+ steps, .* move in all, done after", out) and "set_weight d20" in out
    for wrong in ("ramp z6", "ramp z9 --max-move 1TiB/h", "ramp z1 --max-move 1TiB/h", "ramp z6 --max-move fast", "ramp z1 --max-move 1kB/h --target-weight 0",
                  "ramp r1 --max-move 1TiB/h --target-weight 1", "ramp z1 --max-move 1TiB/h --target-weight nan", "ramp z6 --max-move 1TiB/h --used 200"):
        assert unchanged(ring, wrong, status=2)


def test_what_is_at_risk_is_counted(ring):
    """Against the partitions that list_parts lists."""
    listed = [line.split() for line in output(ring, "list_parts z3").splitlines()[1:]]
    printed = json.loads(unchanged(ring, "simulate --lose zone:3 --stored 30TB --bandwidth 100MB/s --json"))
    assert printed["devices"] == 4 and printed["lost_partition_replicas"] == sum(int(count) for _, count in listed)
    assert printed["partitions_by_replicas_left"] == {"0": 0, "1": 0, "2": len(listed)}
    assert printed["lost_bytes"] == pytest.approx(30e12 * len(listed) / 3072, rel=1e-3)
    assert printed["repair_hours"] > printed["lost_bytes"] / 16 / 100e6 / 3600
    two = json.loads(unchanged(ring, "simulate --lose zone:1/3 --lose server:10.0.1.1 --lose d5 --json", status=1))
    both = [line.split() for line in output(ring, "list_parts z3 z1 d5").splitlines()[1:]]
    assert two["partitions_by_replicas_left"] == {str(3 - lost): sum(int(count) == lost for _, count in both) for lost in (3, 2, 1)}


@pytest.mark.parametrize("replicas", [2, 2.5, 4])
def test_what_is_at_risk_in_other_rings(tmp_path, replicas):
    """Against a count of the table itself; a quorum is what writes need: one of two, two of three or four."""
    builders.ours(tmp_path, [f"o.builder create 7 {replicas} 1", "o.builder add " + " ".join(f"r1z{zone}-10.0.{zone}.1:6200/d{drive} {zone}" for zone in range(1, 4) for drive in range(3)),
                             "o.builder rebalance --seed 1"])
    rows = table(tmp_path)
    for places, lost in (("--lose zone:1", {0, 1, 2}), ("--lose zone:1 --lose d3 --lose 10.0.3.1", {0, 1, 2, 3, 6, 7, 8}), ("--lose d8", {8})):
        left = [(sum(row.values()), sum(count for device, count in row.items() if device not in lost)) for row in rows]
        below = sum(there < (had + 1) // 2 for had, there in left)
        gone = sum(there == 0 for _, there in left)
        [step] = builders.ours(tmp_path, [f"o.builder simulate {places} --used 1 --json"])
        printed = json.loads(step.out)
        assert printed["partitions_below_quorum"] == below and step.status == (1 if below or gone else 0)
        assert printed["lost_partition_replicas"] == sum(had - there for had, there in left)
        wanted = Counter(there for had, there in left if there < had)
        assert {int(number): count for number, count in printed["partitions_by_replicas_left"].items() if count} == wanted
        per_part = printed["stored_bytes"] / sum(had for had, _ in left)
        assert printed["repair_bytes"] == pytest.approx(per_part * sum(had - there for had, there in left if there), rel=1e-6)


def test_simulations_for_people(ring):
    out = unchanged(ring, "simulate --lose zone:3")
    assert "replicas left" in out and "Repair copies" in out and "Assumed: devices are 70% full" in out
    assert "UNAVAILABLE" in unchanged(ring, "simulate --lose region:1", status=1)
    for wrong in ("simulate", "simulate --lose zone:9", "simulate --lose zone:x", "simulate --lose z3 --bandwidth 0/s", "simulate --lose z3 x"):
        assert unchanged(ring, wrong, status=2)
    output(ring, "dispersion --svg spread.svg")
    titles, texts = drawn(ring / "spread.svg")
    assert len([title for title in titles if title.endswith("% of its share")]) == 20 and "10.0.3.1/d2" in texts
    assert "within 5%" in texts and not {"less", "more", "several", "more than there should be"} & set(texts), texts


def drawn(picture):
    """Titles and texts of a picture; those of bars are titles."""
    parsed = xml.dom.minidom.parse(str(picture))
    return tuple([node.firstChild.data for node in parsed.getElementsByTagName(name)] for name in ("title", "text"))


def charts(picture):
    """For each chart in turn the bars: what each device holds, in words."""
    titles, _ = drawn(picture)
    bars = [title.split(": ", 1) for title in titles if re.match(r"10\.0\.\d\.1/d\d: ", title)]
    count = len({name for name, _ in bars})
    return [dict(bars[begin:begin + count]) for begin in range(0, len(bars), count)]


def is_kept(picture):
    """The page docs/operating/rings.md shows it; `MARTLET_WRITE=1` draws it anew."""
    kept = REPOSITORY / "docs/operating/pictures" / picture.name
    if os.environ.get("MARTLET_WRITE"):
        kept.write_bytes(picture.read_bytes())
    return kept.read_bytes() == picture.read_bytes()


def test_the_picture_of_a_loss_shows_before_the_loss_and_the_repair(ring):
    printed = json.loads(unchanged(ring, "simulate --lose zone:3 --json --svg simulate.svg"))
    before, lost, after = charts(ring / "simulate.svg")
    assert len(before) == 20 and all(words.endswith(" TiB, 70%") for words in before.values()), before
    gone = {f"10.0.3.1/d{drive}" for drive in range(1, 5)}
    assert {name for name, words in lost.items() if words == f"{before[name]} out of reach"} == gone, lost
    full = round(printed["fill_percent_afterwards"])
    assert {after.pop(name) for name in gone} == {"lost"} and all(abs(int(words.split()[-1].rstrip("%")) - full) <= 1 for words in after.values()), after
    _, texts = drawn(ring / "simulate.svg")
    left = printed["partitions_by_replicas_left"]["2"]
    share = 100 * left / 1024
    assert f"3 replicas left: {1024 - left} partitions ({100 - share:.1f}%); 2 replicas left: {left} partitions ({share:.1f}%)" in texts, texts
    assert {"has room", "over 85% full", "lost"} <= set(texts) and not {"over 95% full", "size not known", "the devices of the command"} & set(texts), texts
    assert is_kept(ring / "simulate.svg")


def test_the_picture_of_a_loss_that_cannot_be_repaired(ring):
    unchanged(ring, "simulate --lose zone:3 --lose zone:4 --used 90 --svg lost.svg", status=1)
    _, texts = drawn(ring / "lost.svg")
    assert any("does not fit" in text for text in texts) and "over 95% full" in texts and any("1 replica left" in text for text in texts), texts
    unchanged(ring, "simulate --lose region:1 --svg lost.svg", status=1)
    _, texts = drawn(ring / "lost.svg")
    assert len(charts(ring / "lost.svg")) == 2 and "0 replicas left: 1024 partitions (100.0%)" in texts, texts


def test_the_picture_of_a_ramp_shows_before_and_each_step(ring):
    output(ring, "add " + " ".join(f"r1z6-10.0.6.1:6200/d{drive} 16000" for drive in range(1, 5)))
    printed = json.loads(unchanged(ring, "ramp z6 --max-move 12TiB/h --json --svg ramp.svg"))
    before, *steps = charts(ring / "ramp.svg")
    assert len(steps) == len(printed["steps"]) > 1 and {before[f"10.0.6.1/d{drive}"] for drive in range(1, 5)} == {"0 B, 0%"}
    fills = [int(step["10.0.6.1/d1"].split()[-1].rstrip("%")) for step in steps]
    # Of 16 TB each, 24 of them hold what 20 held at 70 %.
    assert fills == sorted(fills) and abs(fills[-1] - 58) <= 1 and abs(int(steps[-1]["10.0.1.1/d1"].split()[-1].rstrip("%")) - 58) <= 1, fills
    _, texts = drawn(ring / "ramp.svg")
    for step in printed["steps"]:
        assert any(f"2 replicas in place while it moves: {step['partitions']} partitions" in text for text in texts), texts
    assert "the devices of the command" in texts and "lost" not in texts
    assert is_kept(ring / "ramp.svg")
