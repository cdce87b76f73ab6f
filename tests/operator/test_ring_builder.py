"""The ring builder beside OpenStack's: the same commands, what both print, how they end, and what they leave on disk."""

import fcntl
import pickle
import shlex
import subprocess
import time

import pytest

from harness import ring_builder as builders
from harness.places import martlet
from harness.ring_builder import shown
from harness.tools import both

FOUR = """
b.builder create 6 3 1
b.builder add r0z0-127.0.0.1:6200/sd0_meta 100
b.builder add r1z1-127.0.0.2:6201R10.0.0.2:6301/sd1_"some meta data" 100
b.builder add r2z2-[2001:db8::3]:6202R[2001:db8::4]:6302/sd2 100 r3z3-127.0.0.4:6203/sd3_ 100
"""
PLACED = FOUR + "b.builder rebalance --seed 1\n"
OBJECT = PLACED.replace("b.builder", "object.builder")


def steps(text):
    return [line for line in text.splitlines() if line.strip()]


def run_both(folder, text):
    lines = steps(text)
    for make in ("openstack", "ours"):
        (folder / make).mkdir(exist_ok=True)
    return builders.openstack(folder / "openstack", lines), builders.ours(folder / "ours", lines)


def compare(folder, text, hide=str):
    """Every step says the same and ends the same. Where OpenStack's program crashes, ours says why, and ends the same."""
    differing = []
    shown = lambda text: hide(builders.shown(text))  # noqa: E731
    for theirs, ours in zip(*run_both(folder, text)):
        if theirs.crashed:
            same = theirs.status == ours.status and ours.out.strip() and "panicked" not in ours.err
        else:
            same = (theirs.status, shown(theirs.out), shown(theirs.err)) == (ours.status, shown(ours.out), shown(ours.err))
        if not same:
            differing.append(f"$ {theirs.line}\n{theirs.status}\n{shown(theirs.out)}\n{shown(theirs.err)}\n--- ours\n{ours.status}\n{shown(ours.out)}\n{shown(ours.err)}\n")
    assert not differing, "\n".join(differing)


def test_a_ring_is_made_and_shown(tmp_path):
    compare(tmp_path, "b.builder\nb.builder create\nb.builder create 8 3\nb.builder create 6 3 1\nb.builder\n" + PLACED + """
b.builder
b.builder default
b.builder rebalance
b.ring.gz
b.ring.gz version
b.builder version
b.builder validate
b.builder set_info d0 _x
b.builder
b.builder write_ring
b.builder
b.builder pretend_min_part_hours_passed
b.builder
b.builder rebalance
b.builder rebalance --force
b.builder unknown
nothing.ring.gz
nothing.ring.gz rebalance
new.ring.gz create 4 2 1
new.builder
""")


def test_refused_creations(tmp_path):
    compare(tmp_path, """
b.builder create 40 3 1
b.builder create -1 3 1
b.builder create 8 0.5 1
b.builder create 8 x 1
b.builder create x 3 1
b.builder create 8 3 1.5
b.builder create 8 3 -1
b.builder create 4 2.5 30 more
b.builder
nowhere/b.builder create 4 3 1
""")


def test_more_than_memory(tmp_path):
    """A ring that no server reads, and one that the process gets no memory for. (OpenStack's program makes the first, of 4 GB, and fails with
    MemoryError at the second.)"""
    step, = builders.ours(tmp_path, ["b.builder create 31 3 1"])
    assert (step.status, step.out) == (2, (
        "part power 31 with 3 replicas is too large: its builder needs 192.0 GiB of memory, and servers read no ring of that size; "
        "choose 26 or less (16 to 20 for a cluster)\n")), step
    limited = f"ulimit -v {4 << 20}; exec {shlex.quote(str(martlet()))} ring-builder {shlex.quote(str(tmp_path / 'b.builder'))} create 26 3 1"
    ran = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert ran.returncode == 2 and "part power 26 with 3 replicas needs 6.0 GiB of memory" in ran.stdout, ran
    assert not list(tmp_path.glob("**/*.builder"))


