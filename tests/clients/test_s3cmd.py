"""s3cmd of Debian: sync forth and back, an upload in parts, ACLs, signed URLs, and what it leaves behind."""

import os
import urllib.request
from urllib.parse import urlsplit

import pytest

from clients.test_boto3 import MIB, names_in, store  # noqa: F401 (fixtures)
from harness.client import Client
from harness.process import run

CONFIGURATION = """[default]
access_key = test:tester
secret_key = testing
host_base = {host}
host_bucket = {host}
use_https = False
bucket_location = us-east-1
max_retries = 1
"""


@pytest.fixture
def s3cmd(store, tmp_path):  # noqa: F811
    configuration = tmp_path / "s3cfg"
    configuration.write_text(CONFIGURATION.format(host=urlsplit(store.auth_url).netloc))

    def command(*arguments, **options):
        return run(["s3cmd", "--config", configuration, "--no-progress", *arguments], env={**os.environ, "LC_ALL": "C.UTF-8"}, **options)
    return command


def test_a_tree_is_kept_in_step(store, s3cmd, few, same_tree, tmp_path):  # noqa: F811
    root, files = few
    s3cmd("mb", "s3://s3cmd-tree")
    s3cmd("sync", f"{root}/", "s3://s3cmd-tree/a/")
    assert {name.removeprefix("a/") for name in names_in(store, "s3cmd-tree")} == set(files)
    assert "upload:" not in s3cmd("sync", f"{root}/", "s3://s3cmd-tree/a/").stdout
    (tmp_path / "down").mkdir()
    s3cmd("sync", "s3://s3cmd-tree/a/", f"{tmp_path}/down/")
    same_tree(tmp_path / "down", few)
    assert int(s3cmd("du", "s3://s3cmd-tree").stdout.split()[0]) == sum(files.values())
    s3cmd("rb", "--recursive", "--force", "s3://s3cmd-tree")
    assert "s3cmd-tree" not in s3cmd("ls").stdout


def test_one_object(request, store, s3cmd, tmp_path):  # noqa: F811
    body = os.urandom(MIB) * 11
    (tmp_path / "large").write_bytes(body)
    s3cmd("mb", "s3://s3cmd-one")
    s3cmd("put", "--multipart-chunk-size-mb=5", "--add-header=x-amz-meta-side:s3cmd", "--mime-type=text/x", tmp_path / "large", "s3://s3cmd-one/a")
    told = s3cmd("info", "s3://s3cmd-one/a").stdout
    assert "x-amz-meta-side: s3cmd" in told and "MIME type: text/x" in told and f"File size: {len(body)}" in told
    s3cmd("cp", "s3://s3cmd-one/a", "s3://s3cmd-one/b")
    s3cmd("mv", "s3://s3cmd-one/b", "s3://s3cmd-one/c")
    s3cmd("modify", "--add-header=x-amz-meta-side:changed", "s3://s3cmd-one/c")
    s3cmd("get", "s3://s3cmd-one/c", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == body and "x-amz-meta-side: changed" in s3cmd("info", "s3://s3cmd-one/c").stdout
    with urllib.request.urlopen(s3cmd("signurl", "s3://s3cmd-one/c", "+60").stdout.strip()) as reply:
        assert reply.read() == body
    s3cmd("setacl", "--acl-public", "s3://s3cmd-one")
    reader = Client(store.auth_url)
    assert reader.do("HEAD", "s3cmd-one")["X-Container-Read"] == ".r:*,.rlistings"
    if request.config.getoption("--sut") != "openstack":  # whose GetBucketAcl shows nothing, so that s3cmd finds it private already
        assert "*anon*: READ" in s3cmd("info", "s3://s3cmd-one").stdout
        s3cmd("setacl", "--acl-private", "s3://s3cmd-one")
        assert reader.do("HEAD", "s3cmd-one")["X-Container-Read"] != ".r:*,.rlistings"
    listed = [line.split()[-1] for line in s3cmd("ls", "s3://s3cmd-one").stdout.splitlines()]
    assert listed == ["s3://s3cmd-one/a", "s3://s3cmd-one/c"]
    assert "s3://s3cmd-one/a" not in s3cmd("multipart", "s3://s3cmd-one").stdout
    s3cmd("rb", "--recursive", "--force", "s3://s3cmd-one")
