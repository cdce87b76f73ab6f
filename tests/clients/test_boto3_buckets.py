"""Buckets of an account in pages."""

import pytest

from clients.test_boto3 import client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api looks at none of this")
    return client_of(store)


def test_buckets_come_in_pages(store, s3):  # noqa: F811
    names = [f"paged-{number}" for number in range(5)]
    swift = Client(store.auth_url)
    for name in names:
        s3.create_bucket(Bucket=name)
    swift.put("paged-1 is no bucket's name")
    try:
        whole = s3.list_buckets()
        assert set(names) <= {found["Name"] for found in whole["Buckets"]}
        assert "ContinuationToken" not in whole and not [found for found in whole["Buckets"] if "BucketRegion" in found]
        first = s3.list_buckets(Prefix="paged-", MaxBuckets=2)
        assert [(found["Name"], found["BucketRegion"]) for found in first["Buckets"]] == [(name, "us-east-1") for name in names[:2]]
        assert first["Prefix"] == "paged-"
        pages = list(s3.get_paginator("list_buckets").paginate(Prefix="paged-", PaginationConfig={"PageSize": 2}))
        assert [[found["Name"] for found in page["Buckets"]] for page in pages] == [names[:2], names[2:4], names[4:]]
        exact = s3.list_buckets(Prefix="paged-", MaxBuckets=5)
        assert len(exact["Buckets"]) == 5 and "ContinuationToken" not in exact
        # A page goes on though what it ended with is gone.
        s3.delete_bucket(Bucket=names[1])
        assert [found["Name"] for found in s3.list_buckets(Prefix="paged-", ContinuationToken=first["ContinuationToken"])["Buckets"]] == names[2:]
        assert s3.list_buckets(BucketRegion="eu-nowhere-1")["Buckets"] == []
        assert [found["Name"] for found in s3.list_buckets(BucketRegion="us-east-1", Prefix="paged-4")["Buckets"]] == ["paged-4"]
        assert s3.list_buckets(Prefix="no-such-prefix")["Buckets"] == []
        for wrong in ({"MaxBuckets": 10_001}, {"ContinuationToken": "!"}):
            assert code_of(s3.list_buckets, **wrong) == "InvalidArgument"
    finally:
        swift.delete("paged-1 is no bucket's name")
        for name in names:
            swift.do("DELETE", name)
