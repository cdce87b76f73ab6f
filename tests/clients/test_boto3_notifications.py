"""Events of buckets: a real HTTP server receives what container-notifier delivers, whatever is killed on the way."""

import collections
import hashlib
import hmac
import http.server
import json
import re
import threading
import urllib.parse

import pytest
from botocore.exceptions import ClientError

from clients.test_boto3 import MIB, client_of, code_of
from harness import upkeep
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import Process
from harness.waiting import free_port, until

SECRET = "not to be seen in any log"
# For tests that kill gateways. In others none is looked for: a gateway that is slow would have its event delivered twice, which is allowed.
INTENTS_SOON = {"intent_patience": 2, "intent_grace": 4}


class Receiver:
    """A webhook. `answer` says what a delivery is answered with; all of them are kept."""

    def __init__(self, port=0, answer=lambda receiver, path, record: 204):
        receiver, self.got, self.answer = self, [], answer
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                (record,) = json.loads(body)["Records"]
                status = receiver.answer(receiver, self.path, record)
                with receiver.lock:
                    receiver.got.append((status, self.path, dict(self.headers), body, record))
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def records(self):
        with self.lock:
            return [record for status, _, _, _, record in self.got if status < 300]

    def events(self, bucket):
        """Names of events and keys that were taken."""
        found = [record for record in self.records() if record["s3"]["bucket"]["name"] == bucket]
        return [(record["eventName"], urllib.parse.unquote_plus(record["s3"]["object"]["key"])) for record in found]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Notified:
    """A cluster, its file of targets, and its notifier."""

    def __init__(self, cluster):
        self.cluster, self.notifier, self.starts = cluster, None, 0
        self.s3 = client_of(cluster)

    def targets(self, **targets):
        sections = [f"[{name}]\nurl = {url}\nsecret = {SECRET}\n" for name, url in targets.items()]
        (self.cluster.etc / "notification-targets.conf").write_text("[DEFAULT]\nmtime_check_interval = 0\n" + "".join(sections))

    def start(self, **options):
        client = upkeep.write_conf(self.cluster, "notifier-client.conf", "internal-client")
        # A receiver that is late would get the event again.
        options = {"interval": 0.2, "max_backoff": 1, "request_timeout": 60,
                   "internal_client_conf_path": client, "recon_cache_path": self.cluster.root / "run", **options}
        conf = self.cluster.etc / "notifier-container-server.conf"
        section = "".join(f"{name} = {value}\n" for name, value in options.items())
        conf.write_text((self.cluster.etc / "container-server.conf").read_text() + f"\n[container-notifier]\n{section}")
        self.starts += 1
        self.log = self.cluster.root / f"log/notifier-{self.starts}.log"
        self.notifier = Process([martlet(), "container-notifier", conf, "--verbose"], self.log)
        return self

    def stop(self, *, kill=False):
        notifier, self.notifier = self.notifier, None
        if notifier is not None:
            notifier.kill() if kill else notifier.stop()

    def bucket(self, name, *rules):
        self.s3.create_bucket(Bucket=name)
        self.s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration={"QueueConfigurations": list(rules)})


    def logged(self):
        text = self.log.read_text(errors="replace")
        assert SECRET not in text and "panicked" not in text, text
        return text


def rule(target="hook", *, events=("s3:ObjectCreated:*", "s3:ObjectRemoved:*"), prefix=None, suffix=None, name="r"):
    parts = [{"Name": kind, "Value": value} for kind, value in (("prefix", prefix), ("suffix", suffix)) if value]
    return {"Id": name, "QueueArn": f"arn:martlet:sqs::{target}:webhook", "Events": list(events),
            **({"Filter": {"Key": {"FilterRules": parts}}} if parts else {})}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no notifications")
    memcached = Memcached().start()
    cluster = Cluster(Layout(tmp_path_factory.mktemp("notified"), memcached_port=memcached.port).write(), "martlet")
    (cluster.etc / "notification-targets.conf").write_text("[DEFAULT]\nmtime_check_interval = 0\n")
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        memcached.stop()


@pytest.fixture
def notified(cluster):
    notified = Notified(cluster)
    yield notified
    notified.stop()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.stop()


def put_many(notified, bucket, count, prefix=""):
    for number in range(count):
        notified.s3.put_object(Bucket=bucket, Key=f"{prefix}{number}", Body=b"x")
    return {f"{prefix}{number}" for number in range(count)}


