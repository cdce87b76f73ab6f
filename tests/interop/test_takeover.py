"""Devices change hands: what one make wrote the other serves, changes and deletes, and back again."""

import pytest

from harness import disk, journey
from harness.client import Client

ROLES = {"object": ["object"], "container": ["container"], "account": ["account"], "everything": ["account", "container", "object"]}


def hand_over(cluster, roles, kind):
    for role in roles:
        cluster.stop_service(role)
        cluster.start_service(role, 0, kind)


@pytest.mark.parametrize("roles, first", [
    pytest.param(roles, first, id=f"{name}-{first}", marks=[pytest.mark.extra] if first == "ours" and name != "everything" else [])
    for name, roles in ROLES.items() for first in ("openstack", "ours")])
def test_storage_changes_hands_and_comes_back(cluster, ours, roles, first):
    before, after = ("openstack", ours) if first == "openstack" else (ours, "openstack")
    shared = cluster({"proxy": "openstack", **{role: before if role in roles else "openstack" for role in ("account", "container", "object")}})
    client = Client(shared.auth_url)
    early = journey.write(client, "early")

    hand_over(shared, roles, after)
    journey.check(client, early)
    late = journey.write(client, "late")
    container = "early gold"
    client.put(container, "plain", body=b"rewritten")
    early[container, "plain"] = b"rewritten", {}
    client.do("POST", container, "big", headers={"X-Object-Meta-Hand": "second"}, expect=202)
    early[container, "big"] = journey.BIG, {"X-Object-Meta-Hand": "second"}
    client.do("DELETE", container, "nested/1", expect=204)
    early[container, "nested/1"] = None, {}
    client.do("POST", container, headers={"X-Container-Meta-More": "yes"}, expect=204)
    journey.check(client, early | late)

    hand_over(shared, roles, before)
    journey.check(client, early | late)
    assert client.do("HEAD", container)["X-Container-Meta-More"] == "yes"
    journey.clean(client, early | late)
    disk.check_databases(shared.srv)


def test_openstack_serves_what_one_command_made(cluster, make_system, request):
    """The directory of `martlet up` is a cluster that OpenStack's services start on as it is, and the other way."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("there is no `martlet up` of OpenStack's")
    up = make_system("up")
    up.start()
    kept = journey.write(Client(up.auth_url), "one")
    assert up.stop() == 0

    theirs = cluster("openstack", root=up.root)  # writes the same layout, then serves what is there
    client = Client(theirs.auth_url)
    journey.check(client, kept)
    kept |= journey.write(client, "two")
    theirs.stop()

    up.start()
    journey.check(Client(up.auth_url), kept)
