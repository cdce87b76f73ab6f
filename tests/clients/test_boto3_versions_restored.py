"""The version before, which is current again once the newest is deleted: beside other writes and deletions of the key."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.test_boto3 import client_of, store  # noqa: F401 (fixture)

DELAYS = random.Random(4)


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's does not bring the version before back")
    return client_of(store)


def versioned(s3, bucket):
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


def put(s3, bucket, key, body):
    return s3.put_object(Bucket=bucket, Key=key, Body=body)["VersionId"]


def current(s3, bucket, key):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def remove(s3, bucket, key, versions):
    named = [{"Key": key, "VersionId": version} for version in versions]
    return s3.delete_objects(Bucket=bucket, Delete={"Objects": named})


def all_keys(s3, bucket):
    return [found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_batch_of_all_versions_leaves_nothing(s3, order):
    bucket = versioned(s3, f"batch-{order}")
    named = [{"Key": f"k{key:02}", "VersionId": put(s3, bucket, f"k{key:02}", b"%d" % version)}
             for key in range(15) for version in range(3)]
    if order == "newest":
        named = [entry for key in range(15) for entry in reversed(named[3 * key:3 * key + 3])]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": named})
    assert "Errors" not in answer
    assert [{name: deleted[name] for name in ("Key", "VersionId")} for deleted in answer["Deleted"]] == named
    assert not s3.list_object_versions(Bucket=bucket).get("Versions")
    assert not all_keys(s3, bucket)
    s3.delete_bucket(Bucket=bucket)


def test_a_batch_uncovers_the_newest_that_it_leaves(s3):
    bucket = versioned(s3, "batch-part")
    versions = [put(s3, bucket, "k", b"%d" % version) for version in range(5)]
    remove(s3, bucket, "k", [versions[4], versions[0], versions[3]])
    assert current(s3, bucket, "k") == b"2"
    # A marker of the same batch stays what is newest.
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "VersionId": versions[2]}, {"Key": "k"}]})
    assert not all_keys(s3, bucket)
    marker = s3.list_object_versions(Bucket=bucket)["DeleteMarkers"][0]["VersionId"]
    remove(s3, bucket, "k", [marker])
    assert current(s3, bucket, "k") == b"1"


def test_versions_that_go_side_by_side_leave_nothing(store, s3):  # noqa: F811
    bucket = versioned(s3, "side-by-side")
    clients = [client_of(store) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        for key in (f"k{number:02}" for number in range(30)):
            versions = [put(s3, bucket, key, b"%d" % version) for version in range(3)]
            list(pool.map(lambda client, version: client.delete_object(Bucket=bucket, Key=key, VersionId=version), clients, versions))
    assert not s3.list_object_versions(Bucket=bucket).get("Versions")
    assert not all_keys(s3, bucket)
    s3.delete_bucket(Bucket=bucket)


@pytest.mark.parametrize("what", ["version", "marker"])
def test_a_write_beside_the_deletion_of_the_newest_is_current(store, s3, what):  # noqa: F811
    bucket = versioned(s3, f"beside-{what}")
    other = client_of(store)
    hidden = []
    with ThreadPoolExecutor(1) as pool:
        for number in range(40):
            key = f"k{number:02}"
            put(s3, bucket, key, b"0")
            newest = put(s3, bucket, key, b"1") if what == "version" else s3.delete_object(Bucket=bucket, Key=key)["VersionId"]
            deletion = pool.submit(other.delete_object, Bucket=bucket, Key=key, VersionId=newest)
            time.sleep(DELAYS.uniform(0, 0.03))
            put(s3, bucket, key, b"2")
            deletion.result()
            if current(s3, bucket, key) != b"2":
                hidden.append(key)
    assert not hidden
