"""rclone's S3 side: a tree kept in step, one upload in parts of unknown size, server-side copies."""

import hashlib
import os
import shutil
from urllib.parse import urlsplit

import pytest

from clients.test_boto3 import store  # noqa: F401 (fixtures)
from harness.process import run


@pytest.fixture
def rclone(store, tmp_path):  # noqa: F811
    settings = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": f"http://{urlsplit(store.auth_url).netloc}", "ACCESS_KEY_ID": "test:tester",
                "SECRET_ACCESS_KEY": "testing", "REGION": "us-east-1"}
    env = {**os.environ, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in settings.items()}, "RCLONE_CONFIG": str(tmp_path / "rclone.conf")}
    env.pop("AWS_CA_BUNDLE", None)  # which this rclone cannot take
    (tmp_path / "rclone.conf").touch()

    def command(*arguments, **options):
        return run(["rclone", "--retries", "1", "--low-level-retries", "1", *arguments], env=env, **options)
    return command


def test_a_tree_is_kept_in_step(rclone, few, tmp_path):
    root, files = few
    work = tmp_path / "work"
    shutil.copytree(root, work)
    rclone("sync", work, "store:rclone-s3/a", "--transfers", "8")
    rclone("check", work, "store:rclone-s3/a", "--download")
    listed = {line.lstrip().split(" ", 1)[1]: int(line.split()[0]) for line in rclone("ls", "store:rclone-s3/a").stdout.splitlines()}
    assert listed == files
    names = sorted(files)
    for name in names[:15]:
        (work / name).unlink()
    for name in names[15:25]:
        (work / name).write_bytes(b"changed " + name.encode())
    rclone("sync", work, "store:rclone-s3/a", "--checksum")
    rclone("sync", "store:rclone-s3/a", "store:rclone-s3/b")  # copied by the server
    rclone("sync", "store:rclone-s3/b", tmp_path / "down")
    rclone("check", work, tmp_path / "down")
    rclone("purge", "store:rclone-s3")
    assert "rclone-s3" not in rclone("lsd", "store:").stdout


def test_parts_of_a_stream(rclone, tmp_path):
    run(["sh", "-c", "head -c 12000000 /dev/urandom > big"], cwd=tmp_path)
    rclone("mkdir", "store:rclone-s3-one")
    rclone("copyto", "--s3-upload-cutoff", "5Mi", "--s3-chunk-size", "5Mi", tmp_path / "big", "store:rclone-s3-one/dir/big")
    assert rclone("size", "--json", "store:rclone-s3-one").stdout.startswith('{"count":1,"bytes":12000000')
    sum_of_parts = hashlib.md5((tmp_path / "big").read_bytes()).hexdigest()  # rclone keeps it in the metadata
    assert rclone("md5sum", "store:rclone-s3-one/dir").stdout == f"{sum_of_parts}  big\n"
    rclone("moveto", "store:rclone-s3-one/dir/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "big").read_bytes()
    rclone("purge", "store:rclone-s3-one")
