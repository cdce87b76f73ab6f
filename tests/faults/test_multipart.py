"""Multipart uploads whose gateway is killed while they are completed and aborted: an object is the old one or the new one, and nothing is left over.

What a client repeats ends as it would have; what nobody repeats a lifecycle rule ends.
"""

import os
import pickle
import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from clients.test_boto3_lifecycle_pass import one_pass, wait_a_day
from faults.test_conditions import client_of
from harness import disk, filters, upkeep
from harness.client import Client
from harness.gateways import Gateways
from harness.waiting import until

UPLOADS, PARTS, OLD = 32, 4, b"old"
# Of so many parts a completion names those; the deletion of the others takes long enough to be cut off.
MANY, NAMED = 300, (2, 3, 7)
RULE = {"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}]}
# Of a request whose gateway is killed.
NO_ANSWER = "none"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    overrides = filters.overrides(filters.PIPELINE, slo={"max_manifest_segments": "10000", "rate_limit_under_size": "0"},
                                  s3api={"min_segment_size": "1", "max_upload_part_num": "10000", "access_keys": "true"})
    overrides["object"] = {"object-replicator": {"sync_method": "ssync"}}
    cluster = Gateways(tmp_path_factory.mktemp("cluster"), 2, overrides, policies=("gold",)).start()
    yield cluster
    cluster.stop()


class Upload:
    def __init__(self, s3, bucket, number):
        self.bucket, self.key, self.id = bucket, f"k{number}", None
        self.bodies = [uuid.uuid4().bytes * 64 for _ in range(PARTS)]
        s3.put_object(Bucket=bucket, Key=self.key, Body=OLD)
        self.id = s3.create_multipart_upload(Bucket=bucket, Key=self.key)["UploadId"]
        tags = [s3.upload_part(**self.which, PartNumber=part, Body=body)["ETag"] for part, body in enumerate(self.bodies, 1)]
        self.parts = {"Parts": [{"PartNumber": part, "ETag": tag} for part, tag in enumerate(tags, 1)]}

    @property
    def which(self):
        return {"Bucket": self.bucket, "Key": self.key, "UploadId": self.id}

    def complete(self, s3):
        return answer(lambda: s3.complete_multipart_upload(**self.which, MultipartUpload=self.parts))

    def abort(self, s3):
        return answer(lambda: s3.abort_multipart_upload(**self.which))

    def is_new(self, s3):
        """Whether the object is the new one; anything but that and the old one is torn."""
        body = s3.get_object(Bucket=self.bucket, Key=self.key)["Body"].read()
        assert body in (OLD, b"".join(self.bodies)), f"{self.key} is torn: {len(body)} bytes"
        return body != OLD

    def part_names(self):
        return {f"{self.key}/{self.id}/{part}" for part in range(1, PARTS + 1)}


def answer(call):
    try:
        call()
    except ClientError as refused:
        return refused.response["Error"]["Code"]
    except (BotoCoreError, OSError):
        return NO_ANSWER
    return 200


def repeated(call):
    """What a client that comes again is told in the end."""
    def ended():
        told = call()
        return told if told in (200, "NoSuchUpload") else None
    return until(ended, within=40, every=0.2, what="an answer")


def segments(cluster, bucket):
    reply = Client(cluster.auth_url).do("GET", f"{bucket}+segments", query="?limit=10000", expect=(200, 204))
    return set(reply.body.decode().split())


def catch_up(cluster):
    """What object servers that were stopped could not tell the containers."""
    upkeep.once(cluster, "martlet", "object-updater", cluster.etc / "object-server.conf")


def agree(cluster):
    """What a gateway has left on some of the servers when it was killed goes to the others: from then on all say the same of an object."""
    upkeep.once(cluster, "martlet", "object-replicator", cluster.etc / "object-server.conf")


def has_parts(cluster, bucket, wanted):
    found = segments(cluster, bucket)
    assert found == wanted, f"stray: {sorted(found - wanted)}, missing: {sorted(wanted - found)}"
    return True


def killed_amid(cluster, calls, after):
    """Makes these calls, 16 at once; the first gateway is killed as soon as `after` of them have succeeded, and started again. The answers.

    None begins between the last of those successes and the kill, so that some come too late for it, whatever the machine does meanwhile."""
    done, turn = [], threading.Lock()

    def call(one):
        with turn:  # held by who kills
            pass
        told = one()
        with turn:
            done.extend([told] if told == 200 else [])
            if len(done) == after and told == 200:
                cluster.kill_service("proxy")
        return told

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(call, calls))
    assert len(done) >= after, answers
    cluster.start_service("proxy")
    # The killed one's locks last a minute, but for object servers that begin anew.
    cluster.stop_service("object")
    cluster.start_service("object")
    return answers


