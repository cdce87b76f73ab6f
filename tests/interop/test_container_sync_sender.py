"""A synced container's objects arrive at the other one, whichever make sends and whichever receives."""

import pytest

from harness import upkeep
from harness.client import Client

REALMS = """[DEFAULT]
mtime_check_interval = 1

[US]
key = realm key
cluster_here = http://127.0.0.1:{port}/v1/
"""


def listing(client, container):
    return {name for name in client.get(container).decode().splitlines()}


@pytest.mark.parametrize("proxy", ["openstack", "ours"])
def test_rows_are_sent_and_deletions_follow(cluster, ours, proxy):
    kinds = dict.fromkeys(("account", "container", "object"), "openstack") | {"proxy": ours if proxy == "ours" else "openstack"}
    one = cluster(kinds)
    (one.etc / "container-sync-realms.conf").write_text(REALMS.format(port=one.port))
    for role in ("proxy", "container"):
        one.stop_service(role)
        one.start_service(role)
    client = Client(one.auth_url)
    client.put("to", headers={"X-Container-Sync-Key": "secret"})
    client.put("from", headers={"X-Container-Sync-Key": "secret", "X-Container-Sync-To": "//US/here/AUTH_test/to", "X-Storage-Policy": "silver"})
    names = [f"o {number}" for number in range(7)] + ["ü/%2F?"]
    for name in names:
        client.put("from", name, body=name.encode() * 3, headers={"X-Object-Meta-Colour": "blue", "Content-Type": "text/x"})
    internal = upkeep.write_conf(one, "internal-client.conf", "unused")
    conf = upkeep.write_conf(one, "sync.conf", "container-sync", internal_client_conf_path=internal)
    conf.write_text(conf.read_text().replace(
        "[DEFAULT]", f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {one.layout.ports['container', 0]}\ndevices = {one.srv}\nmount_check = false"))
    said = upkeep.once(one, ours, "container-sync", conf)
    assert listing(client, "to") == set(names), said
    for name in names:
        reply, source = client.do("GET", "to", name), client.do("GET", "from", name)
        assert (reply.status, reply.body, reply["X-Object-Meta-Colour"]) == (200, name.encode() * 3, "blue")
        assert (reply["X-Timestamp"], reply["Content-Type"]) == (source["X-Timestamp"], source["Content-Type"])
    client.delete("from", "o 1")
    client.put("from", "o 2", body=b"newer")
    client.do("POST", "from", "o 3", headers={"X-Object-Meta-Colour": "red"}, expect=202)
    upkeep.once(one, ours, "container-sync", conf)
    assert listing(client, "to") == set(names) - {"o 1"}
    assert client.get("to", "o 2") == b"newer"
    assert client.do("HEAD", "to", "o 3")["X-Object-Meta-Colour"] == "red"
