"""`martlet bench sweep`: one table and one picture for several numbers of workers, sizes, containers and endpoints."""

import csv
import json
import time
from collections import Counter

import pytest

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import run
from harness.waiting import until


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def swept(folder):
    """Rates of a sweep by containers, sizes and workers; its files are in a new folder."""
    folder.mkdir()
    bench("sweep", "web-site", "--storage", "mock:delay=5", "--over-workers", "1,4", "--over-sizes", "4KB,1500B", "--over-containers", "2,3",
          "--objects", "2", "--runtime", "400ms", "--json", folder / "s.json", "--html", folder / "s.html", "--csv", folder / "csv")
    report = json.loads((folder / "s.json").read_text())
    points = {(point["containers"], point["sizes"], point["workers"]): point["rate"] for point in report["points"]}
    assert len(points) == len(report["points"]) == 8
    return points


def test_each_combination_is_one_point(tmp_path):
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        points = swept(folder)
        # Each request takes five milliseconds or a little more, however many there are at a time.
        odd = [key for key in points if not points[*key[:2], 4] > 2 * points[*key[:2], 1] > 0]
        if not odd:  # the machine may stand still amid the 400 milliseconds of a point
            break
    assert not odd, points
    assert {key[:2] for key in points} == {(containers, size) for containers in (2, 3) for size in ("c(4)KB", "c(1500)B")}
    rows = list(csv.DictReader((folder / "csv/sweep.csv").open()))
    assert [row["Workers"] for row in rows] == ["1", "4"] * 4
    page = (folder / "s.html").read_text()
    assert page.count("<svg") == 3 and page.count("<tr>") == 9 and "Throughput by workers" in page


def test_workers_are_spread_over_the_endpoints(shared, tmp_path):
    one, other = shared.get("up", "up"), shared.get("separate", "separate")
    login = ["-A", one.auth_url, "-U", "test:tester", "-K", "testing", "--insecure"]
    size = ["--containers", "1", "--objects", "4", "--workers", "2", "--runtime", "1s"]
    addresses = [f"http://127.0.0.1:{store.auth_url.rsplit(':')[2].split('/')[0]}" for store in (one, other)]
    # Those of the other store know nothing of the token: half of the containers' makers are refused.
    said, complaints = bench("sweep", "pebbles", *login, *size, "--endpoints", ",".join(addresses), "--csv", tmp_path / "csv", status=1)
    points = [line.split() for line in said.splitlines()[1:]]
    assert [point[0] for point in points] == ["1"] and float(points[0][4]) > 0, said
    assert "more requests failed than it accepts (status 401)" in complaints or "401" in complaints
    client = Client(one.auth_url)
    for name in client.send("GET", f"{client.root}?prefix=bench-pebbles-").body.decode().split():
        for row in json.loads(client.send("GET", f"{client.root}/{name}?format=json").body):
            client.do("DELETE", name, row["name"])
        client.do("DELETE", name)
    client.close()
    _, complaints = bench("sweep", "pebbles", *login, "--endpoints", "nonsense", status=1)
    assert "endpoints=nonsense: expected addresses like http://host:port" in complaints


@pytest.fixture
def gateways(tmp_path):
    """Two of our gateways on the same storage and cache."""
    memcached = Memcached().start()
    layout = Layout(tmp_path / "first", memcached_port=memcached.port).write()
    first = Cluster(layout, "martlet").start()
    second = Layout(tmp_path / "second", memcached_port=memcached.port)
    second.ports, second.srv = layout.ports, layout.srv
    other = Cluster(second.write(), "martlet")
    other.start_service("proxy")
    yield first, other
    other.stop()
    first.stop()
    memcached.stop()


def asked_since(gateway, began):
    """How many GET this gateway has answered that came after `began`: behind the request its line has when that began and ended."""
    return sum(float(line.split()[-4]) >= began for line in gateway.log().splitlines() if " GET /v1/" in line)


def test_one_and_two_gateways_bear_the_same_load(gateways, tmp_path):
    login = ["-A", gateways[0].auth_url, "-U", "test:tester", "-K", "testing"]
    addresses = [f"http://127.0.0.1:{gateway.port}" for gateway in gateways]
    before = [gateway.log().count("GET /v1/") for gateway in gateways]
    bench("sweep", "pebbles", *login, "--containers", "2", "--objects", "4", "--workers", "4", "--runtime", "1s", "--endpoints", ",".join(addresses),
          "--json", tmp_path / "s.json")
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    assert [point["endpoints"] for point in points] == [1, 2] and all(point["rate"] > 0 for point in points), points
    assert all(gateway.log().count("GET /v1/") > seen + 10 for gateway, seen in zip(gateways, before)), "both were asked"
    # A run over both: each worker stays with one of them, and half of all go to each.
    began = time.time()
    bench("run", "pebbles", *login, "--containers", "2", "--objects", "4", "--workers", "4", "--runtime", "1s", "--endpoints", ",".join(addresses),
          "--record", tmp_path / "ops.csv.gz", "--json", tmp_path / "r.json")
    rows = run([martlet(), "bench", "records", tmp_path / "ops.csv.gz", "--csv", "--stage", "main", "--operation", "read"]).stdout
    reads = Counter(int(row["worker"]) % 2 for row in csv.DictReader(rows.splitlines()))
    # Lines are written behind the answers: those of the sweep may come late, and so may these.
    until(lambda: [asked_since(gateway, began) for gateway in gateways] == [reads[0], reads[1]], what=f"{reads} lines")
    assert min(reads.values()) > 0 and len(reads) == 2, reads
    works = [work for stage in json.loads((tmp_path / "r.json").read_text())["stages"] for work in stage["works"]]
    assert not any(work["total"]["failed"] for work in works)
