"""Composite rings: the same builders composed by both makes, what they say, and whether each takes the other's result."""

import gzip
import json
import shutil

import pytest

from harness import ring_builder as builders
from harness.tools import run


@pytest.fixture(scope="module")
def components(tmp_path_factory):
    """Components that fit (r1, r2, r3) and others that do not; r1 has a hole among its devices."""
    lines = []
    for name, power, replicas, region, ip in (("r1", 4, 2, 1, 1), ("r2", 4, 2, 2, 2), ("r3", 4, 1, 3, 3), ("p5", 5, 1, 5, 5), ("fr", 4, 1.5, 7, 7), ("dup", 4, 1, 6, 1), ("reg", 4, 1, 1, 9)):
        lines += [f"{name}.builder create {power} {replicas} 0",
                  f"{name}.builder add " + " ".join(f"r{region}z1-127.0.0.{ip}:{port}/a 1" for port in (1, 2, 3)), f"{name}.builder rebalance --seed 1"]
    lines += ["empty.builder create 4 1 0", "r1.builder remove d1", "r1.builder add r1z1-127.0.0.1:4/d 1", "r1.builder rebalance --seed 2"]
    place = tmp_path_factory.mktemp("components")
    builders.openstack(place, lines)
    return place


@pytest.fixture
def folder(components, tmp_path):
    return shutil.copytree(components, tmp_path / "rings")


def composed(make, folder, *words):
    return run(make, "ring-composer", *words, cwd=folder)


def without_usage(output):
    return output.status, output.out, [line for line in output.err.splitlines() if line.strip() and not line.startswith("usage:")]


def both(folder, *words):
    """In copies, so that neither meets what the other has written."""
    output = []
    for make in ("openstack", "martlet"):
        place = folder / make
        if not place.exists():
            shutil.copytree(folder, place, ignore=lambda _, names: [name for name in names if name in ("openstack", "martlet")])
        output.append(composed(make, place, *words))
    theirs, ours = output
    named = [line.replace("martlet ring-composer", "swift-ring-composer") for line in without_usage(ours)[2]]
    return (theirs.status, theirs.out.replace("/openstack/", "/X/"), without_usage(theirs)[2]), (ours.status, ours.out.replace("/martlet/", "/X/"), named)


def content(ring):
    """Header and table. OpenStack's composer leaves the builders' counts in the header, which its rings have nowhere else."""
    whole = gzip.decompress(ring.read_bytes())
    length = int.from_bytes(whole[6:10], "big")
    header = json.loads(whole[10:10 + length])
    for device in filter(None, header["devs"]):
        device.pop("parts", None)
        device.pop("parts_wanted", None)
    return header, whole[10 + length:]


def test_a_ring_is_composed_shown_and_composed_again(folder):
    for words in (["c.cb", "show"], ["c.cb", "compose", "r1.builder", "r2.builder", "--output", "o.ring.gz"], ["c.cb", "show"], ["c.cb", "compose", "--output", "o.ring.gz"],
                  ["c.cb", "compose", "r2.builder", "r1.builder", "--output", "o.ring.gz"], ["c.cb", "compose", "r1.builder", "r2.builder", "r3.builder", "--output", "o.ring.gz"],
                  ["c.cb", "compose", "--output", "o.ring.gz", "--force"], ["c.cb", "show"], ["c.cb", "compose", "r1.builder", "r3.builder", "--output=o.ring.gz", "--force"], ["c.cb", "show"]):
        theirs, ours = both(folder, *words)
        assert ours == theirs, words
    assert content(folder / "martlet" / "o.ring.gz") == content(folder / "openstack" / "o.ring.gz")


def test_each_goes_on_with_the_others(folder):
    assert composed("openstack", folder, "c.cb", "compose", "r1.builder", "r2.builder", "--output", "o.ring.gz").status == 0
    builders.openstack(folder, ["r1.builder set_weight d0 2", "r1.builder rebalance --force"])
    assert composed("martlet", folder, "c.cb", "compose", "--output", "o.ring.gz").status == 0
    builders.openstack(folder, ["r2.builder set_weight d0 2", "r2.builder rebalance --force"])
    assert composed("openstack", folder, "c.cb", "compose", "--output", "o.ring.gz").status == 0
    shown = [composed(make, folder, "c.cb", "show").out for make in ("openstack", "martlet")]
    assert shown[0] == shown[1] and '"version": 3' in shown[0]


