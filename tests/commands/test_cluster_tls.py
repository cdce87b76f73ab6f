"""TLS between the nodes of a cluster: separate servers with certificates of `martlet cluster-ca`."""

import http.client
import shutil
import socket
import ssl

import pytest

from harness import disk, upkeep
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import ROLES, Layout
from harness.load import Load
from harness.places import martlet
from harness.process import run
from harness.waiting import until

STORAGE = "account,container,object"


class Authority:
    """A folder of `martlet cluster-ca`, and the copies that the nodes have of its files."""

    def __init__(self, root):
        self.folder, self.node = root / "ca", root / "node"
        self.node.mkdir(parents=True)
        self.bundle = self.node / "authorities.pem"
        self.run("make", "--name", "test")
        self.give_bundle()

    def run(self, command, *words, check=True):
        return run([martlet(), "cluster-ca", command, self.folder, *words], check=check)

    def issue(self, name, roles, *words):
        """The path of a node's new certificate and key."""
        self.run("issue", "--name", name, "--role", roles, "--address", "127.0.0.1", *words)
        path = self.node / f"{name}.pem"
        # In one step, as an operator's tools do it.
        shutil.copy(self.folder / f"issued/{name}.pem", path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
        return path

    def give_bundle(self):
        shutil.copy(self.folder / "authorities.pem", self.bundle)

    def options(self, name, mode="require", **more):
        """What a server's [DEFAULT] says."""
        return {"cluster_tls": mode, "cluster_tls_cert_file": self.node / f"{name}.pem", "cluster_tls_ca_file": self.bundle, **more}

    def context(self, name):
        """For a client with this certificate."""
        context = ssl.create_default_context(cafile=str(self.bundle))
        if name:
            context.load_cert_chain(self.node / f"{name}.pem")
        return context


class PrivateCluster(Cluster):
    """Its storage servers answer nobody without a certificate."""

    def __init__(self, root, overrides, kinds="martlet", authority=None, **options):
        super().__init__(Layout(root, overrides=overrides, **options).write(), kinds)
        self.authority = authority

    def await_service(self, role, node=0):
        if role == "proxy" or not self.authority:
            return super().await_service(role, node)
        return self.services[role, node].wait_for(lambda: ask(self, role, "GET", "/healthcheck", "proxy")[0] == 200)


def ask(cluster, role, method, path, name, **options):
    """Status and text of a request to a storage server, shown the certificate of this name."""
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.layout.ports[role, 0], context=cluster.authority.context(name), timeout=60)
    try:
        connection.request(method, path, **options)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
    finally:
        connection.close()


