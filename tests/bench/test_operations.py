"""Operations of `martlet bench` beside reads and writes: ranges, uploads in parts, copies, conditions, versions."""

import json
from urllib.parse import urlsplit

import pytest

from harness.client import Client
from harness.places import martlet
from harness.process import run

# Sizes are such that parts are as small as S3 allows; a worker for each writes different names.
WORKLOAD = """
name = "operations"
{storage}
[[stage]]
type = "init"
containers = "r(1,2)"
cprefix = "bench-plain-"
[[stage]]
type = "init"
containers = "r(1,1)"
cprefix = "bench-old-"
versioned = true
[[stage]]
name = "parts"
type = "prepare"
workers = 2
containers = "r(1,2)"
cprefix = "bench-plain-"
objects = "r(1,2)"
sizes = "c(6)MB"
part_size = "5500KB"
[[stage]]
name = "small"
type = "prepare"
containers = "r(1,2)"
cprefix = "bench-plain-"
objects = "r(11,14)"
sizes = "c(5)KB"
[[stage]]
name = "seen"
workers = 2
total_operations = 20
operations = [
    {{ id = "whole", type = "read", ratio = 100, cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(1,2)", if_none_match = "seen" }},
]
[[stage]]
name = "mixed"
workers = 4
total_operations = 150
operations = [
    {{ id = "range", type = "read", ratio = 30, cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(1,2)", range = "u(0,5)MB", range_sizes = "c(64)KB" }},
    {{ id = "fixed", type = "read", ratio = 10, cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(1,2)", range = "5499990-5500009" }},
    {{ id = "head", type = "head", ratio = 10, cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(1,2)", if_match = "seen" }},
    {{ id = "once", type = "write", ratio = 20, division = "object", cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(11,18)", sizes = "c(5)KB", if_none_match = "*" }},
    {{ id = "old", type = "write", ratio = 30, division = "object", cprefix = "bench-old-", containers = "c(1)", objects = "u(1,4)", sizes = "c(5)KB" }},
]
[[stage]]
name = "after"
workers = 2
total_operations = 40
operations = [
    {{ id = "post", type = "post", ratio = 50, cprefix = "bench-old-", containers = "c(1)", objects = "u(1,4)" }},
    {{ id = "copy", type = "copy", ratio = 50, cprefix = "bench-plain-", containers = "u(1,2)", objects = "u(11,14)", to_objects = "u(21,24)" }},
]
"""
WRITTEN_ONCE = {f"myobjects{number}" for number in range(15, 19)}
CLEANUP = """
[[stage]]
type = "cleanup"
workers = 2
containers = "r(1,2)"
cprefix = "bench-plain-"
objects = "r(1,24)"
[[stage]]
name = "old"
type = "cleanup"
containers = "r(1,1)"
cprefix = "bench-old-"
objects = "r(1,4)"
[[stage]]
type = "dispose"
containers = "r(1,2)"
cprefix = "bench-plain-"
[[stage]]
name = "gone"
type = "dispose"
containers = "r(1,1)"
cprefix = "bench-old-"
"""


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def operations(path):
    """Figures of all operations by their ids, and failures of all stages."""
    report = json.loads(path.read_text())
    works = [work for stage in report["stages"] for work in stage["works"]]
    return {one["id"]: one for work in works for one in work["operations"]}, [work["total"]["failures"] for work in works]


def listed(client, container, query=""):
    reply = client.send("GET", f"{client.root}/{container}?format=json{query}")
    assert reply.status == 200, reply
    return json.loads(reply.body)


def listed_names(client, container):
    return [row["name"] for row in listed(client, container)]


@pytest.fixture(params=["up", pytest.param("openstack", marks=pytest.mark.extra), "s3"])
def storage(request, shared):
    """A store, and what a workload says of it, for each API."""
    if request.param == "s3":
        store = shared.get("separate", "separate")
        where = urlsplit(store.auth_url)
        return store, (f'[storage]\ntype = "s3"\nendpoint = "{where.scheme}://{where.netloc}"\naccesskey = "test:tester"\n'
                       'secretkey = "testing"\n')
    store = shared.get(request.param, request.param)
    return store, (f'[storage]\ntype = "swift"\n[auth]\ntype = "tempauth"\nauth_url = "{store.auth_url}"\n'
                   'username = "test:tester"\npassword = "testing"\n')


