"""`martlet up` keeps its word: what it prints, makes, serves and keeps, and how it starts and stops."""

import http.client
import json
import re
import signal
import socket
import time

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import disk
from harness.client import KEYS, Client
from harness.martlet_up import MartletUp
from harness.places import openstack_command
from harness.process import run
from harness.waiting import free_port, until
from harness.wire import begin_upload, exchange, finish_upload, message


@pytest.fixture
def up(tmp_path):
    """A `martlet up` on a directory that is not there yet."""
    system = MartletUp(tmp_path / "data")
    yield system
    system.stop()


def test_a_first_start_makes_a_cluster_an_operator_recognises(up):
    up.start()
    assert up.root.stat().st_mode & 0o777 == 0o700
    assert len(up.devices) == 4
    names = {path.name for path in up.etc.iterdir()}
    assert {"swift.conf", "proxy-server.conf", "account-server.conf", "container-server.conf", "object-server.conf"} <= names
    for ring in ("account", "container", "object"):
        assert {f"{ring}.ring.gz", f"{ring}.builder"} <= names
        output = run(openstack_command(up.etc, "swift-ring-builder", up.etc / f"{ring}.builder"), check=False)
        assert "1024 partitions, 3.000000 replicas" in output.stdout and "4 devices" in output.stdout, output.stdout + output.stderr
    until(lambda: "testing" in up.log(), what="the accounts it made")


def test_data_without_their_configuration_are_left_alone(up):
    """New path secrets would find nothing of it, and upkeep would rearrange it all."""
    up.start()
    client = Client(up.auth_url)
    client.put("c")
    client.put("c", "o", body=b"kept")
    assert up.stop() == 0
    before = dict(disk.contents(up.srv))
    up.etc.rename(up.root / "aside")
    up.launch()
    until(lambda: not up.alive(), what="the refusal")
    assert "put" in up.log() and "nothing was changed" in up.log() and not up.etc.exists()
    assert dict(disk.contents(up.srv)) == before
    (up.root / "aside").rename(up.etc)
    up.start()
    assert Client(up.auth_url).get("c", "o") == b"kept"


def test_what_a_first_start_finds_does_not_stop_it(up):
    """A file system made for the devices, what a start left that was killed, and what an operator keeps there."""
    unreadable = up.srv / "lost+found"
    unreadable.mkdir(parents=True, mode=0)
    draft, kept = up.etc.with_name("etc.0123456789abcdef.new"), up.etc.with_name("etc.new")
    for directory in (draft, kept):
        (directory / "part").mkdir(parents=True)
    up.start()
    assert Client(up.auth_url).token and not draft.exists() and kept.exists() and unreadable.exists()


def test_an_empty_configuration_is_named(up):
    (up.etc / "lost+found").mkdir(parents=True)
    up.launch()
    until(lambda: not up.alive(), what="the refusal")
    assert "is empty" in up.log() and len(list(up.etc.iterdir())) == 1


def test_every_user_logs_in(up):
    up.start()
    for user in KEYS:
        assert Client(up.auth_url, user).token
    assert Client(up.auth_url, "test:tester3").do("GET").status == 403
    assert Client(up.auth_url).do("GET").status in (200, 204)


def test_an_upload_of_s3_has_ten_thousand_parts(up):
    up.start()
    s3 = boto3.client("s3", endpoint_url=up.auth_url.removesuffix("/auth/v1.0"), aws_access_key_id="test:tester", aws_secret_access_key="testing",
                      region_name="us-east-1", config=Config(retries={"max_attempts": 0}))
    s3.create_bucket(Bucket="big")
    which = {"Bucket": "big", "Key": "k", "UploadId": s3.create_multipart_upload(Bucket="big", Key="k")["UploadId"]}
    bodies = {9_999: b"x" * (5 << 20), 10_000: b"end"}
    tags = {number: s3.upload_part(**which, PartNumber=number, Body=body)["ETag"] for number, body in bodies.items()}
    with pytest.raises(ClientError, match="InvalidArgument"):
        s3.upload_part(**which, PartNumber=10_001, Body=b"x")
    s3.complete_multipart_upload(**which, MultipartUpload={"Parts": [{"PartNumber": number, "ETag": tag} for number, tag in tags.items()]})
    assert s3.get_object(Bucket="big", Key="k")["Body"].read() == b"".join(bodies.values())
    # The object that they become may have as many segments.
    info = json.loads(exchange(up.port, message("GET", "/info")).body)
    assert info["slo"]["max_manifest_segments"] == info["s3api"]["max_upload_part_num"] == 10_000


