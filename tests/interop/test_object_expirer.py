"""The same queue of things to delete, worked off by either expirer on either's servers: the same is left."""

import json
import time

import pytest
from swift.common import direct_client
from swift.common.ring import Ring

from harness import disk, upkeep
from harness.client import Client

WEEK = 604800


def put_task(cluster, due, target, content_type="text/plain", *, name=None, queue=None):
    """A row of the queue, as an object server tells it."""
    ring = Ring(str(cluster.etc), ring_name="container")
    queue = queue or str(int(float(due)) // 86400 * 86400)
    partition, nodes = ring.get_nodes(".expiring_objects", queue)
    for node in nodes:
        direct_client.direct_put_container_object(
            node, partition, ".expiring_objects", queue, name or f"{due}-{target}",
            headers={"X-Size": 0, "X-Content-Type": content_type, "X-Etag": "x", "X-Timestamp": f"{time.time() - 5:.5f}",
                     "X-Backend-Storage-Policy-Index": 0})


def queue_of(cluster):
    """Every row of the queue as {name without its time: content type}, by server."""
    ring = Ring(str(cluster.etc), ring_name="container")
    accounts = Ring(str(cluster.etc), ring_name="account")
    partition, nodes = accounts.get_nodes(".expiring_objects")
    found = []
    containers = set()
    for node in nodes:
        try:
            containers |= {row["name"] for row in direct_client.direct_get_account(node, partition, ".expiring_objects")[1]}
        except direct_client.DirectClientException as error:
            assert error.http_status == 404
    for container in sorted(containers):
        partition, nodes = ring.get_nodes(".expiring_objects", container)
        for node in nodes:
            try:
                rows = direct_client.direct_get_container(node, partition, ".expiring_objects", container)[1]
            except direct_client.DirectClientException:
                rows = []
            found.extend((row["name"].split("-", 1)[-1], row["content_type"]) for row in rows)
    return sorted(found)


def put_expiring(client, container, name, body=b""):
    """When the new object expires: late enough for a busy machine to store it before."""
    due = int(time.time()) + 25
    client.put(container, name, body=body, headers={"X-Delete-At": str(due)})
    return due


def fill(cluster):
    """Things that expire, and tasks of every kind. What is there when the time has come."""
    client = Client(cluster.auth_url)
    client.put("c")
    client.put("silver", headers={"X-Storage-Policy": "silver"})
    client.put("c", "plain", body=b"1")
    for container in ("c", "silver"):
        for name in ("gone", "gone/ü 1", "rewritten", "gone?x=%41"):
            due = put_expiring(client, container, name, body=b"12")
    for container in ("c", "silver"):
        client.put(container, "later", body=b"1", headers={"X-Delete-After": "5000"})
        client.put(container, "rewritten", body=b"123")
        client.put(container, "segment", body=b"1234")
    now = int(time.time())
    # Segments of a large object that was deleted, and one that is not there any more.
    put_task(cluster, f"{time.time():.5f}", "AUTH_test/c/segment", "application/async-deleted")
    put_task(cluster, f"{time.time():.5f}", "AUTH_test/c/no segment", "application/async-deleted")
    put_task(cluster, now - 20, "AUTH_test/c/nothing yet")
    put_task(cluster, now - WEEK - 20, "AUTH_test/c/nothing for long")
    put_task(cluster, now - 20, "AUTH_test/c/plain")
    put_task(cluster, now - WEEK - 20, "AUTH_test/silver/segment")
    put_task(cluster, now - 20, "", name="no task")
    put_task(cluster, now - 20, "AUTH_test/c/x", queue="no-number")
    for role in ("container-updater",):
        upkeep.once(cluster, "openstack", role, cluster.etc / "container-server.conf")
    time.sleep(max(0.0, due + 1.5 - time.time()))
    return client


def left(cluster, client):
    """All that can be seen of it: listings, what objects answer, what lies on disk, the queue."""
    listings = {name: [row["name"] for row in json.loads(client.get(name, query="?format=json"))] for name in ("c", "silver")}
    names = sorted({name for names in listings.values() for name in names} | {"gone", "segment", "plain"})
    answers = {(container, name): client.do("GET", container, name).status for container in listings for name in names}
    files = {suffix: len(disk.objects(cluster.srv, suffix)) for suffix in (".data", ".ts")}
    return {"listings": listings, "answers": answers, "files": files, "queue": queue_of(cluster)}


@pytest.mark.parametrize("servers", [pytest.param("openstack", marks=pytest.mark.extra), "ours"])
def test_both_expirers_leave_the_same(cluster, ours, servers):
    results = []
    for kind in ("openstack", ours):
        one = cluster(ours if servers == "ours" else "openstack")
        client = fill(one)
        conf = upkeep.write_conf(one, "object-expirer.conf", "object-expirer", tasks_per_second=0, concurrency=4, request_tries=1)
        upkeep.once(one, kind, "object-expirer", conf)
        first = left(one, client)
        upkeep.once(one, kind, "object-expirer", conf)  # finds empty containers of the queue
        results.append((first, left(one, client)))
        one.stop()
    assert results[0] == results[1]
    assert results[0][0]["answers"]["c", "gone"] == 404 and "gone" not in results[0][0]["listings"]["c"]


def test_shares_and_delays(cluster, ours):
    """Each task is done by one of several expirers, whatever make they are, and not before its delay is over."""
    one = cluster("openstack")
    client = Client(one.auth_url)
    client.put("c")
    client.put("slow")
    names = [f"o{number}" for number in range(60)]  # of whom some fall to each expirer, whatever their times are
    for name in names:
        put_expiring(client, "c", name)
    due = put_expiring(client, "slow", "o")
    upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
    time.sleep(max(0.0, due + 1.5 - time.time()))
    conf = upkeep.write_conf(one, "object-expirer.conf", "object-expirer", tasks_per_second=0, **{"delay_reaping_AUTH_test/slow": "600"})
    still = [len(json.loads(client.get("c", query="?format=json")))]
    for process, kind in enumerate(("openstack", ours, "openstack")):
        upkeep.once(one, kind, "object-expirer", conf, "--processes", "3", "--process", str(process))
        still.append(len(json.loads(client.get("c", query="?format=json"))))
    assert still[0] == 60 and still[-1] == 0 and sorted(still, reverse=True) == still and len(set(still)) == 4, still
    assert [row["name"] for row in json.loads(client.get("slow", query="?format=json"))] == ["o"]
    assert len(queue_of(one)) == 3  # on each of three servers: the slow one
