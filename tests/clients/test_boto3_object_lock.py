"""Object lock: what is held stays, whichever way it is asked to go, and S3's clients are told so in S3's words."""

import datetime
import hashlib
import json
import time

import pytest

from clients.test_access_keys import Keys, s3_of
from clients.test_boto3 import MIB, client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client
from harness.waiting import until

DENIED = "AccessDenied"


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api locks nothing")
    return client_of(store)


@pytest.fixture
def bucket(s3, request):
    """A bucket with a lock. It stays, with what it holds, until the cluster goes."""
    name = "l-" + hashlib.md5(request.node.name.encode()).hexdigest()
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


@pytest.fixture
def swift(store, s3):  # noqa: F811
    return Client(store.auth_url)


def soon(seconds=3600):
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(seconds=seconds)


def kept(mode, until_date):
    return {"Mode": mode, "RetainUntilDate": until_date}


def configuration(mode="GOVERNANCE", **period):
    rule = {"Rule": {"DefaultRetention": {"Mode": mode, **period}}} if period else {}
    return {"ObjectLockEnabled": "Enabled", **rule}


def put_locked(s3, bucket, key="k", body=b"held", mode="COMPLIANCE", until_date=None):
    put = s3.put_object(Bucket=bucket, Key=key, Body=body, ObjectLockMode=mode, ObjectLockRetainUntilDate=until_date or soon())
    return {"Bucket": bucket, "Key": key, "VersionId": put["VersionId"]}


def versions_of(s3, bucket):
    return {(found["Key"], found["VersionId"]) for found in s3.list_object_versions(Bucket=bucket).get("Versions", [])}


def test_configuration(s3, bucket, swift):
    get = lambda: s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]  # noqa: E731
    assert get() == configuration() and s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    for wanted in (configuration(Days=1), configuration("COMPLIANCE", Years=2), configuration()):
        s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=wanted)
        assert get() == wanted
    for wrong, code in [(configuration(Days=0), "InvalidRetentionPeriod"), (configuration(Years=-1), "InvalidRetentionPeriod"),
                        (configuration(Days=40000), "InvalidRetentionPeriod"), (configuration(Days=1, Years=1), "MalformedXML"),
                        (configuration("governance", Days=1), "MalformedXML"), ({"ObjectLockEnabled": "Disabled"}, "MalformedXML")]:
        assert code_of(s3.put_object_lock_configuration, Bucket=bucket, ObjectLockConfiguration=wrong) == code, wrong
    assert code_of(s3.put_bucket_versioning, Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}) == "InvalidBucketState"
    for method in ("POST", "PUT"):
        assert swift.do(method, bucket, headers={"X-Versions-Enabled": "false"}).status == 409
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert code_of(s3.create_bucket, Bucket=bucket, ObjectLockEnabledForBucket=True) == "BucketAlreadyOwnedByYou"


def test_buckets_without_a_lock(s3, bucket):
    plain = bucket + "-plain"
    s3.create_bucket(Bucket=plain)
    s3.put_object(Bucket=plain, Key="k", Body=b"x")
    assert code_of(s3.get_object_lock_configuration, Bucket=plain) == "ObjectLockConfigurationNotFoundError"
    assert code_of(s3.put_object_lock_configuration, Bucket=plain, ObjectLockConfiguration=configuration()) == "InvalidBucketState"
    which = {"Bucket": plain, "Key": "k"}
    assert code_of(s3.put_object_retention, **which, Retention=kept("GOVERNANCE", soon())) == "InvalidRequest"
    assert code_of(s3.put_object_legal_hold, **which, LegalHold={"Status": "ON"}) == "InvalidRequest"
    assert code_of(s3.get_object_retention, **which) == code_of(s3.get_object_legal_hold, **which) == "InvalidRequest"
    assert code_of(s3.put_object, **which, Body=b"", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=soon()) == "InvalidRequest"
    # A copy is not held as its source is.
    source = put_locked(s3, bucket)
    s3.copy_object(**which, CopySource=source)
    assert "ObjectLockMode" not in s3.head_object(**which)
    s3.put_bucket_versioning(Bucket=plain, VersioningConfiguration={"Status": "Enabled"})
    assert code_of(s3.put_object_retention, **which, Retention=kept("GOVERNANCE", soon())) == "InvalidRequest"
    s3.put_object_lock_configuration(Bucket=plain, ObjectLockConfiguration=configuration())
    # What has no version yet would be overwritten.
    assert code_of(s3.put_object_retention, **which, Retention=kept("GOVERNANCE", soon())) == "InvalidRequest"
    held = put_locked(s3, plain)
    assert code_of(s3.delete_object, **held) == DENIED