def test_without_targets_nothing_is_served(notified):
    notified.targets()
    notified.s3.create_bucket(Bucket="unserved")
    assert code_of(notified.s3.get_bucket_notification_configuration, Bucket="unserved") == "NotImplemented"
    assert code_of(notified.s3.put_bucket_notification_configuration, Bucket="unserved",
                   NotificationConfiguration={"QueueConfigurations": [rule()]}) == "NotImplemented"


def test_configurations_are_stored_whole_or_refused(notified):
    notified.targets(hook="http://127.0.0.1:1/")
    s3, bucket = notified.s3, "configured"
    s3.create_bucket(Bucket=bucket)
    rules = [rule(prefix="in/ü ", suffix=".pdf", name="one"), rule(events=["s3:ObjectRemoved:Delete"], prefix="out/", name="two")]
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={"QueueConfigurations": rules})
    found = s3.get_bucket_notification_configuration(Bucket=bucket)
    assert found["QueueConfigurations"] == rules
    for wrong, words in [(rule("unknown"), "arn:martlet:sqs::unknown:webhook"), (rule(events=["s3:ObjectRestore:*"]), "s3:ObjectRestore")]:
        with pytest.raises(ClientError) as refused:
            s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [wrong]})
        assert refused.value.response["Error"]["Code"] == "InvalidArgument"
        assert words in str(refused.value.response["Error"])
    for third in (rule(prefix="in/ü 5", name="three"), rule(events=["s3:ObjectCreated:Put"], name="three")):
        with pytest.raises(ClientError) as refused:
            s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [*rules, third]})
        error = refused.value.response["Error"]
        assert error["Code"] == "InvalidArgument" and error["Message"].startswith("Configurations overlap."), error
    assert s3.get_bucket_notification_configuration(Bucket=bucket)["QueueConfigurations"] == rules
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket=bucket)
    other = client_of(notified.cluster, "test:tester3", "testing3")
    assert code_of(other.put_bucket_notification_configuration, Bucket=bucket, NotificationConfiguration={}) == "AccessDenied"


