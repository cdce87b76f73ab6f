"""`martlet bench swift` beside swift-bench: the same options and files, the same lines, and the same left behind."""

import re
import subprocess

import pytest

from harness.client import Client
from harness.places import martlet, openstack

THEIRS, OURS = "theirs", "ours"


def run(make, *arguments, status=0):
    """The lines of a run, without time and without those that say how far one is that takes long; and what else it said."""
    program = [openstack("swift-bench")] if make == THEIRS else [martlet(), "bench", "swift"]
    done = subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.stdout, done.stderr)
    stamp = r"swift-bench \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING) "
    lines = done.stderr.splitlines()
    logged = [re.sub(r"\d+\.\d/s$", "RATE/s", re.sub(stamp, "", line)) for line in lines if re.match(stamp, line)]
    logged = [line for line in logged if not re.match(r"\d+ (PUTS|GETS|DEL) \[\d+ failures\], ", line)]
    return logged, done.stdout + "\n".join(line for line in lines if not re.match(stamp, line))


@pytest.fixture(scope="module")
def store(shared):
    return shared.get("separate", "separate")


@pytest.fixture
def client(store):
    client = Client(store.auth_url)
    yield client
    client.close()


def left(client, prefix):
    """Containers of a run, and how large the objects in each are."""
    def of(path):
        return client.send("GET", path).body.decode().split()
    return {name: sorted(int(client.send("HEAD", f"{client.root}/{name}/{one}").header("content-length"))
                         for one in of(f"{client.root}/{name}"))
            for name in of(f"{client.root}?prefix={prefix}")}


def login(store):
    return ["-A", store.auth_url, "-U", "test:tester", "-K", "testing"]


@pytest.mark.parametrize("words", [
    ["-n", "30", "-g", "50", "-c", "3", "-C", "2"],
    ["-n", "30", "-g", "0", "-c", "3", "-C", "2", "-P", "silver", "-d", "1"],
    ["-n", "0", "-g", "0"],
], ids=["plain", "policy", "nothing"])
def test_its_lines_are_those_of_swift_bench(store, client, words):
    lines = {make: run(make, *login(store), *words, "--container-name", f"sb-{make}") for make in (THEIRS, OURS)}
    assert lines[THEIRS][0] == lines[OURS][0] and lines[OURS][1] == ""
    assert any(line.endswith(" **FINAL** [0 failures], RATE/s") for line in lines[OURS][0]) or "0" in words
    assert left(client, "sb-") == {}


def test_what_is_left_is_the_same(store, client, tmp_path):
    conf = tmp_path / "bench.conf"
    conf.write_text(f"[bench]\nauth = {store.auth_url}\nuser = test:tester\nkey = testing\nconcurrency = 2\n"
                    "num_objects = 40\nnum_gets = 10\nnum_containers = 2\nlower_object_size = 5\ndelete = no\n")
    for make in (THEIRS, OURS):
        lines, _ = run(make, conf, "--container-name", f"kept-{make}", "-n", "60")
        assert lines[-1] == "10 GETS **FINAL** [0 failures], RATE/s"
        found = left(client, f"kept-{make}")
        sizes = [size for sizes in found.values() for size in sizes]
        assert list(found) == [f"kept-{make}_0", f"kept-{make}_1"] and len(sizes) == 60
        # Of 60 sizes between 5 and 10 each comes up.
        assert set(sizes) == {5, 6, 7, 8, 9, 10}, make
    # A further run of ours adds to what is there, deletes its own and leaves the others.
    run(OURS, conf, "--container-name", "kept-ours", "-n", "5", "-c", "1")
    assert sum(map(len, left(client, "kept-ours").values())) == 65
    lines, complaint = run(OURS, *login(store), "--container-name", "kept-theirs", status=1)
    assert lines == [] and "container kept-theirs_0 is there, and no benchmark of this program has made it" in complaint
    for name in left(client, "kept-"):
        for one in client.send("GET", f"{client.root}/{name}").body.decode().split():
            client.delete(name, one)
        client.delete(name)


def test_an_object_server_is_asked_directly(store, tmp_path):
    layout = store.layout
    (tmp_path / "bench.conf").write_text(
        f"[bench]\nuse_proxy = no\nurl = http://127.0.0.1:{layout.ports['object', 0]}\ndevices = {' '.join(layout.devices)}\n"
        "account = direct\nnum_objects = 20\nnum_gets = 30\nobject_size = 1000\nconcurrency = 4\n")

    def data():
        return [path for device in layout.devices for path in (layout.srv / device / "objects").glob("*/*/*/*.data")]
    before = set(data())
    lines, _ = run(OURS, tmp_path / "bench.conf", "-x")
    assert lines == ["Auth version: 1.0", "20 PUTS **FINAL** [0 failures], RATE/s",
                     "Auth version: 1.0", "30 GETS **FINAL** [0 failures], RATE/s"]
    made = set(data()) - before
    # One copy of each: no proxy was there to make more.
    assert len(made) == 20 and {path.stat().st_size for path in made} == {1000}
    assert len({path.relative_to(layout.srv).parts[0] for path in made}) > 1
    lines, _ = run(OURS, tmp_path / "bench.conf", "--latencies")
    assert "20 DEL **FINAL** [0 failures], RATE/s" in lines and set(data()) - before == made
    assert sum(" latency in ms: mean " in line for line in lines) == 3


@pytest.mark.parametrize("words, complaint", [
    (["-l", "15", "-s", "9"], "--lower-object-size (15) must be < --object-size (9)"),
    (["{tmp}/none.conf"], "none.conf"),
    (["{tmp}/other.conf"], "Unable to find bench config section in "),
])
def test_mistakes_are_named_as_swift_bench_names_them(store, tmp_path, words, complaint):
    (tmp_path / "other.conf").write_text("[other]\n")
    for make in (THEIRS, OURS):
        words = [word.format(tmp=tmp_path) for word in words]
        lines, err = run(make, *login(store), *words, status=1)
        assert complaint in "\n".join([*lines, err]), make


def test_a_store_that_fails_is_counted_and_one_that_refuses_is_said(store, tmp_path):
    _, complaint = run(OURS, "-A", store.auth_url, "-U", "test:tester", "-K", "wrong", status=1)
    assert "no token" in complaint
    _, complaint = run(OURS, *login(store), "-P", "none", status=1)
    assert "could not be made: status 400" in complaint
    _, complaint = run(OURS, *login(store), "-b", "127.0.0.1:1", status=1)
    assert "swift-bench-client" in complaint
    port = store.layout.ports["object", 0]
    (tmp_path / "bench.conf").write_text(f"[bench]\nuse_proxy = no\nurl = http://127.0.0.1:{port}\ndevices = none\n"
                                         "num_objects = 7\nnum_gets = 3\n")
    lines, _ = run(OURS, tmp_path / "bench.conf")
    assert "7 PUTS **FINAL** [7 failures], RATE/s" in lines and "0 GETS **FINAL** [0 failures], RATE/s" in lines


def test_containers_are_removed_again_when_a_later_one_cannot_be_made(store, client):
    # With its number the eleventh name is one byte longer than a name may be.
    name = "sb-" + "x" * 251
    _, complaint = run(OURS, *login(store), "--container-name", name, "-C", "12", status=1)
    assert f"container {name}_10 could not be made: status 400" in complaint
    assert left(client, "sb-x") == {}
    run(OURS, *login(store), "--container-name", name, "-C", "12", "-x", status=1)
    assert list(left(client, "sb-x")) == [f"{name}_{number}" for number in range(10)]
    for number in range(10):
        client.do("DELETE", f"{name}_{number}")
