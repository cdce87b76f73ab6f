"""boto3 with the keys of TempAuth: what is put through S3 is there through Swift, and the other way round."""

import hashlib
import io
import urllib.request
from urllib.parse import urlsplit

import boto3
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.client import Client

MIB = 1 << 20


def client_of(store, user="test:tester", key="testing", version="s3v4"):
    endpoint = urlsplit(store.auth_url)
    return boto3.client("s3", endpoint_url=f"{endpoint.scheme}://{endpoint.netloc}", aws_access_key_id=user, aws_secret_access_key=key,
                        region_name="us-east-1", config=Config(signature_version=version, s3={"addressing_style": "path"}, retries={"max_attempts": 0}))


@pytest.fixture(scope="module")
def store(request, shared):
    """The pipeline that `martlet up` writes, or OpenStack's servers."""
    kind = "openstack" if request.config.getoption("--sut") == "openstack" else "up"
    return shared.get(kind, kind)


@pytest.fixture(params=["s3v4", "s3"])
def s3(store, request):
    return client_of(store, version=request.param)


@pytest.fixture
def bucket(s3, request):
    name = "b-" + hashlib.md5(request.node.name.encode()).hexdigest()
    s3.create_bucket(Bucket=name)
    yield name
    for upload in s3.list_multipart_uploads(Bucket=name).get("Uploads", []):
        s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
        for found in page.get("Contents", []):
            s3.delete_object(Bucket=name, Key=found["Key"])
    s3.delete_bucket(Bucket=name)


def names_in(store, container):
    """What lies in the container, as Swift's own listing has it."""
    return Client(store.auth_url).get(container, query="?limit=10000").decode().splitlines()


def code_of(call, **arguments):
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return refused.value.response["Error"]["Code"]


def test_objects_are_the_same_on_both_sides(store, s3, bucket):
    swift = Client(store.auth_url)
    put = s3.put_object(Bucket=bucket, Key="a/b c+\u00fc", Body=b"hello", Metadata={"under_score": "x", "plain": "1"}, ContentType="text/x")
    assert put["ETag"] == '"' + hashlib.md5(b"hello").hexdigest() + '"'
    got = s3.get_object(Bucket=bucket, Key="a/b c+\u00fc")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (b"hello", "text/x", {"under_score": "x", "plain": "1"})
    theirs = swift.do("GET", bucket, "a/b c+\u00fc")
    assert (theirs.body, theirs["X-Object-Meta-Plain"]) == (b"hello", "1")

    swift.put(bucket, "from swift", body=b"0123456789", headers={"X-Object-Meta-Side": "swift"})
    part = s3.get_object(Bucket=bucket, Key="from swift", Range="bytes=2-4")
    assert (part["Body"].read(), part["ContentRange"], part["Metadata"]) == (b"234", "bytes 2-4/10", {"side": "swift"})
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "from swift"})
    assert copied["CopyObjectResult"]["ETag"] == '"' + hashlib.md5(b"0123456789").hexdigest() + '"'
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {"side": "swift"}
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "copy", "ResponseContentType": "text/y"}, ExpiresIn=60)
    with urllib.request.urlopen(url) as reply:
        assert (reply.read(), reply.headers["content-type"]) == (b"0123456789", "text/y")


def test_listings_come_in_pages(s3, bucket):
    names = sorted([f"dir{number}/{name}" for number in range(3) for name in ("x", "y")] + ["top"])
    for name in names:
        s3.put_object(Bucket=bucket, Key=name, Body=b"")
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2}))
    assert [found["Key"] for page in pages for found in page["Contents"]] == names
    assert [page["KeyCount"] for page in pages] == [2, 2, 2, 1]
    pages = list(s3.get_paginator("list_objects").paginate(Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 2}))
    common = [prefix["Prefix"] for page in pages for prefix in page.get("CommonPrefixes", [])]
    assert (common, pages[-1]["Contents"][-1]["Key"]) == (["dir0/", "dir1/", "dir2/"], "top")
    deleted = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name} for name in [*names, "none"]]})
    assert [found["Key"] for found in deleted["Deleted"]] == [*names, "none"]
    assert bucket in [found["Name"] for found in s3.list_buckets()["Buckets"]]


