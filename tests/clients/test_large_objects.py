"""Real clients upload in segments, by prefix and by manifest, and get back what they sent."""

import os

import pytest

from harness.places import openstack
from harness.process import run

PIPELINE = ("catch_errors gatekeeper healthcheck proxy-logging cache listing_formats tempauth slo dlo proxy-logging proxy-server")
OVERRIDES = {"proxy": {"pipeline:main": {"pipeline": PIPELINE}, "filter:slo": {"use": "egg:swift#slo"},
                       "filter:dlo": {"use": "egg:swift#dlo"}}}
SIZE, SEGMENT = 3 * 2**20 + 17, 2**20


@pytest.fixture(scope="module")
def system(request, tmp_path_factory):
    from harness.systems import running
    yield from running(request.param, tmp_path_factory.mktemp(request.param), overrides=OVERRIDES)


@pytest.fixture
def big(tmp_path):
    path = tmp_path / "big file ü"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def swift(system):
    def command(*arguments, **options):
        return run([openstack("swift"), "-A", system.auth_url, "-U", "test:tester", "-K", "testing", *arguments], **options)
    return command


@pytest.mark.parametrize("how", ["--use-dlo", "--use-slo"])
def test_swift_uploads_in_segments(swift, big, tmp_path, how):
    container = f"segmented{how}"
    swift("upload", how, "--segment-size", str(SEGMENT), container, big.name, cwd=big.parent)
    assert swift("list", container).stdout.splitlines() == [big.name]
    assert len(swift("list", container + "_segments").stdout.splitlines()) == 4
    stat = swift("stat", container, big.name).stdout
    assert f"Content Length: {SIZE}" in stat
    swift("download", container, big.name, "-o", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == big.read_bytes()

    swift("upload", how, "--skip-identical", "--segment-size", str(SEGMENT), container, big.name, cwd=big.parent)
    big.write_bytes(os.urandom(SIZE - SEGMENT))
    swift("upload", how, "--segment-size", str(SEGMENT), container, big.name, cwd=big.parent)
    assert len(swift("list", container + "_segments").stdout.splitlines()) == 3, "those of the file before are gone"
    swift("download", container, big.name, "-o", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == big.read_bytes()

    swift("delete", container, big.name)
    assert swift("list", container + "_segments").stdout == ""
    swift("delete", container + "_segments")
    swift("delete", container)


def test_rclone_uploads_in_segments(system, big, tmp_path):
    settings = {"TYPE": "swift", "AUTH": system.auth_url, "USER": "test:tester", "KEY": "testing", "AUTH_VERSION": "1"}
    env = {**os.environ, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in settings.items()},
           "RCLONE_CONFIG": str(tmp_path / "rclone.conf")}
    (tmp_path / "rclone.conf").touch()

    def rclone(*arguments):
        return run(["rclone", "--retries", "1", "--low-level-retries", "1", "--swift-chunk-size", "1Mi", *arguments], env=env)
    rclone("copy", big, "store:rclone-large")
    rclone("check", big.parent, "store:rclone-large", "--include", big.name, "--download")
    assert rclone("lsf", "--format", "s", "store:rclone-large").stdout.strip() == str(SIZE)
    rclone("copyto", f"store:rclone-large/{big.name}", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == big.read_bytes()
    listed = rclone("lsf", "-R", "--files-only", "store:rclone-large_segments").stdout.splitlines()
    assert len(listed) == 4