@pytest.mark.parametrize("what", [pytest.param(what, marks=pytest.mark.extra) for what in ("completions", "aborts")] + ["both"])
def test_a_killed_gateway_tears_nothing_and_leaves_nothing(cluster, what):
    doomed, other = (client_of(port) for port in cluster.gateway_ports)
    bucket = f"killed-{what}"
    other.create_bucket(Bucket=bucket)
    other.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=RULE)
    # The first by itself makes the container of parts: of many first ones at once some may not find it yet.
    uploads = [Upload(other, bucket, 0)]
    with ThreadPoolExecutor(8) as pool:
        uploads += pool.map(lambda number: Upload(other, bucket, number), range(1, UPLOADS))
    calls = {"completions": [lambda upload=upload: upload.complete(doomed) for upload in uploads],
             "aborts": [lambda upload=upload: upload.abort(doomed) for upload in uploads]}
    calls = calls.get(what) or [call for pair in zip(calls["completions"], calls["aborts"]) for call in pair]
    answers = killed_amid(cluster, calls, UPLOADS // 4)
    assert NO_ANSWER in answers and 200 in answers, answers
    for number, upload in enumerate(uploads):
        was_new = upload.is_new(other)
        if number % 2:
            continue  # its client does not come again
        if what == "aborts":
            repeated(lambda upload=upload: upload.abort(other))
            assert not upload.is_new(other)
        else:
            told = repeated(lambda upload=upload: upload.complete(other))
            assert upload.is_new(other) == (told == 200) and (told == 200 or not was_new)
    catch_up(cluster)
    wait_a_day()
    one_pass(cluster, seconds_per_day=1)
    agree(cluster)
    alive = set().union(*(upload.part_names() for upload in uploads if upload.is_new(other)))
    catch_up(cluster)
    until(lambda: has_parts(cluster, bucket, alive), what="the parts of objects, and no others")
    until(lambda: "Uploads" not in other.list_multipart_uploads(Bucket=bucket), what="no open upload")


def complete_and_kill(cluster, bucket, key):
    """Completes an upload with few of its parts; the gateway is killed as soon as the object is there. The upload, its completion, the object's bytes;
    nothing where the gateway was killed too late, when it had answered."""
    doomed, other = (client_of(port) for port in cluster.gateway_ports)
    which = {"Bucket": bucket, "Key": key, "UploadId": other.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    with ThreadPoolExecutor(8) as pool:
        tags = list(pool.map(lambda part: other.upload_part(**which, PartNumber=part, Body=b"%d." % part)["ETag"], range(1, MANY + 1)))
    parts = {"Parts": [{"PartNumber": part, "ETag": tags[part - 1]} for part in NAMED]}
    objects = cluster.services["object", 0]
    with ThreadPoolExecutor(1) as pool:
        completing = pool.submit(lambda: answer(lambda: doomed.complete_multipart_upload(**which, MultipartUpload=parts)))
        until(lambda: answer(lambda: other.head_object(Bucket=bucket, Key=key)) == 200, every=0.001, what="the object")
        objects.signal(signal.SIGSTOP)
        cluster.kill_service("proxy")
        objects.signal(signal.SIGCONT)
        told = completing.result()
    cluster.start_service("proxy")
    # The killed one's locks last a minute, but for object servers that begin anew.
    cluster.stop_service("object")
    cluster.start_service("object")
    assert told in (NO_ANSWER, 200), told
    return (which, parts, b"".join(b"%d." % part for part in NAMED)) if told == NO_ANSWER else None


def killed_in_time(cluster, by, key):
    """What `complete_and_kill` has made in a bucket of its own, and that bucket: a machine that stands still between the object and the kill lets
    the gateway end, which is no fault of its own, and it is done again."""
    other = client_of(cluster.gateway_ports[1])
    for attempt in range(5):
        bucket = f"unnamed-{by}-{attempt}"
        other.create_bucket(Bucket=bucket)
        other.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=RULE)
        made = complete_and_kill(cluster, bucket, key)
        if made and len(segments(cluster, bucket)) > len(NAMED):
            return bucket, *made
    raise AssertionError("the gateway was killed too late, each time")


@pytest.mark.parametrize("by", ["completion", "abort", "rule"])
def test_parts_go_that_a_killed_completion_did_not_name(cluster, by):
    other, key = client_of(cluster.gateway_ports[1]), "k"
    bucket, which, parts, body = killed_in_time(cluster, by, key)
    alive = {f"{key}/{which['UploadId']}/{part}" for part in NAMED}
    left = segments(cluster, bucket)
    assert alive < left, left
    # It may have died before it could say so that the upload has ended; what has been completed takes no other parts any more.
    told = answer(lambda: other.upload_part(**which, PartNumber=MANY + 1, Body=b"x"))
    assert told in (200, "NoSuchUpload"), told
    if by == "completion":
        assert repeated(lambda: answer(lambda: other.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
    elif by == "abort":
        assert repeated(lambda: answer(lambda: other.abort_multipart_upload(**which))) == "NoSuchUpload"
    else:
        wait_a_day()
        one_pass(cluster, seconds_per_day=1)
    catch_up(cluster)
    until(lambda: has_parts(cluster, bucket, alive), what="the parts of the object, and no others")
    until(lambda: "Uploads" not in other.list_multipart_uploads(Bucket=bucket), what="no open upload")
    assert other.get_object(Bucket=bucket, Key=key)["Body"].read() == body


def cut_off_behind_the_object(cluster, s3, which, parts, unnamed):
    """Completes an upload, and leaves on the devices what a gateway leaves that dies just behind the object: the marker of an open upload, and
    its parts. The version, if versions are kept."""
    kept, marker = cluster.root / which["UploadId"], f"/AUTH_test/{which['Bucket']}+segments/{which['Key']}/{which['UploadId']}"
    kept.mkdir()
    found = [path for name in (marker, f"{marker}/{unnamed}") for path in disk.find_object(cluster.srv, name)]
    copies = {path: kept / str(number) for number, path in enumerate(found)}
    for path, copy in copies.items():
        os.link(path, copy)
    version = s3.complete_multipart_upload(**which, MultipartUpload=parts).get("VersionId")
    cluster.stop_service("object")
    for path, copy in copies.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        for newer in path.parent.iterdir():
            newer.unlink()
        os.link(copy, path)
    cluster.start_service("object")
    return version


def name_of(path):
    """Account, container and object of a file, of which another process may take it away."""
    found = disk.metadata(path)
    name = found.get(b"name", found.get("name", b""))
    return name if isinstance(name, bytes) else name.encode()


@pytest.mark.parametrize("again, versions", [("open", "one"), ("condition", "versions")] + [
    pytest.param(*which, marks=pytest.mark.extra) for which in (("open", "versions"), ("condition", "one"))])
def test_what_one_server_has_most_have_when_the_completion_that_comes_again_is_answered(cluster, again, versions):
    s3, bucket, key = client_of(cluster.gateway_ports[1]), f"one-has-{again}-{versions}", "k"
    s3.create_bucket(Bucket=bucket)
    if versions == "versions":
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    which = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    tags = [s3.upload_part(**which, PartNumber=part, Body=b"%d." % part)["ETag"] for part in (1, 2, 3)]
    parts = {"Parts": [{"PartNumber": part, "ETag": tags[part - 1]} for part in (1, 3)]}
    cut_off_behind_the_object(cluster, s3, which, parts, unnamed=2)
    stored = lambda: disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/{key}")
    data = lambda: [path for path in disk.objects(cluster.srv) if f"\0versions\0{bucket}/".encode() in name_of(path)]
    of_all = lambda paths: [(path.name, path.read_bytes(), disk.metadata(path)) for path in paths]
    made, versions_made = of_all(stored()), of_all(data())
    assert len(made) == 3 and len(versions_made) == (3 if versions == "versions" else 0)
    for path in stored()[1:] + data()[1:]:
        path.unlink()
    condition = {"IfNoneMatch": "*"} if again == "condition" else {}
    call = lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts, **condition))
    assert repeated(call) == 200
    assert of_all(stored()) == made and of_all(data()) == versions_made
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == b"1.3."
    assert answer(lambda: s3.list_parts(**which)) == "NoSuchUpload"


def test_what_was_made_is_not_made_again_as_another_version(cluster):
    s3, bucket, key = client_of(cluster.gateway_ports[1]), "made-once", "k"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    which = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    tags = [s3.upload_part(**which, PartNumber=part, Body=b"%d." % part)["ETag"] for part in (1, 2, 3)]
    few, others = ({"Parts": [{"PartNumber": part, "ETag": tags[part - 1]} for part in parts]} for parts in ((1, 3), (2, 3)))
    made = cut_off_behind_the_object(cluster, s3, which, few, unnamed=2)
    # Versions name parts of their own: what was written since is not followed by the same parts, nor by some of them.
    newer = repeated(lambda: answer(lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"newer"))) == 200
    assert newer and s3.list_parts(**which)["Parts"], "the upload is not open"
    assert answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=others)) == "NoSuchUpload"
    assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=few))) == 200
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == b"newer"
    assert len(s3.list_object_versions(Bucket=bucket)["Versions"]) == 2
    assert s3.get_object(Bucket=bucket, Key=key, VersionId=made)["Body"].read() == b"1.3."
    assert answer(lambda: s3.list_parts(**which)) == "NoSuchUpload"