def test_uploads_in_parts(store, s3, bucket):
    body = bytes(range(256)) * (11 * MIB // 256)
    s3.upload_fileobj(io.BytesIO(body), bucket, "big", ExtraArgs={"Metadata": {"a": "b"}},
                      Config=TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB))
    head = s3.head_object(Bucket=bucket, Key="big")
    digests = b"".join(hashlib.md5(body[at:at + 5 * MIB]).digest() for at in range(0, len(body), 5 * MIB))
    assert head["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"' and head["Metadata"] == {"a": "b"}
    assert Client(store.auth_url).do("GET", bucket, "big").body == body
    assert s3.get_object(Bucket=bucket, Key="big", PartNumber=2)["Body"].read() == body[5 * MIB:10 * MIB]
    assert s3.list_objects(Bucket=bucket)["Contents"][0]["ETag"] == head["ETag"]

    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    which = {"Bucket": bucket, "Key": "parts", "UploadId": upload}
    tags = {number: s3.upload_part(**which, PartNumber=number, Body=b"x" * 5 * MIB)["ETag"] for number in (1, 2)}
    tags[3] = s3.upload_part_copy(**which, PartNumber=3, CopySource={"Bucket": bucket, "Key": "big"}, CopySourceRange="bytes=5-9")["CopyPartResult"]["ETag"]
    assert [(part["PartNumber"], part["ETag"]) for part in s3.list_parts(**which)["Parts"]] == list(tags.items())
    assert [found["UploadId"] for found in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [upload]
    parts = [{"PartNumber": number, "ETag": tag} for number, tag in tags.items()]
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": parts[::-1]}) == "InvalidPartOrder"
    wrong = [parts[0], {"PartNumber": 2, "ETag": parts[2]["ETag"]}]
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": wrong}) == "InvalidPart"
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": [parts[2]] + [{"PartNumber": 4, "ETag": tags[1]}]}) in (
        "EntityTooSmall", "InvalidPart")
    done = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
    assert s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})["ETag"] == done["ETag"]
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": parts[:1]}) == "NoSuchUpload"
    copy = s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "parts"}, CopySourceIfMatch=done["ETag"])
    for key, etag in (("parts", done["ETag"]), ("copy", copy["CopyObjectResult"]["ETag"])):
        assert s3.get_object(Bucket=bucket, Key=key, IfMatch=etag)["ETag"] == etag
        assert code_of(s3.get_object, Bucket=bucket, Key=key, IfNoneMatch=etag) == "304"
    assert s3.get_object(Bucket=bucket, Key="parts")["Body"].read()[-5:] == body[5:10]
    s3.abort_multipart_upload(Bucket=bucket, Key="gone", UploadId=s3.create_multipart_upload(Bucket=bucket, Key="gone")["UploadId"])
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_refusals_have_codes_of_s3(store, s3, bucket):
    assert code_of(s3.get_object, Bucket=bucket, Key="none") == "NoSuchKey"
    assert code_of(s3.get_object, Bucket="no-such-bucket", Key="none") == "NoSuchBucket"
    assert code_of(s3.create_bucket, Bucket=bucket) == "BucketAlreadyOwnedByYou"
    assert code_of(s3.list_parts, Bucket=bucket, Key="k", UploadId="none") == "NoSuchUpload"
    assert code_of(s3.put_object, Bucket=bucket, Key="k", Body=b"x", ContentMD5=hashlib.md5(b"y").hexdigest()) == "InvalidDigest"
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert code_of(s3.delete_bucket, Bucket=bucket) == "BucketNotEmpty"
    assert code_of(client_of(store, key="wrong").list_buckets) == "SignatureDoesNotMatch"
    assert code_of(client_of(store, user="test:nobody").list_buckets) == "SignatureDoesNotMatch"
    assert code_of(client_of(store, user="test2:tester2", key="testing2").head_object, Bucket=bucket, Key="k") == "404"  # a bucket of its own account


