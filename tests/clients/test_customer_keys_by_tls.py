"""rclone, `aws` and minio's client with keys of clients (SSE-C), which some of them send by TLS only."""

import os
import textwrap

import pytest

from clients.test_boto3_encryption import ROOT
from commands.test_tls import SecureUp
from harness import environment
from harness.process import run

KEY = "k" * 32
BIG = 12_000_000


@pytest.fixture(scope="module")
def up(request, tmp_path_factory):
    """`martlet up` with TLS and encryption."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api takes no keys of clients")
    folder = tmp_path_factory.mktemp("tls")
    up = SecureUp(folder / "up", folder / "tls")
    up.start()
    up.stop()
    conf = up.etc / "proxy-server.conf"
    text = conf.read_text()
    assert text.count("proxy-logging proxy-server") == 1
    text = text.replace("proxy-logging proxy-server", "keymaster encryption proxy-logging proxy-server")
    [secret] = ROOT.values()
    conf.write_text(f"{text}\n[filter:keymaster]\nuse = egg:swift#keymaster\nencryption_root_secret = {secret}\n"
                    "[filter:encryption]\nuse = egg:swift#encryption\n")
    up.start()
    yield up
    up.stop()


@pytest.fixture
def big(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(os.urandom(1_000_000) * (BIG // 1_000_000))
    return path


def test_rclone(up, tmp_path, big):
    settings = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": f"https://127.0.0.1:{up.port}", "ACCESS_KEY_ID": "test:tester",
                "SECRET_ACCESS_KEY": "testing", "REGION": "us-east-1"}
    (tmp_path / "rclone.conf").touch()
    kept = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    env = {**kept, "RCLONE_CONFIG": str(tmp_path / "rclone.conf"), **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in settings.items()}}

    def rclone(*arguments, key=KEY, **options):
        keyed = ["--s3-sse-customer-algorithm", "AES256", "--s3-sse-customer-key", key] if key else []
        return run(["rclone", "--retries", "1", "--low-level-retries", "1", "--ca-cert", up.certificate, *keyed, *arguments], env=env, **options)

    rclone("mkdir", "store:rclone-keys")
    rclone("copyto", "--s3-upload-cutoff", "5Mi", "--s3-chunk-size", "5Mi", big, "store:rclone-keys/big")
    rclone("copyto", up.certificate, "store:rclone-keys/small")
    for name, path in (("big", big), ("small", up.certificate)):
        rclone("copyto", f"store:rclone-keys/{name}", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == path.read_bytes()
        for key in (None, "other" * 6 + "ab"):
            # A HEAD that is refused is for rclone an object that is not there, and no failure.
            rclone("copyto", f"store:rclone-keys/{name}", tmp_path / "none", key=key, check=False)
            assert not (tmp_path / "none").exists()
    rclone("purge", "store:rclone-keys")


def test_aws(up, tmp_path, big):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env = {**kept, "AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1", "HOME": str(tmp_path),
           "AWS_ENDPOINT_URL": f"https://127.0.0.1:{up.port}", "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",
           "AWS_CA_BUNDLE": str(up.certificate)}
    (tmp_path / "key").write_text(KEY)
    key = ("--sse-c", "AES256", "--sse-c-key", f"fileb://{tmp_path / 'key'}")
    source = ("--sse-c-copy-source", "AES256", "--sse-c-copy-source-key", f"fileb://{tmp_path / 'key'}")

    def aws(*arguments, **options):
        return run([environment.clients() / "aws", *arguments], env=env, **options)

    aws("s3", "mb", "s3://aws-keys")
    aws("s3", "cp", big, "s3://aws-keys/big", *key)
    aws("s3", "cp", "s3://aws-keys/big", tmp_path / "back", *key)
    assert (tmp_path / "back").read_bytes() == big.read_bytes()
    assert aws("s3", "cp", "s3://aws-keys/big", tmp_path / "none", check=False).returncode
    aws("s3", "cp", "s3://aws-keys/big", "s3://aws-keys/open", *source)
    aws("s3", "cp", "s3://aws-keys/open", tmp_path / "open")
    assert (tmp_path / "open").read_bytes() == big.read_bytes()
    aws("s3", "rb", "--force", "s3://aws-keys")


def test_minio(up, tmp_path):
    program = f"""
        import io, minio, urllib3
        from minio.commonconfig import CopySource
        from minio.sse import SseCustomerKey
        client = minio.Minio(endpoint="127.0.0.1:{up.port}", access_key="test:tester", secret_key="testing", region="us-east-1",
                             http_client=urllib3.PoolManager(ca_certs="{up.certificate}"))
        key, other = SseCustomerKey({KEY.encode()!r}), SseCustomerKey(b"o" * 32)
        client.make_bucket(bucket_name="minio-keys")
        body = bytes(range(256)) * 48 * 1024
        client.put_object(bucket_name="minio-keys", object_name="big", data=io.BytesIO(body), length=-1, part_size=5 << 20, sse=key)
        assert client.get_object(bucket_name="minio-keys", object_name="big", ssec=key).read() == body
        client.copy_object(bucket_name="minio-keys", object_name="copy", sse=other,
                           source=CopySource(bucket_name="minio-keys", object_name="big", ssec=key))
        assert client.get_object(bucket_name="minio-keys", object_name="copy", ssec=other).read() == body
        for wrong in (None, key):
            try:
                client.get_object(bucket_name="minio-keys", object_name="copy", ssec=wrong)
            except minio.error.S3Error as error:
                print(error.code)
    """
    done = run([environment.clients() / "python", "-c", textwrap.dedent(program)])
    assert done.stdout.split() == ["InvalidRequest", "AccessDenied"]
