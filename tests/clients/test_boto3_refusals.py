"""Refusals of S3 that name what is wrong: second factors, and large objects of which a segment cannot be had."""

import datetime
import http.client
import json
from urllib.parse import urlsplit

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


def test_a_header_that_is_signed_twice_costs_nothing(store, request):  # noqa: F811
    """Each time would put its value once more into what is signed, and that into the answer."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's signs each header once, however often it is named")
    now, endpoint = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ"), urlsplit(store.auth_url)
    names = "host;x-amz-date;" + ";".join(["a"] * 1900)
    connection = http.client.HTTPConnection(endpoint.netloc)
    connection.request("GET", "/bucket/k", headers={
        "A": "b" * 8000, "X-Amz-Date": now, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD",
        "Authorization": f"AWS4-HMAC-SHA256 Credential=unknown/{now[:8]}/us-east-1/s3/aws4_request,SignedHeaders={names},Signature={'0' * 64}"})
    answer = connection.getresponse()
    assert answer.status == 400 and b"AuthorizationHeaderMalformed" in answer.read(10_000)


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
