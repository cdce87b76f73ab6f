"""Passes of container-lifecycle: what is due goes, and nothing else. A day of the rules is a second here."""

import contextlib
import datetime
import shutil
import sqlite3
import time

import pytest
from swift.common import direct_client
from swift.common.ring import Ring

from clients.test_boto3 import MIB, client_of, code_of
from clients.test_boto3_lifecycle import days, put, rule
from harness import upkeep
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import run

LONG_AGO = {"Date": datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no lifecycle rules")
    memcached = Memcached().start()
    cluster = Cluster(Layout(tmp_path_factory.mktemp("lifecycle"), memcached_port=memcached.port).write(), "martlet")
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        memcached.stop()


@pytest.fixture
def s3(cluster):
    return client_of(cluster)


def one_pass(cluster, **options):
    """Runs the daemon once; what it logged."""
    client = upkeep.write_conf(cluster, "lifecycle-client.conf", "internal-client")
    options = {"seconds_per_day": 1, "internal_client_conf_path": client, "recon_cache_path": cluster.root / "run", **options}
    conf = cluster.etc / "lifecycle-container-server.conf"
    section = "".join(f"{name} = {value}\n" for name, value in options.items())
    conf.write_text((cluster.etc / "container-server.conf").read_text() + f"\n[container-lifecycle]\n{section}")
    done = run([martlet(), "container-lifecycle", conf, "--once", "--verbose"], timeout=120)
    output = done.stdout + done.stderr
    assert "panicked" not in output and "ERROR" not in output, output
    return output


def wait_a_day():
    """Longer than a day and the second that a time is rounded up to; rows have come meanwhile."""
    time.sleep(2.5)


def keys(s3, bucket):
    return [found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def versions(s3, bucket):
    """What is listed of versions, newest first within a key: `key`, whether it is the latest, and of markers a `-`."""
    listed = s3.list_object_versions(Bucket=bucket)
    rows = [(row["Key"], row["LastModified"], row["VersionId"], "", row["IsLatest"]) for row in listed.get("Versions", [])]
    rows += [(row["Key"], row["LastModified"], row["VersionId"], "-", row["IsLatest"]) for row in listed.get("DeleteMarkers", [])]
    rows.sort(key=lambda row: row[2], reverse=True)
    rows.sort(key=lambda row: row[0])
    return [mark + key + ("*" if is_latest else "") for key, _, _, mark, is_latest in rows]


def upload(s3, bucket, key, *, complete=True):
    begun = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    parts = []
    for number in (1, 2):
        body = b"x" * (5 * MIB if number == 1 else 7)
        etag = s3.upload_part(Bucket=bucket, Key=key, UploadId=begun, PartNumber=number, Body=body)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    if complete:
        s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=begun, MultipartUpload={"Parts": parts})
    return begun


def in_swift(cluster, container):
    return Client(cluster.auth_url).do("GET", container).body.decode().split("\n")[:-1]


def test_filters_and_parts(cluster, s3):
    bucket = "plain"
    s3.create_bucket(Bucket=bucket)
    for key, body, tags in [("old/1", b"x", ""), ("old/ü 2", b"", "k=v"), ("kept/1", b"x", ""), ("tagged/yes", b"x", "a=b&k=v"),
                            ("tagged/no", b"x", "k=w"), ("size/large", b"123456", ""), ("size/even", b"12345", ""), ("off/1", b"x", ""),
                            ("date/1", b"x", ""), ("late/1", b"x", "")]:
        s3.put_object(Bucket=bucket, Key=key, Body=body, Tagging=tags)
    upload(s3, bucket, "large/done")
    own = Client(cluster.auth_url)
    for name in ("open/own/file.tar", "open/own/file.tar/1"):  # a client's, though it is named as an upload is
        assert own.do("PUT", f"{bucket}+segments/{name}", body=b"x").status == 201
    ended, left = upload(s3, bucket, "open/due", complete=False), upload(s3, bucket, "open later", complete=False)
    off = rule("off", filter={"Prefix": "off/"}, Expiration=days(1))
    put(s3, bucket, rule("old", filter={"Prefix": "old/"}, Expiration=days(1)),
        rule("tagged", filter={"And": {"Prefix": "tagged/", "Tags": [{"Key": "k", "Value": "v"}]}}, Expiration=days(1)),
        rule("size", filter={"And": {"Prefix": "size/", "ObjectSizeGreaterThan": 5}}, Expiration=days(1)),
        rule("date", filter={"Prefix": "date/"}, Expiration=LONG_AGO), {**off, "Status": "Disabled"},
        rule("late", filter={"Prefix": "late/"}, Expiration=days(10**6)),
        rule("large", filter={"Prefix": "large/"}, Expiration=days(1)),
        rule("open", filter={"Prefix": "open/"}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1}))
    wait_a_day()
    output = one_pass(cluster)
    assert "6 expired, 0 older versions, 0 markers and 1 uploads deleted; 0 changed meanwhile, 0 held, 0 failed" in output, output
    assert keys(s3, bucket) == ["kept/1", "late/1", "off/1", "size/even", "tagged/no"]
    assert code_of(s3.list_parts, Bucket=bucket, Key="open/due", UploadId=ended) == "NoSuchUpload"
    assert in_swift(cluster, f"{bucket}+segments") == [
        *(f"open later/{left}{part}" for part in ("", "/1", "/2")), "open/own/file.tar", "open/own/file.tar/1"]
    assert "0 expired, 0 older versions, 0 markers and 0 uploads" in one_pass(cluster)
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_rules_that_one_server_alone_remembers(cluster, s3, tmp_path):
    """A drive that was away when rules were taken away, or versioning was switched on, deletes nothing by what it knows."""
    bucket = "remembered"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    put(s3, bucket, rule("all", filter={}, Expiration=days(1)))
    databases = [path for path in cluster.root.glob("**/containers/*/*/*/*.db") if named(path) == bucket]
    ring = Ring(str(cluster.etc), ring_name="container")
    partition, nodes = ring.get_nodes("AUTH_test", bucket)
    for node in nodes:  # rows that wait beside a database come into it
        assert [row["name"] for row in direct_client.direct_get_container(node, partition, "AUTH_test", bucket)[1]] == ["k"]
    assert len(databases) == 3
    saved = {path: snapshot(path, tmp_path / str(number)) for number, path in enumerate(databases)}
    s3.delete_bucket_lifecycle(Bucket=bucket)
    wait_a_day()
    for away in databases:  # the bucket is the turn of one of them
        now = snapshot(away, tmp_path / "now")
        put_back(saved[away], away)
        output = one_pass(cluster)
        assert "1 expired" not in output, output
        put_back(now, away)
    assert keys(s3, bucket) == ["k"]