def test_headers_of_writes(s3, bucket):
    until_date = soon()
    locked = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until_date, "ObjectLockLegalHoldStatus": "ON"}
    s3.put_object(Bucket=bucket, Key="put", Body=b"x", **locked)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "put"}, **locked)
    for key in ("put", "copy"):
        for read in (s3.head_object, s3.get_object):
            head = read(Bucket=bucket, Key=key)
            assert {name: head[name] for name in locked} == locked
        assert s3.get_object_retention(Bucket=bucket, Key=key)["Retention"] == kept("GOVERNANCE", until_date)
        assert s3.get_object_legal_hold(Bucket=bucket, Key=key)["LegalHold"] == {"Status": "ON"}
    for wrong in ({"ObjectLockMode": "GOVERNANCE"}, {"ObjectLockRetainUntilDate": until_date}, {**locked, "ObjectLockMode": "X"},
                  {**locked, "ObjectLockRetainUntilDate": soon(-60)}, {"ObjectLockLegalHoldStatus": "MAYBE"}):
        assert code_of(s3.put_object, Bucket=bucket, Key="wrong", Body=b"", **wrong) == "InvalidArgument", wrong
    s3.put_object(Bucket=bucket, Key="free", Body=b"x")
    assert code_of(s3.get_object_retention, Bucket=bucket, Key="free") == "NoSuchObjectLockConfiguration"
    assert code_of(s3.get_object_legal_hold, Bucket=bucket, Key="free") == "NoSuchObjectLockConfiguration"
    assert code_of(s3.get_object_retention, Bucket=bucket, Key="none") == "NoSuchKey"