def test_add(tmp_path):
    compare(tmp_path, """
c.builder create 4 3 0
c.builder add
c.builder add foo
c.builder add r1z1-10.0.0.1:6200/sda_meta1 100
c.builder add r1z1-10.0.0.1:6200/sda_meta1 100
c.builder add z2-10.0.0.2:6200R10.1.0.2:6300/sdb 100.5
c.builder add r1z3-[::1]:6200/sdc 100 r2z1-host.example.com:6201/sdd_hello 50
c.builder add xyz 1
c.builder add r1z1-10.0.0.1:6200/sdx abc
c.builder add r1z1-10.0.0.1:6200/sdx -1
c.builder add r1z1-127.0.0.1:1/ 1
c.builder add r1z1-127.0.0.1:1 1
c.builder add r1z1-127.0.0.1/sda 1
c.builder add "r1z1-127.0.0.1:1/ sda" 1
c.builder add r1z-127.0.0.1:1/sda 1
c.builder add r1z1:1/sda 1
c.builder add r1z1-:1/sda 1
c.builder add r1z1-300.0.0.1:1/sda 1
c.builder add r1z1-127.0.0.1:1R/sda 1
c.builder add r1z1-127.0.0.1:x/sda 1
c.builder add r1z1-127.0.0.1:1R1.2.3.4:x/sda 1
c.builder add r1z1-127.0.0.1:1R1.2.3.4:5/sda_a_b 1
c.builder add r1z1-::1:1/sda 1
c.builder add r1z1-[2001:db8::1]:6200R[2001:db8::2]:6201/sda_m 1
c.builder add r1z1-2001:0DB8:0:0::1:6200/sdb 1
c.builder add d9r1z1-127.0.0.1:1/sdz 1
c.builder add r1z1-127.0.0.1:2/sdz 0
c.builder add r1z1-127.0.0.1:2/sdy 1e3
c.builder add r1z1-127.0.0.1:2/sdyy 1_0
c.builder add r01z01-127.0.0.1:02/sdxx " 5 "
c.builder add --region 1 --zone 1 --ip FOO.example.com --port 1 --device a --weight 1
c.builder add --region 1 --zone 1 --ip 'foo bar' --port 1 --device a --weight 1
c.builder add --region 1 --zone 1 --ip foo.example.com --port x --device a --weight 1
c.builder add --region 1 --zone 1 --ip foo.example.com --port 1 --device b --weight x
c.builder add --region 1 --zone 1 --ip foo.example.com --port 1 --device c --weight 5 extra
c.builder add -r 1 -z 1 -i ::1 -p 5 -d sdz -w 10 -m x -j r.example.com -q 8
c.builder add --zone 1 --weight 5
c.builder add --region 1 --zone 1 --ip 1.1.1.1 --port 1 --weight 3
c.builder add --reg=1 --zo 1 --ip foo.example.com --port 1 --device f --weight 5 -y
c.builder add r1z1-127.0.0.1:2/s1 1 --yes
c.builder add r1z1-127.0.0.1:2/s3 1 r1z1-127.0.0.1:2/s3 1
c.builder
c.builder search r1
""")


SEARCHED = """
s.builder create 4 2 1
s.builder add r1z1-127.0.0.1:6200/sda_shiny 100 r1z2-127.0.0.2:6201R10.0.0.2:6301/sdb_"snet: 5.6.7.8" 50.5
s.builder add r2z1-[2001:db8::1]:6200R[2001:db8::2]:6300/sdc 200
s.builder add --region 2 --zone 3 --ip node1.example.com --port 6200 --replication-ip rnode1.example.com --replication-port 6300 --device sdd --weight 1
s.builder
"""
VALUES = ["d0", "r1", "z1", "r1z1", "d0z1", "z1-127.0.0.1", "127.0.0.1", "-127.0.0.1", ":6201", "z1:6200", "R10.0.0.2", "R:6301", "127.0.0.2R10.0.0.2",
          "127.0.0.2:6201R10.0.0.2:6301", "/sda", "/sd", "_shi", "'_snet: 5'", "[2001:DB8:0::1]", "2001:db8::1", "[2001:db8::1]:6200", "R[2001:db8::2]:6300",
          "d2r2z1-[2001:db8::1]:6200R[2001:db8::2]:6300/sdc_", "node1.example.com", "300.1.1.1", "''", "d", "d0x", "z1r1", "/", "_", ":", "R", "[::1", "-", "r1-",
          "d00", "d-1", "r1/sda", "127.0.0.1:", "127.0.0", "foo", "d9", "d99999999999999"]
