"""Tags of S3: set in every way, kept through what clients of Swift do."""

import pytest

from clients.test_boto3 import MIB, bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api keeps no tags")
    return client_of(store)


def pairs(**tags):
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


def tags_of(s3, bucket, key, **more):  # noqa: F811
    return {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket=bucket, Key=key, **more)["TagSet"]}


def test_tags_of_objects(store, s3, bucket):  # noqa: F811
    key = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**key, Body=b"x", Tagging="a=1&b+c=%C3%BC", Metadata={"m": "1"}, CacheControl="max-age=5", ContentType="text/x")
    assert tags_of(s3, bucket, "k") == {"a": "1", "b c": "ü"}
    assert s3.head_object(**key)["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"] == "2"
    Client(store.auth_url).do("POST", bucket, "k", headers={"X-Object-Meta-Other": "2", "Cache-Control": "max-age=6"})
    assert tags_of(s3, bucket, "k") == {"a": "1", "b c": "ü"}
    s3.put_object_tagging(**key, Tagging=pairs(d="=+/ü"))
    head = s3.head_object(**key)
    assert (tags_of(s3, bucket, "k"), head["Metadata"], head["CacheControl"], head["ContentType"]) == (
        {"d": "=+/ü"}, {"other": "2"}, "max-age=6", "text/x")
    assert s3.get_object(**key)["Body"].read() == b"x"
    s3.delete_object_tagging(**key)
    assert tags_of(s3, bucket, "k") == {} and "x-amz-tagging-count" not in s3.head_object(**key)["ResponseMetadata"]["HTTPHeaders"]
    assert code_of(s3.get_object_tagging, Bucket=bucket, Key="none") == "NoSuchKey"
    assert code_of(s3.put_object_tagging, Bucket=bucket, Key="none", Tagging=pairs(a="b")) == "NoSuchKey"


def test_limits(s3, bucket):  # noqa: F811
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    for tags, code in [(pairs(**{f"k{number}": "" for number in range(11)}), "BadRequest"), (pairs(**{"aws:k": ""}), "InvalidTag"),
                       (pairs(**{"k" * 129: ""}), "InvalidTag"), (pairs(k="v" * 257), "InvalidTag"), (pairs(k="<"), "InvalidTag")]:
        assert code_of(s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=tags) == code
    assert code_of(s3.put_object, Bucket=bucket, Key="k", Body=b"", Tagging="a=1&a=2") == "InvalidTag"
    assert code_of(s3.put_object, Bucket=bucket, Key="k", Body=b"", Tagging="a=%FF") == "InvalidArgument"
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=pairs(**{"k" * 59 + str(number): "v" * 100 for number in range(10)}))
    assert len(tags_of(s3, bucket, "k")) == 10


def test_copies_and_uploads_have_tags(s3, bucket):  # noqa: F811
    source = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**source, Body=b"x", Tagging="a=1")
    s3.copy_object(Bucket=bucket, Key="same", CopySource=source)
    s3.copy_object(Bucket=bucket, Key="new", CopySource=source, TaggingDirective="REPLACE", Tagging="b=2")
    s3.copy_object(Bucket=bucket, Key="none", CopySource=source, TaggingDirective="REPLACE")
    s3.copy_object(Bucket=bucket, Key="meta", CopySource=source, MetadataDirective="REPLACE", Metadata={"m": "1"})
    assert [tags_of(s3, bucket, key) for key in ("same", "new", "none", "meta")] == [{"a": "1"}, {"b": "2"}, {}, {"a": "1"}]
    etag = s3.head_object(Bucket=bucket, Key="same")["ETag"]
    assert s3.get_object(Bucket=bucket, Key="same", IfMatch=etag)["Body"].read() == b"x"
    which = {"Bucket": bucket, "Key": "big"}
    which["UploadId"] = s3.create_multipart_upload(**which, Tagging="c=3")["UploadId"]
    etag = s3.upload_part(**which, PartNumber=1, Body=b"y")["ETag"]
    s3.complete_multipart_upload(**which, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert tags_of(s3, bucket, "big") == {"c": "3"}
    s3.put_object_tagging(**{name: which[name] for name in ("Bucket", "Key")}, Tagging=pairs(d="4"))
    assert tags_of(s3, bucket, "big") == {"d": "4"} and s3.get_object(Bucket=bucket, Key="big")["Body"].read() == b"y"


def test_tags_of_versions(s3, bucket):  # noqa: F811
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    ids = [s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging=f"n={number}")["VersionId"] for number in range(2)]
    assert [tags_of(s3, bucket, "k", VersionId=version) for version in ids] == [{"n": "0"}, {"n": "1"}]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=pairs(n="2"))
    assert [tags_of(s3, bucket, "k", VersionId=version) for version in ids] == [{"n": "0"}, {"n": "2"}]
    s3.put_object_tagging(Bucket=bucket, Key="k", VersionId=ids[1], Tagging=pairs(n="3"))
    assert tags_of(s3, bucket, "k") == {"n": "3"}
    assert code_of(s3.put_object_tagging, Bucket=bucket, Key="k", VersionId=ids[0], Tagging=pairs(n="4")) == "NotImplemented"
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    every = [{"Key": "k", "VersionId": version} for version in ids]
    assert "Errors" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": every})


def test_tags_of_buckets(store, s3, bucket):  # noqa: F811
    def tags():
        return {tag["Key"]: tag["Value"] for tag in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]}

    assert tags() == {}
    s3.put_bucket_tagging(Bucket=bucket, Tagging=pairs(**{f"k{number}": "v" for number in range(50)}))
    Client(store.auth_url).do("POST", bucket, headers={"X-Container-Meta-Other": "2"})
    assert len(tags()) == 50
    assert code_of(s3.put_bucket_tagging, Bucket=bucket, Tagging=pairs(**{f"k{number}": "v" for number in range(51)})) == "BadRequest"
    s3.delete_bucket_tagging(Bucket=bucket)
    assert tags() == {}
