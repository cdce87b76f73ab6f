"""Parts that are being sent or stored while their upload ends: the client is told, no part is left over, and none is changed that the object names.

Each object has one replica, on one of three servers, so that a test holds up the storing of a part and not what ends its upload.
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from swift.common.ring import Ring

from faults.test_conditions import client_of
from harness import filters
from harness.client import Client
from harness.gateways import Gateways
from harness.waiting import until
from harness.wire import begin_upload, read_reply

NODES, ENDS = 3, ("completed", "aborted")
NAMED = b"of the object"
LONG = {"conn_timeout": 100, "node_timeout": 100, "silence_timeout": 100}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    overrides = filters.overrides(filters.PIPELINE, s3api={"min_segment_size": "1"})
    # What is not on its own server is not looked for on one that is stopped. Nobody gives that up while a test does what is to come meanwhile.
    overrides["proxy"]["app:proxy-server"] = {"request_node_count": "1", **LONG}
    overrides["container"] = {"app:container-server": LONG}
    overrides["object"] = {"app:object-server": {**LONG, "container_update_timeout": 100}}
    cluster = Gateways(tmp_path_factory.mktemp("cluster"), 2, overrides, policies=("gold",), nodes=NODES, devices=NODES, replicas=1).start()
    yield cluster
    cluster.stop()


class Upload:
    """Of a bucket of its own. `late` goes through the first gateway, what ends the upload through the second."""

    def __init__(self, cluster, bucket):
        self.cluster, self.bucket, self.key = cluster, bucket, "k"
        self.late, self.other = (client_of(port, patience=100) for port in cluster.gateway_ports)
        self.other.create_bucket(Bucket=bucket)
        self.id = self.other.create_multipart_upload(Bucket=bucket, Key=self.key)["UploadId"]
        # One server has nothing of the upload but the parts that a test wants there.
        self.apart = next(iter({*range(NODES)} - {self.node(bucket, self.key), self.node(*self.marker)}))

    @property
    def which(self):
        return {"Bucket": self.bucket, "Key": self.key, "UploadId": self.id}

    @property
    def marker(self):
        return f"{self.bucket}+segments", f"{self.key}/{self.id}"

    def node(self, container, name):
        """The server that has this object."""
        _, (device,) = Ring(str(self.cluster.etc), ring_name="object").get_nodes("AUTH_test", container, name)
        return next(node for (role, node), port in self.cluster.layout.ports.items() if (role, port) == ("object", device["port"]))

    def numbers(self, is_apart):
        """Of parts that the server apart has, or has not."""
        container, name = self.marker
        return [number for number in range(1, 100) if (self.node(container, f"{name}/{number}") == self.apart) == is_apart]

    def put(self, number, body):
        return self.other.upload_part(**self.which, PartNumber=number, Body=body)["ETag"]

    def end(self, how, number):
        """Completes it with the part of this number, or aborts it."""
        if how == "aborted":
            return self.other.abort_multipart_upload(**self.which)
        return self.other.complete_multipart_upload(**self.which, MultipartUpload={"Parts": [{"PartNumber": number, "ETag": self.put(number, NAMED)}]})

    def begin_late(self, number, body):
        """Sends all of a part but its last byte; the connection."""
        url = urlsplit(self.late.generate_presigned_url("upload_part", Params={**self.which, "PartNumber": number}))
        return begin_upload(url.port, f"{url.path}?{url.query}", {"Host": url.netloc}, len(body), body[:-1])

    def is_begun(self):
        """Whether the server apart has a file open for what is being sent to it."""
        links = [link for pid in self.cluster.services["object", self.apart].members() for link in Path(f"/proc/{pid}/fd").iterdir()]
        return any(os.path.isfile(link) and os.readlink(link).startswith(str(self.cluster.srv)) for link in links)

    def looks(self):
        """How often a gateway has asked for the marker."""
        container, name = self.marker
        log = self.cluster.services["object", self.node(container, name)].text()
        return sum(f'"HEAD /' in line and f"/{container}/{name}\"" in line.replace("%2B", "+") for line in log.splitlines())

    def listings(self):
        """How often a gateway has listed the parts."""
        logs = [process.text() for (role, _), process in self.cluster.services.items() if role == "container"]
        return sum('"GET /' in line and f"/{self.marker[0]}" in line.replace("%2B", "+") for log in logs for line in log.splitlines())

    def left(self):
        """The numbers of parts in the bucket's container of parts, and whether a marker is there."""
        reply = Client(self.cluster.auth_url).do("GET", self.marker[0], query="?limit=10000", expect=(200, 204))
        return {name.removeprefix(self.marker[1]) for name in reply.body.decode().split()}

    def body(self):
        try:
            return self.other.get_object(Bucket=self.bucket, Key=self.key)["Body"].read()
        except ClientError as refused:
            return refused.response["Error"]["Code"]

    def has_ended(self, how, number):
        left, body = ({f"/{number}"}, NAMED) if how == "completed" else (set(), "NoSuchKey")
        assert (self.left(), self.body()) == (left, body)
        return True


