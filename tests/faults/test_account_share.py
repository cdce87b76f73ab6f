"""`max_requests_per_account`: an account's requests count once it is known that they may be made, by both APIs."""

import contextlib
import socket

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from harness.client import Client
from harness.flood import message
from harness.waiting import until

MOST = 2
STRANGERS = 8


def begun(port, head, body):
    """A connection on which a request has been begun."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(head + body)
    return connection


def taken_upload(client, port, name, length):
    """An upload of which the servers want the body: it counts."""
    head = message("PUT", client.path("share", name), client.token, length=length)
    connection = begun(port, head.removesuffix(b"\r\n") + b"Expect: 100-continue\r\n\r\n", b"")
    assert answer(connection) == b"100"
    return connection


def answer(connection):
    return connection.recv(65536).split()[1]


def test_an_account_has_its_share_whatever_strangers_do(make_system):
    options = {"app:proxy-server": {"max_requests_per_account": MOST}}
    system = make_system("up", overrides={"proxy": options}).start()
    client = Client(system.auth_url)
    client.put("share")
    client.put("share", "object", body=b"body")
    s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{system.port}", aws_access_key_id="test:tester", aws_secret_access_key="testing",
                      region_name="us-east-1", config=Config(retries={"max_attempts": 0}))
    assert s3.get_object(Bucket="share", Key="object")["Body"].read() == b"body"
    body = b"x" * 200_000
    with contextlib.ExitStack() as stack:
        # Lists are read before it is known who sends them.
        account = client.path("share").rpartition("/")[0]
        for _ in range(STRANGERS):
            stack.enter_context(begun(system.port, message("POST", f"{account}?bulk-delete", "none", length=1000), b"share/object\n"))
        uploads = [stack.enter_context(taken_upload(client, system.port, f"slow{number}", len(body))) for number in range(MOST)]
        assert client.do("GET", "share", "object").status == 503
        with pytest.raises(ClientError) as refused:
            s3.get_object(Bucket="share", Key="object")
        assert refused.value.response["Error"]["Code"] == "ServiceUnavailable"
        for upload in uploads:
            upload.sendall(body)
        assert [answer(upload) for upload in uploads] == [b"201"] * MOST
    until(lambda: client.do("GET", "share", "object").status == 200, what="the share is free again")
    assert client.get("share", "slow0") == body
    until(lambda: "requests refused (max_requests_per_account)" in system.log(), what="a line of the log counts them")
