"""Writes of S3 on a condition, through three gateways over three storage nodes, while processes are killed, stopped and renewed.

Of 64 clients that want to write one key exactly one wins. A client comes again until it has an answer that says yes (200) or
no (412), as the SDKs do. One of those whose answer was cut off may have written; nobody wins but the writer of what is there.
"""

import hashlib
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from harness.client import Client
from harness.gateways import Gateways
from harness.waiting import until
from harness.wire import begin_upload, exchange, finish_upload, message

CLIENTS, NODES = 64, 3
PROXY = {"app:proxy-server": {"node_timeout": 3, "conn_timeout": 1, "error_suppression_interval": 1}}
# Longer than a lease, whose holder may have been killed, and two answers that did not come on a busy machine.
PATIENCE = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Gateways(tmp_path_factory.mktemp("cluster"), NODES, {"proxy": PROXY}, nodes=NODES, devices=NODES, policies=("gold",)).start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def gateways(cluster):
    gateways = [client_of(port) for port in cluster.gateway_ports]
    gateways[0].create_bucket(Bucket="conditions")
    return gateways


def client_of(port, patience=20):
    config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, max_pool_connections=CLIENTS, read_timeout=patience, connect_timeout=5)
    return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id="test:tester", aws_secret_access_key="testing",
                        region_name="us-east-1", config=config)


class Writer:
    """One of many clients; it has its answer when `won` says so."""

    def __init__(self, number, gateways, key, condition):
        self.number, self.gateways, self.key, self.condition = number, gateways, key, condition
        # No two write the same, in no two rounds: an entity tag is of one write.
        self.body, self.won, self.may_have_written = b"%02d of %s after %s" % (number, key.encode(), repr(condition).encode()), None, False
        self.log = []  # for the message of a failure

    def write(self, gate):
        gate.wait()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                self.log.append((time.time(), "begin"))
                answer = self.gateways[self.number % NODES].put_object(Bucket="conditions", Key=self.key, Body=self.body, **self.condition)
                self.won = True
                self.log.append((time.time(), 200, answer["ResponseMetadata"]["RequestId"]))
                return self
            except ClientError as refused:
                code = refused.response["Error"]["Code"]
                self.log.append((time.time(), code, refused.response["Error"].get("RequestId"), refused.response["Error"]["Message"]))
                if code == "PreconditionFailed":
                    self.won = False
                    return self
                assert code in {"ConditionalRequestConflict", "ServiceUnavailable", "InternalError", "SlowDown"}, code
                self.may_have_written |= code != "ConditionalRequestConflict"
            except (BotoCoreError, OSError) as error:
                self.log.append((time.time(), error))
                self.may_have_written = True
            time.sleep(0.1)
        raise AssertionError(f"client {self.number} got no answer in {PATIENCE} s")


def killed(cluster, role, node, pause):
    time.sleep(pause)
    cluster.kill_service(role, node)
    time.sleep(1)
    cluster.start_service(role, node)


def stopped(cluster, role, node, pause):
    time.sleep(pause)
    cluster.services[role, node].signal(signal.SIGSTOP)
    time.sleep(1.5)
    cluster.services[role, node].signal(signal.SIGCONT)


def renewed(cluster, role, node, pause):
    time.sleep(pause)
    cluster.services[role, node].child.send_signal(signal.SIGUSR1)


def round_of(cluster, gateways, key, condition, fault):
    """Lets all write at once while `fault` happens; the one entity tag that is there then."""
    gate = threading.Barrier(CLIENTS + 1)
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        writers = [pool.submit(Writer(number, gateways, key, condition).write, gate) for number in range(CLIENTS)]
        gate.wait()
        fault()
        writers = [writer.result() for writer in writers]
    there = newest(cluster, key)
    winners = [writer for writer in writers if writer.body == there]
    assert len(winners) == 1, there
    assert winners[0].won or winners[0].may_have_written
    won = {writer.number: writer.log for writer in writers if writer.won}
    assert set(won) <= {winners[0].number}, (there, won, winners[0].log)
    return '"%s"' % hashlib.md5(there).hexdigest()


def newest(cluster, key):
    """What replication is going to leave everywhere, once all servers are there."""
    client = Client(cluster.auth_url)
    until(lambda: all(client.do("GET", "conditions", key, headers={"X-Newest": "true"}).status == 200 for _ in range(2)), what="all servers")
    return client.do("GET", "conditions", key, headers={"X-Newest": "true"}).body


@pytest.mark.parametrize("fault, role", [(killed, "object"), (stopped, "object"), (renewed, "object"), (killed, "proxy"), (stopped, "proxy")])
def test_one_of_many_writers_wins(cluster, gateways, fault, role):
    dice = random.Random(f"{fault.__name__} {role}")
    key, etag = f"{fault.__name__}-{role}", None
    for _ in range(2):
        node, pause = dice.randrange(NODES), dice.uniform(0, 0.3)
        condition = {"IfMatch": etag} if etag else {"IfNoneMatch": "*"}
        etag = round_of(cluster, gateways, key, condition, lambda: fault(cluster, role, node, pause))


def lock(port, holder, lease, patience=0):
    """LOCK of an object by this holder, as gateways ask for it; the status."""
    headers = {"X-Backend-Write-Lock": f"{holder}/a/c/o", "X-Backend-Write-Lock-Lease": lease, "X-Backend-Write-Lock-Patience": patience}
    return exchange(port, message("LOCK", "/sdb1/7/a/c/o", headers), method="LOCK").status


def test_the_locks_of_a_server_outlive_its_renewal(cluster):
    """The old worker publishes under a lock that it has granted: the new one grants none before that has ended."""
    process, port = cluster.services["object", 0], cluster.layout.ports["object", 0]
    # The one that another test has renewed may still be leaving.
    (old,) = until(lambda: len(process.tree()) == 2 and set(process.tree()) - {process.child.pid}, what="one worker")
    leaving = process.text().count("leaving to a successor")
    assert lock(port, "first", 60) == 201
    under = {"X-Timestamp": f"{time.time():016.5f}", "Content-Type": "t/t", "X-Backend-Write-Lock": "first/a/c/o", "Connection": "close"}
    upload = begin_upload(port, "/sdb1/7/a/c/o", under, 100_000, b"x")
    process.child.send_signal(signal.SIGUSR1)
    until(lambda: len(process.tree()) == 3, what="both workers")
    until(lambda: process.text().count("leaving to a successor") > leaving, what="the old worker's leaving")
    assert lock(port, "second", 60) == 409
    assert finish_upload(upload, b"x" * 99_999) == 201
    # Nobody gives the lock back to the old worker, which ends.
    until(lambda: old not in process.tree(), what="the end of the old worker")
    assert lock(port, "second", 60) == 201
    assert lock(port, "first", 60) == 409
    assert lock(port, "second", 0) == 204
