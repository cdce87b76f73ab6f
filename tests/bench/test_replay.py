"""`martlet bench run replay`: a log of real requests, again, on containers of its own."""

import csv
import gzip
import json
import re
import time

import pytest

from harness.client import Client
from harness.drivers import Drivers
from harness.places import martlet
from harness.process import Process, run
from harness.waiting import until

PAUSE = 1.0


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def traffic(client):
    """Fifteen requests of some users; all that is counted below."""
    client.put("photos")
    client.put("photos", "old", body=b"o" * 70_000)
    client.put("photos", "summer/beach 1", body=b"s" * 40_000)
    time.sleep(PAUSE)
    for _ in range(3):
        client.get("photos", "summer/beach 1")
    client.send("GET", client.path("photos", "old"), headers={"Range": "bytes=100-1099"})
    client.send("HEAD", client.path("photos", "old"))
    client.send("POST", client.path("photos", "old"), headers={"X-Object-Meta-Colour": "blue"})
    client.send("GET", client.path("photos", "never"))
    client.send("GET", client.path("photos") + "?format=json&prefix=summer")
    time.sleep(PAUSE)
    client.send("DELETE", client.path("photos", "old"))
    time.sleep(PAUSE)
    client.send("GET", client.path("photos", "old"))
    client.send("GET", client.root)
    client.send("GET", client.path("photos", "summer/beach 1"), headers={"X-Auth-Token": "AUTH_tkforged"})


def logged(store, requests, since=0):
    """The log from `since` on, with lines of so many requests: an answer may come before its line, and lines in another order."""
    until(lambda: store.log()[since:].count("/v1/AUTH_test") >= requests, what="a line of each request in the log")
    return store.log()[since:]


@pytest.fixture(params=["up", "openstack"])
def store(request, make_system):
    """A store with a log of its own."""
    return make_system(request.param).start()


def listed(client, names):
    reply = client.send("GET", f"{client.root}/{names}" if names else client.root)
    assert reply.status in (200, 204), reply
    return reply.body.decode().split()


def test_a_real_log_is_replayed(store, tmp_path):
    client = Client(store.auth_url)
    traffic(client)
    log, report, record = tmp_path / "proxy.log", tmp_path / "r.json", tmp_path / "ops.csv.gz"
    log.write_text(logged(store, 15))
    login = ["-A", store.auth_url, "-U", "test:tester", "-K", "testing"]
    replay = ["run", "replay", "--log", log, "--speed", "2", "--workers", "8", *login]
    said, _ = bench(*replay, "--stages", "init,prepare,main", "--verify", "--json", report, "--record", record)
    assert "2 times as fast as they came; 0 objects are made before" in said
    # Daemons of `martlet up` ask for accounts of their own where they come to their turn.
    assert "1 (status 401)" in said and re.search(r"[1-9]\d* \(to accounts\)", said), said
    main = json.loads(report.read_text())["stages"][-1]["works"][0]
    assert main["total"]["failed"] == 0, main["total"]["failures"]
    done = {one["id"]: one["succeeded"] for one in main["operations"]}
    assert done == {"init": 1, "write": 2, "read": 6, "head": 1, "post": 1, "list": 1, "delete": 1}
    read, written = (next(one["bytes"] for one in main["operations"] if one["id"] == name) for name in ("read", "write"))
    assert (read, written) == (3 * 40_000 + 1000, 110_000), "two readings find no object, as they did then"
    with gzip.open(record, "rt") as rows:
        due = [float(row["due"]) for row in csv.DictReader(rows) if row["stage"] == "main"]
    took = float(re.search(r"which took ([\d.]+) s", said).group(1))
    assert took >= 3 * PAUSE and max(due) - min(due) == pytest.approx(took / 2, abs=0.05), "three pauses, at twice the speed"
    assert listed(client, "bench-replay-1") == ["myobjects2"]
    assert listed(client, "photos") == ["summer/beach", "1"], "what the log is about stays as it is"
    bench(*replay, "--stages", "cleanup,dispose")
    assert [name for name in listed(client, "") if name.startswith("bench-")] == []
    client.close()


def test_what_the_log_only_reads_is_made_before(make_system, tmp_path):
    store = make_system("up").start()
    client = Client(store.auth_url)
    client.put("films")
    for number in range(4):
        client.put("films", f"film-{number}", body=b"f" * (1000 * (number + 1)))
    before = len(logged(store, 5))
    for number in (0, 1, 2, 3, 1, 1):
        client.get("films", f"film-{number}")
    client.send("DELETE", client.path("films", "film-3"))
    log, report = tmp_path / "proxy.log.gz", tmp_path / "r.json"
    log.write_bytes(gzip.compress(logged(store, 7, since=before).encode()))
    said, _ = bench("run", "replay", "--log", log, "--speed", "max", "--workers", "1", "--verify", "--json", report,
                    "-A", store.auth_url, "-U", "test:tester", "-K", "testing")
    assert "as fast as the store answers; 4 objects are made before" in said
    init, prepare, main, cleanup, dispose = (stage["works"][0]["total"] for stage in json.loads(report.read_text())["stages"])
    assert [one["succeeded"] for one in (init, prepare, main, cleanup, dispose)] == [1, 4, 7, 4, 1]
    assert (prepare["bytes"], main["bytes"], main["failed"]) == (10_000, 14_000, 0)
    assert len(listed(client, "films")) == 3
    client.close()


def log_line(start, request, status, received="-", sent="-"):
    """A line of a proxy's access log about a request that took a tenth of a second."""
    return (f"127.0.0.1 127.0.0.1 24/Nov/2026/13/39/28 {request} HTTP/1.1 {status} - agent token {received} {sent} - tx1 - 0.1 - - "
            f"{start:.9f} {start + 0.1:.9f} 0 -\n")