@pytest.mark.parametrize("names", ["r1", "r1 p5", "r1 dup", "r1 reg", "r1 fr", "r1 r1", "absent r1", "r1 empty", ""])
def test_what_cannot_be_joined(folder, names):
    theirs, ours = both(folder, "c.cb", "compose", *(f"{name}.builder" for name in names.split()), "--output", "o.ring.gz")
    assert ours[:2] == theirs[:2] == (2, "")
    if "empty" not in names:  # there OpenStack's program speaks of an iterator
        assert ours[2] == theirs[2]
    assert not (folder / "martlet" / "o.ring.gz").exists() and not (folder / "martlet" / "c.cb").exists()


def test_a_component_amid_an_increase_is_named(folder):
    """OpenStack's composes a ring without the increase: servers would not know where objects are to be linked."""
    (folder / "more").mkdir()
    shutil.copy(folder / "r2.builder", folder / "more" / "object.builder")
    builders.openstack(folder, ["more/object.builder prepare_increase_partition_power"])
    output = composed("martlet", folder, "c.cb", "compose", "r1.builder", "more/object.builder", "--output", "o.ring.gz")
    assert output.status == 2 and not (folder / "o.ring.gz").exists()
    assert "part_power=4, being increased to 5, found at indexes [1]" in output.err, output.err


def test_what_may_not_follow(folder):
    shutil.copy(folder / "r1.builder", folder / "r1.old")
    builders.openstack(folder, ["r1.builder set_weight d0 2", "r1.builder rebalance --force"])
    assert both(folder, "c.cb", "compose", "r1.builder", "r2.builder", "--output", "o.ring.gz")[1][0] == 0
    changes = [["r1.builder set_weight d0 3"], ["r1.builder rebalance --force", "r1.builder set_replicas 3", "r1.builder rebalance --force"]]
    for lines in changes:
        builders.openstack(folder, lines)
        for make in ("openstack", "martlet"):
            shutil.copy(folder / "r1.builder", folder / make / "r1.builder")
        theirs, ours = both(folder, "c.cb", "compose", "--output", "o.ring.gz")
        assert ours == theirs and ours[0] == 2
    for make in ("openstack", "martlet"):
        shutil.copy(folder / "r1.old", folder / make / "r1.builder")
    theirs, ours = both(folder, "c.cb", "compose", "--output", "o.ring.gz")
    assert ours == theirs and "Older builder version" in ours[2][-1]


@pytest.mark.parametrize("text", ["hello\n", "[]", '{"version": 1}', ""])
def test_files_that_are_no_composite(folder, text):
    (folder / "bad.cb").write_text(text, encoding="utf-8")
    for words in (["bad.cb", "show"], ["bad.cb", "compose", "r1.builder", "r2.builder", "--output", "o.ring.gz"], ["bad.cb", "compose", "--output", "o.ring.gz"]):
        theirs, ours = both(folder, *words)
        assert ours == theirs and ours[0] == 2
    assert (folder / "martlet" / "bad.cb").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("words", [[], ["c.cb", "nonsense"], ["c.cb", "compose"], ["c.cb", "compose", "--output"], ["c.cb", "-x"], ["-x"], ["c.cb", "show", "more", "words"],
                                   ["c.cb", "compose", "-x", "--output", "o"], ["c.cb", "compose", "--output", "--force"], ["c.cb", "compose", "--forced", "--output", "o"]])
def test_wrong_lines(folder, words):
    theirs, ours = both(folder, *words)
    assert ours == theirs and ours[0] == 2


def test_options_may_be_shortened(folder):
    for words in (["c.cb", "compose", "--out", "o.ring.gz", "r1.builder", "r2.builder"], ["c.cb", "compose", "--o=o.ring.gz", "--fo"], ["c.cb", "show"]):
        theirs, ours = both(folder, *words)
        assert ours == theirs and ours[0] == 0
    for words in (["--he"], ["c.cb", "--help"], ["c.cb", "show", "-h"], ["c.cb", "compose", "-h"]):
        theirs, ours = both(folder, *words)
        assert ours[0] == theirs[0] == 0 and "--force" in ours[1]


def test_nothing_to_do_is_said(folder):
    """OpenStack's program ends with a traceback there."""
    for words in (["c.cb"], ["show"]):
        theirs, ours = both(folder, *words)
        assert ours[0] == theirs[0] == 1 and "Say show or compose" in ours[2][-1]