def test_operations_do_what_they_say_and_leave_nothing(storage, tmp_path):
    store, text = storage
    workload, report = tmp_path / "w.toml", tmp_path / "r.json"
    workload.write_text(WORKLOAD.format(storage=text) + CLEANUP)
    bench("run", workload, "--stages", "init,parts,small,seen,mixed,after", "--verify", "--json", report)
    done, failures = operations(report)
    assert not any(failures), failures
    assert done["range"]["bytes"] == done["range"]["succeeded"] * 64_000 > 0
    assert done["fixed"]["bytes"] == done["fixed"]["succeeded"] * 20 > 0
    # Both workers read each of the four objects whole at most once, and are told later that it has not changed.
    assert done["whole"]["succeeded"] == 20 and done["whole"]["bytes"] in range(6_000_000, 48_000_001, 6_000_000)
    client = Client(store.auth_url)
    names = listed_names(client, "bench-plain-1")
    # Of all who write an object that is not there yet, one succeeds.
    new = [name for container in (1, 2) for name in listed_names(client, f"bench-plain-{container}") if name in WRITTEN_ONCE]
    assert done["once"]["bytes"] == 5000 * len(new) and done["once"]["succeeded"] > len(new) > 0
    if "s3" not in text:
        segments = [name for name in names if name.startswith(".segments/")]
        assert segments == [f".segments/myobjects{number}/6000000/5500000/0000000{part}" for number in (1, 2) for part in (0, 1)]
        reply = client.send("HEAD", f"{client.root}/bench-plain-1/myobjects1")
        assert (reply["X-Static-Large-Object"], reply["Content-Length"]) == ("True", "6000000")
        metadata = client.send("HEAD", f"{client.root}/bench-old-1/myobjects1")["X-Object-Meta-Bench"]
        assert metadata is not None
        versions = listed(client, "bench-old-1", "&versions")
        assert len(versions) == done["old"]["succeeded"] > 4
    copied = [name for name in names if "myobjects21" <= name <= "myobjects24"]
    assert copied and len(client.get("bench-plain-1", copied[0])) == 5000
    # An upload that was given up, and a segment of no object, go as well.
    if "s3" not in text:
        client.put("bench-plain-1", ".segments/myobjects9/1/1/00000000", body=b"x")
    bench("run", workload, "--stages", "cleanup,old,dispose,gone")
    left = client.send("GET", f"{client.root}?prefix=bench-").body.decode().split()
    assert [name for name in left if name.startswith(("bench-plain-", "bench-old-"))] == []
    client.close()


def test_a_range_that_is_ignored_and_a_wrong_one_are_failures(shared, tmp_path):
    swift = shared.get("up", "up")
    client = Client(swift.auth_url)
    login = ["-A", swift.auth_url, "-U", "test:tester", "-K", "testing"]
    size = ["--containers", "1", "--objects", "4", "--workers", "2"]
    bench("run", "pebbles", *login, *size, "--stages", "init,prepare")
    client.put("bench-pebbles-1", "myobjects2", body=b"x" * 10_000)
    client.put("bench-pebbles-1", "myobjects3", body=b"short")
    (tmp_path / "w.toml").write_text("""
[[stage]]
name = "main"
total_operations = 4
operations = [{ type = "read", cprefix = "bench-pebbles-", containers = "c(1)", objects = "r(1,4)", range = "5000-5999" }]
""")
    bench("run", tmp_path / "w.toml", *login, "--verify", "--json", tmp_path / "r.json", status=1)
    done, failures = operations(tmp_path / "r.json")
    assert (done["op1"]["bytes"], failures) == (2000, [{"wrong body": 1, "status 416": 1}])
    bench("run", "pebbles", *login, *size, "--stages", "cleanup,dispose")
    client.close()


LISTINGS = """
{storage}
[[stage]]
type = "init"
containers = "r(1,1)"
cprefix = "bench-rows-"
[[stage]]
type = "prepare"
containers = "r(1,1)"
objects = "r(1,9)"
cprefix = "bench-rows-"
sizes = "c(1)B"
[[stage]]
name = "main"
total_operations = 20
operations = [
    {{ id = "all", type = "list", ratio = 50, cprefix = "bench-rows-", containers = "c(1)" }},
    {{ id = "page", type = "list", ratio = 50, cprefix = "bench-rows-", containers = "c(1)", query = "{query}" }},
]
[[stage]]
type = "dispose"
containers = "r(1,1)"
cprefix = "bench-rows-"
emptied = true
"""


def test_a_listing_has_the_query_that_is_asked_for(storage, tmp_path):
    _, text = storage
    (tmp_path / "w.toml").write_text(LISTINGS.format(storage=text, query="list-type=2&max-keys=2" if "s3" in text else "limit=2&marker=myobjects4"))
    bench("run", tmp_path / "w.toml", "--json", tmp_path / "r.json")
    done, failures = operations(tmp_path / "r.json")
    assert not any(failures), failures
    rows, page = (done[name]["bytes"] / done[name]["succeeded"] for name in ("all", "page"))
    assert page == 2 * len("myobjects5\n") if "s3" not in text else 0 < page < rows
    (tmp_path / "w.toml").write_text(LISTINGS.format(storage=text, query="a b"))
    _, error = bench("check", tmp_path / "w.toml", status=1)
    assert 'query="a b": expected a query of a URL without the ?' in error