def test_documents_are_checked(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for wrong, code in [(kept("X", soon()), "MalformedXML"), (kept("GOVERNANCE", soon(-60)), "InvalidArgument"), ({"Mode": "GOVERNANCE"}, "MalformedXML")]:
        assert code_of(s3.put_object_retention, Bucket=bucket, Key="k", Retention=wrong) == code, wrong
    assert code_of(s3.put_object_legal_hold, Bucket=bucket, Key="k", LegalHold={"Status": "on"}) == "MalformedXML"
    assert code_of(s3.put_object_retention, Bucket=bucket, Key="k", VersionId="1.0", Retention=kept("GOVERNANCE", soon())) == "NoSuchVersion"


def test_compliance_can_only_become_longer(s3, bucket):
    held = put_locked(s3, bucket)
    first = s3.get_object_retention(**held)["Retention"]["RetainUntilDate"]
    for weaker in (kept("COMPLIANCE", first - datetime.timedelta(seconds=1)), kept("GOVERNANCE", soon(7200)), {}):
        assert code_of(s3.put_object_retention, **held, Retention=weaker, BypassGovernanceRetention=True) == DENIED, weaker
    assert code_of(s3.delete_object, **held, BypassGovernanceRetention=True) == DENIED
    longer = kept("COMPLIANCE", first + datetime.timedelta(hours=1))
    s3.put_object_retention(**held, Retention=longer)
    assert s3.get_object_retention(**held)["Retention"] == longer
    assert s3.get_object(**held)["Body"].read() == b"held"


def test_governance_is_bypassed_by_those_who_may(store, s3, bucket):  # noqa: F811
    held = put_locked(s3, bucket, mode="GOVERNANCE")
    shorter = kept("GOVERNANCE", soon(60))
    assert code_of(s3.put_object_retention, **held, Retention=shorter) == DENIED
    assert code_of(s3.put_object_retention, **held, Retention=kept("COMPLIANCE", soon(7200))) == DENIED
    assert code_of(s3.delete_object, **held) == DENIED
    # A user with a write ACL, or a key without the action, may delete versions, but not bypass.
    Client(store.auth_url).do("POST", bucket, headers={"X-Container-Read": "test:tester3", "X-Container-Write": "test:tester3"})
    plain = client_of(store, "test:tester3", "testing3")
    assert code_of(plain.delete_object, **held, BypassGovernanceRetention=True) == DENIED
    keys = Keys(store.auth_url)
    for actions in (["s3:DeleteObjectVersion", "s3:PutObjectRetention"], ["read", "write", "delete"]):
        limited = s3_of(store, keys.make(*(word for action in actions for word in ("--action", action))))
        assert code_of(limited.delete_object, **held, BypassGovernanceRetention=True) == DENIED
        assert code_of(limited.put_object_retention, **held, Retention=shorter, BypassGovernanceRetention=True) == DENIED
    assert s3.head_object(**held)["ObjectLockMode"] == "GOVERNANCE"

    s3.put_object_retention(**held, Retention=shorter, BypassGovernanceRetention=True)
    assert s3.get_object_retention(**held)["Retention"] == shorter
    other = put_locked(s3, bucket, "other", mode="GOVERNANCE")
    able = s3_of(store, keys.make("--action", "s3:DeleteObjectVersion", "--action", "s3:BypassGovernanceRetention"))
    able.delete_object(**other, BypassGovernanceRetention=True)
    s3.put_object_retention(**held, Retention={}, BypassGovernanceRetention=True)
    assert code_of(s3.get_object_retention, **held) == "NoSuchObjectLockConfiguration"
    s3.delete_object(**held)
    assert versions_of(s3, bucket) == set()


def test_policies_allow_and_deny_to_bypass(store, s3, bucket):  # noqa: F811
    plain = client_of(store, "test:tester3", "testing3")
    held = [put_locked(s3, bucket, f"k{number}", mode="GOVERNANCE") for number in range(3)]
    actions = ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:ListBucketVersions"]

    def put(*actions, effect="Allow", principal="test:tester3"):
        statement = {"Effect": effect, "Principal": {"AWS": principal} if principal != "*" else "*", "Action": actions,
                     "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]}
        s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    put(*actions)
    assert code_of(plain.delete_object, **held[0], BypassGovernanceRetention=True) == DENIED
    put(*actions, "s3:BypassGovernanceRetention")
    plain.delete_object(**held[0], BypassGovernanceRetention=True)
    assert code_of(plain.delete_object, **held[1]) == DENIED
    which = [{name: version[name] for name in ("Key", "VersionId")} for version in held[1:2]]
    done = plain.delete_objects(Bucket=bucket, Delete={"Objects": which}, BypassGovernanceRetention=True)
    assert "Errors" not in done and len(done["Deleted"]) == 1
    put("s3:BypassGovernanceRetention", effect="Deny", principal="*")
    assert code_of(s3.delete_object, **held[2], BypassGovernanceRetention=True) == DENIED
    assert versions_of(s3, bucket) == {("k2", held[2]["VersionId"])}


def test_legal_hold(s3, bucket):
    put = s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=1", Metadata={"m": "1"}, CacheControl="max-age=5")
    which = {"Bucket": bucket, "Key": "k", "VersionId": put["VersionId"]}
    s3.put_object(Bucket=bucket, Key="k", Body=b"newer")
    s3.put_object_legal_hold(**which, LegalHold={"Status": "ON"})
    assert s3.head_object(**which)["ObjectLockLegalHoldStatus"] == "ON"
    assert "ObjectLockLegalHoldStatus" not in s3.head_object(Bucket=bucket, Key="k")
    assert code_of(s3.delete_object, **which, BypassGovernanceRetention=True) == DENIED
    head = s3.head_object(**which)
    assert (head["Metadata"], head["CacheControl"], head["ContentLength"]) == ({"m": "1"}, "max-age=5", 1)
    assert s3.get_object_tagging(**which)["TagSet"] == [{"Key": "a", "Value": "1"}]
    s3.put_object_legal_hold(**which, LegalHold={"Status": "OFF"})
    assert s3.get_object_legal_hold(**which)["LegalHold"] == {"Status": "OFF"}
    s3.delete_object(**which)
    assert len(versions_of(s3, bucket)) == 1


def test_a_default_holds_what_either_api_writes(s3, bucket, swift):
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration("COMPLIANCE", Days=1))
    before = soon(86400)
    s3.put_object(Bucket=bucket, Key="s3", Body=b"x")
    assert swift.put(bucket, "swift", body=b"y").status == 201
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "s3"})
    for key in ("s3", "swift", "copy"):
        retention = s3.get_object_retention(Bucket=bucket, Key=key)["Retention"]
        assert retention["Mode"] == "COMPLIANCE" and before <= retention["RetainUntilDate"] <= soon(86402), key
    own = soon(60)
    which = put_locked(s3, bucket, "own", mode="GOVERNANCE", until_date=own)
    assert s3.get_object_retention(**which)["Retention"] == kept("GOVERNANCE", own)
    # Nothing is taken that the lock could not hold as a whole.
    for headers in ({"X-Object-Manifest": f"{bucket}/seg"}, {"X-Symlink-Target": f"{bucket}/s3"}):
        assert swift.do("PUT", bucket, "made of others", body=b"", headers=headers).status == 409
    elsewhere = bucket + "-elsewhere"
    swift.do("PUT", elsewhere)
    swift.put(elsewhere, "segment", body=b"x")
    manifest = json.dumps([{"path": f"/{elsewhere}/segment"}])
    target = swift.path(bucket, "slo") + "?multipart-manifest=put"
    assert swift.send("PUT", target, body=manifest).status == 409


