"""minio's client for Python with its defaults: buckets, objects, parts, listings, copies, versions, tags, policies, presigned requests.

    minio_client.py HOST:PORT BUCKET openstack|martlet: run by tests/clients/test_python_clients.py
"""

import io
import json
import os
import sys
from datetime import datetime, timedelta, timezone

import urllib3
from minio import Minio
from minio.commonconfig import ENABLED, ComposeSource, CopySource, Tags
from minio.datatypes import PostPolicy
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from minio.versioningconfig import VersioningConfig

MIB = 2**20
host, bucket, make = sys.argv[1:]
client = Minio(host, access_key="test:tester", secret_key="testing", secure=False, region="us-east-1")


def code_of(call, *arguments):
    try:
        call(*arguments)
    except S3Error as error:
        return error.code
    raise AssertionError("nothing was refused")


def objects():
    body = os.urandom(MIB) * 11
    client.put_object(bucket, "a/large ü", io.BytesIO(body), len(body), part_size=5 * MIB, metadata={"side": "minio"}, content_type="text/x")
    client.put_object(bucket, "a/stream", io.BytesIO(body), -1, part_size=5 * MIB)
    client.put_object(bucket, "small", io.BytesIO(b"hello"), 5)
    client.put_object(bucket, "empty", io.BytesIO(b""), 0)
    head = client.stat_object(bucket, "a/large ü")
    assert (head.size, head.content_type, head.metadata["x-amz-meta-side"]) == (len(body), "text/x", "minio")
    for name, value in (("a/large ü", body), ("a/stream", body), ("small", b"hello"), ("empty", b"")):
        with client.get_object(bucket, name) as reply:
            assert reply.data == value, name
    with client.get_object(bucket, "a/large ü", offset=MIB, length=10) as reply:
        assert reply.data == body[MIB:MIB + 10]
    assert sorted(found.object_name for found in client.list_objects(bucket)) == ["a/", "empty", "small"]
    assert sorted(found.object_name for found in client.list_objects(bucket, recursive=True, include_user_meta=False)) == [
        "a/large ü", "a/stream", "empty", "small"]
    client.copy_object(bucket, "copy", CopySource(bucket, "a/large ü"))
    client.compose_object(bucket, "composed", [ComposeSource(bucket, "a/large ü"), ComposeSource(bucket, "small")])
    with client.get_object(bucket, "composed") as reply:
        assert reply.data == body + b"hello"
    assert code_of(client.stat_object, bucket, "none") == "NoSuchKey"


def presigned():
    pool = urllib3.PoolManager()
    url = client.presigned_put_object(bucket, "presigned", timedelta(minutes=1))
    assert pool.request("PUT", url, body=b"by url").status == 200
    assert pool.request("GET", client.presigned_get_object(bucket, "presigned", timedelta(minutes=1))).data == b"by url"
    if make == "openstack":
        return  # forms of S3 are not served there
    policy = PostPolicy(bucket, datetime.now(timezone.utc) + timedelta(minutes=1))
    policy.add_starts_with_condition("key", "form/")
    policy.add_content_length_range_condition(1, 100)
    fields = {**client.presigned_post_policy(policy), "key": "form/x", "file": ("x", b"by form")}
    reply = pool.request("POST", f"http://{host}/{bucket}", fields=fields)
    assert reply.status == 204, reply.data
    with client.get_object(bucket, "form/x") as reply:
        assert reply.data == b"by form"


def configurations():
    client.set_bucket_versioning(bucket, VersioningConfig(ENABLED))
    assert client.get_bucket_versioning(bucket).status == ENABLED
    made = client.put_object(bucket, "small", io.BytesIO(b"again"), 5)
    with client.get_object(bucket, "small", version_id=made.version_id) as reply:
        assert reply.data == b"again"
    client.remove_object(bucket, "small")
    found = [entry.is_delete_marker for entry in client.list_objects(bucket, prefix="small", include_version=True)]
    assert sorted(found) == [False, False, True], found  # the client orders them by kind
    if make == "openstack":
        return  # neither tags nor policies nor lifecycles are served there
    tags = Tags.new_object_tags()
    tags["colour"] = "red + blue"
    client.set_object_tags(bucket, "copy", tags)
    assert client.get_object_tags(bucket, "copy") == tags
    client.put_object(bucket, "tagged", io.BytesIO(b"x"), 1, tags=tags)
    assert client.get_object_tags(bucket, "tagged") == tags
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:GetObject"],
                                                      "Resource": [f"arn:aws:s3:::{bucket}/*"]}]}
    client.set_bucket_policy(bucket, json.dumps(policy))
    assert json.loads(client.get_bucket_policy(bucket)) == policy
    client.delete_bucket_policy(bucket)


assert not client.bucket_exists(bucket)
client.make_bucket(bucket)
assert client.bucket_exists(bucket) and bucket in [found.name for found in client.list_buckets()]
objects()
presigned()
configurations()
every = [DeleteObject(found.object_name, found.version_id) for found in client.list_objects(bucket, recursive=True, include_version=True)]
assert list(client.remove_objects(bucket, every)) == []
client.remove_bucket(bucket)