def versions_of(s3, bucket):
    found = s3.list_object_versions(Bucket=bucket)
    return sorted((version["VersionId"], version["IsLatest"]) for kind in ("Versions", "DeleteMarkers") for version in found.get(kind, []))


def switch(s3, bucket, status):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def begun(s3, bucket, key="k", numbers=(1, 2, 3), named=(1, 3)):
    which = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    with ThreadPoolExecutor(8) as pool:
        tags = dict(zip(numbers, pool.map(lambda part: s3.upload_part(**which, PartNumber=part, Body=b"%d." % part)["ETag"], numbers)))
    return which, {"Parts": [{"PartNumber": part, "ETag": tags[part]} for part in named]}


def test_what_has_no_version_has_none_when_its_completion_comes_again(cluster):
    s3, bucket = client_of(cluster.gateway_ports[1]), "null"
    s3.create_bucket(Bucket=bucket)
    which, parts = begun(s3, bucket)
    s3.complete_multipart_upload(**which, MultipartUpload=parts)
    switch(s3, bucket, "Enabled")
    stored = lambda: disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/k")
    made = [path.name for path in stored()]
    for path in stored()[1:]:
        path.unlink()
    assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
    assert versions_of(s3, bucket) == [("null", True)] and [path.name for path in stored()] == made
    assert s3.get_object(Bucket=bucket, Key="k", VersionId="null")["Body"].read() == b"1.3."


