"""The owner that a client expects a bucket to have."""

import pytest

from clients.test_boto3 import bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness import filters
from harness.client import Client

DENIED = "AccessDenied"


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api looks at none of this")
    return client_of(store)


def test_the_owner_that_is_expected(store, s3, bucket):  # noqa: F811
    about = {"Bucket": bucket, "Key": "k"}
    account = Client(store.auth_url).path().rpartition("/")[2]
    for owner in (s3.list_buckets()["Owner"]["ID"], s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"], account):
        s3.put_object(**about, Body=b"kept", ExpectedBucketOwner=owner)
        s3.copy_object(Bucket=bucket, Key="copy", CopySource=about, ExpectedSourceBucketOwner=owner, ExpectedBucketOwner=owner)
    wrong = {"ExpectedBucketOwner": "test2:tester2"}
    for call, more in ((s3.put_object, {"Body": b"lost"}), (s3.get_object, {}), (s3.delete_object, {}), (s3.get_object_tagging, {})):
        assert code_of(call, **about, **more, **wrong) == DENIED
    for call in (s3.list_objects_v2, s3.head_bucket, s3.get_bucket_policy):
        assert code_of(call, Bucket=bucket, **wrong) in (DENIED, "403")
    assert code_of(s3.copy_object, Bucket=bucket, Key="other", CopySource=about, ExpectedSourceBucketOwner="test2:tester2") == DENIED
    assert code_of(s3.get_object, Bucket=bucket, Key="other") == "NoSuchKey"
    assert s3.get_object(**about)["Body"].read() == b"kept"


def test_the_owner_that_is_expected_by_lists(request, make_system):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api looks at none of this")
    system = make_system("separate", overrides=filters.overrides(s3api={"s3_acl": "true"})).start()
    s3, plain = client_of(system), client_of(system, "test:tester3", "testing3")
    s3.create_bucket(Bucket="owned", ACL="public-read-write")
    for expected in ("test:tester", "AUTH_test"):
        plain.put_object(Bucket="owned", Key="k", Body=b"kept", ExpectedBucketOwner=expected)
    assert code_of(plain.put_object, Bucket="owned", Key="k", Body=b"lost", ExpectedBucketOwner="test:tester3") == DENIED
    assert plain.get_object(Bucket="owned", Key="k")["Body"].read() == b"kept"
    assert code_of(s3.get_bucket_acl, Bucket="none", ExpectedBucketOwner="test:tester") == "NoSuchBucket"
