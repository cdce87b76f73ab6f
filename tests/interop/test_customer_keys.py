"""Objects that are encrypted with keys of clients (SSE-C), before OpenStack's proxy on the same storage: it refuses to read them, and
never takes what lies on the devices for the object; it lists, deletes and replaces them."""

import hashlib
import io

import pytest

from clients.test_boto3 import MIB, client_of, code_of
from clients.test_boto3_customer_keys import BIG, IN_PARTS, ONE, only_with
from clients.test_boto3_encryption import SECRET, overrides
from harness.client import Client


def serve(cluster, kind):
    cluster.stop_service("proxy")
    cluster.start_service("proxy", kind=kind)
    return client_of(cluster), Client(cluster.auth_url)


def test_openstacks_proxy_refuses_what_needs_a_clients_key(cluster, ours):
    if ours == "openstack":
        pytest.skip("OpenStack's s3api takes no keys of clients")
    cluster = cluster(ours, overrides=overrides(True))
    s3, _ = serve(cluster, ours)
    bodies = {"small": SECRET, "empty": b"", "big": BIG}
    s3.create_bucket(Bucket="closed")
    for name, body in bodies.items():
        s3.upload_fileobj(io.BytesIO(body), "closed", name, ExtraArgs=ONE, Config=IN_PARTS)
    theirs, swift = serve(cluster, "openstack")
    for headers in ({}, {"Range": "bytes=0-4"}):
        swift.do("GET", "closed", "small", headers=headers, expect=500)
    for name in ("small", "big"):
        swift.do("GET", "closed", name, expect=(500, 503))
        assert code_of(theirs.get_object, Bucket="closed", Key=name).startswith(("Internal", "500", "409", "Unexpected", "Service", "Operation"))
    swift.do("HEAD", "closed", "small", expect=500)
    swift.do("COPY", "closed", "small", headers={"Destination": "closed/copy"}, expect=500)
    swift.do("HEAD", "closed", "copy", expect=404)
    listed = {found["Key"]: found["Size"] for found in theirs.list_objects_v2(Bucket="closed")["Contents"]}
    assert listed == {name: len(body) for name, body in bodies.items()}
    assert swift.get("closed", "empty") == b""
    # What theirs writes over is theirs, what it deletes is gone; the rest is as it was.
    theirs.put_object(Bucket="closed", Key="empty", Body=SECRET)
    mine, _ = serve(cluster, ours)
    for name in ("small", "big"):
        got = only_with(mine, ONE, bodies[name], Bucket="closed", Key=name)
        assert "-" in got["ETag"] or got["ETag"].strip('"') == hashlib.md5(bodies[name]).hexdigest()
    assert mine.get_object(Bucket="closed", Key="empty")["Body"].read() == SECRET
    _, swift = serve(cluster, "openstack")
    for name, query in (("small", ""), ("empty", ""), ("big", "?multipart-manifest=delete")):
        swift.do("DELETE", "closed", name, query=query, expect=(200, 204))
    assert swift.get("closed") == swift.get("closed+segments") == b""
    assert len(BIG) > 2 * 5 * MIB, "an upload in parts"
