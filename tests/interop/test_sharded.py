"""Containers that OpenStack's sharder has cut: no listing is taken for a whole one, and none that has objects is deleted."""

import getpass
import http.client
import json
import shutil
import sqlite3

import pytest

from harness import upkeep
from harness.client import Client
from harness.places import openstack_command
from harness.process import run

OBJECTS = [f"o{number:02d}" for number in range(12)]
SHARDER = """[DEFAULT]
devices = {srv}
mount_check = false
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {etc}
user = {user}
[container-sharder]
auto_shard = false
cleave_batch_size = {batch}
recon_cache_path = {run}
internal_client_conf_path = {etc}/sharders-client.conf
[container-replicator]
"""
WATCHER = """[object-auditor:watcher:swift#dark_data]
action = delete
grace_age = 0
[object-auditor]
watchers = swift#dark_data
"""
CLIENT = """[DEFAULT]
swift_dir = {etc}
user = {user}
[pipeline:main]
pipeline = catch_errors proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:catch_errors]
use = egg:swift#catch_errors
"""


def databases(layout, container):
    """The paths of a container's databases."""
    def is_of(path):
        with sqlite3.connect(path) as database:
            return database.execute("SELECT container FROM container_info").fetchone()[0] == container
    return [path for path in sorted(layout.srv.rglob("*.db")) if "containers" in path.parts and is_of(path)]


def asked_of_server(cluster, container, record_type):
    """The status of a listing, asked of the container server itself."""
    device, _, partition = databases(cluster.layout, container)[0].relative_to(cluster.srv).parts[:3]
    connection = http.client.HTTPConnection("127.0.0.1", cluster.layout.ports["container", 0], timeout=30)
    connection.request("GET", f"/{device}/{partition}/AUTH_test/{container}", headers={"X-Backend-Record-Type": record_type})
    status = connection.getresponse().status
    connection.close()
    return status


def shard(cluster, container, *, passes=3, batch=2):
    """Cuts a container into shards of four objects, by OpenStack's tools, `batch` of them in each pass."""
    layout = cluster.layout
    values = {"srv": layout.srv, "etc": layout.etc, "run": layout.run, "user": getpass.getuser(), "port": layout.ports["container", 0], "batch": batch}
    (layout.etc / "sharders-client.conf").write_text(CLIENT.format(**values))
    (layout.etc / "container-sharder.conf").write_text(SHARDER.format(**values))

    first = databases(layout, container)[0]
    run(openstack_command(layout.etc, "swift-manage-shard-ranges", first, "find_and_replace", "4", "--enable", "--force"))
    for _ in range(passes):
        run_sharder(layout)


def run_sharder(layout):
    """One pass of OpenStack's sharder."""
    run(openstack_command(layout.etc, "swift-container-sharder", layout.etc / "container-sharder.conf", "once", "-v"))


@pytest.fixture
def served(cluster, ours):
    """A cluster of OpenStack's with a container of twelve objects."""
    if ours == "openstack":
        pytest.skip("OpenStack lists what its sharder has cut: there is nothing to refuse")
    served = cluster("openstack")
    client = Client(served.auth_url)
    client.do("PUT", "c", expect=201)
    for name in OBJECTS:
        client.put("c", name, body=b"body")
    return served


def exchange_in(served, role, kind):
    """Serves a role by the other make; a client of that."""
    served.stop_service(role)
    served.start_service(role, kind=kind)
    return Client(served.auth_url)


def in_account(client):
    """Objects and bytes of `c`, as its account lists them; nothing where it is not listed."""
    listed = json.loads(client.do("GET", query="?format=json", expect=200).body)
    return next(((row["count"], row["bytes"]) for row in listed if row["name"] == "c"), None)


def object_count(client):
    return int(client.do("HEAD", "c", expect=204)["X-Container-Object-Count"])


