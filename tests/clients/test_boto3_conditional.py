"""Writes of S3 on a condition hold among many clients: of all that want the same, one wins."""

import hashlib
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from clients.test_boto3 import MIB, bucket, client_of, code_of, s3, store  # noqa: F401 (fixtures)
from harness.client import Client

CLIENTS = 64
LOST = {"PreconditionFailed", "ConditionalRequestConflict"}


@pytest.fixture(scope="module")
def clients(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api decides when the request comes")
    return [client_of(store) for _ in range(CLIENTS)]


@pytest.fixture
def place(clients):
    name = "c-" + uuid.uuid4().hex
    clients[0].create_bucket(Bucket=name)
    return name


def at_once(calls):
    """Runs all of them from the same moment on; what each returned, or the code of its refusal."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait()
        try:
            return call()
        except ClientError as refused:
            return refused.response["Error"]["Code"]

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def one_wins(clients, place, size, **condition):
    bodies = [b"%02d" % number * (size // 2) for number in range(len(clients))]
    outcomes = at_once([lambda s3=s3, body=body: s3.put_object(Bucket=place, Key="k", Body=body, **condition)  # noqa: F811
                        for s3, body in zip(clients, bodies)])
    winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, dict)]
    assert len(winners) == 1 and {outcome for outcome in outcomes if isinstance(outcome, str)} <= LOST, outcomes
    assert clients[0].get_object(Bucket=place, Key="k")["Body"].read() == bodies[winners[0]]
    return outcomes[winners[0]]["ETag"]


@pytest.mark.parametrize("size, versioned", [(16, False), (100_000, False), (16, True)])
def test_one_of_many_writers_wins(clients, place, size, versioned):
    if versioned:
        clients[0].put_bucket_versioning(Bucket=place, VersioningConfiguration={"Status": "Enabled"})
    etag = one_wins(clients, place, size, IfNoneMatch="*")
    one_wins(clients, place, size + 2, IfMatch=etag)
    clients[0].delete_object(Bucket=place, Key="k")
    one_wins(clients, place, size, IfNoneMatch="*")
    if versioned:
        assert len(clients[0].list_object_versions(Bucket=place)["Versions"]) == 3  # and none of a loser


def test_a_counter_loses_nothing(clients, place):
    clients[0].put_object(Bucket=place, Key="n", Body=b"0")

    def count(s3):  # noqa: F811
        done = 0
        while done < 3:
            now = s3.get_object(Bucket=place, Key="n")
            try:
                s3.put_object(Bucket=place, Key="n", Body=b"%d" % (int(now["Body"].read()) + 1), IfMatch=now["ETag"])
                done += 1
            except ClientError as refused:
                assert refused.response["Error"]["Code"] in LOST

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, clients[:8]))
    assert clients[0].get_object(Bucket=place, Key="n")["Body"].read() == b"24"


def test_conditions_of_a_write(clients, place):
    s3 = clients[0]  # noqa: F811
    key = {"Bucket": place, "Key": "k"}
    assert code_of(s3.put_object, **key, Body=b"x", IfMatch='"%s"' % hashlib.md5(b"x").hexdigest()) == "NoSuchKey"
    etag = s3.put_object(**key, Body=b"", IfNoneMatch="*")["ETag"]
    assert code_of(s3.put_object, **key, Body=b"", IfNoneMatch="*") == "PreconditionFailed"
    assert code_of(s3.put_object, **key, Body=b"", IfNoneMatch=etag) == "NotImplemented"
    assert code_of(s3.put_object, **key, Body=b"y", IfMatch='"%s"' % hashlib.md5(b"x").hexdigest()) == "PreconditionFailed"
    assert s3.put_object(**key, Body=b"y", IfMatch=etag)["ETag"] == '"%s"' % hashlib.md5(b"y").hexdigest()
    source = {"Bucket": place, "Key": "k"}
    assert code_of(s3.copy_object, **key | {"Key": "k"}, CopySource=source, MetadataDirective="REPLACE", IfNoneMatch="*") == "PreconditionFailed"
    s3.copy_object(Bucket=place, Key="copy", CopySource=source, IfNoneMatch="*")
    assert s3.get_object(Bucket=place, Key="copy")["Body"].read() == b"y"


def begin(s3, place, key, bodies):  # noqa: F811
    which = {"Bucket": place, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=place, Key=key)["UploadId"]}
    tags = [s3.upload_part(**which, PartNumber=number, Body=body)["ETag"] for number, body in enumerate(bodies, 1)]
    return which, {"Parts": [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]}


def test_a_completion_on_a_condition(clients, place):
    s3 = clients[0]  # noqa: F811
    bodies = [b"a" * 5 * MIB, b"b"]
    first, parts = begin(s3, place, "k", bodies)
    second, others = begin(s3, place, "k", bodies[::-1][:1])
    done = s3.complete_multipart_upload(**first, MultipartUpload=parts, IfNoneMatch="*")
    assert s3.complete_multipart_upload(**first, MultipartUpload=parts, IfNoneMatch="*")["ETag"] == done["ETag"]  # again, as clients do
    assert code_of(s3.complete_multipart_upload, **second, MultipartUpload=others, IfNoneMatch="*") == "PreconditionFailed"
    assert s3.get_object(Bucket=place, Key="k", IfMatch=done["ETag"])["Body"].read() == b"".join(bodies)
    assert code_of(s3.get_object, Bucket=place, Key="k", IfMatch='"other-2"') == "PreconditionFailed"
    assert code_of(s3.head_object, Bucket=place, Key="k", IfNoneMatch=done["ETag"]) == "304"
    s3.complete_multipart_upload(**second, MultipartUpload=others, IfMatch=done["ETag"])
    assert s3.get_object(Bucket=place, Key="k")["Body"].read() == b"b"


def test_many_first_uploads_of_a_bucket_begin_at_once(clients):
    for _ in range(10):
        place = "c-" + uuid.uuid4().hex
        clients[0].create_bucket(Bucket=place)
        begun = at_once([lambda s3=s3, number=number: s3.create_multipart_upload(Bucket=place, Key=f"k{number}")  # noqa: F811
                         for number, s3 in enumerate(clients)])
        assert [outcome for outcome in begun if isinstance(outcome, str)] == []


def test_parts_that_are_not_named_are_deleted(store, clients, place):  # noqa: F811
    s3 = clients[0]  # noqa: F811
    which, parts = begin(s3, place, "k", [b"a" * 5 * MIB, b"b", b"c"])
    s3.complete_multipart_upload(**which, MultipartUpload={"Parts": [parts["Parts"][0], parts["Parts"][2]]})
    assert s3.get_object(Bucket=place, Key="k")["Body"].read() == b"a" * 5 * MIB + b"c"
    assert Client(store.auth_url).do("HEAD", place + "+segments", f"k/{which['UploadId']}/2").status == 404


def test_aborts_race_with_completions(store, clients, place):  # noqa: F811
    swift, ends = Client(store.auth_url), set()
    for number in range(6):
        key, bodies = f"k{number}", [b"a" * 5 * MIB, b"b"]
        which, parts = begin(clients[0], place, key, bodies)
        complete = [lambda s3=s3: s3.complete_multipart_upload(**which, MultipartUpload=parts) for s3 in clients[:4]]  # noqa: F811
        abort = [lambda s3=s3: s3.abort_multipart_upload(**which) for s3 in clients[4:8]]  # noqa: F811
        outcomes = at_once(abort + complete if number % 2 else complete + abort)
        assert all(isinstance(outcome, dict) or outcome in LOST | {"NoSuchUpload"} for outcome in outcomes), [o if isinstance(o, str) else 200 for o in outcomes]
        completed = [outcome for outcome in outcomes if isinstance(outcome, dict) and "ETag" in outcome]
        aborted = [outcome for outcome in outcomes if isinstance(outcome, dict) and "ETag" not in outcome]
        assert bool(completed) != bool(aborted), outcomes
        there = [swift.do("HEAD", place + "+segments", f"{key}/{which['UploadId']}/{part}").status for part in (1, 2)]
        if completed:
            assert clients[0].get_object(Bucket=place, Key=key)["Body"].read() == b"".join(bodies)
        else:
            assert code_of(clients[0].head_object, Bucket=place, Key=key) == "404" and there == [404, 404]
        assert code_of(clients[0].list_parts, **which) == "NoSuchUpload"
        ends.add(bool(completed))


def test_conditions_of_a_deletion(clients, place):
    s3 = clients[0]  # noqa: F811
    key = {"Bucket": place, "Key": "k"}
    assert code_of(s3.delete_object, **key, IfMatch="*") == "NoSuchKey"
    etag = s3.put_object(**key, Body=b"x")["ETag"]
    assert code_of(s3.delete_object, **key, IfMatch='"wrong"') == "PreconditionFailed"
    refused = s3.delete_objects(Bucket=place, Delete={"Objects": [{"Key": "k", "ETag": '"wrong"'}]})
    assert [error["Code"] for error in refused["Errors"]] == ["PreconditionFailed"]
    assert code_of(s3.delete_object, **key, IfMatch=etag, VersionId="null") == "NotImplemented"
    s3.head_object(**key)
    s3.delete_object(**key, IfMatch=etag)
    assert code_of(s3.head_object, **key) == "404"
    etag = s3.put_object(**key, Body=b"y")["ETag"]
    assert "Errors" not in s3.delete_objects(Bucket=place, Delete={"Objects": [{"Key": "k", "ETag": etag}]})
    s3.put_object(**key, Body=b"z")
    s3.delete_object(**key, IfMatch="*")
    assert code_of(s3.head_object, **key) == "404"


def test_of_many_deletions_and_writes_on_one_entity_tag_one_wins(clients, place):
    for _ in range(3):
        etag = clients[0].put_object(Bucket=place, Key="k", Body=b"before")["ETag"]
        calls = [lambda s3=s3: s3.delete_object(Bucket=place, Key="k", IfMatch=etag) for s3 in clients[:16]]  # noqa: F811
        calls += [lambda s3=s3: s3.put_object(Bucket=place, Key="k", Body=b"after", IfMatch=etag) for s3 in clients[16:32]]  # noqa: F811
        outcomes = at_once(calls)
        won = [outcome for outcome in outcomes if isinstance(outcome, dict)]
        assert len(won) == 1 and {outcome for outcome in outcomes if isinstance(outcome, str)} <= LOST | {"NoSuchKey"}, outcomes
        is_there = any(isinstance(outcome, dict) for outcome in outcomes[16:])
        assert ("Contents" in clients[0].list_objects_v2(Bucket=place)) == is_there
