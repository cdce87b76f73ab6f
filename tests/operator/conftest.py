"""What the tools are shown: clusters of both makes that have run and ended, and object files with odd metadata."""

import pytest

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached
from harness.packages import old_and_new


def fill(auth_url, policy):
    """Objects, tombstones, changed metadata, listings with rows that wait, a deleted container."""
    client = Client(auth_url)
    client.put("cont", headers={"X-Container-Meta-Color": "blue", "X-Container-Read": ".r:*", **policy})
    client.put("other")
    client.do("POST", headers={"X-Account-Meta-Temp-Url-Key": "k", "X-Account-Meta-B": "b"}, expect=204)
    client.put("cont", "obj", body=b"hello", headers={"X-Object-Meta-One": "1", "X-Delete-At": "2000000000", "Content-Type": "text/plain; charset=utf-8"})
    client.put("cont", "posted", body=b"hello again", headers={"X-Object-Meta-Old": "1"})
    client.do("POST", "cont", "posted", headers={"X-Object-Meta-New": "2", "Content-Type": "a/b"}, expect=202)
    client.put("cont", "ö b/j?", body=b"x" * 100_000)
    client.put("other", "gone")
    client.delete("other", "gone")
    client.put("deleted")
    client.delete("deleted")
    client.close()


@pytest.fixture(scope="session")
def our_files(tmp_path_factory):
    """What `martlet up` leaves."""
    up = MartletUp(tmp_path_factory.mktemp("ours") / "up").start()
    try:
        fill(up.auth_url, {})
    finally:
        up.stop()
    return up


@pytest.fixture(scope="session")
def their_files(tmp_path_factory):
    """What OpenStack's servers leave, two policies in use."""
    memcached = Memcached().start()
    layout = Layout(tmp_path_factory.mktemp("theirs"), memcached_port=memcached.port).write()
    cluster = Cluster(layout, "openstack")
    try:
        cluster.start()
        fill(cluster.auth_url, {"X-Storage-Policy": "silver"})
    finally:
        cluster.stop()
        memcached.stop()
    return layout


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A folder with the Debian package twice, an older and a newer one."""
    return old_and_new(tmp_path_factory.mktemp("packages"))