OPTIONS = ["--id 0", "--ip 127.0.0.1", "--ip [2001:db8::1]", "--ip 2001:db8:0::1", "--ip node1.example.com", "--ip unknown", "--replication-ip [2001:db8::2]",
           "--device sda", "--device sd", "--meta shi", "--weight 50.5", "--port 6200", "--replication-port 6301", "-u 1", "-r 1 -z 2", "--region 2 x", "r1 --zone 1",
           "--yes", "-y d0", "d0 -y", "d0 --yes d1", "-u0", "-ux", "--foo", "--i 1", "--re 1", "--meta=", "--meta", "--yes=1", "", "z1 z2"]


def test_search(tmp_path):
    compare(tmp_path, SEARCHED + "".join(f"s.builder search -- {value}\n" for value in VALUES) + "".join(f"s.builder search {line}\n" for line in OPTIONS))


def test_list_parts(tmp_path):
    """Each device holds every partition: only the order is a matter of chance."""
    compare(tmp_path, """
l.builder create 3 3 1
l.builder list_parts d0
l.builder add r1z1-127.0.0.1:1/a 1 r1z2-127.0.0.2:1/b 1 r1z3-127.0.0.3:1/c 1
l.builder rebalance
l.builder list_parts
l.builder list_parts d0
l.builder list_parts z1 z2
l.builder list_parts --region 1
l.builder list_parts --region 1 x
l.builder list_parts d9
l.builder list_parts foo
""", hide=lambda text: "\n".join(sorted(text.splitlines())))


def test_list_parts_in_order(tmp_path):
    """On the same builder: OpenStack's, whose order is that of its table."""
    for folder in (tmp_path / "theirs", tmp_path / "ours"):
        folder.mkdir()
        builders.openstack(folder, steps(PLACED))
    (tmp_path / "ours" / "b.builder").write_bytes((tmp_path / "theirs" / "b.builder").read_bytes())
    asked = ["b.builder list_parts d0", "b.builder list_parts r0 z1", "b.builder list_parts --meta meta", "b.builder list_parts d0 d0"]
    theirs, ours = builders.openstack(tmp_path / "theirs", asked), builders.ours(tmp_path / "ours", asked)
    assert [(step.out, step.status) for step in ours] == [(step.out, step.status) for step in theirs]


def test_devices_change(tmp_path):
    compare(tmp_path, PLACED + """
b.builder set_weight d0 150
b.builder set_weight d0 50 --yes
b.builder set_weight d0 50 d1
b.builder set_weight d9 50
b.builder set_weight z1 abc
b.builder set_weight
b.builder set_weight --yes 50
b.builder set_weight --region 1 5 6
b.builder set_weight /sd2 70 _e 80
b.builder set_weight /sd2 70 _e 80 --yes
b.builder set_weight --region 1 30
b.builder set_weight --region 1 --weight 30 40 -y
b.builder
y\\n |> b.builder set_weight z0 2 _e 3
Y\\n |> b.builder set_weight _e 2
yes\\n |> b.builder set_weight _e 2
\\n |> b.builder set_weight _e 2
y |> b.builder set_weight _e 5
y\\nn\\n |> b.builder set_weight _e 6 _e 7
b.builder set_region d0 5
b.builder set_region d0 x
b.builder set_region d0
b.builder set_region --id 0 6
n\\n |> b.builder set_region _e 6
b.builder set_zone d0 5
b.builder set_zone d0 1.5
b.builder set_zone d0 -5
y\\n |> b.builder set_zone _e 7
b.builder set_info d0 _"new meta"
b.builder set_info d0 1.2.3.4:99R4.5.6.7:88/sdq_x
b.builder set_info d0 :77
b.builder set_info d0 R:78
b.builder set_info d0 R9.9.9.9
b.builder set_info d0 foo
b.builder set_info d0 ''
b.builder set_info d0 R
b.builder set_info d0 [::1]:55R[::2]:66/sdr
b.builder set_info d0 127.0.0.2:6201/sd1
b.builder set_info d0
b.builder set_info z1 _mm z2 _nn
b.builder set_info --id 1 --change-meta cm --change-port 1234 --change-ip 4.4.4.4 --change-device dd --change-replication-ip 5.5.5.5 --change-replication-port 4321
b.builder set_info --id 1
b.builder set_info --id 1 --change-ip bad_
n\\n |> b.builder set_info r1 _x d0 _y
b.builder remove
b.builder remove d9
b.builder remove foo
b.builder remove --region 1 x
n\\n |> b.builder remove d0 d1
n\\n |> b.builder remove d0 d0
b.builder remove d3
b.builder set_weight d3 5
b.builder set_region d3 5
b.builder set_zone d3 5
b.builder set_info d3 _y
b.builder
y\\n |> b.builder remove d0 d1 d2
b.builder
b.builder rebalance
""")


