"""kill -9 of an object server that has stored a change and waits for a container server that does not answer.

OpenStack's servers lose the listing's row in that moment; ours have a note of it on the device, which the next server or the
object-updater makes a pending update of.
"""

import signal
import threading

import pytest

from harness import disk
from harness.backend import pending_update
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.upkeep import once
from harness.waiting import until


# Nobody gives up waiting for the container server while the test looks at the devices.
LONG = {"conn_timeout": 200, "node_timeout": 200, "silence_timeout": 200}
OVERRIDES = {"proxy": {"app:proxy-server": LONG}, "object": {"app:object-server": {**LONG, "container_update_timeout": 200}}}


@pytest.fixture
def cluster(tmp_path, request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's servers keep no note of updates under way")
    memcached = Memcached().start()
    layout = Layout(tmp_path / "c", memcached_port=memcached.port, overrides=OVERRIDES)
    cluster = Cluster(layout.write(), "martlet").start()
    yield cluster
    cluster.kill()
    memcached.stop()


def notes(srv):
    return [path for device in srv.iterdir() for path in device.glob("tmp/.updates-*")]


def pending(srv):
    return [path for path in disk.files(srv) if any(part.startswith("async_pending") for part in path.parts)]


def versions(srv, name):
    return sorted(path.suffix for suffix in (".data", ".meta", ".ts") for path in disk.objects(srv, suffix)
                  if disk.metadata(path).get(b"name", disk.metadata(path).get("name")) in (name, name.encode()))


@pytest.mark.parametrize("comes_back", [True, False], ids=["the server comes back", "the updater alone"])
def test_no_row_is_lost(cluster, comes_back):
    client = Client(cluster.auth_url)
    root = client.root.removeprefix("/v1")
    client.put("c")
    client.put("c", "deleted", body=b"x")
    client.put("c", "described", body=b"x")
    assert client.get("c").split() == [b"deleted", b"described"]
    until(lambda: not notes(cluster.srv), what="a drive at rest without notes")

    cluster.services["container", 0].signal(signal.SIGSTOP)
    asked = [("PUT", "new", {"X-Delete-After": "86400"}), ("DELETE", "deleted", {}), ("POST", "described", {"Content-Type": "x/y"})]
    others = [threading.Thread(target=lambda one=one: Client(cluster.auth_url).do(one[0], "c", one[1], headers=one[2])) for one in asked]
    for other in others:
        other.start()
    stored = [("new", [".data"] * 3), ("deleted", [".ts"] * 3), ("described", [".data"] * 3 + [".meta"] * 3)]
    until(lambda: all(versions(cluster.srv, f"{root}/c/{name}") == files for name, files in stored), what="the objects")
    assert notes(cluster.srv)
    cluster.kill_service("object")
    for other in others:
        other.join()
    # It would find the requests in its sockets, were it to go on.
    cluster.kill_service("container")
    cluster.start_service("container")
    assert not pending(cluster.srv)
    assert client.get("c").split() == [b"deleted", b"described"]

    if comes_back:
        cluster.start_service("object")
        for name, _ in stored:
            client.do("HEAD", "c", name)
        until(lambda: not notes(cluster.srv), what="the notes to be taken over")
        kept = [pending_update(path.read_bytes()) for path in pending(cluster.srv)]
        assert {(update["container"], update["obj"]) for update in kept if update["container"] == "c"} == {("c", name) for name, _ in stored}
        assert any(update["account"] == ".expiring_objects" and update["obj"].endswith("/c/new") for update in kept)
    once(cluster, "martlet", "object-updater", cluster.etc / "object-server.conf")
    assert not notes(cluster.srv) and not pending(cluster.srv)
    assert client.get("c").split() == [b"described", b"new"]
    assert b'"x/y"' in client.get("c", query="?format=json")