def test_swift_removes_nothing(s3, bucket, swift):
    held = put_locked(s3, bucket)
    version = {"Bucket": bucket, "Key": "k", "VersionId": held["VersionId"]}
    target = swift.path(bucket, "k")
    assert swift.send("DELETE", f"{target}?version-id={held['VersionId']}").status == 403
    # The object that is seen stays in sight.
    assert swift.do("GET", bucket, "k").body == b"held"
    hidden = f"{swift.root}/%00versions%00{bucket}/%00k%00{9999999999.99999 - float(held['VersionId']):.5f}"
    for method in ("GET", "DELETE", "PUT", "POST"):
        assert swift.send(method, hidden, headers={"X-Allow-Reserved-Names": "true", "Content-Length": "0"}).status in (400, 404, 412), method
    # Metadata are replaced, the lock is not.
    assert swift.do("POST", bucket, "k", headers={"X-Object-Meta-Color": "red", "X-Delete-After": "1",
                                                  "X-Object-Transient-Sysmeta-S3api-Retention": "NONE;0;9999999999.00000",
                                                  "X-Backend-Bypass-Governance-Retention": "true"}).status == 202
    head = s3.head_object(**version)
    assert (head["ObjectLockMode"], head["Metadata"]) == ("COMPLIANCE", {"color": "red"})
    # The object expires, its version does not.
    until(lambda: swift.do("GET", bucket, "k").status == 404, what="the object expires")
    assert s3.get_object(**version)["Body"].read() == b"held"
    assert swift.put(bucket, "k", body=b"over it", headers={"X-Delete-After": "1"}).status == 201
    assert swift.send("COPY", swift.path(bucket, "k"), headers={"Destination": f"{bucket}/k"}).status in (201, 404)
    assert swift.do("DELETE", bucket, "k").status in (204, 404)
    bulk = swift.send("POST", f"{swift.root}?bulk-delete", body=f"{bucket}/k\n{bucket}",
                      headers={"Content-Type": "text/plain", "Accept": "application/json"})
    assert bulk.status == 200
    assert swift.do("DELETE", bucket).status == 409
    assert code_of(s3.delete_bucket, Bucket=bucket) == "BucketNotEmpty"
    assert s3.get_object(**version)["Body"].read() == b"held"


