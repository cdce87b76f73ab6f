"""Events beyond the plain case: targets over TLS, answers with long bodies, encryption in the pipeline, what lifecycle rules delete."""

import ssl

import pytest

from clients.test_boto3_notifications import Notified, Receiver, put_many, rule
from clients.test_boto3_lifecycle_pass import one_pass, wait_a_day
from harness import filters, upkeep
from harness.certificates import Authority
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.waiting import until

SECRET = {"encryption_root_secret": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="}
ENCRYPTED = filters.PIPELINE.replace("symlink proxy-logging", "symlink keymaster encryption proxy-logging")


@pytest.fixture(scope="module", params=[False, True], ids=["clear", "encrypted"])
def cluster(tmp_path_factory, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no notifications")
    memcached = Memcached().start()
    layout = Layout(tmp_path_factory.mktemp("notified"), memcached_port=memcached.port, policies=("gold",),
                    pipeline=ENCRYPTED if request.param else filters.PIPELINE,
                    overrides=filters.overrides(ENCRYPTED, keymaster=SECRET) if request.param else None)
    cluster = Cluster(layout.write(), "martlet")
    cluster.is_encrypted = request.param
    (cluster.etc / "notification-targets.conf").write_text("[DEFAULT]\nmtime_check_interval = 0\n")
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        memcached.stop()


def decrypting(cluster, monkeypatch):
    """Upkeep's own gateway has the filters that encrypt, as the clients' gateway has them."""
    if cluster.is_encrypted:
        options = "".join(f"{name} = {value}\n" for name, value in SECRET.items())
        with_keys = upkeep.PIPELINE.replace("proxy-server\n", "keymaster encryption proxy-server\n", 1)
        assert with_keys != upkeep.PIPELINE
        monkeypatch.setattr(upkeep, "PIPELINE", with_keys + f"\n[filter:keymaster]\nuse = egg:swift#keymaster\n{options}\n"
                                                            "[filter:encryption]\nuse = egg:swift#encryption\n")


@pytest.fixture
def notified(cluster, monkeypatch):
    decrypting(cluster, monkeypatch)
    notified = Notified(cluster)
    yield notified
    notified.stop()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.stop()


def over_tls(receiver, authority, **names):
    certificate, key = authority.issue("hook.test", **names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)


@pytest.fixture
def secured(tmp_path):
    """A webhook over TLS, and another whose certificate is of another address."""
    authority = Authority(tmp_path / "authority")
    good, other = Receiver(), Receiver()
    over_tls(good, authority)
    over_tls(other, authority, addresses=("192.0.2.1",))
    yield good, other, authority.certificate
    good.stop()
    other.stop()


def test_targets_over_tls(notified, secured):
    good, other, authority = secured
    notified.targets(hook=f"https://127.0.0.1:{good.port}/", other=f"https://127.0.0.1:{other.port}/")
    bucket = "secured"
    notified.bucket(bucket, rule(name="a", prefix="good/"), rule("other", name="b", prefix="other/"))
    keys = put_many(notified, bucket, 3, "good/")
    put_many(notified, bucket, 1, "other/")
    # Without the authority nobody vouches for either.
    notified.start()
    until(lambda: "authority" in notified.logged(), within=30, what="the refusal of the certificate")
    notified.stop()
    assert good.records() == []
    notified.start(cafile=authority)
    until(lambda: {key for _, key in good.events(bucket)} == keys, within=30, what="all events")
    until(lambda: "target other" in notified.logged(), within=30, what="the refusal of the other's name")
    notified.stop()
    assert other.got == []


def test_events_say_what_the_client_wrote(notified, receiver):
    """Size and tag of what was written, not of what lies on the drives."""
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    notified.bucket("plain", rule())
    etag = notified.s3.put_object(Bucket="plain", Key="k", Body=b"hello")["ETag"]
    notified.start()
    until(lambda: receiver.events("plain"), within=30, what="the event")
    (record,) = [record for record in receiver.records() if record["s3"]["bucket"]["name"] == "plain"]
    assert (record["s3"]["object"]["size"], record["s3"]["object"]["eTag"]) == (5, etag.strip('"'))


def test_events_that_the_daemon_cannot_decrypt_wait(cluster, receiver, monkeypatch):
    if not cluster.is_encrypted:
        pytest.skip("nothing is encrypted")
    notified = Notified(cluster)
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    notified.bucket("waiting", rule())
    notified.s3.put_object(Bucket="waiting", Key="k", Body=b"hello")
    try:
        notified.start(max_refusals=1)
        until(lambda: notified.logged().count("put keymaster and encryption into the pipeline") >= 2, within=30, what="what is wrong")
        notified.stop()
        assert receiver.events("waiting") == []
        decrypting(cluster, monkeypatch)
        notified.start()
        until(lambda: receiver.events("waiting") == [("ObjectCreated:Put", "k")], within=30, what="the event")
    finally:
        notified.stop()


def test_what_lifecycle_rules_delete_is_told(notified, receiver):
    s3 = notified.s3
    notified.targets(hook=f"http://127.0.0.1:{receiver.port}/")
    both = rule(events=["s3:LifecycleExpiration:*"])
    notified.bucket("expiring", both, rule(name="removed", events=["s3:ObjectRemoved:*"]))
    notified.bucket("versions", both)
    s3.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    for bucket in ("expiring", "versions"):
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [
            {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 1}}]})
        s3.put_object(Bucket=bucket, Key="old/a", Body=b"x")
        s3.put_object(Bucket=bucket, Key="new", Body=b"x")
    wait_a_day()
    output = one_pass(notified.cluster)
    assert "0 failed" in output, output
    assert [found["Key"] for found in s3.list_objects_v2(Bucket="expiring")["Contents"]] == ["new"]
    notified.start()
    expected = {"expiring": [("LifecycleExpiration:Delete", "old/a")], "versions": [("LifecycleExpiration:DeleteMarkerCreated", "old/a")]}
    for bucket, events in expected.items():
        until(lambda bucket=bucket: receiver.events(bucket), within=30, what="the event")
        assert receiver.events(bucket) == events
    # A client's deletion is none of a rule's.
    s3.delete_object(Bucket="expiring", Key="new")
    until(lambda: len(receiver.events("expiring")) == 2, within=30, what="the client's deletion")
    assert receiver.events("expiring")[1] == ("ObjectRemoved:Delete", "new")