def ask_plain(cluster, role, request=b"GET /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
    """All that comes back without TLS."""
    with socket.create_connection(("127.0.0.1", cluster.layout.ports[role, 0]), timeout=60) as plain:
        try:
            plain.sendall(request)
            return plain.makefile("rb").read()
        except ConnectionResetError:
            return b""


@pytest.fixture
def cluster(tmp_path):
    authority = Authority(tmp_path)
    authority.issue("proxy", "proxy")
    authority.issue("storage", STORAGE)
    storage = {"DEFAULT": authority.options("storage")}
    overrides = {"proxy": {"DEFAULT": authority.options("proxy")}, "account": storage, "container": storage,
                 "object": {**storage, "object-replicator": {"sync_method": "ssync"}}}
    cluster = PrivateCluster(tmp_path / "cluster", overrides, authority=authority)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def store(cluster, name="o"):
    """An object that went through the whole cluster, its listing row included."""
    client = Client(cluster.auth_url)
    client.put("c")
    client.put("c", name, body=b"x" * 100_000)
    assert client.get("c", name) == b"x" * 100_000
    until(lambda: name in client.get("c").decode().split())
    client.close()


def test_requests_and_daemons_work_and_nobody_else_is_answered(cluster):
    store(cluster)
    for role in ROLES:
        assert ask_plain(cluster, role) == b""
        until(lambda: "connections without TLS closed (cluster_tls)" in cluster.services[role, 0].text(), what=role)
        with pytest.raises(ssl.SSLError):  # a client without a certificate
            ask(cluster, role, "GET", "/healthcheck", None)
        for path in "/recon/version", "/metrics":
            assert ask(cluster, role, "GET", path, "proxy")[0] == 200

    one, *others = disk.objects(cluster.srv)
    assert len(others) == 2
    shutil.rmtree(one.parent)
    # The hashes of suffixes are from before.
    (one.parents[2] / "hashes.pkl").unlink(missing_ok=True)
    upkeep.once(cluster, "martlet", "object-replicator", cluster.etc / "object-server.conf")
    assert len(disk.objects(cluster.srv)) == 3
    lost = disk.databases(cluster.srv, "containers")[0]
    shutil.rmtree(lost.parent)
    upkeep.once(cluster, "martlet", "container-replicator", cluster.etc / "container-server.conf")
    assert lost.exists()
    recon = [martlet(), "recon", "object", "--swift-versions", "--swiftdir", cluster.etc]
    assert "1 error[s] while checking hosts" in run(recon).stdout
    assert "0 error[s] while checking hosts" in run([*recon, "--cluster-tls", cluster.etc / "object-server.conf"]).stdout
    assert "PRIVATE" not in cluster.log()


def test_a_role_may_not_what_is_another_ones(cluster):
    cluster.authority.issue("other", "container")
    headers = {"X-Timestamp": "1700000000.00000", "Content-Type": "text/plain", "Content-Length": "0"}
    path = "/sdb1/1/a/c/o"
    status, text = ask(cluster, "object", "PUT", path, "other", headers=headers)
    assert (status, text) == (403, "the role container may not send PUT to an object server")
    assert ask(cluster, "object", "GET", path, "other")[0] == 404
    assert ask(cluster, "object", "PUT", path, "proxy", headers=headers)[0] == 201
    assert ask(cluster, "object", "REPLICATE", "/sdb1/1", "proxy")[0] == 403
    assert ask(cluster, "object", "REPLICATE", "/sdb1/1", "storage")[0] == 200
    until(lambda: "requests refused that the certificate's role may not make" in cluster.services["object", 0].text())


@pytest.mark.parametrize("daemon", ["object-expirer", "container-reconciler"])
def test_a_daemon_warns_of_a_certificate_without_its_role(cluster, daemon):
    cluster.authority.issue("expirer", "upkeep")
    warnings = {}
    for name in "storage", "expirer":
        conf = upkeep.write_conf(cluster, f"{daemon}.conf", daemon, **cluster.authority.options(name))
        said = upkeep.once(cluster, "martlet", daemon, conf)
        warnings[name] = f"{name}.pem is a certificate for {STORAGE}; {daemon} needs upkeep" in said, "needs upkeep" in said
    assert warnings == {"storage": (True, True), "expirer": (False, False)}


class Lasting:
    """A connection to the object server that stays, shown the certificate of this name."""

    def __init__(self, cluster, name):
        plain = socket.create_connection(("127.0.0.1", cluster.layout.ports["object", 0]), timeout=60)
        self.secured = cluster.authority.context(name).wrap_socket(plain, server_hostname="127.0.0.1")
        self.secured.sendall(b"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\nOK"):
            answer += self.secured.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200") and b"close" not in answer

    def goes_on(self):
        """Whether the server has not ended it."""
        self.secured.settimeout(0.01)
        try:
            return self.secured.recv(1) != b""
        except TimeoutError:
            return True
        except OSError:
            return False


def await_reading(cluster, count):
    """Wait until all processes have read what was given them for the time of this number."""
    until(lambda: all(process.text().count("has been read and is in force") >= count for process in cluster.services.values()))


def test_an_authority_is_exchanged_under_load_without_a_restart(cluster):
    authority = cluster.authority
    shutil.copy(authority.node / "storage.pem", authority.node / "old.pem")
    pids = {key: process.tree() for key, process in cluster.services.items()}
    store(cluster)
    with Load(cluster.auth_url, threads=2) as load:
        def step(number, name):
            await_reading(cluster, number)
            store(cluster, name)

        authority.run("rotate")
        authority.give_bundle()
        step(1, "both")
        authority.issue("proxy", "proxy", "--replace")
        authority.issue("storage", STORAGE, "--replace")
        step(2, "exchanged")
        lasting = Lasting(cluster, "old")
        assert lasting.goes_on()
        authority.run("drop")
        authority.give_bundle()
        until(lambda: not lasting.goes_on(), what="the end of the connection")
        step(3, "dropped")
    assert (load.failed, load.wrong) == ([], []) and load.acknowledged
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(cluster, "object", "GET", "/healthcheck", "old")

    # What cannot be used is named, and changes nothing.
    good = (authority.node / "storage.pem").read_bytes()
    (authority.node / "storage.pem").write_text("nonsense")
    until(lambda: "storage.pem: there is no certificate in it" in cluster.services["object", 0].text())
    cluster.services["object", 0].await_text("credentials read before stay in force")
    store(cluster, "bad")
    (authority.node / "storage.pem").write_bytes(good)
    assert pids == {key: process.tree() for key, process in cluster.services.items()}
    assert "PRIVATE" not in cluster.log()


def test_a_revoked_certificate_is_refused_and_its_connections_end(cluster):
    authority = cluster.authority
    authority.issue("stolen", "proxy")
    lasting, other = Lasting(cluster, "stolen"), Lasting(cluster, "proxy")
    authority.run("issue", "--name", "stolen", "--role", "proxy", "--address", "127.0.0.1", "--replace")
    [replaced] = authority.folder.glob("replaced/stolen-*.pem")
    said = authority.run("revoke", replaced).stdout
    assert said.splitlines()[0].startswith(f"revoked {replaced}: stolen, serial ")
    assert lasting.goes_on()
    authority.give_bundle()
    until(lambda: not lasting.goes_on(), what="the end of the connection")
    await_reading(cluster, 1)
    assert other.goes_on()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(cluster, "object", "GET", "/healthcheck", "stolen")
    shutil.copy(authority.folder / "issued/stolen.pem", authority.node / "stolen.pem")
    assert ask(cluster, "object", "GET", "/healthcheck", "stolen")[0] == 200
    store(cluster, "revoked")


@pytest.mark.parametrize("modes", [
    {"proxy": "off", "object": "off", "container": "allow", "account": "off"},
    {"proxy": "allow", "object": "prefer", "container": "allow", "account": "allow"},
    {"proxy": "prefer", "object": "require", "container": "prefer", "account": "prefer"},
], ids=str)
def test_servers_that_are_a_step_behind_are_understood(tmp_path, modes):
    authority = Authority(tmp_path)
    authority.issue("proxy", "proxy")
    authority.issue("storage", STORAGE)
    overrides = {role: {"DEFAULT": authority.options("proxy" if role == "proxy" else "storage", mode)} for role, mode in modes.items()}
    cluster = PrivateCluster(tmp_path / "cluster", overrides)
    try:
        for role in modes:
            cluster.launch(role)
        cluster.authority = authority
        for role, mode in modes.items():
            (PrivateCluster if mode == "require" else Cluster).await_service(cluster, role)
        store(cluster)
    finally:
        cluster.stop()


def test_openstacks_servers_stay_plain_in_a_mixed_cluster(tmp_path):
    authority = Authority(tmp_path)
    authority.issue("proxy", "proxy")
    authority.issue("storage", STORAGE)
    cluster = PrivateCluster(tmp_path / "cluster", {}, {"proxy": "martlet", "account": "martlet", "container": "martlet", "object": "openstack"})
    plain = {"cluster_tls_plain": f"127.0.0.1:{cluster.layout.ports['object', 0]}"}
    cluster.layout.overrides = {
        "proxy": {"DEFAULT": authority.options("proxy", **plain)},
        # OpenStack's object server sends listing rows in the clear.
        "container": {"DEFAULT": authority.options("storage", "prefer")},
        "account": {"DEFAULT": authority.options("storage", "require")},
    }
    cluster.layout.write()
    cluster.authority = authority
    try:
        for role in ROLES:
            cluster.launch(role)
        cluster.launch("proxy")
        Cluster.await_service(cluster, "object")
        for role in ("account", "container", "proxy"):
            cluster.await_service(role)
        store(cluster)
        assert ask_plain(cluster, "account") == b""
        assert ask_plain(cluster, "container").startswith(b"HTTP/1.1 200")
    finally:
        cluster.stop()


@pytest.mark.parametrize("options, expected", [
    ({"cluster_tls_cert_file": ""}, "cluster_tls_cert_file is not set"),
    ({"cluster_tls_ca_file": ""}, "cluster_tls_ca_file is not set"),
    ({"cluster_tls_ca_file": "{node}/storage.key"}, "cannot read"),
    ({"cluster_tls_cert_file": "{node}/authorities.pem"}, "authorities.pem"),
    ({"cluster_tls_plain": "10.0.0.0/99"}, "cluster_tls_plain"),
    ({"cluster_tls": "yes"}, "expected off, allow, prefer or require"),
    ({"cert_file": "{node}/storage.pem"}, "either cert_file or cluster_tls"),
])
def test_what_cannot_be_used_is_refused_at_start(tmp_path, options, expected):
    authority = Authority(tmp_path)
    authority.issue("storage", STORAGE)
    options = {key: value.format(node=authority.node) for key, value in options.items()}
    cluster = PrivateCluster(tmp_path / "cluster", {"object": {"DEFAULT": {**authority.options("storage"), **options}}})
    process = cluster.launch("object")
    try:
        until(lambda: not process.alive())
        assert expected in process.text() and "PRIVATE" not in process.text()
    finally:
        cluster.kill()