def test_empty_and_nought_in_options(tmp_path):
    """A place of no name is where no device is; what is empty or nought changes nothing."""
    compare(tmp_path, """
b.builder create 4 1 1
b.builder add r0z0-1.1.1.1:0R1.1.1.1:0/a_x 0 r1z1-1.1.1.1:5/b 1
b.builder search --port 0
b.builder search --region 0 --zone 1
b.builder search --weight 0
b.builder search --ip ''
b.builder search --replication-ip '' --region 1
b.builder search --device '' --region 1
b.builder search --meta ''
b.builder list_parts --ip ''
b.builder set_weight --ip '' --region 1 5 --yes
b.builder set_weight --meta '' 5 --yes
b.builder set_info --id 0 --change-meta '' --change-port 0
b.builder set_info --id 0 --change-device '' --change-port 7
b.builder set_info --id 0 --change-replication-port 0 --change-ip 1.2.3.4
b.builder set_info --id 0 --change-replication-ip '' --change-meta y
b.builder
""")


def test_settings(tmp_path):
    compare(tmp_path, PLACED + """
b.builder set_replicas 2
b.builder set_replicas 2.5
b.builder set_replicas 0
b.builder set_replicas x
b.builder set_replicas nan
b.builder set_replicas
b.builder set_overload 10%
b.builder set_overload 0.2
b.builder set_overload -1
b.builder set_overload x
b.builder set_overload 2
b.builder set_overload 150%
b.builder set_overload 5%%
b.builder set_overload 1e-3
b.builder set_overload
b.builder
b.builder set_min_part_hours 50
b.builder
b.builder set_min_part_hours x
b.builder set_min_part_hours 1.5
b.builder set_min_part_hours
b.builder set_min_part_hours 1 2
b.builder
""")


def test_ring_files(tmp_path):
    compare(tmp_path, """
e.builder create 4 3 1
e.builder write_ring
e.builder write_ring --format-version=2 --dev-id-bytes 4
e.builder version
e.builder validate
e.builder dispersion
""" + PLACED + """
b.builder write_ring --format-version 2
b.builder version
b.builder
b.builder write_ring --format-version 3
b.builder write_ring --format-version=2 --dev-id-bytes 4
b.builder version
b.builder
b.builder write_ring --format-version=1 --dev-id-bytes 4
b.builder write_ring --dev-id-bytes 4
b.builder write_ring --format-version=2 --dev-id-bytes 8
b.builder write_ring --format-version=2 --dev-id-bytes 2
b.builder version
b.builder write_ring extra words
b.builder version
b.builder write_builder
b.ring.gz write_builder 5
""")


def test_a_builder_is_made_of_a_ring(tmp_path):
    """Ours knows the dispersion of such a builder at once."""
    run_both(tmp_path, PLACED)
    for make in ("openstack", "ours"):
        (tmp_path / make / "b.builder").unlink()
    compare(tmp_path, """
b.ring.gz write_builder x
b.builder version
b.builder write_builder 5
b.builder
b.builder validate
b.builder set_weight d0 1
b.builder
""", hide=lambda text: text.replace(", 0.00 dispersion", ""))


