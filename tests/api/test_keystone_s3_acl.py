"""`s3_acl` with Keystone: who may do what with buckets and objects, asked of OpenStack's gateway and of Martlet's.

Each make has a cluster of its own on one Keystone. Users are the owner, another administrator of the project, one of its members without
a role that Swift knows, and users of other projects, who name the project beside their key (`KEY:PROJECT`).
"""

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.cluster import Cluster
from harness.filters import PIPELINE
from harness.keystone import Keystone, with_keystone
from harness.layout import Layout
from harness.memcached import Memcached

OWNER, OTHERS = "tester", ("operator", "tester3", "tester2")
CANNED = ("private", "public-read", "public-read-write", "authenticated-read", "bucket-owner-read", "bucket-owner-full-control")


class Side:
    """One make's cluster; `ask` says how a call of a user ended."""

    def __init__(self, kind, keystone, root):
        self.kind, self.keystone, self.memcached = kind, keystone, Memcached().start()
        layout = Layout(root, memcached_port=self.memcached.port, policies=("gold",), pipeline=with_keystone(PIPELINE))
        layout.overrides = {"proxy": {**keystone.filters(), "filter:s3api": {"s3_acl": "true"}}}
        self.cluster = Cluster(layout.write(), kind, python=keystone.python).start()
        self.clients = {user: self.client(user) for user in (OWNER, *OTHERS)}

    def client(self, user):
        key = self.keystone.keys[user]
        access = key["access"] if key["tenant_id"] == self.keystone.projects["test"] else f"{key['access']}:{self.keystone.projects['test']}"
        config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0})
        return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{self.cluster.port}", aws_access_key_id=access,
                            aws_secret_access_key=key["secret"], region_name="us-east-1", config=config)

    def ask(self, user, call, **arguments):
        try:
            getattr(self.clients[user], call)(**arguments)
        except ClientError as refused:
            return refused.response["ResponseMetadata"]["HTTPStatusCode"], refused.response["Error"]["Code"]
        return 200

    def stop(self):
        self.cluster.stop()
        self.memcached.stop()


@pytest.fixture(scope="module")
def keystone(tmp_path_factory):
    keystone = Keystone(tmp_path_factory.mktemp("keystone"), swift_port=8080).start()
    keystone.keys = {user: keystone.access_key(user) for user in (OWNER, *OTHERS)}
    yield keystone
    keystone.stop()


@pytest.fixture(scope="module")
def sides(keystone, tmp_path_factory):
    sides = []
    try:
        for kind in ("openstack", "martlet"):
            sides.append(Side(kind, keystone, tmp_path_factory.mktemp(kind)))
        yield sides
    finally:
        for side in sides:
            side.stop()


def same(sides, user, call, **arguments):
    openstack, martlet = (side.ask(user, call, **arguments) for side in sides)
    assert martlet == openstack, (user, call, arguments)
    return martlet


def of_bucket(sides, user, bucket):
    """What a user may do with a bucket."""
    new = f"by-{user}"
    outcomes = {"head": same(sides, user, "head_bucket", Bucket=bucket), "list": same(sides, user, "list_objects", Bucket=bucket),
                "put": same(sides, user, "put_object", Bucket=bucket, Key=new, Body=b"x"),
                "acl": same(sides, user, "get_bucket_acl", Bucket=bucket),
                "set": same(sides, user, "put_bucket_acl", Bucket=bucket, ACL="private") if user != OWNER else None,
                "delete": same(sides, user, "delete_object", Bucket=bucket, Key=new)}
    return {what for what, outcome in outcomes.items() if outcome == 200}


def of_object(sides, user, bucket, key):
    outcomes = {"get": same(sides, user, "get_object", Bucket=bucket, Key=key), "head": same(sides, user, "head_object", Bucket=bucket, Key=key),
                "acl": same(sides, user, "get_object_acl", Bucket=bucket, Key=key),
                "set": same(sides, user, "put_object_acl", Bucket=bucket, Key=key, ACL="private") if user != OWNER else None}
    return {what for what, outcome in outcomes.items() if outcome == 200}


READING, WRITING = {"head", "list"}, {"put", "delete"}


@pytest.mark.parametrize("acl", [None, *CANNED])
def test_canned_lists_of_buckets(sides, acl):
    bucket = f"b-{acl}".lower()
    assert same(sides, OWNER, "create_bucket", Bucket=bucket, **({"ACL": acl} if acl else {})) == 200
    assert of_bucket(sides, OWNER, bucket) == READING | WRITING | {"acl"}
    allowed = {"public-read": READING, "authenticated-read": READING, "public-read-write": READING | WRITING}.get(acl, set())
    for user in OTHERS:
        assert of_bucket(sides, user, bucket) == allowed, user


@pytest.mark.parametrize("acl", [None, *CANNED])
def test_canned_lists_of_objects(sides, acl):
    same(sides, OWNER, "create_bucket", Bucket="objects")
    key = f"o-{acl}"
    assert same(sides, OWNER, "put_object", Bucket="objects", Key=key, Body=b"x", **({"ACL": acl} if acl else {})) == 200
    assert of_object(sides, OWNER, "objects", key) == {"get", "head", "acl"}
    allowed = {"get", "head"} if acl in ("public-read", "authenticated-read", "public-read-write") else set()
    for user in OTHERS:
        assert of_object(sides, user, "objects", key) == allowed, user


def test_owners_and_grants(sides):
    """Users are PROJECT:USER by their names, whatever project they name beside their key."""
    bucket = {"Bucket": "granted"}
    assert same(sides, OWNER, "create_bucket", **bucket) == 200
    same(sides, OWNER, "put_object", **bucket, Key="o", Body=b"x")
    for side in sides:
        shown = side.clients[OWNER].get_bucket_acl(**bucket)
        assert shown["Owner"]["ID"] == "test:tester", side.kind
        assert [grant["Grantee"]["ID"] for grant in shown["Grants"]] == ["test:tester"], side.kind
    for user, name in (("tester3", "test:tester3"), ("tester2", "test2:tester2")):
        grants = {"GrantFullControl": 'id="test:tester"', "GrantRead": f'id="{name}"', "GrantWrite": f'id="{name}"'}
        assert same(sides, OWNER, "put_bucket_acl", **bucket, **grants) == 200
        assert of_bucket(sides, user, "granted") == READING | WRITING
        assert of_object(sides, user, "granted", "o") == set()
        del grants["GrantWrite"]
        assert same(sides, OWNER, "put_object_acl", **bucket, Key="o", **grants) == 200
        assert of_object(sides, user, "granted", "o") == {"get", "head"}
        # What a user puts there is the user's, and not the bucket's owner's.
        assert same(sides, user, "put_object", **bucket, Key="own", Body=b"x") == 200
        assert of_object(sides, user, "granted", "own") >= {"get", "head", "acl"}
        assert same(sides, OWNER, "get_object", **bucket, Key="own") == (403, "AccessDenied")
        assert same(sides, OWNER, "delete_object", **bucket, Key="own") == 200
    for user in OTHERS[:1]:
        assert of_bucket(sides, user, "granted") == set()