def test_an_unknown_parameter_stops_a_deletion(s3, bucket, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api deletes the bucket")
    def ask_more(request, **_):
        request.url += "?unknown"
    s3.meta.events.register("before-sign.s3.DeleteBucket", ask_more)
    try:
        assert code_of(s3.delete_bucket, Bucket=bucket) == "NotImplemented"
    finally:
        s3.meta.events.unregister("before-sign.s3.DeleteBucket", ask_more)
    s3.head_bucket(Bucket=bucket)


def test_versions(s3, bucket):
    def enable(status):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == status
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    enable("Enabled")
    ids = [s3.put_object(Bucket=bucket, Key="k", Body=b"%d" % number)["VersionId"] for number in range(3)]
    assert len(set(ids)) == 3 and s3.head_object(Bucket=bucket, Key="k")["VersionId"] == ids[2]
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=ids[0])["Body"].read() == b"0"
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k", "VersionId": ids[1]})
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"1"

    marker = s3.delete_object(Bucket=bucket, Key="k")
    assert marker["DeleteMarker"] and code_of(s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"
    listed = s3.list_object_versions(Bucket=bucket, Prefix="k")
    assert [(found["VersionId"], found["IsLatest"]) for found in listed["Versions"]] == [(ids[2], False), (ids[1], False), (ids[0], False)]
    assert [(found["VersionId"], found["IsLatest"]) for found in listed["DeleteMarkers"]] == [(marker["VersionId"], True)]
    first = s3.list_object_versions(Bucket=bucket, Prefix="k", MaxKeys=2)
    rest = s3.list_object_versions(Bucket=bucket, Prefix="k", KeyMarker=first["NextKeyMarker"], VersionIdMarker=first["NextVersionIdMarker"])
    assert first["IsTruncated"] and [found["VersionId"] for found in rest["Versions"]] == ids[1::-1]

    s3.delete_object(Bucket=bucket, Key="k", VersionId=marker["VersionId"])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"2"
    s3.delete_object(Bucket=bucket, Key="k", VersionId=ids[2])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"
    assert code_of(s3.get_object, Bucket=bucket, Key="k", VersionId="0000000001.00000") == "NoSuchVersion"
    enable("Suspended")
    listed = s3.list_object_versions(Bucket=bucket)
    every = [{"Key": found["Key"], "VersionId": found["VersionId"]} for found in listed["Versions"] + listed.get("DeleteMarkers", [])]
    assert "Errors" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": every})
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)


def test_acls_are_swifts(store, s3, bucket):
    def grants():
        return [(grant["Grantee"]["Type"], grant["Permission"]) for grant in s3.get_bucket_acl(Bucket=bucket)["Grants"]]
    assert grants() == [("CanonicalUser", "FULL_CONTROL")]
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert grants() == [("CanonicalUser", "FULL_CONTROL"), ("Group", "READ")]
    assert Client(store.auth_url).do("HEAD", bucket)["X-Container-Read"] == ".r:*,.rlistings"
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    assert grants() == [("CanonicalUser", "FULL_CONTROL")]
    everybody = {"Type": "Group", "URI": "http://acs.amazonaws.com/groups/global/AllUsers"}
    owner = {"ID": "test:tester", "DisplayName": "test:tester"}
    own = {"Grantee": {"Type": "CanonicalUser", **owner}, "Permission": "FULL_CONTROL"}
    s3.put_bucket_acl(Bucket=bucket, AccessControlPolicy={"Owner": owner, "Grants": [own, {"Grantee": everybody, "Permission": "READ"}]})
    assert Client(store.auth_url).do("HEAD", bucket)["X-Container-Read"] == ".r:*,.rlistings"
    for grantee in ({"Type": "CanonicalUser", "ID": "test:tester3"}, {**everybody, "URI": everybody["URI"] + "x"}):
        more = {"Owner": owner, "Grants": [own, {"Grantee": grantee, "Permission": "READ"}]}
        code_of(s3.put_bucket_acl, Bucket=bucket, AccessControlPolicy=more)
    assert grants() == [("CanonicalUser", "FULL_CONTROL"), ("Group", "READ")]
    s3.put_bucket_acl(Bucket=bucket, AccessControlPolicy={"Owner": owner, "Grants": [own]})
    assert grants() == [("CanonicalUser", "FULL_CONTROL")]
    assert code_of(s3.get_object_lock_configuration, Bucket=bucket) == "ObjectLockConfigurationNotFoundError"


def test_a_key_that_is_there_is_not_created_again(s3, bucket):
    s3.put_object(Bucket=bucket, Key="once", Body=b"1", IfNoneMatch="*")
    assert code_of(s3.put_object, Bucket=bucket, Key="once", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    assert s3.get_object(Bucket=bucket, Key="once")["Body"].read() == b"1"