def test_partition_power(tmp_path):
    compare(tmp_path, PLACED + "b.builder prepare_increase_partition_power\n" + OBJECT + """
object.builder finish_increase_partition_power
object.builder cancel_increase_partition_power
object.builder increase_partition_power
object.builder prepare_increase_partition_power
object.builder prepare_increase_partition_power
object.builder
object.builder write_ring
object.builder
object.builder add r1z1-1.1.1.1:1/x 1
object.builder remove d0
object.builder set_weight d0 100
object.builder rebalance
object.builder validate
object.builder cancel_increase_partition_power
object.builder
object.builder cancel_increase_partition_power
object.builder increase_partition_power
object.builder finish_increase_partition_power
object.builder prepare_increase_partition_power
object.builder increase_partition_power
object.builder
object.builder increase_partition_power
object.builder cancel_increase_partition_power
object.builder rebalance
object.builder write_ring --format-version=2
object.builder finish_increase_partition_power
object.builder
object.builder validate
""")


def test_second_rebalances(tmp_path):
    """Where who gets what is no matter of chance: one device more than replicas, then one less."""
    compare(tmp_path, """
c.builder create 8 3 0
c.builder add r1z1-127.0.0.1:1/a 100 r1z2-127.0.0.2:1/b 100 r1z3-127.0.0.3:1/c 100
c.builder rebalance
c.builder rebalance -f
c.builder add r1z1-127.0.0.1:1/d 100
c.builder remove d0
c.builder rebalance
c.builder
c.builder rebalance
c.builder set_info d1 _there
c.builder rebalance
c.builder pretend_min_part_hours_passed
c.builder rebalance 3
""")


def test_dispersion(tmp_path):
    """Measured on the same builder: OpenStack's own, rebalanced into two zones of unequal size."""
    made = """
d.builder create 8 3 0
d.builder add r1z1-127.0.0.1:1/a1 1 r1z1-127.0.0.1:1/a2 1 r1z1-127.0.0.1:1/a3 1 r1z1-127.0.0.1:1/a4 1
d.builder add --region 1 --zone 2 --ip a-rather-long-host.name.example.org --port 1 --device b1 --weight 1
d.builder add r2z1-[2001:db8::1]:1/c1 1 r2z1-[::2]:1/c2 1
d.builder rebalance --seed 1
"""
    asked = ["d.builder dispersion", "d.builder dispersion -v", "d.builder dispersion 'r\\d+z\\d+$' -v", "d.builder dispersion r1z2 -v", "d.builder dispersion nothing -v",
             "d.builder dispersion z2", "d.builder dispersion 'r2z1-2001' -v", "d.builder dispersion '(' -v", "d.builder dispersion --recalculate", "d.builder dispersion --verbose '.*\\-[^/]*$'", "d.builder set_overload 0.1",
             "d.builder dispersion", "d.builder"]
    for folder in (tmp_path / "theirs", tmp_path / "ours"):
        folder.mkdir()
        builders.openstack(folder, steps(made))
    (tmp_path / "ours" / "d.builder").write_bytes((tmp_path / "theirs" / "d.builder").read_bytes())
    for theirs, ours in zip(builders.openstack(tmp_path / "theirs", asked), builders.ours(tmp_path / "ours", asked)):
        assert ours.status == theirs.status, ours
        assert theirs.crashed or shown(ours.out) == shown(theirs.out)