@pytest.mark.parametrize("newer", ["object without a version", "delete marker"])
def test_what_is_newer_than_a_completion_that_comes_again_stays(cluster, newer):
    s3, bucket = client_of(cluster.gateway_ports[1]), "newer-" + newer.split()[0]
    s3.create_bucket(Bucket=bucket)
    switch(s3, bucket, "Enabled")
    which, parts = begun(s3, bucket)
    cut_off_behind_the_object(cluster, s3, which, parts, unnamed=2)
    if newer == "delete marker":
        s3.delete_object(Bucket=bucket, Key="k")
    else:
        switch(s3, bucket, "Suspended")
        assert repeated(lambda: answer(lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"newer"))) == 200
    before = versions_of(s3, bucket)
    # As when they are so old that they have been reclaimed.
    for path in disk.objects(cluster.srv, ".ts"):
        if name_of(path) == f"/AUTH_test/{bucket}/k".encode():
            path.unlink()
    assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
    assert versions_of(s3, bucket) == before
    assert answer(lambda: s3.head_object(Bucket=bucket, Key="k")) == ("404" if newer == "delete marker" else 200)


def test_new_metadata_that_one_server_has_missed_stay(cluster):
    s3, bucket = client_of(cluster.gateway_ports[1]), "missed"
    s3.create_bucket(Bucket=bucket)
    which, parts = begun(s3, bucket)
    s3.complete_multipart_upload(**which, MultipartUpload=parts)
    made = [path.name for path in disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/k")]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    missed, *_ = [path for path in disk.objects(cluster.srv, ".meta") if name_of(path) == f"/AUTH_test/{bucket}/k".encode()]
    missed.unlink()
    for _ in range(20):  # whichever server is asked first
        newest = Client(cluster.auth_url).do("HEAD", bucket, "k", headers={"X-Newest": "true"}, expect=200)
        assert newest["x-timestamp"] > made[0].removesuffix(".data")
    for _ in range(5):
        assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
    assert [path.name for path in disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/k")] == made


def test_a_full_quota_lets_what_is_stored_be_stored_again(cluster):
    s3, bucket = client_of(cluster.gateway_ports[1]), "full"
    s3.create_bucket(Bucket=bucket)
    which, parts = begun(s3, bucket)
    s3.complete_multipart_upload(**which, MultipartUpload=parts)
    Client(cluster.auth_url).do("POST", bucket, headers={"X-Container-Meta-Quota-Bytes": "1", "X-Container-Meta-Quota-Count": "1"}, expect=204)
    until(lambda: answer(lambda: s3.put_object(Bucket=bucket, Key="other", Body=b"xx")) == "EntityTooLarge", within=90, what="the quota")
    stored = lambda: disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/k")
    for path in stored()[1:]:
        path.unlink()
    assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
    assert len(stored()) == 3


def test_a_long_list_of_parts_is_stored_again_where_one_of_three_servers_is_down(tmp_path_factory):
    """It is longer than what is written to all servers at once: those that have it say so before the others take it."""
    quick = {"app:proxy-server": {"error_suppression_interval": 1, "error_suppression_limit": 1000}}
    overrides = filters.overrides(filters.PIPELINE, slo={"max_manifest_segments": "10000"}, s3api={"min_segment_size": "1"})
    overrides["proxy"].update(quick)
    cluster = Gateways(tmp_path_factory.mktemp("three"), 1, overrides, nodes=3, devices=3, policies=("gold",)).start()
    try:
        s3, bucket, numbers = client_of(cluster.port), "long", range(1, 601)
        s3.create_bucket(Bucket=bucket)
        which, parts = begun(s3, bucket, numbers=numbers, named=numbers)
        s3.complete_multipart_upload(**which, MultipartUpload=parts)
        stored = lambda: disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/k")
        has, lacks, down = stored()
        assert has.stat().st_size > 64 * 1024
        lacks.unlink()
        down.unlink()
        cluster.kill_service("object", int(down.relative_to(cluster.srv).parts[0].removeprefix("sdb")) - 1)
        assert repeated(lambda: answer(lambda: s3.complete_multipart_upload(**which, MultipartUpload=parts))) == 200
        assert stored() == [has, lacks]
    finally:
        cluster.stop()


def test_scattered_parts_and_much_metadata_fit_where_a_file_system_has_little_room(cluster):
    """4 KiB for all of an object's metadata, as on ext4: the numbers of the parts are left out."""
    s3, bucket, key = client_of(cluster.gateway_ports[1]), "scattered", "k"
    s3.create_bucket(Bucket=bucket)
    metadata = {f"m{number}": "x" * 170 for number in range(10)}
    which = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key, Metadata=metadata)["UploadId"]}
    numbers = range(1, 10_000, 27)
    with ThreadPoolExecutor(8) as pool:
        tags = list(pool.map(lambda number: s3.upload_part(**which, PartNumber=number, Body=b"%d." % number)["ETag"], numbers))
    parts = {"Parts": [{"PartNumber": number, "ETag": tag} for number, tag in zip(numbers, tags)][1:]}
    s3.complete_multipart_upload(**which, MultipartUpload=parts)
    found = s3.get_object(Bucket=bucket, Key=key)
    assert found["Metadata"] == metadata and found["Body"].read() == b"".join(b"%d." % number for number in numbers[1:])
    until(lambda: len(segments(cluster, bucket)) == len(numbers) - 1, what="the parts of the object, and no others")
    for path in disk.find_object(cluster.srv, f"/AUTH_test/{bucket}/{key}"):
        assert len(pickle.dumps(disk.metadata(path), 2)) < 4_000