def test_the_shape_can_be_chosen_once(up):
    up.arguments = ["--devices", "3", "--replicas", "2", "--part-power", "6"]
    up.start()
    assert len(up.devices) == 3
    Client(up.auth_url).put("c")
    # The second one may be made behind the answer.
    until(lambda: len(list(up.srv.glob("*/containers/**/*.db"))) == 2, what="two databases of the container")
    assert up.stop() == 0
    up.arguments = ["--devices", "9", "--replicas", "2", "--tls-cert", "late.pem"]
    up.start()
    assert len(up.devices) == 3
    up.process.await_text("--tls-cert late.pem counts")
    output = [line for line in up.log().splitlines() if "first start only" in line]
    assert len(output) == 2 and "--devices 9 counts" in output[0] and "3 devices, 2 replicas and 2^6 partitions" in output[0], up.log()
    assert "--tls-cert late.pem counts" in output[1] and "proxy-server.conf has no cert_file" in output[1], up.log()
    Client(up.auth_url).do("HEAD", "c", expect=204)


def test_a_later_start_serves_within_two_seconds(up):
    up.start()
    client = Client(up.auth_url)
    for number in range(50):
        client.put(f"c{number % 5}")
        client.put(f"c{number % 5}", f"o{number}", body=b"x")
    took = []
    while not took or min(took) >= 2 and len(took) < 8:  # the machine may be busy with something else now and then
        assert up.stop() == 0
        started = time.monotonic()
        up.start()
        assert Client(up.auth_url).get("c0", "o0") == b"x"
        took.append(time.monotonic() - started)
    assert min(took) < 2, took


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_finishes_what_is_running(up, number):
    up.start()
    client = Client(up.auth_url)
    client.put("c")
    upload = begin_upload(up.port, client.path("c", "o"), {"X-Auth-Token": client.token}, 200_000, b"z" * 10_000)
    up.process.child.send_signal(number)
    for _ in range(10):  # while it ends
        time.sleep(0.05)
        upload.sendall(b"z" * 10_000)
    assert up.alive()
    assert finish_upload(upload, b"z" * 90_000) == 201
    until(lambda: not up.alive(), what="exit")
    assert up.process.child.returncode == 0
    up.start()
    assert Client(up.auth_url).get("c", "o") == b"z" * 200_000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_right_after_the_ready_line_is_not_lost(up, number):
    """The line may be read before upkeep has begun; a signal then ends the start, too."""
    for _ in range(3):
        up.start()
        up.process.signal(number)
        assert up.process.child.wait(60) == 0
        up.stop()


def test_open_to_the_world_it_makes_keys_of_its_own(tmp_path):
    port = free_port()
    up = MartletUp(tmp_path / "data", port=port, host="0.0.0.0")
    try:
        up.launch()
        until(up.ready_line, what="ready")
        reply = exchange(port, message("GET", "/auth/v1.0", {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"}))
        assert reply.status == 401
        key = until(lambda: re.search(r"test:tester (\S+)\s", up.log()), what="the key").group(1)
        assert len(key) >= 16
        assert exchange(port, message("GET", "/auth/v1.0", {"X-Auth-User": "test:tester", "X-Auth-Key": key})).status == 200
    finally:
        up.stop()


def test_a_port_that_is_taken_is_named(up):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", up.port))
        taken.listen()
        up.launch()
        until(lambda: not up.alive(), what="giving up")
        assert up.process.child.returncode not in (0, 101)
        assert str(up.port) in up.log() and "panicked" not in up.log()


def test_an_address_of_another_machine_is_not_a_port_that_is_taken(tmp_path):
    up = MartletUp(tmp_path / "data", host="192.0.2.1").launch()
    until(lambda: not up.alive(), what="giving up")
    assert up.process.child.returncode not in (0, 101)
    assert "192.0.2.1" in up.log() and "address of this machine" in up.log() and "another server" not in up.log(), up.log()


def test_two_on_one_directory_is_refused_or_harmless(up, tmp_path):
    """A second start on a directory in use must not spoil it."""
    up.start()
    client = Client(up.auth_url)
    client.put("c")
    client.put("c", "o", body=b"x")
    second = MartletUp(up.root)
    second.launch()
    until(lambda: not second.alive() or second.ready_line(), what="the second starting or refusing")
    second.stop()
    assert client.get("c", "o") == b"x"
    client.put("c", "p", body=b"y")


def test_the_access_log_line_is_swifts(up):
    up.start()
    client = Client(up.auth_url)
    client.put("c")
    line = until(lambda: re.search(r"\S+ \S+ \d\d/\w{3}/\d{4}/\d\d/\d\d/\d\d PUT /v1/AUTH_test/c HTTP/1.0 201 .*\n", up.log()), what="the line").group(0).strip()
    fields = line.split(" ")
    assert len(fields) >= 19, line
    assert re.search(r"tx[0-9a-f]{21}-[0-9a-f]{10}", line)


def test_keep_alive_survives_an_early_refusal(up):
    """A refused upload leaves the connection usable, or says that it does not."""
    up.start()
    client = Client(up.auth_url)
    connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60)
    for _ in range(5):
        connection.request("PUT", client.path("missing", "o"), body=b"x" * 1000, headers={"X-Auth-Token": client.token})
        response = connection.getresponse()
        assert response.status == 404
        response.read()
    connection.close()
