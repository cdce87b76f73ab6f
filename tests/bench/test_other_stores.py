"""`martlet bench` on S3 of other makes, and on Swift of one: one workload of all operations, every body that is read compared, looked at with boto3.

moto's server is always there. `make other-stores` brings others, and MARTLET_OTHER_S3 names one that runs (harness/other_stores.py).
"""

import json

import boto3
import pytest
from botocore.config import Config

from harness import other_stores
from harness.places import martlet
from harness.process import run

WORKLOAD = """
name = "other"
[storage]
type = "s3"
endpoint = "{store.endpoint}"
accesskey = "{store.access}"
secretkey = "{store.secret}"
[[stage]]
name = "init"
type = "init"
cprefix = "bench-other-"
containers = "r(1,2)"
[[stage]]
name = "prepare"
type = "prepare"
workers = 3
cprefix = "bench-other-"
containers = "r(1,2)"
objects = "r(1,10)"
sizes = "c(70)KB"
[[stage]]
name = "main"
workers = 3
total_operations = 120
operations = [
    {{ type = "read", ratio = 25, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "read", ratio = 10, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(1,10)", range = "u(0,60)KB", range_sizes = "c(5)KB" }},
    {{ type = "write", ratio = 20, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(11,20)", sizes = "u(1,100)KB" }},
    {{ type = "write", ratio = 10, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(21,22)", sizes = "c(11)MB", part_size = "6MB" }},
    {{ type = "copy", ratio = 5, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(1,10)", to_objects = "u(31,32)" }},
    {{ type = "head", ratio = 10, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "list", ratio = 10, cprefix = "bench-other-", containers = "u(1,2)", query = "list-type=2&max-keys=7" }},
    {{ type = "delete", ratio = 10, cprefix = "bench-other-", containers = "u(1,2)", objects = "u(11,20)" }},
]
[[stage]]
name = "whole"
workers = 2
total_operations = 4
operations = [{{ type = "read", cprefix = "bench-other-", containers = "u(1,2)", objects = "u(21,21)" }}]
[[stage]]
name = "cleanup"
type = "cleanup"
cprefix = "bench-other-"
containers = "r(1,2)"
objects = "r(1,32)"
[[stage]]
name = "dispose"
type = "dispose"
cprefix = "bench-other-"
containers = "r(1,2)"
"""


@pytest.fixture(scope="module", params=other_stores.MAKES)
def store(request, tmp_path_factory):
    if why := other_stores.missing(request.param):
        pytest.skip(why)
    with other_stores.started(request.param, tmp_path_factory.mktemp(request.param)) as store:
        yield store


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def totals(path):
    return {stage["name"]: stage["works"][0] for stage in json.loads(path.read_text())["stages"]}


def test_all_operations_on_another_make(store, tmp_path):
    workload, first, last = tmp_path / "w.toml", tmp_path / "first.json", tmp_path / "last.json"
    workload.write_text(WORKLOAD.format(store=store))
    client = boto3.client("s3", endpoint_url=store.endpoint, aws_access_key_id=store.access, aws_secret_access_key=store.secret, region_name="us-east-1",
                          config=Config(s3={"addressing_style": "path"}))
    bench("run", workload, "--stages", "init,prepare,main", "--verify", "--json", first)
    works = totals(first)
    assert [(work["total"]["succeeded"], work["total"]["failed"]) for work in works.values()] == [(2, 0), (20, 0), (120, 0)], works["main"]["total"]["failures"]
    assert all(operation["succeeded"] > 0 for operation in works["main"]["operations"])
    # What lies there is what was said: sizes by name, and parts where there were to be some.
    found = {(bucket, item["Key"]): item for bucket in ("bench-other-1", "bench-other-2") for item in client.list_objects_v2(Bucket=bucket)["Contents"]}
    for number in range(1, 11):
        assert found["bench-other-1", f"myobjects{number}"]["Size"] == found["bench-other-2", f"myobjects{number}"]["Size"] == 70_000
    large = [item for (_, key), item in found.items() if key in ("myobjects21", "myobjects22")]
    assert large and all(item["Size"] == 11_000_000 and item["ETag"].endswith('-2"') for item in large)
    # A body that was changed is seen.
    for bucket in ("bench-other-1", "bench-other-2"):
        client.put_object(Bucket=bucket, Key="myobjects21", Body=b"x" * 11_000_000)
    bench("run", workload, "--stages", "whole,cleanup,dispose", "--verify", "--json", last, status=1)
    works = totals(last)
    assert works["whole"]["total"]["failures"] == {"wrong body": 4}, works["whole"]["total"]
    assert works["cleanup"]["total"]["failed"] == 0 and works["dispose"]["total"]["failed"] == 0
    assert [bucket["Name"] for bucket in client.list_buckets()["Buckets"] if bucket["Name"].startswith("bench-other-")] == []


def test_buckets_of_others_stay_as_they_are(store, tmp_path):
    client = boto3.client("s3", endpoint_url=store.endpoint, aws_access_key_id=store.access, aws_secret_access_key=store.secret, region_name="us-east-1",
                          config=Config(s3={"addressing_style": "path"}))
    client.create_bucket(Bucket="bench-other-2")
    client.put_object(Bucket="bench-other-2", Key="myobjects1", Body=b"mine")
    (tmp_path / "w.toml").write_text(WORKLOAD.format(store=store))
    try:
        _, complaints = bench("run", tmp_path / "w.toml", status=1)
        assert "container bench-other-2 is there, and no benchmark has made it" in complaints
        assert client.get_object(Bucket="bench-other-2", Key="myobjects1")["Body"].read() == b"mine"
        assert "bench-other-1" not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    finally:
        client.delete_object(Bucket="bench-other-2", Key="myobjects1")
        client.delete_bucket(Bucket="bench-other-2")


@pytest.mark.parametrize("store", ["rgw"], indirect=True)
def test_swift_of_another_make(store, tmp_path):
    """RGW's Swift API, with a user of its S3."""
    report = tmp_path / "r.json"
    bench("run", "photos-write", "-A", f"{store.endpoint}/auth/v1.0", "-U", "bench:swift", "-K", store.secret, "--verify", "--containers", "2",
          "--objects", "10", "--workers", "3", "--runtime", "2s", "--json", report)
    works = totals(report)
    counts = {name: (work["total"]["succeeded"], work["total"]["failed"]) for name, work in works.items()}
    main, failed = counts.pop("main")
    assert main > 0 and failed == 0 and all(operation["succeeded"] > 0 for operation in works["main"]["operations"])
    assert counts == {"init": (2, 0), "prepare": (20, 0), "cleanup": (40, 0), "dispose": (2, 0)}
