"""Access keys that the cluster keeps: made by `martlet keys`, used by boto3, temporary ones of them, and who may look after them."""

import json
import re
import urllib.request
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from clients.test_boto3 import bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client
from harness.places import martlet
from harness.process import run
from harness.waiting import until

# Seconds until a change is known to a gateway that has read the key before; access_key_cache_duration is 10.
KNOWN = 30


@pytest.fixture
def keys(store, request):  # noqa: F811
    """`martlet keys` as an owner of AUTH_test."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack keeps no keys")
    return Keys(store.auth_url)


class Keys:
    def __init__(self, auth_url, user="test:tester", key="testing"):
        self.auth_url, self.options = auth_url, ["-A", auth_url, "-U", user, "-K", key]

    def run(self, *words, check=True):
        return run([martlet(), "keys", *self.options, *words], check=check)

    def json(self, *words):
        return json.loads(self.run("--json", *words).stdout)

    def make(self, *words):
        return self.json("make", *words)


def s3_of(store, key, version="s3v4", token=None):  # noqa: F811
    """boto3 with a key as `martlet keys` prints it, or as the token service does."""
    endpoint = urlsplit(store.auth_url)
    names = ("AccessKeyId", "SecretAccessKey") if "AccessKeyId" in key else ("access_key_id", "secret_access_key")
    return boto3.client("s3", endpoint_url=f"{endpoint.scheme}://{endpoint.netloc}", aws_access_key_id=key[names[0]], aws_secret_access_key=key[names[1]],
                        aws_session_token=token or key.get("SessionToken"), region_name="us-east-1",
                        config=Config(signature_version=version, s3={"addressing_style": "path"}, retries={"max_attempts": 0}))


def sts_of(store, key, token=None):  # noqa: F811
    endpoint = urlsplit(store.auth_url)
    return boto3.client("sts", endpoint_url=f"{endpoint.scheme}://{endpoint.netloc}", aws_access_key_id=key["access_key_id"],
                        aws_secret_access_key=key["secret_access_key"], aws_session_token=token, region_name="us-east-1", config=Config(retries={"max_attempts": 0}))


@pytest.fixture
def s3(store):  # noqa: F811
    """The owner, for the fixture `bucket`."""
    return client_of(store)


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_key_is_its_user(store, keys, bucket, version):  # noqa: F811
    key = keys.make("--description", "of a test")
    s3 = s3_of(store, key, version)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 100_000)
    assert Client(store.auth_url).do("GET", bucket, "k").body == b"x" * 100_000
    assert urllib.request.urlopen(s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"})).read() == b"x" * 100_000
    assert bucket in [found["Name"] for found in s3.list_buckets()["Buckets"]]
    wrong = s3_of(store, {**key, "secret_access_key": "x" * 40}, version)
    assert code_of(wrong.get_object, Bucket=bucket, Key="k") == "SignatureDoesNotMatch"
    unknown = s3_of(store, {**key, "access_key_id": "MRTKAAAAAAAAAAAAAAAA"}, version)
    assert code_of(unknown.get_object, Bucket=bucket, Key="k") == "SignatureDoesNotMatch"
    # A user without a role has what the container's ACL gives.
    plain = s3_of(store, keys.make("--for", "test:tester3"), version)
    assert code_of(plain.get_object, Bucket=bucket, Key="k") == "AccessDenied"
    Client(store.auth_url).do("POST", bucket, headers={"X-Container-Read": "test:tester3"})
    assert plain.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x" * 100_000
    assert code_of(plain.put_object, Bucket=bucket, Key="k", Body=b"") == "AccessDenied"


def test_limits(store, keys, bucket):  # noqa: F811
    owner = client_of(store)
    owner.put_object(Bucket=bucket, Key="k", Body=b"x")
    other = f"{bucket[:20]}-other"
    owner.create_bucket(Bucket=other)
    key = keys.make("--bucket", f"{bucket[:30]}*", "--action", "read,list")
    s3 = s3_of(store, key)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    assert [found["Name"] for found in s3.list_buckets()["Buckets"]] == [bucket]
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    in_key = {"Bucket": bucket, "Key": "k"}
    for call, arguments in [
            (s3.put_object, {**in_key, "Body": b"y"}), (s3.delete_object, in_key), (s3.create_multipart_upload, in_key),
            (s3.copy_object, {**in_key, "Key": "copy", "CopySource": in_key}), (s3.put_object_tagging, {**in_key, "Tagging": {"TagSet": []}}),
            (s3.put_bucket_acl, {"Bucket": bucket, "ACL": "public-read"}), (s3.delete_bucket, {"Bucket": bucket}), (s3.list_objects, {"Bucket": other}),
            (s3.delete_objects, {"Bucket": bucket, "Delete": {"Objects": [{"Key": "k"}]}})]:
        assert code_of(call, **arguments) == "AccessDenied", call
    # What a copy reads has to be within the limits, too.
    writer = s3_of(store, keys.make("--bucket", other))
    assert code_of(writer.copy_object, Bucket=other, Key="stolen", CopySource=in_key) == "AccessDenied"
    writer.put_object(Bucket=other, Key="k", Body=b"")
    versions = s3_of(store, keys.make("--action", "s3:DeleteObject"))
    answer = versions.delete_objects(Bucket=other, Delete={"Objects": [{"Key": "k"}, {"Key": "k", "VersionId": "null"}]})
    assert [found["Key"] for found in answer["Deleted"]] == ["k"] and [found["Code"] for found in answer["Errors"]] == ["AccessDenied"]
    owner.delete_bucket(Bucket=other)
    # For S3 and nothing else: a key opens no door of Swift's, nor that of the keys.
    for path in ("/auth/v1.0", "/access-keys/AUTH_test", "/v1/AUTH_test"):
        asked = urllib.request.Request(store.auth_url.replace("/auth/v1.0", path), headers={
            "X-Auth-User": key["access_key_id"], "X-Auth-Key": key["secret_access_key"], "X-Auth-Token": key["secret_access_key"]})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked)
        assert refused.value.code == 401


def test_changes_take_effect(store, keys, bucket):  # noqa: F811
    client_of(store).put_object(Bucket=bucket, Key="k", Body=b"x")
    made = {name: keys.make() for name in ("deleted", "disabled", "limited", "rotated", "graced", "ended")}
    clients = {name: s3_of(store, key) for name, key in made.items()}
    for s3 in clients.values():
        s3.head_object(Bucket=bucket, Key="k")
    ids = {name: key["access_key_id"] for name, key in made.items()}
    keys.run("delete", ids["deleted"])
    keys.run("disable", ids["disabled"])
    keys.run("limit", ids["limited"], "--action", "write")
    keys.run("limit", ids["ended"], "--expires-in", "1")
    rotated = {name: keys.json("rotate", ids[name], *words) for name, words in [("rotated", []), ("graced", ["--grace", "3600"])]}
    for key in rotated.values():
        s3_of(store, key).head_object(Bucket=bucket, Key="k")  # at once
    expected = {"deleted": "SignatureDoesNotMatch", "disabled": "InvalidAccessKeyId", "limited": "AccessDenied", "rotated": "SignatureDoesNotMatch",
                "ended": "InvalidAccessKeyId"}
    for name, code in expected.items():
        until(lambda name=name: is_refused(clients[name], bucket), within=KNOWN, what=f"the end of {name}")
        assert code_of(clients[name].get_object, Bucket=bucket, Key="k") == code, name
    clients["graced"].head_object(Bucket=bucket, Key="k")
    keys.run("enable", ids["disabled"])
    clients["disabled"].head_object(Bucket=bucket, Key="k")


def is_refused(s3, bucket):  # noqa: F811
    try:
        s3.get_object(Bucket=bucket, Key="k")
    except ClientError:
        return True
    return False


def test_temporary_keys(store, keys, bucket):  # noqa: F811
    key = keys.make("--action", "read,list,write")
    session = sts_of(store, key).get_session_token(DurationSeconds=900)["Credentials"]
    for version in ("s3v4", "s3"):
        s3 = s3_of(store, session, version)
        s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 70_000)
        assert urllib.request.urlopen(s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"})).read() == b"x" * 70_000
        assert code_of(s3.delete_object, Bucket=bucket, Key="k") == "AccessDenied"
        assert code_of(s3_of(store, session, version, token="x.y").get_object, Bucket=bucket, Key="k") == "InvalidToken"
        assert code_of(s3_of(store, {**session, "SessionToken": None}, version).get_object, Bucket=bucket, Key="k") == "InvalidToken"
    other = sts_of(store, key).get_session_token()["Credentials"]
    assert code_of(s3_of(store, session, token=other["SessionToken"]).get_object, Bucket=bucket, Key="k") == "InvalidToken"
    # Temporary keys make none, and users of TempAuth have no stored key.
    named = {"access_key_id": session["AccessKeyId"], "secret_access_key": session["SecretAccessKey"]}
    assert code_of(sts_of(store, named, session["SessionToken"]).get_session_token) == "AccessDenied"
    assert code_of(sts_of(store, {"access_key_id": "test:tester", "secret_access_key": "testing"}).get_session_token) == "AccessDenied"
    assert code_of(sts_of(store, {**key, "secret_access_key": "x"}).get_session_token) == "SignatureDoesNotMatch"
    assert code_of(sts_of(store, key).get_session_token, DurationSeconds=900_000) == "ValidationError"
    assert code_of(sts_of(store, key).get_caller_identity) == "InvalidAction"
    keys.run("delete", key["access_key_id"])
    until(lambda: is_refused(s3_of(store, session), bucket), within=KNOWN, what="the end of the temporary keys")


def test_owners_look_after_keys(store, keys):  # noqa: F811
    key = keys.make("--for", "test:tester3", "--bucket", "a*,b", "--expires-in", "3600", "--description", "of tester3")
    shown = keys.run("show", key["access_key_id"]).stdout
    assert re.search(r"^user +test:tester3$", shown, re.M) and key["secret_access_key"] not in shown
    listed = keys.run("list").stdout
    row = next(line for line in listed.splitlines() if line.startswith(key["access_key_id"]))
    assert "a*,b" in row and row.endswith("of tester3") and key["secret_access_key"] not in listed
    keys.run("limit", key["access_key_id"], "--all-buckets", "--no-end")
    assert (keys.json("show", key["access_key_id"])["buckets"], keys.json("show", key["access_key_id"])["expires"]) == ([], None)
    # Those who do not own the account see nothing, the cluster's administrator everything.
    for user, password in [("test:tester3", "testing3"), ("test2:tester2", "testing2")]:
        refused = Keys(store.auth_url, user, password).run("--account", "AUTH_test", "list", check=False)
        assert (refused.returncode, "403" in refused.stderr) == (1, True)
    administrator = Keys(store.auth_url, "admin:admin", "admin")
    assert key["access_key_id"] in administrator.run("--account", "AUTH_test", "list").stdout
    # A key is of its account's user: nobody becomes the administrator by it.
    for user in ("admin:admin", "test2:tester2", "test:none"):
        assert "400" in keys.run("make", "--for", user, check=False).stderr
    # The store is an account that no client reaches, the administrator included.
    for user in ("test:tester", "admin:admin"):
        client = Client(store.auth_url, user)
        asked = urllib.request.Request(store.auth_url.replace("/auth/v1.0", "/v1/.access_keys"), headers={"X-Auth-Token": client.token})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked)
        assert refused.value.code == 403
    assert key["secret_access_key"] not in store.log()
    keys.run("delete", key["access_key_id"])
    assert "404" in keys.run("show", key["access_key_id"], check=False).stderr