@pytest.mark.parametrize("passes", [1, 3], ids=["being cut", "cut"])
def test_the_watcher_of_dark_data_leaves_what_is_in_no_shard_yet(served, ours, passes):
    shard(served, "c", passes=passes, batch=1)
    client = Client(served.auth_url)
    client.put("c", "o00x", body=b"body")
    conf = served.etc / "object-server.conf"
    conf.write_text(conf.read_text().replace("[object-auditor]\n", WATCHER))
    assert WATCHER in conf.read_text()
    upkeep.once(served, ours, "object-auditor", conf)
    for name in (*OBJECTS, "o00x"):
        assert client.get("c", name) == b"body"


def test_what_lists_a_container_that_is_being_sharded_counts(served, ours):
    shard(served, "c", passes=1, batch=1)
    assert len(databases(served.layout, "c")) == 6, "those of before are still there"
    client = exchange_in(served, "container", ours)
    assert object_count(client) == len(OBJECTS)
    client.do("PUT", "c", expect=202)
    assert in_account(client) == (len(OBJECTS), 4 * len(OBJECTS))
    client.do("DELETE", "c", expect=409)


@pytest.mark.parametrize("is_made_again", [False, True], ids=["restored", "made again"])
def test_a_replica_that_was_lost_takes_no_sharded_container_along(served, ours, is_made_again):
    shard(served, "c")
    upkeep.once(served, "openstack", "container-updater", served.etc / "container-server.conf")
    exchange_in(served, "container", ours)
    client = exchange_in(served, "proxy", ours)
    shutil.rmtree(databases(served.layout, "c")[0].parent)
    if is_made_again:
        client.do("PUT", "c", expect=202)
        # Two of three replicas know that it has objects.
        client.do("DELETE", "c", expect=409)
    for _ in range(2):
        upkeep.once(served, ours, "container-replicator", served.etc / "container-server.conf")
    assert len(databases(served.layout, "c")) == 3
    for _ in range(10):
        assert object_count(client) == len(OBJECTS)
        client.do("GET", "c", expect=501)
    assert client.get("c", OBJECTS[0]) == b"body"
    upkeep.once(served, ours, "container-updater", served.etc / "container-server.conf")
    assert in_account(client) == (len(OBJECTS), 4 * len(OBJECTS))
    if not is_made_again:
        client = exchange_in(served, "container", "openstack")
        client = exchange_in(served, "proxy", "openstack")
        for _ in range(10):
            assert client.get("c").split() == [name.encode() for name in OBJECTS], "each replica knows the shards"


def test_a_sharded_container_is_neither_listed_as_empty_nor_deleted(served, ours):
    client = Client(served.auth_url)
    shard(served, "c")
    assert client.get("c").split() == [name.encode() for name in OBJECTS], "OpenStack lists its shards"

    def exchange(role, kind):
        return exchange_in(served, role, kind)
    client = exchange("proxy", ours)
    for query in ("", "?format=json", "?prefix=o"):
        client.do("GET", "c", query=query, expect=501)
    head = client.do("HEAD", "c", expect=204)
    assert head["X-Container-Object-Count"] == str(len(OBJECTS))
    client.do("DELETE", "c", expect=409)
    exchange("container", ours)
    head = client.do("HEAD", "c", expect=204)
    assert head["X-Container-Object-Count"] == str(len(OBJECTS)), "of what the shards said"
    for _ in range(15):
        client.do("GET", "c", expect=501)
    client.do("DELETE", "c", expect=409)
    client.do("PUT", "other", expect=201)  # no server was left alone for that
    assert client.do("GET", "other", expect=204).body == b""
    assert [asked_of_server(served, "c", kind) for kind in ("auto", "shard")] == [409, 409]
    assert [asked_of_server(served, "other", kind) for kind in ("auto", "shard")] == [204, 200]
    client = exchange("proxy", "openstack")
    client.do("DELETE", "c", expect=409)
    client.do("GET", "other", expect=204)
    exchange("container", "openstack")
    assert client.get("c").split() == [name.encode() for name in OBJECTS], "nothing was changed"
    for name in OBJECTS:
        client.do("DELETE", "c", name, expect=204)
    run_sharder(served.layout)  # the root hears that its shards are empty
    client.do("DELETE", "c", expect=204)
    exchange("container", ours)
    client.do("DELETE", "c", expect=404)
