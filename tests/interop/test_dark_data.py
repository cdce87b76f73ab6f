"""The object-auditor's watcher of dark data takes away what no container lists, and nothing else."""

import pytest
from swift.common import direct_client
from swift.common.ring import Ring

from harness import disk
from harness.client import Client
from harness.upkeep import once

WATCHER = {"watchers": "swift#dark_data", "files_per_second": 10000, "bytes_per_second": 10**10,
           "zero_byte_files_per_second": 10000}


@pytest.mark.parametrize("action", ["delete", "quarantine"])
def test_versions_are_listed(cluster, ours, action):
    """Their containers have reserved names, which container servers list to those alone who may see them."""
    if ours == "openstack":
        pytest.skip("OpenStack's watcher reads its rings in /etc/swift, wherever the auditor's own are")
    sections = {"object-auditor": WATCHER, "object-auditor:watcher:swift#dark_data": {"action": action, "grace_age": 0}}
    system = cluster(ours, overrides={"object": sections})
    client = Client(system.auth_url)
    client.put("versions", headers={"X-Versions-Enabled": "true"})
    client.put("plain")
    versions = [client.put("versions", "o", body=body)["X-Object-Version-Id"] for body in (b"old", b"new")]
    partition, nodes = Ring(str(system.etc), ring_name="object").get_nodes("AUTH_test", "plain", "dark")
    for node in nodes:
        direct_client.direct_put_object(node, partition, "AUTH_test", "plain", "dark", contents=b"listed nowhere",
                                        headers={"Content-Type": "text/plain"})
    names = [disk.metadata(path)[b"name"] for path in disk.objects(system.srv)]
    assert names.count(b"/AUTH_test/plain/dark") == 3
    once(system, ours, "object-auditor", system.etc / "object-server.conf")
    left = [disk.metadata(path)[b"name"] for path in disk.objects(system.srv) if "quarantined" not in str(path)]
    assert sorted(left) == sorted(name for name in names if name != b"/AUTH_test/plain/dark")
    assert client.get("versions", "o") == b"new"
    assert client.get("versions", "o", query=f"?version-id={versions[0]}") == b"old"
