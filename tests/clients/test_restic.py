"""restic of Debian keeps its repository in a bucket: two snapshots, their check with all data, a restoration, and what forgetting leaves."""

import json
import os
import shutil
from urllib.parse import urlsplit

from clients.test_boto3 import client_of, store  # noqa: F401 (fixtures)
from harness.process import run


def test_backup_check_restore_prune(store, few, same_tree, tmp_path):  # noqa: F811
    root, _ = few
    env = {**os.environ, "AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1",
           "RESTIC_PASSWORD": "sesame", "RESTIC_REPOSITORY": f"s3:http://{urlsplit(store.auth_url).netloc}/restic/of/a/tree",
           "RESTIC_CACHE_DIR": str(tmp_path / "cache")}

    def restic(*arguments, **options):
        return run(["restic", *arguments], env=env, **options)

    restic("init")
    work = tmp_path / "work"
    shutil.copytree(root, work)
    restic("backup", "--tag", "first", ".", cwd=work)
    shutil.rmtree(work / "plain-1")
    (work / "new").write_bytes(os.urandom(3_000_000))
    restic("backup", "--tag", "second", ".", cwd=work)
    snapshots = json.loads(restic("snapshots", "--json").stdout)
    assert [found["tags"] for found in snapshots] == [["first"], ["second"]]
    assert "no errors were found" in restic("check", "--read-data").stdout
    restic("restore", snapshots[0]["id"], "--target", tmp_path / "restored", "--no-cache")
    same_tree(tmp_path / "restored", few)
    restic("forget", "--prune", snapshots[0]["id"])
    assert "no errors were found" in restic("check", "--read-data").stdout
    assert "locks" in run(["restic", "list", "locks"], env=env, check=False).stderr or restic("list", "locks", "--no-lock").stdout == ""
    s3 = client_of(store)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket="restic"):
        s3.delete_objects(Bucket="restic", Delete={"Objects": [{"Key": found["Key"]} for found in page["Contents"]]})
    s3.delete_bucket(Bucket="restic")