def changes(objects):
    """A log in which each object is written, read, deleted, missed and written again, one request directly behind the other."""
    lines, start = [], 1_795_000_000.0
    for number in range(objects):
        path = f"/v1/AUTH_x/c{number % 3}/o{number}"
        for verb, status, received, sent in (("PUT", 201, 300_000 + number, "-"), ("GET", 200, "-", 300_000 + number), ("GET", 200, "-", 300_000 + number),
                                             ("DELETE", 204, "-", "-"), ("GET", 404, "-", "-"), ("PUT", 201, 1000 + number, "-"), ("HEAD", 200, "-", "-")):
            lines.append(log_line(start, f"{verb} {path}", status, received, sent))
            start += 0.001
    return "".join(lines)


def operations_of(record, objects):
    """What a record has of the load, by object and in its order; nothing overlaps that has to wait."""
    by_object = {}
    with gzip.open(record, "rt") as rows:
        for row in csv.DictReader(rows):
            if row["stage"] == "main":
                assert row["status"] == "ok", row
                by_object.setdefault(row["object"], []).append(row)
    assert len(by_object) == objects
    for rows in by_object.values():
        rows.sort(key=lambda row: float(row["start"]))
        assert [row["operation"] for row in rows] == ["write", "read", "read", "delete", "read", "write", "head"], rows
        for before, after in zip(rows, rows[1:]):
            is_beside = before["operation"] == after["operation"] == "read"
            assert is_beside or float(before["end"]) <= float(after["start"]) + 2e-6, (before, after)
    return by_object


def test_requests_to_one_object_keep_their_order_at_any_speed(shared, tmp_path):
    """A worker for each request of an object, and none waits for its time: what overtakes would find nothing, or be undone."""
    store = shared.get("up", "up")
    (tmp_path / "proxy.log").write_text(changes(60))
    said, _ = bench("run", "replay", "--log", tmp_path / "proxy.log", "--speed", "max", "--workers", "16", "--verify", "--json", tmp_path / "r.json",
                    "--record", tmp_path / "ops.csv.gz", "-A", store.auth_url, "-U", "test:tester", "-K", "testing")
    main = json.loads((tmp_path / "r.json").read_text())["stages"][2]["works"][0]
    assert (main["total"]["succeeded"], main["total"]["failed"]) == (60 * 7, 0), main["total"]["failures"]
    by_object = operations_of(tmp_path / "ops.csv.gz", 60)
    assert [int(row["size"]) for row in by_object["myobjects60"]] == [300_059, 300_059, 300_059, 0, 0, 1059, 0]


def test_several_drivers_replay_a_log(shared, tmp_path):
    store = shared.get("up", "up")
    (tmp_path / "proxy.log").write_text(changes(60))
    drivers = Drivers(tmp_path, 3)
    try:
        said = run(drivers.command("run", "replay", "--log", tmp_path / "proxy.log", "--speed", "max", "--workers", "12", "--verify", "--json", tmp_path / "r.json",
                                   "--record", tmp_path / "ops.csv.gz", "-A", store.auth_url, "-U", "test:tester", "-K", "testing"), timeout=240).stdout
        assert "420 requests of " in said
        report = json.loads((tmp_path / "r.json").read_text())
        totals = {stage["name"]: stage["works"][0]["total"] for stage in report["stages"]}
        assert [(totals[name]["succeeded"], totals[name]["failed"]) for name in ("init", "main", "cleanup", "dispose")] == [(3, 0), (420, 0), (60, 0), (3, 0)]
        # A driver that is lost before the load leaves its part of the log to the others.
        line = drivers.command("run", "replay", "--log", tmp_path / "proxy.log", "--speed", "max", "--workers", "12", "--json", tmp_path / "lost.json",
                               "-A", store.auth_url, "-U", "test:tester", "-K", "testing")
        controller = Process(line, tmp_path / "controller")
        until(lambda: "init / init" in controller.log.read_text(), within=60, what="the end of the first stage")
        drivers.processes[2].kill()
        controller.child.wait(120)
    finally:
        drivers.stop()
    by_object = operations_of(tmp_path / "ops.csv.gz", 60)
    owners = [{row["driver"] for row in rows} for rows in by_object.values()]
    assert all(len(owner) == 1 for owner in owners) and set.union(*owners) == {"driver1", "driver2", "driver3"}
    lost = {stage["name"]: stage["works"][0]["total"] for stage in json.loads((tmp_path / "lost.json").read_text())["stages"]}
    assert lost["main"]["failed"] == 0 and lost["cleanup"]["succeeded"] == 60


def test_containers_of_others_are_refused(make_system, tmp_path):
    store = make_system("up").start()
    client = Client(store.auth_url)
    client.put("c")
    client.put("c", "o", body=b"x")
    client.put("bench-replay-1")
    (tmp_path / "proxy.log").write_text(logged(store, 3))
    replay = ["run", "replay", "--log", tmp_path / "proxy.log", "-A", store.auth_url, "-U", "test:tester", "-K", "testing"]
    _, error = bench(*replay, status=1)
    assert "container bench-replay-1 is there, and no benchmark has made it" in error
    _, error = bench("search", *replay[1:], "--anything-goes", status=1)
    assert "a replay has the rate of its log" in error
    _, error = bench("run", "replay", "-A", store.auth_url, "-U", "test:tester", "-K", "testing", status=1)
    assert "expected --log FILE" in error
    client.close()
