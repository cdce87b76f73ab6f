"""One cluster of both makes: either's proxy before either's storage, role by role and node by node."""

import pytest

from harness import disk, journey
from harness.client import Client
from harness.waiting import until

MIXES = {
    "their proxy, our storage": dict(proxy="openstack", account="ours", container="ours", object="ours"),
    "our proxy, their storage": dict(proxy="ours", account="openstack", container="openstack", object="openstack"),
    "our object servers only": dict(proxy="openstack", account="openstack", container="openstack", object="ours"),
    "our container servers only": dict(proxy="openstack", account="openstack", container="ours", object="openstack"),
    "our account servers only": dict(proxy="openstack", account="ours", container="openstack", object="openstack"),
    "their object servers only": dict(proxy="ours", account="ours", container="ours", object="openstack"),
    "their container servers only": dict(proxy="ours", account="ours", container="openstack", object="ours"),
}


@pytest.mark.parametrize("name", MIXES)
def test_a_stay_in_a_mixed_cluster(cluster, ours, name):
    kinds = {role: ours if kind == "ours" else kind for role, kind in MIXES[name].items()}
    mixed = cluster(kinds)
    client = Client(mixed.auth_url)
    kept = journey.write(client, "stay")
    journey.check(client, kept)
    assert len(disk.find_object(mixed.srv, "/AUTH_test/stay gold/big")) == 3
    journey.clean(client, kept)
    assert disk.check_databases(mixed.srv) >= 3 + 2 * 3
    until(lambda: not disk.temporary(mixed.srv), what="no temporary file")


@pytest.mark.parametrize("proxy", ["openstack", "ours"])
def test_nodes_of_both_makes_hold_replicas_of_the_same_objects(cluster, ours, proxy):
    """Three storage nodes, one of the other make: every object has a replica on each."""
    kinds = dict.fromkeys(("account", "container", "object"), "openstack") | {"proxy": ours if proxy == "ours" else "openstack"}
    mixed = cluster(kinds, nodes=3, devices=3)
    for role in ("account", "container", "object"):
        mixed.stop_service(role, 1)
        mixed.start_service(role, 1, ours)
    client = Client(mixed.auth_url)
    kept = journey.write(client, "nodes")
    journey.check(client, kept)
    for (container, name), (body, _) in kept.items():
        if body:
            copies = disk.find_object(mixed.srv, f"/AUTH_test/{container}/{name}")
            assert len(copies) == 3 and {copy.read_bytes() for copy in copies} == {body}
            assert len({str(disk.metadata(copy)) for copy in copies}) == 1, "replicas describe themselves differently"
    few = {key: value for key, value in kept.items() if key[1] in ("plain", "big", "nested/1")}
    for node in (0, 2):  # what the others still hold is served
        mixed.kill_service("object", node)
        journey.check_objects(client, few)
        mixed.start_service("object", node)
