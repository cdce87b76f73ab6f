"""Encrypted objects: either make's proxy reads what the other's has written, whichever servers store it, before and after the root
secret was rotated; nothing of them lies on a device in the clear."""

import base64
import hashlib
import http.client
import json
import re

import pytest

from harness import journey
from harness.client import Client
from harness.disk import contents
from harness.waiting import until

PIPELINE = ("catch_errors gatekeeper healthcheck proxy-logging cache listing_formats tempauth copy slo dlo versioned_writes "
            "keymaster encryption proxy-logging proxy-server")
ONE, TWO = (base64.b64encode(letter * 32).decode() for letter in (b"1", b"2"))
FIRST = {"encryption_root_secret": ONE}
ROTATED = {**FIRST, "encryption_root_secret_later": TWO, "active_root_secret_id": "later"}
SECRET = b"a text that must not be found on any device. " * 3
BODIES = {"small": SECRET, "empty": b"", "large": SECRET * 4000, "ünï/çødé": SECRET, "/slash": SECRET, "100% %41": SECRET * 40}
META = {"X-Object-Meta-Said": "a value that must not be found either", "X-Object-Meta-Latin": "ü",
        "X-Object-Meta-Other": "ü".encode().decode("latin-1"), "X-Object-Meta-Nothing": ""}


def overrides(keymaster, **encryption):
    filters = {name: {"use": f"egg:swift#{name}"} for name in ("copy", "slo", "dlo", "versioned_writes")}
    filters["versioned_writes"]["allow_object_versioning"] = "false"  # it wants symlink in the pipeline
    return {"proxy": {"pipeline:main": {"pipeline": PIPELINE},
                      **{f"filter:{name}": options for name, options in filters.items()},
                      "filter:keymaster": {"use": "egg:swift#keymaster", **keymaster},
                      "filter:encryption": {"use": "egg:swift#encryption", **encryption}}}


def serve(cluster, kind, keymaster, **encryption):
    """A client of a proxy of that make, with this keymaster, before the storage that there is."""
    cluster.stop_service("proxy")
    cluster.layout.overrides = overrides(keymaster, **encryption)
    cluster.layout.write()
    cluster.start_service("proxy", kind=kind)
    return Client(cluster.auth_url)


def store(client, container):
    client.do("PUT", container, expect=(201, 202))
    for name, body in BODIES.items():
        client.put(container, name, body=body, headers={**META, "Content-Type": "text/x", "Etag": hashlib.md5(body).hexdigest()})
    client.put(container, "chunked", body=iter([SECRET * 1000, SECRET * 2000]), headers=META)
    client.put(container, "described", body=SECRET, headers={"X-Object-Meta-Old": "gone"})
    client.do("POST", container, "described", headers=META, expect=202)


def check(client, container, unconditional=()):
    """Everything reads back. OpenStack compares an object `/x` only in the metadata version that it writes itself."""
    kept = {**BODIES, "chunked": SECRET * 3000, "described": SECRET}
    for name, body in kept.items():
        etag = hashlib.md5(body).hexdigest()
        for method in ("GET", "HEAD"):
            reply = client.do(method, container, name, expect=200)
            assert (reply["Etag"], reply["Content-Length"]) == (etag, str(len(body))), (name, method)
            assert {header: reply[header] for header in META} == META
            assert not [header for header, _ in reply.headers if "crypto" in header.lower()]
            assert method == "HEAD" or reply.body == body, name
        conditions = [({"If-Match": f'"{etag}"'}, 200), ({"If-Match": '"other"'}, 412), ({"If-None-Match": f'"{etag}", "x"'}, 304),
                      ({"If-None-Match": '"other"'}, 200), ({"If-None-Match": "*"}, 304)]
        for headers, status in conditions if name not in unconditional else ():
            reply = client.do("GET", container, name, headers=headers, expect=status)
            assert reply.body == (body if status == 200 else b"")
        if len(body) < 100:
            continue
        for spec, expected in (("3-9", body[3:10]), ("16-", body[16:]), ("-5", body[-5:]), ("15-64", body[15:65])):
            assert client.get(container, name, headers={"Range": f"bytes={spec}"}) == expected, (name, spec)
        several = client.get(container, name, headers={"Range": "bytes=3-9,20-99,-1", **({"If-Match": etag} if name not in unconditional else {})})
        parts = re.findall(rb"Content-Range: bytes (\d+)-(\d+)/\d+\r\n\r\n(.*?)\r\n--", several, re.DOTALL)
        assert [bytes for _, _, bytes in parts] == [body[3:10], body[20:100], body[-1:]], name
        assert all(body[int(first):int(last) + 1] == bytes for first, last, bytes in parts)

    def listed():
        rows = {row["name"]: (row["hash"], row["bytes"]) for row in json.loads(client.get(container, query="?format=json"))}
        assert rows == {name: (hashlib.md5(body).hexdigest(), len(body)) for name, body in kept.items()}
        return True
    until(listed, what=f"the listing of {container}")