def test_every_write_is_an_event(notified, receiver):
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/s3?token=x")
    notified.start()
    s3, bucket = notified.s3, "written"
    notified.bucket(bucket, rule(prefix="in/"))
    written = s3.put_object(Bucket=bucket, Key="in/a b+ü", Body=b"12345")
    s3.put_object(Bucket=bucket, Key="out/a", Body=b"x")
    s3.copy_object(Bucket=bucket, Key="in/copy", CopySource=f"{bucket}/out/a")
    begun = s3.create_multipart_upload(Bucket=bucket, Key="in/large")["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="in/large", UploadId=begun, PartNumber=1, Body=b"x" * MIB)["ETag"]
    # A completion that comes again is no event of its own.
    large, _ = [s3.complete_multipart_upload(Bucket=bucket, Key="in/large", UploadId=begun,
                                             MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]}) for _ in range(2)]
    s3.delete_object(Bucket=bucket, Key="in/copy")
    s3.delete_object(Bucket=bucket, Key="in/large")
    s3.delete_object(Bucket=bucket, Key="in/none")
    own = Client(notified.cluster.auth_url)
    assert own.do("PUT", f"{bucket}/in/swift", body=b"xy").status == 201
    assert own.do("DELETE", f"{bucket}/in/swift").status == 204
    expected = [("ObjectCreated:Put", "in/a b+ü"), ("ObjectCreated:Copy", "in/copy"), ("ObjectCreated:CompleteMultipartUpload", "in/large"),
                ("ObjectRemoved:Delete", "in/copy"), ("ObjectRemoved:Delete", "in/large"), ("ObjectRemoved:Delete", "in/none"),
                ("ObjectCreated:Put", "in/swift"), ("ObjectRemoved:Delete", "in/swift")]
    until(lambda: len(receiver.events(bucket)) >= len(expected), within=30, what="all events")
    assert sorted(receiver.events(bucket)) == sorted(expected)

    status, path, headers, body, record = next(got for got in receiver.got if "a+b%2B%C3%BC" in got[4]["s3"]["object"]["key"])
    assert (status, path) == (204, "/s3?token=x")
    signed = f"{headers['x-martlet-timestamp']}.".encode() + body
    assert headers["x-martlet-signature"] == "sha256=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["content-type"] == "application/json"
    assert (record["eventSource"], record["awsRegion"], record["eventVersion"]) == ("aws:s3", "us-east-1", "2.1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["eventTime"])
    assert record["responseElements"]["x-amz-request-id"] == written["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    assert record["userIdentity"]["principalId"] == "test:tester"
    assert record["requestParameters"]["sourceIPAddress"] == "127.0.0.1"
    assert record["s3"]["configurationId"] == "r" and record["s3"]["bucket"]["ownerIdentity"]["principalId"] == "AUTH_test"
    found = record["s3"]["object"]
    assert (found["size"], found["eTag"], found["key"]) == (5, written["ETag"].strip('"'), "in/a+b%2B%C3%BC")
    by_name = {(record["eventName"], record["s3"]["object"]["key"]): record["s3"]["object"] for record in receiver.records()}
    made = by_name["ObjectCreated:CompleteMultipartUpload", "in/large"]
    assert (made["size"], made["eTag"]) == (MIB, large["ETag"].strip('"'))
    assert by_name["ObjectCreated:Put", "in/swift"]["sequencer"] < by_name["ObjectRemoved:Delete", "in/swift"]["sequencer"]
    assert "size" not in by_name["ObjectRemoved:Delete", "in/swift"]
    notified.logged()


def test_versions_and_their_markers(notified, receiver):
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    notified.start()
    s3, bucket = notified.s3, "versioned"
    notified.bucket(bucket, rule())
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=bucket, Key="k", Body=b"1")["VersionId"]
    second = s3.put_object(Bucket=bucket, Key="k", Body=b"12")["VersionId"]
    marker = s3.delete_object(Bucket=bucket, Key="k")["VersionId"]
    s3.delete_object(Bucket=bucket, Key="k", VersionId=marker)  # the second is the current one again, and nothing was created
    s3.delete_object(Bucket=bucket, Key="k", VersionId=first)
    expected = [("ObjectCreated:Put", first), ("ObjectCreated:Put", second), ("ObjectRemoved:DeleteMarkerCreated", marker),
                ("ObjectRemoved:Delete", marker), ("ObjectRemoved:Delete", first)]

    def found():
        return [(record["eventName"], record["s3"]["object"]["versionId"]) for record in receiver.records()
                if record["s3"]["bucket"]["name"] == bucket]

    until(lambda: len(found()) >= len(expected), within=30, what="all events")
    assert sorted(found()) == sorted(expected)


def test_a_receiver_that_was_away_gets_everything(notified):
    port = free_port()
    notified.targets(hook=f"http://127.0.0.1:{port}/")
    notified.start()
    notified.bucket("away", rule())
    keys = put_many(notified, "away", 20)
    until(lambda: "events wait" in notified.logged(), within=30, what="a failed delivery")
    receiver = Receiver(port)
    try:
        until(lambda: {key for _, key in receiver.events("away")} == keys, within=30, what="all events")
        assert "is dropped" not in notified.logged()
    finally:
        receiver.stop()


def test_a_target_that_hangs_delays_no_other(notified, receiver):
    hung = threading.Event()
    stuck = Receiver(answer=lambda *_: hung.wait(300) and 204)
    try:
        notified.targets(hook=f"http://127.0.0.1:{receiver.port}/", stuck=f"http://127.0.0.1:{stuck.port}/")
        notified.start(request_timeout=300)
        notified.bucket("beside", rule("stuck", prefix="stuck/", name="a"), rule("hook", prefix="fine/", name="b"))
        put_many(notified, "beside", 3, "stuck/")
        keys = put_many(notified, "beside", 3, "fine/")
        until(lambda: {key for _, key in receiver.events("beside")} == keys, within=60, what="events of the other target")
        assert not stuck.events("beside")
    finally:
        hung.set()
        stuck.stop()


def test_a_redirect_is_a_refusal_and_refusals_have_an_end(notified):
    receiver = Receiver(answer=lambda *_: 302)
    try:
        notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
        notified.start(max_refusals=3)
        notified.bucket("refused", rule())
        notified.s3.put_object(Bucket="refused", Key="k", Body=b"x")
        until(lambda: "is dropped: the target refused it 3 times" in notified.logged(), within=30, what="the end of refusals")
        assert [path for _, path, *_ in receiver.got] == ["/"] * 3
        assert '"name":"refused"' in notified.logged()
    finally:
        receiver.stop()


def test_a_notifier_that_is_killed_loses_nothing(notified):
    reached = threading.Event()

    def slowly(receiver, *_):
        if len(receiver.got) >= 3:
            reached.set()
        return 204

    receiver = Receiver(answer=slowly)
    try:
        notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
        notified.bucket("killed", rule())
        keys = put_many(notified, "killed", 40)
        notified.start(concurrency=2)
        assert reached.wait(30)
        notified.stop(kill=True)
        notified.start()
        until(lambda: {key for _, key in receiver.events("killed")} == keys, within=60, what="all events")
    finally:
        receiver.stop()


def is_there(s3, bucket, key):
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "404"
        return False
    return True


def test_gateways_that_are_killed_lose_no_event(notified, receiver):
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    notified.start(**INTENTS_SOON)
    bucket, cluster = "torn", notified.cluster
    notified.bucket(bucket, rule())
    acknowledged, counter, over = set(), iter(range(10**6)), threading.Event()
    lock = threading.Lock()

    def write():
        s3 = client_of(cluster)
        while not over.is_set():
            with lock:
                key = f"k{next(counter)}"
            try:
                s3.put_object(Bucket=bucket, Key=key, Body=b"x" * 100)
            except Exception:  # the gateway was killed
                over.wait(0.05)
            else:
                with lock:
                    acknowledged.add(key)

    writers = [threading.Thread(target=write) for _ in range(4)]
    [writer.start() for writer in writers]
    try:
        for _ in range(3):
            before = len(acknowledged)
            until(lambda: len(acknowledged) >= before + 15, within=60, what="writes")
            cluster.kill_service("proxy")
            cluster.start_service("proxy")
    finally:
        over.set()
        [writer.join() for writer in writers]
    # No listing: a server of the container may not know of what had reached one or two servers when its gateway died.
    there = {key for key in (f"k{number}" for number in range(next(counter))) if is_there(notified.s3, bucket, key)}
    assert acknowledged <= there

    def missing():
        return there - {key for _, key in receiver.events(bucket)}

    # What was written without an acknowledgement has its event, too, as soon as its intent was looked into.
    until(lambda: not missing(), within=60, what="events of all objects")
    known = collections.Counter(key for _, key in receiver.events(bucket))
    assert set(known) <= there, "an event of an object that was never written"


def test_accounts_that_a_target_serves_no_more_send_nothing(notified, receiver):
    url = f"http://127.0.0.1:{receiver.port}/"
    notified.targets(narrow=url, other=url)  # a name of its own: nothing that tests before have left waits for it
    notified.bucket("narrowed", rule("narrow"))
    conf = notified.cluster.etc / "notification-targets.conf"
    served = conf.read_text()
    notified.s3.put_object(Bucket="narrowed", Key="noted", Body=b"x")
    conf.write_text(served.replace("[narrow]\n", "[narrow]\naccounts = AUTH_another\n"))
    notified.s3.put_object(Bucket="narrowed", Key="never", Body=b"x")
    notified.start()
    until(lambda: "target narrow serves other accounts only: 1 events wait" in notified.logged(), within=30, what="an event that waits")
    assert not receiver.events("narrowed")
    conf.write_text(served)
    until(lambda: receiver.events("narrowed"), within=30, what="the event that waited")
    assert set(receiver.events("narrowed")) == {("ObjectCreated:Put", "noted")}


def test_a_gateway_that_starts_with_a_wrong_file_loses_no_event(notified, receiver):
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/?token={SECRET.replace(' ', '-')}")
    notified.bucket("started", rule())
    conf = notified.cluster.etc / "notification-targets.conf"
    right = conf.read_text()
    conf.write_text(right.replace("http://", "htp://"))
    notified.cluster.kill_service("proxy")
    notified.cluster.start_service("proxy")
    try:
        notified.s3.put_object(Bucket="started", Key="k", Body=b"x")
    finally:
        conf.write_text(right)
        notified.cluster.kill_service("proxy")
        notified.cluster.start_service("proxy")
    notified.start(**INTENTS_SOON)
    until(lambda: receiver.events("started"), within=30, what="the event")
    assert set(receiver.events("started")) == {("ObjectCreated:Put", "k")}
    assert SECRET.replace(" ", "-") not in notified.cluster.log()


def test_a_copy_has_its_tag(notified, receiver):
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    notified.start()
    notified.bucket("tagged", rule(prefix="to"))
    tag = notified.s3.put_object(Bucket="tagged", Key="from", Body=b"x")["ETag"]
    notified.s3.copy_object(Bucket="tagged", Key="to", CopySource="tagged/from")
    until(lambda: receiver.events("tagged"), within=30, what="the event")
    record = next(record for record in receiver.records() if record["s3"]["bucket"]["name"] == "tagged")
    assert record["s3"]["object"]["eTag"] == tag.strip('"')