def named(database):
    with contextlib.closing(sqlite3.connect(database)) as opened:
        return opened.execute("SELECT container FROM container_info").fetchone()[0]


def snapshot(database, path):
    with contextlib.closing(sqlite3.connect(database)) as opened, contextlib.closing(sqlite3.connect(path)) as copy:
        opened.backup(copy)
    return path


def put_back(copy, database):
    for leaving in database.parent.glob(database.name + "-*"):
        leaving.unlink()
    shutil.copy(copy, database.with_suffix(".new"))
    database.with_suffix(".new").replace(database)


def test_versions(cluster, s3):
    bucket = "versioned"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="current/before", Body=b"x")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="current/1", Body=b"x")
    for _ in range(4):
        s3.put_object(Bucket=bucket, Key="older/1", Body=b"x")
    s3.put_object(Bucket=bucket, Key="older/hidden", Body=b"x")
    s3.delete_object(Bucket=bucket, Key="older/hidden")
    upload(s3, bucket, "older/large")
    for _ in range(2):
        s3.put_object(Bucket=bucket, Key="older/large", Body=b"x")
    for key in ("marker/alone", "marker/with version"):
        first = s3.put_object(Bucket=bucket, Key=key, Body=b"x")["VersionId"]
        s3.delete_object(Bucket=bucket, Key=key)
        if key == "marker/alone":
            s3.delete_object(Bucket=bucket, Key=key, VersionId=first)
    assert len(in_swift(cluster, f"{bucket}+segments")) == 2
    put(s3, bucket, rule("current", filter={"Prefix": "current/"}, Expiration=days(1)),
        rule("older", filter={"Prefix": "older/"}, NoncurrentVersionExpiration={"NoncurrentDays": 1, "NewerNoncurrentVersions": 1}),
        rule("markers", filter={"Prefix": "marker/"}, Expiration={"ExpiredObjectDeleteMarker": True}))
    wait_a_day()
    output = one_pass(cluster)
    assert "2 expired, 3 older versions, 1 markers and 0 uploads deleted; 0 changed meanwhile, 0 held, 0 failed" in output, output
    after = ["-current/1*", "current/1", "-current/before*", "current/before", "-marker/with version*", "marker/with version",
             "older/1*", "older/1", "-older/hidden*", "older/hidden", "older/large*", "older/large"]
    assert versions(s3, bucket) == after
    assert in_swift(cluster, f"{bucket}+segments") == []
    # The time since its successor counts, which for current/1 is the new marker.
    put(s3, bucket, rule("older", filter={"Prefix": "current/"}, NoncurrentVersionExpiration={"NoncurrentDays": 3600}))
    assert "0 older versions" in one_pass(cluster)
    put(s3, bucket, rule("older", filter={"Prefix": "current/"}, NoncurrentVersionExpiration={"NoncurrentDays": 1}))
    wait_a_day()
    assert "2 older versions" in one_pass(cluster)
    # Only markers are left there, which a rule with days takes away.
    put(s3, bucket, rule("current", filter={"Prefix": "current/"}, Expiration=days(1)))
    assert "0 expired, 0 older versions, 2 markers" in one_pass(cluster)
    assert versions(s3, bucket) == after[4:]
    s3.delete_bucket_lifecycle(Bucket=bucket)


