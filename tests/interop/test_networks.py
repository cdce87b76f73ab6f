"""Which ports are spoken to and listened on: the network of replication, and a port per disk (`servers_per_port`)."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from swift.common.ring import RingBuilder

from harness import upkeep
from harness.client import Client
from harness.layout import PATIENCE, ROLES
from harness.waiting import free_port, until


def change_ring(one, name, change):
    """Writes the ring anew with each device changed."""
    builder = RingBuilder.load(str(one.etc / f"{name}.builder"))
    for device in builder.devs:
        change(device)
    builder.save(str(one.etc / f"{name}.builder"))
    builder.get_ring().save(str(one.etc / f"{name}.ring.gz"))


def restart(one, *roles):
    for role in roles:
        one.stop_service(role)
        one.start_service(role)


class Inside(ThreadingHTTPServer):
    """What a storage server is for others of the cluster: passes on, and notes, what it is asked."""

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.seen = port, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Passing(BaseHTTPRequestHandler):
    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        targets = {name: self.headers[name].split(":")[1] for name in ("X-Container-Host", "X-Delete-At-Host") if self.headers[name]}
        self.server.seen.append((self.command, targets))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        reply = connection.getresponse()
        content = reply.read()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_PUT = do_GET = do_HEAD = do_DELETE = do_POST = pass_on

    def log_message(self, *_):
        pass


def status(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().status


def test_daemons_stay_on_the_network_of_replication(cluster, ours):
    seen = {}
    for kind in ("openstack", ours):
        one = cluster("openstack", policies=("gold",))
        client = Client(one.auth_url)
        client.put("c")
        client.put("c", "o", body=b"a", headers={"X-Delete-After": "1"})
        # The queue's account must know its containers.
        upkeep.once(one, "openstack", "container-updater", one.etc / "container-server.conf")
        inside = {role: Inside(one.layout.ports[role, 0]) for role in ROLES}
        try:
            for role, server in inside.items():
                change_ring(one, role, lambda device, port=server.server_port: device.update(replication_port=port))
            until(lambda: client.do("GET", "c", "o").status == 404, what="the object expiring")
            conf = upkeep.write_conf(one, "object-expirer.conf", "object-expirer", dequeue_from_legacy="true")
            output = upkeep.once(one, kind, "object-expirer", conf)
        finally:
            for server in inside.values():
                server.shutdown()
                server.server_close()
        assert client.get("c") == b"", output
        mask = {str(server.server_port): "inside" for server in inside.values()}
        seen[kind] = {role: sorted({(verb, *((name, mask.get(port, "outside")) for name, port in targets.items()))
                                    for verb, targets in server.seen if verb == "DELETE"}) for role, server in inside.items()}
        assert {verb for verb, _ in inside["container"].seen} >= {"GET", "DELETE"}, output
        one.stop()
    assert seen["openstack"] == seen[ours]
    assert seen[ours]["object"] == [("DELETE", ("X-Container-Host", "inside"))]


@pytest.mark.parametrize("server, replicator", [("ours", "ours"), ("openstack", "ours"), ("ours", "openstack")])
def test_a_port_for_each_disk(cluster, ours, server, replicator):
    make = {"ours": ours, "openstack": "openstack"}
    one = cluster(dict.fromkeys(("account", "container", "proxy"), "openstack") | {"object": make[server]}, policies=("gold",),
                  overrides={"object": {"app:object-server": {"servers_per_port": 1}, "DEFAULT": {"servers_per_port": 1, "ring_ip": "127.0.0.1"}}})
    first = one.layout.ports["object", 0]
    ports = {device: first if at == 0 else free_port() for at, device in enumerate(one.layout.devices)}
    change_ring(one, "object", lambda device: device.update(port=ports[device["device"]], replication_port=ports[device["device"]]))
    restart(one, "object", "proxy")
    for device, port in ports.items():
        until(lambda port=port: status(port, "/healthcheck") == 200, what=f"the server of {device}")
    client = Client(one.auth_url)
    client.put("c")
    names = [f"o{number}" for number in range(12)]
    for name in names:
        client.put("c", name, body=name.encode())
    held = {device: len(list((one.srv / device).glob("objects/*/*/*/*.data"))) for device in ports}
    assert sum(held.values()) == 36 and all(held.values()), held
    # A replicator finds the disks of all ports, and reaches those of the others.
    for partition in (one.srv / "sdb2/objects").glob("[0-9]*/*/*"):
        for file in partition.iterdir():
            file.unlink()
        partition.rmdir()
    for hashes in (one.srv).glob("*/objects/*/hashes.*"):
        hashes.unlink()
    conf = upkeep.write_conf(one, "replicator.conf", "object-replicator", sync_method="ssync", replicator_workers=2, **PATIENCE)
    conf.write_text(conf.read_text().replace(
        "[DEFAULT]", f"[DEFAULT]\nservers_per_port = 1\nbind_ip = 127.0.0.1\nbind_port = {first}\ndevices = {one.srv}\nmount_check = false"))
    for _ in range(2):
        output = upkeep.once(one, make[replicator], "object-replicator", conf)
    assert len(list((one.srv / "sdb2").glob("objects/*/*/*/*.data"))) == held["sdb2"], output
    for name in names:
        assert client.get("c", name) == name.encode()
