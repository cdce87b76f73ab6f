"""Objects that are encrypted with keys of clients (SSE-C), before OpenStack's proxy on the same storage: it refuses to read them, and
never takes what lies on the devices for the object; it lists, deletes and replaces them."""

import hashlib
import io

import pytest
from swift.common import direct_client
from swift.common.ring import Ring
from swift.common.utils import Timestamp

from clients.test_boto3 import MIB, client_of, code_of
from clients.test_boto3_customer_keys import BIG, IN_PARTS, ONE, only_with
from clients.test_boto3_encryption import ROOT, SECRET, overrides
from harness import disk, upkeep
from harness.client import Client
from interop.test_container_reconciler import enqueue


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


@pytest.mark.parametrize("encrypts", [False, True], ids=["without encryption", "with encryption"])
def test_the_reconciler_moves_what_it_cannot_read(cluster, ours, encrypts):
    """Whether or not its own gateway encrypts."""
    if ours == "openstack":
        pytest.skip("OpenStack's s3api takes no keys of clients")
    one = cluster(ours, overrides=overrides(True))
    s3, swift = client_of(one), Client(one.auth_url)
    swift.put("moved", headers={"X-Storage-Policy": "silver"})
    s3.put_object(Bucket="moved", Key="closed", Body=SECRET, **ONE)
    swift.put("moved", "plain", body=SECRET)
    for name in ("closed", "plain"):
        written = misplace(one, name)
        swift.do("GET", "moved", name, expect=404)
        enqueue(one, 0, name, written, "put", path=f"0:/AUTH_test/moved/{name}")
    conf = upkeep.write_conf(one, "container-reconciler.conf", "container-reconciler", request_tries=1)
    if encrypts:
        text = conf.read_text()
        assert text.count(" proxy-server\n") == 1
        sections = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n{options}\n" for name, options in
                           (("keymaster", "".join(f"{name} = {value}\n" for name, value in ROOT.items())), ("encryption", "")))
        conf.write_text(text.replace(" proxy-server\n", " keymaster encryption proxy-server\n") + "\n" + sections)
    upkeep.once(one, ours, "container-updater", one.etc / "container-server.conf")
    output = upkeep.once(one, ours, "container-reconciler", conf)
    assert swift.do("HEAD", "moved", "closed").status == 200, output
    only_with(s3, ONE, SECRET, Bucket="moved", Key="closed")
    assert swift.get("moved", "plain") == s3.get_object(Bucket="moved", Key="plain", IfMatch=hashlib.md5(SECRET).hexdigest())["Body"].read() == SECRET


def misplace(cluster, name):
    """Takes an object of policy 1 to the places of policy 0, as it is stored; its time."""
    source, target = (Ring(str(cluster.etc), ring_name=ring) for ring in ("object-1", "object"))
    partition, nodes = source.get_nodes("AUTH_test", "moved", name)
    headers, body = direct_client.direct_get_object(nodes[0], partition, "AUTH_test", "moved", name, headers={"X-Backend-Storage-Policy-Index": 1})
    kept = {header: value for header, value in headers.items() if header.lower() not in ("content-length", "last-modified", "date", "connection")}
    partition, nodes = target.get_nodes("AUTH_test", "moved", name)
    for node in nodes:
        direct_client.direct_put_object(node, partition, "AUTH_test", "moved", name, body, content_length=len(body),
                                        headers={**kept, "X-Backend-Storage-Policy-Index": 0})
    for path in disk.objects(cluster.srv):
        if "objects-1" in path.parts and disk.metadata(path)[b"name"].decode() == f"/AUTH_test/moved/{name}":
            path.unlink()
    return Timestamp(headers["X-Timestamp"])