def databases_of_versions(cluster, bucket):
    """The databases with the versions of a bucket, into which rows have come that wait beside them."""
    hidden = f"\0versions\0{bucket}"
    ring = Ring(str(cluster.etc), ring_name="container")
    partition, nodes = ring.get_nodes("AUTH_test", hidden)
    for node in nodes:
        direct_client.direct_get_container(node, partition, "AUTH_test", hidden)
    return [path for path in cluster.root.glob("**/containers/*/*/*/*.db") if named(path) == hidden]


def test_versions_that_drives_know_otherwise(cluster, s3, tmp_path):
    """Drives that were away list versions that are gone, and a marker with nothing behind it."""
    bucket = "differing"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    ids = [s3.put_object(Bucket=bucket, Key="kept", Body=b"x")["VersionId"] for _ in range(6)]
    time.sleep(1.5)  # their rows come
    databases = databases_of_versions(cluster, bucket)
    assert len(databases) == 3
    saved = snapshot(databases[0], tmp_path / "saved")
    for gone in ids[3:5]:
        s3.delete_object(Bucket=bucket, Key="kept", VersionId=gone)
    s3.put_object(Bucket=bucket, Key="marked", Body=b"x")
    time.sleep(1.5)
    databases_of_versions(cluster, bucket)
    for away in databases[:2]:
        put_back(saved, away)
    s3.delete_object(Bucket=bucket, Key="marked")
    put(s3, bucket, rule("kept", filter={"Prefix": "kept"}, NoncurrentVersionExpiration={"NoncurrentDays": 1, "NewerNoncurrentVersions": 2}),
        rule("markers", filter={"Prefix": "marked"}, Expiration={"ExpiredObjectDeleteMarker": True}))
    wait_a_day()
    outputs = [one_pass(cluster) for _ in range(4)]  # any of the databases is listed
    assert all("0 markers" in output for output in outputs), outputs
    assert sum(" 1 older versions" in output for output in outputs) == 1, outputs
    for version in (ids[1], ids[2], ids[5]):
        assert s3.get_object(Bucket=bucket, Key="kept", VersionId=version)["Body"].read() == b"x"
    assert code_of(s3.get_object, Bucket=bucket, Key="kept", VersionId=ids[0]) == "NoSuchVersion"
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_symbolic_links(cluster, s3):
    """They go by their own age, whatever they lead to."""
    s3.create_bucket(Bucket="links")
    own = Client(cluster.auth_url)
    for name, target in (("log/link", "links/kept"), ("log/dangling", "links/none")):
        own.put("links", name, headers={"X-Symlink-Target": target})
    wait_a_day()
    s3.put_object(Bucket="links", Key="kept", Body=b"x")
    put(s3, "links", rule("log", filter={"Prefix": "log/"}, Expiration=days(1)))
    assert "2 expired" in one_pass(cluster)
    assert keys(s3, "links") == ["kept"]
    s3.delete_bucket_lifecycle(Bucket="links")