def test_swift_makes_nothing_else_of_it(s3, bucket, swift):
    """Neither a delete marker, by the content type of one, nor a large object of others' bytes."""
    held = put_locked(s3, bucket)
    swift.put(f"{bucket}-other")
    swift.put(f"{bucket}-other", "part", body=b"forged")
    marker = {"Content-Type": "application/x-deleted;swift_versions_deleted=1"}
    manifest = {"X-Object-Manifest": f"{bucket}-other/"}
    assert swift.do("POST", bucket, "k", headers=marker).status == 400
    assert swift.do("POST", bucket, "k", headers=manifest).status == 409
    assert s3.get_object(**held)["Body"].read() == swift.get(bucket, "k") == b"held"
    assert not s3.list_object_versions(Bucket=bucket).get("DeleteMarkers")
    assert swift.do("POST", bucket, "k", headers={"Content-Type": "a/b"}).status == 202
    assert code_of(s3.create_multipart_upload, Bucket=bucket, Key="k", ContentType=marker["Content-Type"]) == "InvalidArgument"
    big, _ = complete(s3, bucket, "big", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=soon())
    parts = parts_of(swift, bucket)
    assert {swift.do("POST", f"{bucket}+segments", part, headers=manifest).status for part in parts} == {403}
    # Nor is a deletion taken that the expirer would carry out later.
    listed = json.dumps([{"path": f"{bucket}+segments/{part}"} for part in parts])
    swift.do("PUT", f"{bucket}-other", "slo", query="?multipart-manifest=put", body=listed, expect=201)
    for query, status in [("&async=on", 409), ("", 200)]:
        reply = swift.do("DELETE", f"{bucket}-other", "slo", query=f"?multipart-manifest=delete{query}")
        assert reply.status == status, reply
    assert s3.get_object(**big)["Body"].read() == b"a" * 5 * MIB + b"b"


def test_s3_removes_nothing(s3, bucket):
    held = put_locked(s3, bucket)
    free = s3.put_object(Bucket=bucket, Key="k", Body=b"free")["VersionId"]
    objects = [{"Key": "k", "VersionId": held["VersionId"]}, {"Key": "k", "VersionId": free}, {"Key": "k"}]
    done = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects}, BypassGovernanceRetention=True)
    assert [(error["Key"], error["VersionId"], error["Code"]) for error in done["Errors"]] == [("k", held["VersionId"], DENIED)]
    assert len(done["Deleted"]) == 2
    assert versions_of(s3, bucket) == {("k", held["VersionId"])}
    assert s3.get_object(**held)["Body"].read() == b"held"


def complete(s3, bucket, key, parts=(b"a" * 5 * MIB, b"b"), **more):
    which = {"Bucket": bucket, "Key": key}
    which["UploadId"] = s3.create_multipart_upload(**which, **more)["UploadId"]
    tags = [{"PartNumber": number, "ETag": s3.upload_part(**which, PartNumber=number, Body=body)["ETag"]} for number, body in enumerate(parts, 1)]
    done = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": tags})
    return {"Bucket": bucket, "Key": key, "VersionId": done["VersionId"]}, which


def parts_of(swift, bucket):
    return swift.do("GET", f"{bucket}+segments").body.decode().split()


