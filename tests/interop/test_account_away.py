"""What an account forbids stays forbidden, and what it has stays there, while its servers are away or say that it is deleted."""

import socket
import time

from swift.common import direct_client
from swift.common.ring import Ring

from harness import backend, disk, upkeep
from harness.client import Client
from harness.gateways import Gateways


def forget(cluster):
    """Nothing that gateways or memcached remember of accounts counts any more; a client with a new token."""
    with socket.create_connection(("127.0.0.1", cluster.memcached.port)) as connection:
        connection.sendall(b"flush_all\r\n")
        assert connection.recv(100) == b"OK\r\n"
    time.sleep(1.1)
    return Client(cluster.auth_url)


def account_servers(cluster):
    ring = Ring(str(cluster.etc), ring_name="account")
    partition, nodes = ring.get_nodes("AUTH_test")
    return [(node, partition) for node in nodes]


def test_a_read_only_account_takes_nothing_while_its_servers_are_away(cluster, ours):
    one = cluster(ours)
    client = Client(one.auth_url)
    client.put("c")
    client.put("c", "o", body=b"some")
    for node, partition in account_servers(one):
        backend.call(node["port"], backend.Call("POST", "/AUTH_test", time=f"{time.time():.5f}", headers={"X-Account-Sysmeta-Read-Only": "true"},
                                                device=node["device"], partition=str(partition)))

    def answers(client):
        return {client.do(verb, "c", "o", body=b"other" if verb == "PUT" else b"").status for verb in ("PUT", "POST", "DELETE")}

    assert answers(forget(one)) == {405}
    one.stop_service("account")
    client = forget(one)
    assert answers(client) == ({404} if ours == "openstack" else {503})
    if ours != "openstack":  # which says that there is no such container
        for verb in ("HEAD", "GET", "POST", "DELETE"):
            client.do(verb, "c", expect=503)
        assert client.get("c", "o") == b"some"


def test_a_deleted_account_takes_nothing(cluster, ours):
    """The reaper would take it along."""
    one = cluster(ours)
    client = Client(one.auth_url)
    client.put("c", headers={"X-Container-Read": ".r:*"})
    client.put("c", "o", body=b"some")
    for node, partition in account_servers(one):
        direct_client.direct_delete_account(node, partition, "AUTH_test")
    client = forget(one)
    client.do("PUT", "c", "new", body=b"some", expect=404)
    assert client.get("c", "o") == b"some", "what was deleted by mistake can be saved"
    assert client.send("GET", client.path("c", "o"), None, {"X-Auth-Token": ""}).status == 401


def test_versions_in_a_deleted_account_can_be_read(cluster, ours):
    """OpenStack's knows of no versions there."""
    one = cluster(ours)
    client = Client(one.auth_url)
    client.put("c", headers={"X-Versions-Enabled": "true"})
    first = dict(client.do("PUT", "c", "o", body=b"first").headers)["X-Object-Version-Id"]
    client.put("c", "o", body=b"second")
    for node, partition in account_servers(one):
        direct_client.direct_delete_account(node, partition, "AUTH_test")
    client = forget(one)
    read = client.do("GET", "c", "o", query=f"?version-id={first}", expect=400 if ours == "openstack" else 200)
    assert ours == "openstack" or read.body == b"first"
    client.do("DELETE", "c", "o", query=f"?version-id={first}", expect=400 if ours == "openstack" else 404)


def test_what_expires_in_a_deleted_account_goes(cluster, ours):
    """OpenStack's expirer gives it up instead."""
    one = cluster(ours)
    client = Client(one.auth_url)
    client.put("c")
    client.put("c", "o", body=b"some", headers={"X-Delete-After": "1"})
    client.put("c", "stays", body=b"some")
    for node, partition in account_servers(one):
        direct_client.direct_delete_account(node, partition, "AUTH_test")
    time.sleep(2)
    forget(one)
    upkeep.once(one, ours, "container-updater", one.etc / "container-server.conf")  # the expirer finds what is listed
    conf = upkeep.write_conf(one, "object-expirer.conf", "object-expirer", expiring_objects_account_name="expiring_objects")
    conf.write_text(conf.read_text().replace("[DEFAULT]", f"[DEFAULT]\ndevices = {one.srv}\nmount_check = false"))
    output = upkeep.once(one, ours, "object-expirer", conf)
    left = {disk.metadata(path)[b"name"] for path in disk.objects(one.srv)}
    assert left == ({b"/AUTH_test/c/stays", b"/AUTH_test/c/o"} if ours == "openstack" else {b"/AUTH_test/c/stays"}), output


def test_what_another_gateway_has_just_made_is_there(tmp_path, ours):
    """That there was no account a moment ago is remembered for a second."""
    gateways = Gateways(tmp_path, 2, {}, kind=ours)
    try:
        gateways.start()
        one, other = (Client(f"http://127.0.0.1:{port}/auth/v1.0") for port in gateways.gateway_ports)
        other.do("HEAD", "another", expect=404)
        one.do("PUT", "c", expect=201)
        other.do("PUT", "c", "o", body=b"some", expect=201)
        assert other.get("c", "o") == b"some"
    finally:
        gateways.stop()