@contextmanager
def stopped(upload):
    """The server apart does nothing meanwhile."""
    server = upload.cluster.services["object", upload.apart]
    server.signal(signal.SIGSTOP)
    try:
        yield lambda: server.signal(signal.SIGCONT)
    finally:
        server.signal(signal.SIGCONT)


def is_refused(reply):
    assert (reply.status, b"<Code>NoSuchUpload</Code>" in reply.body) == (404, True), reply


@pytest.mark.parametrize("size", [1000, 300_000], ids=["small", "streamed"])
@pytest.mark.parametrize("number", [7, 2], ids=["named", "other"])
@pytest.mark.parametrize("how", ENDS)
def test_a_part_that_is_sent_still_is_not_stored(cluster, how, number, size):
    upload = Upload(cluster, f"sent-{how}-{number}-{size}")
    late = upload.begin_late(number, b"x" * size)
    upload.end(how, 7)
    with late:
        late.sendall(b"x")
        is_refused(read_reply(late, "PUT"))
    assert upload.has_ended(how, 7)


@pytest.mark.parametrize("how", ENDS)
def test_a_part_that_is_stored_too_late_goes_again(cluster, how):
    upload = Upload(cluster, f"stored-{how}")
    (named, *_), (number, *_) = upload.numbers(False), upload.numbers(True)
    late, before = upload.begin_late(number, b"x" * 300_000), upload.looks()
    until(upload.is_begun, what="the begin of the part's file")
    with late, stopped(upload) as go_on:
        late.sendall(b"x")
        until(lambda: upload.looks() > before, what="the look at the marker")
        upload.end(how, named)
        go_on()
        is_refused(read_reply(late, "PUT"))
    until(lambda: upload.has_ended(how, named), what="no part but the object's")


@pytest.mark.parametrize("how", ENDS)
def test_a_copy_is_a_part_like_others(cluster, how):
    upload = Upload(cluster, f"copied-{how}")
    named, number, *_ = upload.numbers(False)
    source = next(name for name in map(str, range(1000)) if upload.node(upload.bucket, name) == upload.apart)
    upload.other.put_object(Bucket=upload.bucket, Key=source, Body=b"x" * 300_000)
    before = upload.looks()
    with ThreadPoolExecutor(1) as pool, stopped(upload) as go_on:
        copying = pool.submit(upload.late.upload_part_copy, **upload.which, PartNumber=number, CopySource=f"{upload.bucket}/{source}")
        until(lambda: upload.looks() > before, what="the look at the marker")
        upload.end(how, named)
        go_on()
        with pytest.raises(ClientError, match="NoSuchUpload"):
            copying.result()
    assert upload.has_ended(how, named)


def test_a_part_goes_that_comes_while_its_upload_is_completed(cluster):
    """The completion has listed the parts, and waits for one of those that it names."""
    upload = Upload(cluster, "meanwhile")
    (number, *_), (named, *_) = upload.numbers(False), upload.numbers(True)
    parts = {"Parts": [{"PartNumber": named, "ETag": upload.put(named, NAMED)}]}
    before = upload.listings()
    with ThreadPoolExecutor(1) as pool, stopped(upload) as go_on:
        completing = pool.submit(upload.late.complete_multipart_upload, **upload.which, MultipartUpload=parts)
        until(lambda: upload.listings() > before + 1, what="the list of parts")
        upload.put(number, b"x")
        go_on()
        completing.result()
    until(lambda: upload.has_ended("completed", named), what="no part but the object's")