def test_impossible_rebalances(tmp_path):
    compare(tmp_path, """
c.builder create 4 3 0
c.builder rebalance
c.builder add r1z1-127.0.0.1:1/a 1
c.builder rebalance
c.builder rebalance --badopt
c.builder add r1z1-127.0.0.1:1/b 1 r1z1-127.0.0.1:1/c 1
c.builder rebalance 5
c.builder rebalance
c.builder remove d0 d1 --yes
c.builder rebalance
c.builder remove d2 --yes
c.builder
c.builder rebalance
""")


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "list", "folder", "code"])
def test_files_that_are_no_builder(tmp_path, damage):
    run_both(tmp_path, PLACED)
    for make in ("openstack", "ours"):
        file = tmp_path / make / "b.builder"
        if damage == "truncated":
            file.write_bytes(file.read_bytes()[:300])
        elif damage == "foreign":
            file.write_bytes(b"no builder\n")
        elif damage == "empty":
            file.write_bytes(b"")
        elif damage == "list":
            file.write_bytes(pickle.dumps([1], 2))
        elif damage == "code":
            file.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
        else:
            file.unlink()
            file.mkdir()
    before = None if damage == "folder" else (tmp_path / "ours" / "b.builder").read_bytes()
    lines = ["b.builder", "b.builder rebalance", "b.builder create 4 3 1", "b.builder add r1z1-1.1.1.1:1/x 1"]
    theirs = builders.openstack(tmp_path / "openstack", lines)
    ours = builders.ours(tmp_path / "ours", lines)
    assert [step.status for step in ours] == [step.status for step in theirs] == [2] * 4
    output = lambda step: step.out.split(". ")[0]  # noqa: E731 - what follows is the reader's own
    if damage != "code":
        assert [output(step) for step in ours] == [output(step) for step in theirs]
    assert not (tmp_path / "ours" / "owned").exists()
    assert before is None or (tmp_path / "ours" / "b.builder").read_bytes() == before


def test_files_that_are_no_ring(tmp_path):
    run_both(tmp_path, PLACED)
    for make in ("openstack", "ours"):
        ring = tmp_path / make / "b.ring.gz"
        whole = ring.read_bytes()
        (tmp_path / make / "cut.ring.gz").write_bytes(whole[:100])
        (tmp_path / make / "foreign.ring.gz").write_bytes(b"hello\n")
        (tmp_path / make / "empty.ring.gz").write_bytes(b"")
        ring.write_bytes(whole[:100])
    theirs, ours = run_both(tmp_path, "".join(f"{name}.ring.gz {command}\n" for name in ("cut", "foreign", "empty", "absent")
                                              for command in ("version", "write_builder 5")) + "b.builder")
    assert [step.status for step in ours] == [step.status for step in theirs] == [2] * 8 + [0]
    assert all(step.out.strip() and "panicked" not in step.err for step in ours)
    assert "Ring file b.ring.gz is invalid: " in ours[-1].out
    assert not list((tmp_path / "ours").glob("[cfea]*.builder"))


def test_both_take_turns(tmp_path):
    """What one has written the other goes on with, as it would have gone on with its own."""
    script = steps(FOUR + """
b.builder set_overload 10%
b.builder rebalance --seed 3
b.builder set_weight d0 0
b.builder pretend_min_part_hours_passed
b.builder remove d3
b.builder set_info d1 _there
b.builder write_ring --format-version=2
b.builder
b.builder validate
""")
    alone = builders.openstack(tmp_path, script)
    for file in tmp_path.glob("b.*"):
        file.unlink()
    for parity in (0, 1):
        for turn, line in enumerate(script):
            [step] = (builders.ours if turn % 2 == parity else builders.openstack)(tmp_path, [line])
            assert (step.status, shown(step.out)) == (alone[turn].status, shown(alone[turn].out)), line
        [ours], [theirs] = builders.ours(tmp_path, ["b.builder"]), builders.openstack(tmp_path, ["b.builder"])
        assert shown(ours.out) == shown(theirs.out)
        for file in tmp_path.glob("b.*"):
            file.unlink()


def test_backups_are_kept(tmp_path):
    """create keeps a builder, rebalance a builder and a ring, write_ring a ring; what is kept is what was written."""
    builders.ours(tmp_path, steps(FOUR))
    assert [file.name.split(".", 1)[1] for file in (tmp_path / "backups").iterdir()] == ["b.builder"]
    next((tmp_path / "backups").iterdir()).unlink()
    builders.ours(tmp_path, ["b.builder rebalance"])
    kept = {file.name.split(".", 1)[1]: file.read_bytes() for file in (tmp_path / "backups").iterdir()}
    assert kept == {name: (tmp_path / name).read_bytes() for name in ("b.builder", "b.ring.gz")}
    assert not [file for file in tmp_path.iterdir() if file.name not in ("b.builder", "b.ring.gz", "backups", ".lock", "swift-ring-builder")]


