"""Refusals of S3 that name what is wrong: second factors, and large objects of which a segment cannot be had."""

import json

import pytest

from clients.test_boto3 import client_of, code_of, store  # noqa: F401 (fixture)
from harness.client import Client


@pytest.fixture
def s3(store):  # noqa: F811
    return client_of(store)


def test_second_factors_are_refused_before_anything_happens(store, s3):  # noqa: F811
    """Nothing could check one, so that a client that relies on it must not be told that it was."""
    s3.create_bucket(Bucket="factors")
    s3.put_object(Bucket="factors", Key="o", Body=b"x")
    factor = {"MFA": "20899872 301749"}
    assert code_of(s3.put_bucket_versioning, Bucket="factors", VersioningConfiguration={"Status": "Enabled"}, **factor) == "NotImplemented"
    assert code_of(s3.delete_object, Bucket="factors", Key="o", **factor) == "NotImplemented"
    assert code_of(s3.delete_objects, Bucket="factors", Delete={"Objects": [{"Key": "o"}]}, **factor) == "NotImplemented"
    assert s3.get_object(Bucket="factors", Key="o")["Body"].read() == b"x"
    assert "Status" not in s3.get_bucket_versioning(Bucket="factors")


def test_a_large_object_that_is_broken_says_so(store, s3):  # noqa: F811
    """Not that somebody else is at work there, which would have a client try again."""
    other, swift = client_of(store, "test:tester3", "testing3"), Client(store.auth_url)
    s3.create_bucket(Bucket="manifests")
    swift.put("closed")
    swift.put("closed", "segment", body=b"x" * 10)
    swift.do("PUT", "manifests", "large", query="?multipart-manifest=put", body=json.dumps([{"path": "/closed/segment"}]).encode(), expect=201)
    swift.do("POST", "manifests", headers={"X-Container-Read": "test:tester3"}, expect=204)
    assert s3.get_object(Bucket="manifests", Key="large")["Body"].read() == b"x" * 10
    for arguments in ({}, {"Range": "bytes=2-3"}):
        assert code_of(other.get_object, Bucket="manifests", Key="large", **arguments) == "BrokenMPU"
    other.head_object(Bucket="manifests", Key="large")
    swift.do("DELETE", "closed", "segment", expect=204)
    assert code_of(s3.get_object, Bucket="manifests", Key="large") == "BrokenMPU"
    # OpenStack's says 503 of a copy, so that clients go on trying.
    assert code_of(s3.copy_object, Bucket="manifests", Key="copy", CopySource="manifests/large") in {"BrokenMPU", "ServiceUnavailable"}
