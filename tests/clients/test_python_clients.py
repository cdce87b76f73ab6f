"""Python's clients of S3 that need an environment of their own: minio's; s3fs, pyarrow and polars with tables in Parquet.

What each does, and asserts, is a program in `programs/`.
"""

from pathlib import Path
from urllib.parse import urlsplit

from clients.test_aws_command import environment_of
from clients.test_boto3 import store  # noqa: F401 (fixtures)
from harness import environment
from harness.process import run

PROGRAMS = Path(__file__).with_name("programs")


def test_minio_s_client(request, store, tmp_path):  # noqa: F811
    make = "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"
    run([environment.clients() / "python", PROGRAMS / "minio_client.py", urlsplit(store.auth_url).netloc, "minio-s-client", make],
        env=environment_of(store, tmp_path))


def test_tables_in_parquet(store, tmp_path):  # noqa: F811
    env = environment_of(store, tmp_path)
    run([environment.clients() / "python", PROGRAMS / "parquet.py", env["AWS_ENDPOINT_URL"], "tables"], env=env)
