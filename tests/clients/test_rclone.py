"""rclone keeps a tree in step: sync, check, ls, sync after changes, purge."""

import os
import shutil

import pytest

from harness.process import run


@pytest.fixture
def rclone(system, tmp_path):
    settings = {"TYPE": "swift", "AUTH": system.auth_url, "USER": "test:tester", "KEY": "testing", "AUTH_VERSION": "1"}
    env = {**os.environ, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in settings.items()},
           "RCLONE_CONFIG": str(tmp_path / "rclone.conf")}
    (tmp_path / "rclone.conf").touch()

    def command(*arguments, **options):
        return run(["rclone", "--retries", "1", "--low-level-retries", "1", *arguments], env=env, **options)
    return command


def test_a_tree_is_kept_in_step(rclone, tree, tmp_path):
    root, files = tree
    work = tmp_path / "work"
    shutil.copytree(root, work)
    rclone("sync", work, "store:rclone tree", "--transfers", "8")
    rclone("check", work, "store:rclone tree")
    rclone("check", work, "store:rclone tree", "--download")
    listed = {line.lstrip().split(" ", 1)[1]: int(line.split()[0]) for line in rclone("ls", "store:rclone tree").stdout.splitlines()}
    assert listed == files

    names = sorted(files)
    for name in names[:50]:
        (work / name).unlink()
    for name in names[50:80]:
        (work / name).write_bytes(b"changed " + name.encode())
    rclone("sync", work, "store:rclone tree")
    rclone("check", work, "store:rclone tree")

    rclone("sync", "store:rclone tree", tmp_path / "down")
    rclone("check", work, tmp_path / "down")
    assert "rclone tree" in rclone("lsd", "store:").stdout
    assert rclone("cat", f"store:rclone tree/{names[60]}").stdout == "changed " + names[60]
    rclone("purge", "store:rclone tree")
    assert "rclone tree" not in rclone("lsd", "store:").stdout


def test_copying_one_file_of_unknown_size(rclone, tmp_path):
    run(["sh", "-c", "head -c 3000000 /dev/zero > big"], cwd=tmp_path)
    rclone("mkdir", "store:rclone-one")
    rclone("copyto", tmp_path / "big", "store:rclone-one/dir/big")
    assert rclone("size", "--json", "store:rclone-one").stdout.startswith('{"count":1,"bytes":3000000')
    rclone("moveto", "store:rclone-one/dir/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "big").read_bytes()
    rclone("purge", "store:rclone-one")