def check_devices(cluster):
    """Nothing secret lies anywhere, neither its text nor its fingerprint."""
    secrets = [SECRET[:20], b"must not be found either", *(hashlib.md5(body).hexdigest().encode() for body in BODIES.values() if body)]
    for path, stored in contents(cluster.srv):
        assert not [secret for secret in secrets if secret in stored], path


@pytest.mark.parametrize("storage", ["openstack", "ours"])
@pytest.mark.parametrize("writer", ["openstack", "ours"])
def test_either_proxy_reads_what_the_other_encrypted(cluster, ours, writer, storage):
    kinds = {"ours": ours, "openstack": "openstack"}
    writer, reader = (kinds[writer], kinds["openstack" if writer == "ours" else "ours"])
    mixed = cluster({**dict.fromkeys(("account", "container", "object"), kinds[storage]), "proxy": writer},
                    overrides=overrides({**FIRST, "meta_version_to_write": 2}))
    client = Client(mixed.auth_url)
    store(client, "first")
    check(client, "first")
    check_devices(mixed)
    client = serve(mixed, reader, FIRST)
    check(client, "first")
    client = serve(mixed, writer, {**ROTATED, "meta_version_to_write": 3})
    store(client, "second")
    client.do("POST", "first", "small", headers=META, expect=202)  # metadata by the new secret, the body by the old
    client.do("PUT", "first", "chunked", headers={"X-Copy-From": "/first/chunked"}, expect=201)
    client = serve(mixed, reader, ROTATED, disable_encryption="yes")
    check(client, "first")
    check(client, "second")
    client = serve(mixed, reader, {**ROTATED, "meta_version_to_write": 1})
    store(client, "third")
    client = serve(mixed, writer, ROTATED)
    check(client, "third", unconditional=["/slash"] if writer == "openstack" else ())
    check_devices(mixed)
    # A secret that is missing is said, by either make in the same words.
    lost = {"encryption_root_secret": ONE}
    answers = []
    for kind in (writer, reader):
        client = serve(mixed, kind, lost)
        answers.append([(reply.status, reply.body) for reply in (client.do("GET", "third", "small"), client.do("HEAD", "third", "small"))])
        rows = json.loads(client.get("third", query="?format=json"))
        assert {row["hash"] for row in rows if row["bytes"]} == {"<unknown>"}
    assert answers[0] == answers[1] == [(500, b"Error decrypting object"), (500, b"")]


@pytest.mark.parametrize("writer", ["openstack", "ours"])
def test_a_stay_in_a_cluster_that_encrypts(cluster, ours, writer):
    """The whole journey of a user, written by one make and read by both."""
    kinds = ["openstack", ours] if writer == "openstack" else [ours, "openstack"]
    mixed = cluster({"account": "openstack", "container": ours, "object": ours, "proxy": kinds[0]}, overrides=overrides(FIRST))
    client = Client(mixed.auth_url)
    kept = journey.write(client, "secret")
    journey.check(client, kept)
    journey.check(serve(mixed, kinds[1], ROTATED), kept)


def test_a_replaced_secret_is_noticed(cluster, ours):
    """OpenStack hands on garbage then; here it is an error."""
    if ours == "openstack":
        pytest.skip("OpenStack does not notice a replaced secret: there is no promise to hold it to")
    mixed = cluster(ours, overrides=overrides(FIRST))
    Client(mixed.auth_url).do("PUT", "c", expect=201)
    Client(mixed.auth_url).put("c", "o", body=SECRET)
    client = serve(mixed, ours, {"encryption_root_secret": TWO})
    assert client.do("GET", "c", "o").status == client.do("HEAD", "c", "o").status == 500
    mixed.services["proxy", 0].await_text("cannot encrypt or decrypt")
    assert TWO not in mixed.log()


def test_long_conditions_take_no_node_out_of_service(cluster, ours):
    """Each entity tag of a condition gets an HMAC for each root secret: a head that servers read may become one that they do not."""
    served = cluster(ours, overrides=overrides(ROTATED))
    client = Client(served.auth_url)
    client.do("PUT", "c", headers={"X-Container-Read": ".r:*"}, expect=201)
    client.put("c", "/o", body=SECRET)
    path = client.path("c", "/o")
    same, distinct = ",".join("a" * 4000), ",".join(f"{number:03d}" for number in range(2000))
    for tags, expected in ((same, {200}), (distinct, {400, 431})):
        for _ in range(25):
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
            connection.putrequest("GET", path)
            for _ in range(7):
                connection.putheader("If-None-Match", tags)
            connection.endheaders()
            reply = connection.getresponse()
            reply.read()
            connection.close()
            assert reply.status in expected
            assert client.get("c", "/o") == SECRET
    if ours == "openstack":
        return  # it answers the rest with 503
    # User metadata grow as well, and what is not stored goes along.
    metadata = {f"X-Object-Meta-{number}": "twenty characters..." for number in range(88)}
    for size in (10, 200_000):
        reply = client.do("PUT", "c", "long", body=b"x" * size, headers={**metadata, **{f"X-Other-{number}": "x" * 8000 for number in range(7)}})
        assert reply.status == 431, size
        client.put("c", "new", body=SECRET)
    assert "the connection broke" not in served.log()
