"""The AWS SDKs for Rust and for Go with their default settings: `make s3-sdks`, for they compile for minutes.

What each does, and asserts, is a program: `sdk-rust/src/main.rs`, a workspace of its own, and `sdk-go/main.go`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from clients.test_aws_command import environment_of
from clients.test_boto3 import store  # noqa: F401 (fixtures)
from harness.places import REPOSITORY
from harness.process import run

HERE = Path(__file__).parent
BUILT = REPOSITORY / "target/s3-sdks"
COMMANDS = {
    "rust": (["cargo", "build", "--locked", "--target-dir", BUILT / "rust"], BUILT / "rust/debug/sdk-rust"),
    "go": (["go", "build", "-mod=readonly", "-o", BUILT / "go/sdk-go", "."], BUILT / "go/sdk-go"),
}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", sorted(COMMANDS))
def test_an_sdk(language, store, tmp_path):  # noqa: F811
    command, program = COMMANDS[language]
    subprocess.run(list(map(str, command)), cwd=HERE / f"sdk-{language}", check=True)
    env = environment_of(store, tmp_path)
    told = run([program, env["AWS_ENDPOINT_URL"], f"sdk-{language}"], env={**os.environ, **env})
    print(told.stdout)
