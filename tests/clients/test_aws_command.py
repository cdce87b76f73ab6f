"""The `aws` command (version 1, from PyPI) with its defaults: a tree kept in step, one large object, presigned URLs, waiters, single operations."""

import json
import os
import urllib.request
from urllib.parse import urlsplit

import pytest

from clients.test_boto3 import MIB, names_in, store  # noqa: F401 (fixtures)
from harness import environment
from harness.process import run


def environment_of(store, folder):  # noqa: F811
    """What a user of AWS's tools exports, and nothing of the user who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1", "HOME": str(folder),
            "AWS_ENDPOINT_URL": f"http://{urlsplit(store.auth_url).netloc}", "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture
def aws(store, tmp_path):  # noqa: F811
    def command(*arguments, **options):
        return run([environment.clients() / "aws", *arguments], env=environment_of(store, tmp_path), **options)
    return command


def test_a_tree_is_kept_in_step(store, aws, few, same_tree, tmp_path):  # noqa: F811
    root, files = few
    aws("s3", "mb", "s3://aws-tree")
    aws("s3", "sync", root, "s3://aws-tree/a tree/", "--only-show-errors")
    assert {name.removeprefix("a tree/") for name in names_in(store, "aws-tree")} == set(files)
    assert aws("s3", "sync", root, "s3://aws-tree/a tree/").stdout == ""  # sizes and times are those that the command expects
    aws("s3", "sync", "s3://aws-tree/a tree/", tmp_path / "down", "--only-show-errors")
    same_tree(tmp_path / "down", few)
    summary = aws("s3", "ls", "--recursive", "--summarize", "s3://aws-tree").stdout.splitlines()[-2:]
    assert [int(line.split(":")[1]) for line in summary] == [len(files), sum(files.values())]
    aws("s3", "rb", "--force", "s3://aws-tree")


def test_one_large_object(aws, tmp_path):
    body = os.urandom(MIB) * 20  # above the command's threshold of 8 MiB: an upload of three parts
    (tmp_path / "large").write_bytes(body)
    aws("s3", "mb", "s3://aws-large")
    aws("s3", "cp", tmp_path / "large", "s3://aws-large/a", "--metadata", "side=aws", "--content-type", "text/x", "--only-show-errors")
    head = json.loads(aws("s3api", "head-object", "--bucket", "aws-large", "--key", "a").stdout)
    assert (head["ContentLength"], head["ContentType"], head["Metadata"], head["ETag"][-3:]) == (len(body), "text/x", {"side": "aws"}, '-3"')
    aws("s3", "cp", "s3://aws-large/a", "s3://aws-large/b", "--only-show-errors")
    aws("s3", "mv", "s3://aws-large/b", "s3://aws-large/c", "--only-show-errors")
    aws("s3", "cp", "s3://aws-large/c", tmp_path / "back", "--only-show-errors")
    assert (tmp_path / "back").read_bytes() == body
    aws("s3", "cp", "s3://aws-large/c", "s3://aws-large/d", "--metadata-directive", "REPLACE", "--content-type", "text/y", "--only-show-errors")
    assert json.loads(aws("s3api", "head-object", "--bucket", "aws-large", "--key", "d").stdout)["ContentType"] == "text/y"
    url = aws("s3", "presign", "s3://aws-large/c", "--expires-in", "60").stdout.strip()
    with urllib.request.urlopen(url) as reply:
        assert reply.read() == body
    aws("s3", "rb", "--force", "s3://aws-large")


def test_single_operations_and_waiters(aws, tmp_path):
    place = ("--bucket", "aws-single")
    aws("s3api", "create-bucket", *place)
    aws("s3api", "wait", "bucket-exists", *place)
    (tmp_path / "one").write_bytes(b"0123456789")
    aws("s3api", "put-object", *place, "--key", "one", "--body", tmp_path / "one", "--cache-control", "no-cache")
    aws("s3api", "wait", "object-exists", *place, "--key", "one")
    got = json.loads(aws("s3api", "get-object", *place, "--key", "one", "--range", "bytes=2-4", tmp_path / "part").stdout)
    assert (tmp_path / "part").read_bytes() == b"234" and got["ContentRange"] == "bytes 2-4/10"
    page = json.loads(aws("s3api", "list-objects-v2", *place, "--max-items", "1").stdout)
    assert [found["Key"] for found in page["Contents"]] == ["one"]
    aws("s3api", "put-bucket-versioning", *place, "--versioning-configuration", "Status=Enabled")
    aws("s3api", "delete-object", *place, "--key", "one")
    aws("s3api", "wait", "object-not-exists", *place, "--key", "one")
    versions = json.loads(aws("s3api", "list-object-versions", *place).stdout)
    old = [{name: found[name] for name in ("Key", "VersionId")} for found in versions["Versions"] + versions["DeleteMarkers"]]
    assert len(old) == 2
    aws("s3api", "delete-objects", *place, "--delete", json.dumps({"Objects": old}))
    aws("s3api", "delete-bucket", *place)
    aws("s3api", "wait", "bucket-not-exists", *place)
    refused = aws("s3api", "head-bucket", *place, check=False)
    assert refused.returncode and "404" in refused.stderr
