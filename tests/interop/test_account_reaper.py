"""Deleted accounts, reaped by either make on either's servers: nothing is left but what must stay."""

import sqlite3
import time

import pytest
from swift.common import direct_client
from swift.common.ring import Ring

from harness import disk, upkeep
from harness.client import Client


def mark_deleted(cluster, account):
    ring = Ring(str(cluster.etc), ring_name="account")
    partition, nodes = ring.get_nodes(account)
    for node in nodes:
        direct_client.direct_delete_account(node, partition, account)


@pytest.mark.parametrize("servers", ["openstack", "ours"])
@pytest.mark.parametrize("reaper", ["openstack", "ours"])
def test_a_deleted_account_is_reaped_whole(cluster, ours, servers, reaper):
    one = cluster(ours if servers == "ours" else "openstack", overrides={"account": {"account-reaper": {"concurrency": 4}}})
    client, other = Client(one.auth_url), Client(one.auth_url, user="test2:tester2")
    other.put("kept")
    other.put("kept", "o", body=b"1")
    for policy in ("gold", "silver"):
        client.put(f"c {policy}", headers={"X-Storage-Policy": policy})
        for name in ("o", "p/q", "ü%2F", "gone"):
            client.put(f"c {policy}", name, body=b"12")
        client.delete(f"c {policy}", "gone")
    client.put("empty")
    upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
    before = len(disk.objects(one.srv))
    mark_deleted(one, "AUTH_test")
    time.sleep(0.1)
    output = upkeep.once(one, ours if reaper == "ours" else "openstack", "account-reaper", one.etc / "account-server.conf")
    left = disk.objects(one.srv)
    assert before == 3 * 7 and len(left) == 3, output
    assert {disk.metadata(path)[b"name"] for path in left} == {b"/AUTH_test2/kept/o"}
    tombstones = [path for path in disk.objects(one.srv, ".ts")]
    for name in {path.parent for path in tombstones}:
        assert len([path for path in tombstones if path.parent == name]) == 1
    hashes = {}
    for path in tombstones:
        hashes.setdefault(path.parent.name, set()).add(path.name)
    assert len(hashes) == 8 and all(len(times) == 1 for times in hashes.values()), "replicas were deleted at different times"
    ring = Ring(str(one.etc), ring_name="container")
    for container in ("c gold", "c silver", "empty"):
        partition, nodes = ring.get_nodes("AUTH_test", container)
        times = set()
        for node in nodes:
            with pytest.raises(direct_client.DirectClientException) as gone:
                direct_client.direct_head_container(node, partition, "AUTH_test", container)
            assert gone.value.http_status == 404
            times.add(gone.value.http_headers["X-Backend-DELETE-Timestamp"])
        assert len(times) == 1
    assert other.get("kept", "o") == b"1"


def test_an_account_that_one_server_learns_of_by_replication_is_reaped_whole(cluster, ours):
    """Replication brings the time of the deletion, and not the status."""
    one = cluster(ours)
    client = Client(one.auth_url)
    for number in range(12):
        client.put(f"c{number}")
        client.put(f"c{number}", "o", body=b"1")
    upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
    mark_deleted(one, "AUTH_test")
    missed = disk.databases(one.srv, "accounts")[0]
    with sqlite3.connect(missed) as database:
        database.execute("UPDATE account_stat SET status = ''")
    database.close()
    ring = Ring(str(one.etc), ring_name="account")
    partition, nodes = ring.get_nodes("AUTH_test")
    node = next(node for node in nodes if f"/{node['device']}/" in str(missed))
    with pytest.raises(direct_client.DirectClientException) as refused:
        direct_client._make_req(node, partition, "PUT", "/AUTH_test", direct_client.gen_headers(), "Account", 5, 5)
    assert refused.value.http_status == 403
    time.sleep(0.1)
    output = upkeep.once(one, ours, "account-reaper", one.etc / "account-server.conf")
    assert not disk.objects(one.srv), output
    assert client.do("GET").status == 410


@pytest.mark.parametrize("delay, left", [(3600, 3), (1, 0)])
def test_a_deletion_waits_for_its_delay(cluster, ours, delay, left):
    one = cluster("openstack", overrides={"account": {"account-reaper": {"delay_reaping": delay}}})
    client = Client(one.auth_url)
    client.put("c")
    client.put("c", "o", body=b"1")
    upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
    mark_deleted(one, "AUTH_test")
    time.sleep(min(delay, 4))  # dates of servers have whole seconds
    output = upkeep.once(one, ours, "account-reaper", one.etc / "account-server.conf")
    assert len(disk.objects(one.srv)) == left, output
