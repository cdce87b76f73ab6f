"""Requests about versions of objects, sent to a whole cluster of either make: which server refuses what, and what a cache may still answer."""

import http.client
import json
import time

import pytest

from harness.client import Client
from harness.layout import hash_path
from swift.common.ring import RingData

VERSIONED = {"X-Versions-Enabled": "true"}
NOT_VERSIONED = (400, b"version-aware operations require that the container is versioned")
INVALID = (400, b"Invalid version parameter")
NO_POST = (400, b"POST to a specific version is not allowed")
MOMENT = "1700000000.00000"


@pytest.fixture(params=["openstack", "ours"])
def client(request, cluster, ours):
    client = Client(cluster(ours if request.param == "ours" else "openstack").auth_url)
    client.layout = request.getfixturevalue("tmp_path") / "cluster0"
    yield client
    client.close()


def refusal(reply):
    return reply.status, reply.body if reply.status == 400 else b""


def test_requests_for_versions_are_refused_alike(client):
    client.put("plain")
    client.put("plain", "o")
    client.put("versions", headers=VERSIONED)
    client.put("versions", "o")
    for container in ("never", "plain"):
        for version in (MOMENT, "junk"):
            for method in ("GET", "PUT", "DELETE", "OPTIONS"):
                reply = client.do(method, container, "o", query=f"?version-id={version}")
                assert refusal(reply) == NOT_VERSIONED, (method, container, version)
        assert client.do("HEAD", container, "o", query=f"?version-id={MOMENT}").status == 400
    for container in ("never", "plain", "versions"):
        for version in (MOMENT, "null", "junk"):
            assert refusal(client.do("POST", container, "o", query=f"?version-id={version}")) == NO_POST, (container, version)
        assert refusal(client.do("PUT", container, "o", query="?version-id=null")) == INVALID, container
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        assert refusal(client.do(method, "versions", "o", query="?version-id=junk")) == INVALID, method
    missing = client.do("PUT", "versions", "o", query=f"?version-id={MOMENT}")
    assert (missing.status, missing.body) == (404, b"The specified version does not exist")


def test_options_name_a_version_where_there_may_be_one(client):
    client.put("plain")
    client.put("versions", headers=VERSIONED)
    preflight = {"Origin": "http://elsewhere", "Access-Control-Request-Method": "GET"}
    for headers, status in (({}, 200), (preflight, 401)):
        for query, id_said in (("", "null"), ("?version-id=", "null"), ("?version-id=null", None), (f"?version-id={MOMENT}", None)):
            reply = client.do("OPTIONS", "versions", "o", headers=headers, query=query)
            assert (reply.status, reply["X-Object-Version-Id"]) == (status, id_said), (headers, query)
        assert client.do("OPTIONS", "plain", "o", headers=headers)["X-Object-Version-Id"] is None


@pytest.mark.parametrize("method,query", [("HEAD", ""), ("GET", ""), ("GET", "?versions")])
def test_who_was_told_that_a_container_is_gone_gets_no_version_of_it(client, method, query):
    """Its description lies in the cache still when its servers have lost it; their answer takes the place of that."""
    client.put("c", headers=VERSIONED)
    for body in (b"one", b"two"):
        client.put("c", "o", body=body)
    client.delete("c", "o")
    listed = json.loads(client.get("c", query="?versions&format=json"))
    version = "?version-id=" + next(each["version_id"] for each in listed if each["bytes"])
    assert client.do("GET", "c", "o", query=version).body == b"two"
    delete_behind(client, "c")
    assert client.do("GET", "c", "o", query=version).status == 200  # the cache cannot know
    assert client.do(method, "c", query=query).status == 404
    assert refusal(client.do("GET", "c", "o", query=version)) == NOT_VERSIONED
    client.put("c")
    client.put("c", "p", body=b"own")
    again = client.do("GET", "c", query="?versions&format=json")
    rows = [(row["name"], row["version_id"], row["is_latest"]) for row in json.loads(again.body)]
    assert rows == [*((row["name"], row["version_id"], row["is_latest"]) for row in listed), ("p", "null", True)]
    assert (again["X-Container-Bytes-Used"], again["X-Versions-Enabled"]) == ("3", None)
    assert refusal(client.do("GET", "c", "o", query=version)) == NOT_VERSIONED
    client.do("POST", "c", headers=VERSIONED, expect=204)
    assert client.do("GET", "c", "o", query=version).body == b"two"


def delete_behind(client, container):
    """On every server that has it, without the proxy."""
    path = client.path(container).removeprefix("/v1")
    ring = RingData.load(str(client.layout / "etc/container.ring.gz"))
    partition = int(hash_path(path)[:8], 16) >> ring._part_shift
    for device in {row[partition] for row in ring._replica2part2dev_id}:
        place = ring.devs[device]
        connection = http.client.HTTPConnection(place["ip"], place["port"])
        connection.request("DELETE", f"/{place['device']}/{partition}{path}", headers={"X-Timestamp": f"{time.time():.5f}"})
        assert connection.getresponse().status == 204
        connection.close()