def test_who_changes_waits_for_the_lock(tmp_path):
    """OpenStack's -safe program and ours keep out of each other's way; who only looks does not wait."""
    builders.ours(tmp_path, steps(PLACED))
    with open(tmp_path / ".lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        took = []
        while not took or min(took) >= 5 and len(took) < 5:  # the machine may be busy with something else
            began = time.monotonic()
            assert builders.ours(tmp_path, ["b.builder"])[0].status == 0
            took.append(time.monotonic() - began)
        assert min(took) < 5
        changing = subprocess.Popen([tmp_path / "swift-ring-builder", *shlex.split("b.builder set_overload 0.5")], cwd=tmp_path)
        time.sleep(0.5)
        assert changing.poll() is None
    assert changing.wait(60) == 0


def test_the_safe_program_locks_for_looking_too(tmp_path):
    builders.ours(tmp_path, steps(FOUR))
    with open(tmp_path / ".lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (tmp_path / "swift-ring-builder-safe").symlink_to(martlet())
        looking = subprocess.Popen([tmp_path / "swift-ring-builder-safe", "b.builder", "search", "d0"], cwd=tmp_path, stdout=subprocess.PIPE)
        time.sleep(0.5)
        assert looking.poll() is None
    assert b"sd0" in looking.communicate(timeout=60)[0] and looking.returncode == 0


def test_who_cannot_be_told(tmp_path):
    """A full disk is a warning; a reader that goes away is none."""
    builders.ours(tmp_path, steps(PLACED))
    with open("/dev/full", "wb") as full:
        output = subprocess.run([tmp_path / "swift-ring-builder", "b.builder"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False)
    assert output.returncode == 1 and b"cannot write: No space left" in output.stderr
    assert subprocess.run(f"{tmp_path}/swift-ring-builder b.builder list_parts d0 | head -1; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash", cwd=tmp_path, check=False).returncode == 0


def test_remove_without_a_value_removes_nothing(tmp_path):
    """OpenStack's program takes `remove --yes` for all devices."""
    builders.ours(tmp_path, steps(FOUR))
    [step] = builders.ours(tmp_path, ["b.builder remove --yes"])
    assert step.status == 2 and "remove <search-value>" in step.out


@pytest.mark.parametrize("line", ["add r1z1-1.1.1.1:1/x nan", "add r1z1-1.1.1.1:1/x inf", "set_weight d0 nan", "set_weight --id 0 -- -5", "set_overload nan",
                                  "set_min_part_hours -5", "add r1z1-1.1.1.1:99999/x 1", "add r99999999999z1-1.1.1.1:1/x 1", "set_info d0 :99999", "set_info d0 '/ x'",
                                  "add --region=-1 --zone 1 --ip 1.1.1.1 --port 1 --device e --weight 5"])
def test_what_openstack_takes_and_cannot_use(tmp_path, line):
    """Nonsense that OpenStack's program stores is refused, and the file stays."""
    builders.ours(tmp_path, steps(FOUR))
    before = (tmp_path / "b.builder").read_bytes()
    [step] = builders.ours(tmp_path, [f"b.builder {line}"])
    assert step.status == 2 and step.out.strip() and (tmp_path / "b.builder").read_bytes() == before


def test_replicas_that_were_asked_for_and_are_not_placed(tmp_path):
    """A row that was the last, and short, is no longer the last. OpenStack's program ends with a traceback there."""
    lines = ["c.builder create 3 2.5 0", *(f"c.builder add r1z{number}-127.0.0.{number}:1/a 1" for number in range(1, 6)), "c.builder rebalance --seed 1"]
    builders.openstack(tmp_path, lines)
    for replicas, status in (("2.7", 0), ("3", 0), ("3.5", 2)):
        builders.openstack(tmp_path, [f"c.builder set_replicas {replicas}"])
        theirs, ours = both("ring-builder", "c.builder", "validate", cwd=tmp_path)
        assert ours.status == theirs.status == status, (replicas, theirs, ours)
    assert "replica 2 has 4 partitions where 8 belong" in ours.out + ours.err
