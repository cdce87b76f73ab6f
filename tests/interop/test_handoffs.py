"""A handoff that has nothing says nothing of what the primaries have."""

from harness import disk
from harness.client import Client


def test_a_container_is_neither_gone_nor_deleted_while_two_of_its_drives_are_away(cluster, ours):
    one = cluster(ours, devices=6)
    client = Client(one.auth_url)
    client.put("c", headers={"X-Container-Meta-Colour": "blue"})
    devices = [path.relative_to(one.srv).parts[0] for path in disk.databases(one.srv, "containers")]
    assert len(devices) == 3
    for device in devices[:2]:
        (one.srv / device).rename(one.srv / f"away-{device}")
    client.do("POST", "c", headers={"X-Container-Meta-Colour": "red"}, expect=503)
    client.do("DELETE", "c", expect=503)