def test_parts_are_held_with_their_object(s3, bucket, swift):
    until_date = soon()
    held, upload = complete(s3, bucket, "big", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until_date)
    assert s3.get_object_retention(**held)["Retention"] == kept("GOVERNANCE", until_date)
    parts = parts_of(swift, bucket)
    assert len(parts) == 2
    body = s3.get_object(**held)["Body"].read()
    for part in parts:
        assert swift.do("DELETE", f"{bucket}+segments", part).status == 403
        assert swift.do("PUT", f"{bucket}+segments", part, body=b"over it").status == 403
        assert swift.do("POST", f"{bucket}+segments", part, headers={"X-Delete-After": "1"}).status == 403
        assert swift.do("POST", f"{bucket}+segments", part, headers={"X-Object-Meta-A": "1"}).status == 202
        assert swift.do("DELETE", f"{bucket}+segments", part).status == 403
    assert code_of(s3.upload_part, **upload, PartNumber=1, Body=b"x") == "NoSuchUpload"
    target = f"{swift.path(bucket, 'big')}?version-id={held['VersionId']}&multipart-manifest=delete"
    assert swift.send("DELETE", target, headers={"Accept": "application/json"}).status in (200, 403)
    assert code_of(s3.delete_object, **held) == DENIED
    assert s3.get_object(**held)["Body"].read() == body

    s3.put_object_legal_hold(**held, LegalHold={"Status": "ON"})
    assert code_of(s3.delete_object, **held, BypassGovernanceRetention=True) == DENIED
    s3.put_object_legal_hold(**held, LegalHold={"Status": "OFF"})
    s3.put_object_retention(**held, Retention=kept("GOVERNANCE", soon(60)), BypassGovernanceRetention=True)
    s3.delete_object(**held, BypassGovernanceRetention=True)
    assert versions_of(s3, bucket) == set()
    until(lambda: parts_of(swift, bucket) == [], what="the parts go with their object")


def test_uploads_have_the_default(s3, bucket, swift):
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration("COMPLIANCE", Days=1))
    which = {"Bucket": bucket, "Key": "open"}
    which["UploadId"] = s3.create_multipart_upload(**which)["UploadId"]
    etag = s3.upload_part(**which, PartNumber=1, Body=b"x")["ETag"]
    s3.upload_part(**which, PartNumber=1, Body=b"x")
    wrong = [{"PartNumber": 1, "ETag": '"' + "0" * 32 + '"'}]
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": wrong}) == "InvalidPart"
    # Nothing of an upload is held before it is complete.
    s3.abort_multipart_upload(**which)
    assert etag and parts_of(swift, bucket) == []
    held, _ = complete(s3, bucket, "big")
    assert s3.get_object_retention(**held)["Retention"]["Mode"] == "COMPLIANCE"
    assert [swift.do("DELETE", f"{bucket}+segments", part).status for part in parts_of(swift, bucket)] == [403, 403]


def test_what_is_not_held_any_more_can_go(s3, bucket):
    end = soon(20)  # late enough for a busy machine to be refused before
    held = put_locked(s3, bucket, until_date=end)
    assert code_of(s3.delete_object, **held) == DENIED
    until(lambda: time.time() > end.timestamp() + 1, what="the retention ends")
    s3.delete_object(**held)
    assert versions_of(s3, bucket) == set()
    s3.delete_bucket(Bucket=bucket)


def test_many_at_once(store, s3, bucket):  # noqa: F811
    """A deletion and a legal hold of one version, at the same time: where the hold was acknowledged the version stays."""
    from concurrent.futures import ThreadPoolExecutor

    clients = [client_of(store) for _ in range(2)]
    outcomes = set()
    for number in range(12):
        put = s3.put_object(Bucket=bucket, Key=f"k{number}", Body=b"x")
        which = {"Bucket": bucket, "Key": f"k{number}", "VersionId": put["VersionId"]}

        def attempt(call, **more):
            try:
                return call(**more)["ResponseMetadata"]["HTTPStatusCode"]
            except s3.exceptions.ClientError as error:
                return error.response["Error"]["Code"]

        with ThreadPoolExecutor(2) as pool:
            hold = pool.submit(attempt, clients[0].put_object_legal_hold, **which, LegalHold={"Status": "ON"})
            gone = pool.submit(attempt, clients[1].delete_object, **which)
            hold, gone = hold.result(), gone.result()
        is_there = ("k%d" % number, put["VersionId"]) in versions_of(s3, bucket)
        outcomes.add((hold, gone, is_there))
        if hold == 200:
            assert s3.get_object(**which)["Body"].read() == b"x", (hold, gone)
    assert all(hold != 200 or is_there for hold, gone, is_there in outcomes), outcomes
