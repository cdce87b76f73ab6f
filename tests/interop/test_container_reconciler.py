"""Objects under the wrong policy, put right by either reconciler on either's servers: the same is left."""

import time

import pytest
from swift.common import direct_client
from swift.common.ring import Ring
from swift.common.utils import Timestamp

from harness import disk, upkeep
from harness.client import Client

QUEUE = ".misplaced_objects"


def put_direct(cluster, policy, name, when, body):
    """An object in all its places under a policy, whatever its container's is."""
    ring = Ring(str(cluster.etc), ring_name=f"object-{policy}" if policy else "object")
    partition, nodes = ring.get_nodes("AUTH_test", "c", name)
    for node in nodes:
        headers = {"X-Timestamp": when.internal, "X-Backend-Storage-Policy-Index": policy, "Content-Type": "text/x"}
        if body is None:
            try:
                direct_client.direct_delete_object(node, partition, "AUTH_test", "c", name, headers=headers)
            except direct_client.DirectClientException as error:
                assert error.http_status == 404
        else:
            headers.update({"X-Object-Meta-Colour": "blue", "X-Object-Sysmeta-Kept": "yes"})
            direct_client.direct_put_object(node, partition, "AUTH_test", "c", name, body, content_length=len(body), headers=headers)


def enqueue(cluster, policy, name, when, event, *, path=None):
    """A row of the queue, as a container-replicator makes it."""
    ring = Ring(str(cluster.etc), ring_name="container")
    container = str(int(when) // 3600 * 3600)
    partition, nodes = ring.get_nodes(QUEUE, container)
    for node in nodes:
        direct_client.direct_put_container_object(
            node, partition, QUEUE, container, path or f"{policy}:/AUTH_test/c/{name}",
            headers={"X-Size": 0, "X-Etag": when.internal, "X-Timestamp": when.internal, "X-Content-Type": f"application/x-{event}",
                     "X-Backend-Storage-Policy-Index": 0})


def rows(cluster, account, container):
    ring = Ring(str(cluster.etc), ring_name="container")
    partition, nodes = ring.get_nodes(account, container)
    found = []
    for node in nodes:
        try:
            found.append(sorted(row["name"] for row in direct_client.direct_get_container(node, partition, account, container)[1]))
        except direct_client.DirectClientException:
            found.append([])
    return found


def fill(cluster):
    client = Client(cluster.auth_url)
    client.put("c", headers={"X-Storage-Policy": "silver"})
    now = Timestamp(int(time.time()) - 20)
    later, earlier = Timestamp(float(now) + 5), Timestamp(float(now) - 5)
    for name, here, there in [  # times under policy 0 and 1, positive for an object, negative for a deletion
        ("moved", now, None), ("newer source", later, None), ("newer there", now, later), ("older there", now, earlier),
        ("ü %2F", now, None),
    ]:
        put_direct(cluster, 0, name, here, b"from gold")
        if there is not None:
            put_direct(cluster, 1, name, there, b"silver")
        enqueue(cluster, 0, name, now, "put")
    put_direct(cluster, 0, "deleted", now, None)
    put_direct(cluster, 1, "deleted", earlier, b"silver")
    enqueue(cluster, 0, "deleted", now, "delete")
    put_direct(cluster, 1, "right", now, b"silver")
    enqueue(cluster, 1, "right", now, "put")
    enqueue(cluster, 0, "missing", now, "put")
    enqueue(cluster, 0, "x", now, "put", path="no record")
    enqueue(cluster, 7, "of no policy", now, "put")
    return client, now


def left(cluster, client, now):
    answers = {}
    for name in ("moved", "newer source", "newer there", "older there", "ü %2F", "deleted", "right", "missing"):
        reply = client.do("GET", "c", name)
        answers[name] = (reply.status, reply.body if reply.status == 200 else None, reply["X-Object-Meta-Colour"])
    files = sorted((path.relative_to(cluster.srv).parts[1], path.name.replace(str(int(now)), "NOW").replace(str(int(now) + 5), "LATER")
                    .replace(str(int(now) - 5), "EARLIER")) for suffix in (".data", ".ts") for path in disk.objects(cluster.srv, suffix))
    return {"answers": answers, "files": files, "listing": rows(cluster, "AUTH_test", "c"),
            "queue": rows(cluster, QUEUE, str(int(now) // 3600 * 3600))}


@pytest.mark.parametrize("servers", ["openstack", "ours"])
def test_both_reconcilers_leave_the_same(cluster, ours, servers):
    results = []
    for kind in ("openstack", ours):
        one = cluster(ours if servers == "ours" else "openstack")
        client, now = fill(one)
        conf = upkeep.write_conf(one, "container-reconciler.conf", "container-reconciler", request_tries=1)
        upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
        output = upkeep.once(one, kind, "container-reconciler", conf)
        # Ours sends no request for it.
        assert kind == "openstack" or "swift.conf has no policy 7; tried again in the next pass (/AUTH_test/c/of no policy)" in output, output
        results.append(left(one, client, now))
        one.stop()
    assert results[0] == results[1]
    assert results[0]["answers"]["moved"] == (200, b"from gold", "blue")
    assert results[0]["answers"]["deleted"][0] == 404
    assert results[0]["queue"] == [["0:/AUTH_test/c/missing", "0:/AUTH_test/c/newer source", "7:/AUTH_test/c/of no policy", "no record"]] * 3