def test_a_bucket_whose_versions_are_suspended(cluster, s3):
    """A version that expires becomes an older one behind a marker, so that its turn comes; what is no version goes for good."""
    bucket = "suspended"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for key in ("k", "k", "replaced"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    for key in ("none", "replaced"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"xx")
    assert versions(s3, bucket) == ["k*", "k", "none*", "replaced*", "replaced"]
    put(s3, bucket, rule("all", filter={}, Expiration=days(1)))
    wait_a_day()
    assert "3 expired, 0 older versions" in one_pass(cluster)
    assert versions(s3, bucket) == ["-k*", "k", "k", "replaced"]
    assert keys(s3, bucket) == [] and code_of(s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"
    put(s3, bucket, rule("older", filter={}, NoncurrentVersionExpiration={"NoncurrentDays": 1}))
    wait_a_day()
    assert "2 older versions" in one_pass(cluster)
    # What a client's write has replaced, and a rule has deleted then, has nothing newer beside it: it stays, as before.
    assert versions(s3, bucket) == ["-k*", "replaced"]
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_what_a_lock_holds_stays(cluster, s3):
    bucket = "held"
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    free = s3.put_object(Bucket=bucket, Key="free", Body=b"x")["VersionId"]
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    for key, lock in [("retained", {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}),
                      ("on hold", {"ObjectLockLegalHoldStatus": "ON"})]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x", ChecksumAlgorithm="CRC32", **lock)
    for key in ("free", "retained", "on hold"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"y")
    put(s3, bucket, rule(NoncurrentVersionExpiration={"NoncurrentDays": 1}))
    wait_a_day()
    output = one_pass(cluster)
    assert "1 older versions, 0 markers and 0 uploads deleted; 0 changed meanwhile, 2 held, 0 failed" in output, output
    assert versions(s3, bucket) == ["free*", "on hold*", "on hold", "retained*", "retained"]
    assert code_of(s3.get_object, Bucket=bucket, Key="free", VersionId=free) == "NoSuchVersion"
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_what_was_written_after_the_listing_stays(cluster, s3):
    """The rows are old, as when the newer ones are on their way still."""
    bucket = "late-rows"
    s3.create_bucket(Bucket=bucket)
    for key in ("k", "other"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"old")
    upload(s3, bucket, "large")
    ring = Ring(str(cluster.etc), ring_name="object")
    wait_a_day()
    for key in ("k", "large"):
        partition, nodes = ring.get_nodes("AUTH_test", bucket, key)
        for node in nodes:
            direct_client.direct_put_object(node, partition, "AUTH_test", bucket, key, b"new", content_length=3,
                                            headers={"X-Timestamp": f"{time.time():.5f}", "Content-Type": "text/x"})
    put(s3, bucket, rule(Expiration=days(1)))
    output = one_pass(cluster)
    assert "1 expired, 0 older versions, 0 markers and 0 uploads deleted; 2 changed meanwhile" in output, output
    for key in ("k", "large"):
        assert Client(cluster.auth_url).do("GET", bucket, key).body == b"new"
    assert len(in_swift(cluster, f"{bucket}+segments")) == 2
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_an_upload_that_became_an_object_keeps_its_parts(cluster, s3):
    """Its marker is left behind, as by a gateway that died."""
    bucket = "completed"
    s3.create_bucket(Bucket=bucket)
    made = upload(s3, bucket, "k")
    parts, marker = f"{bucket}+segments", f"k/{made}"
    ring = Ring(str(cluster.etc), ring_name="object")
    Client(cluster.auth_url).put(parts, marker, headers={"Content-Type": "application/directory"})
    partition, nodes = ring.get_nodes("AUTH_test", parts, marker)
    for node in nodes:  # as s3api does, which no client can
        direct_client.direct_put_object(node, partition, "AUTH_test", parts, marker, b"", content_length=0, headers={
            "X-Timestamp": f"{time.time():.5f}", "Content-Type": "application/directory",
            "X-Object-Sysmeta-S3api-Has-Content-Type": "no"})
    put(s3, bucket, rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1}))
    wait_a_day()
    assert "0 uploads deleted; 1 changed" in one_pass(cluster)
    assert len(s3.get_object(Bucket=bucket, Key="k")["Body"].read()) == 5 * MIB + 7
    assert in_swift(cluster, f"{bucket}+segments") == [f"k/{made}/1", f"k/{made}/2"]
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_processes_divide_buckets_and_days_are_long(cluster, s3):
    bucket = "divided"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    put(s3, bucket, rule(Expiration=days(1)))
    wait_a_day()
    assert "expired" not in one_pass(cluster, seconds_per_day=0).replace("0 expired", "")
    assert keys(s3, bucket) == ["k"]
    parts = [one_pass(cluster, processes=2, process=number) for number in (0, 1)]
    assert sorted("1 expired" in part for part in parts) == [False, True], parts
    assert keys(s3, bucket) == []
    s3.delete_bucket_lifecycle(Bucket=bucket)
