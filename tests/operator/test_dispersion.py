"""`dispersion-populate` and `dispersion-report` beside OpenStack's: each makes what the other reports on, in the same words."""

import json
import os
import re
import shutil
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.certificates import Authority, make
from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet, openstack_command
from harness.process import run


class Ground:
    """A cluster, and dispersion.conf for it."""

    def __init__(self, root, kinds):
        self.memcached = Memcached().start()
        self.cluster = Cluster(Layout(root / "cluster", memcached_port=self.memcached.port, part_power=5).write(), kinds)
        self.cluster.start()
        self.etc, self.srv = self.cluster.etc, self.cluster.srv
        self.configure()

    def configure(self, **options):
        printed = {"auth_url": self.cluster.auth_url, "auth_user": "test:tester", "auth_key": "testing", "swift_dir": self.etc,
                "dispersion_coverage": "10.0", "retries": 2, **options}
        (self.etc / "dispersion.conf").write_text("[dispersion]\n" + "".join(f"{key} = {value}\n" for key, value in printed.items()))

    def ask(self, make, tool, *arguments):
        """Status and both outputs, without times and in the order of lines on standard error that anybody has."""
        conf = self.etc / "dispersion.conf"
        command = [martlet(), tool] if make == "martlet" else openstack_command(self.etc, f"swift-{tool}")
        done = run([*command, *arguments, conf], check=False, timeout=240)
        out = re.sub(r"(Creating|Querying) \w+: \d+ of \d+, .*?retries", "", done.stdout)  # OpenStack's, when it takes long
        return done.returncode, re.sub(r", \d+s, \d+ retries", ", Ns, N retries", out), sorted(done.stderr.splitlines())

    def same(self, tool, *arguments):
        theirs, ours = (comparable(*self.ask(make, tool, *arguments)) for make in ("openstack", "martlet"))
        assert theirs == ours, (theirs, ours)
        return ours

    def names(self):
        client = Client(self.cluster.auth_url)
        containers = client.send("GET", client.root).body.decode().split()
        found = {name: client.send("GET", f"{client.root}/{name}").body.decode().split() for name in containers}
        client.close()
        return found

    def forget(self):
        """Everything in the account is gone."""
        client = Client(self.cluster.auth_url)
        for container, objects in self.names().items():
            for name in objects:
                client.send("DELETE", f"{client.root}/{container}/{name}")
            client.send("DELETE", f"{client.root}/{container}")
        client.close()

    def stop(self):
        self.cluster.stop()
        self.memcached.stop()


def comparable(status, out, err):
    """Lines about copies that are missing come in any order of OpenStack's."""
    last = out.splitlines()[-1] if out else ""
    if "{" in last:
        return status, [json.dumps(json.loads(last[last.index("{"):]), sort_keys=True)], err
    return status, sorted(line for line in out.replace("\x1b[K", "").splitlines() if line), err


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    kept = Ground(tmp_path_factory.mktemp("dispersion"), "martlet")
    yield kept
    kept.stop()


def test_both_make_the_same_and_report_the_same(ground):
    ground.same("dispersion-report")  # nothing there yet
    made = {}
    for make in ("openstack", "martlet"):
        printed = [ground.ask(make, "dispersion-populate", *arguments) for arguments in (
            [], ["-P", "silver"], ["--no-overlap"], [])]
        made[make] = printed, ground.names()
        if make == "openstack":
            ground.forget()
    assert made["openstack"] == made["martlet"], made
    # Of OpenStack's, these options make it say that it made what it did not make.
    before = ground.names()
    assert ground.ask("martlet", "dispersion-populate", "--container-suffix-start", "100", "--object-suffix-start", "40")[0] == 0
    after = ground.names()
    assert len(after.keys() - before.keys()) == len(set(after["dispersion_objects_0"]) - set(before["dispersion_objects_0"])) == 3
    assert all(int(name.split("_")[2]) >= 100 for name in after.keys() - before.keys())
    for arguments in ([], ["-j"], ["--container-only"], ["--object-only", "-j"], ["-P", "silver"], ["-P", "silver", "-j"]):
        status, out, err = ground.same("dispersion-report", *arguments)
        assert status == 0 and not err and "100.0" in "".join(out)
    ground.configure(dispersion_coverage="1.0")
    ground.same("dispersion-populate")
    ground.configure(dispersion_coverage="100")
    assert ground.ask("martlet", "dispersion-populate", "--no-overlap")[0] == 0
    ground.same("dispersion-populate", "--no-overlap")
    ground.same("dispersion-report")
    ground.configure(container_report="no", dump_json="yes")
    ground.same("dispersion-report")
    ground.configure()


def test_refusals(ground):
    for tool in ("dispersion-populate", "dispersion-report"):
        assert ground.same(tool, "-P", "nosuch")[0] == 1
        assert ground.same(tool, "--container-only", "--object-only")[0] == 1
        done = [run([*command, "/nowhere.conf", "and", "more"], check=False) for command in (openstack_command(ground.etc, f"swift-{tool}"), [martlet(), tool])]
        assert done[0].returncode == done[1].returncode == 1 and "Unable to read config file: /nowhere.conf" in done[1].stderr, done
        done = [run([*command, ""], check=False) for command in (openstack_command(ground.etc, f"swift-{tool}"), [martlet(), tool])]
        assert (done[0].returncode, done[0].stderr) == (done[1].returncode, done[1].stderr) == (1, "Unable to read config file: \n"), done
        ground.configure(auth_key="wrong")
        status, _, err = ground.ask("martlet", tool)
        assert status == ground.ask("openstack", tool)[0] == 1
        assert "no token for auth_user and auth_key" in err[0] and "wrong" not in err[0], err
        ground.configure(auth_url="http://127.0.0.1:1/auth/v1.0", retries=0)
        status, _, err = ground.ask("martlet", tool)
        assert status == 1 and "cannot connect" in err[0], err
        ground.configure()


@pytest.mark.parametrize("text, why", [("[other]\n", "Unable to find dispersion config section"), ("junk\n", "line 1"), ("", "Unable to find dispersion config section"),
                                       *((f"[dispersion]\n{lines}\n", f"has no {name}") for name, lines in (
                                           ("auth_url", "auth_user = u\nauth_key = k"), ("auth_user", "auth_url = http://127.0.0.1:1\nauth_key = k"),
                                           ("auth_key", "auth_url = http://127.0.0.1:1\nauth_user = u\nauth_key =")))])
def test_configurations_that_lack_something(tmp_path, text, why):
    """OpenStack's programs end with a traceback, and the same status."""
    conf = tmp_path / "dispersion.conf"
    conf.write_text(text)
    for tool in ("dispersion-populate", "dispersion-report"):
        done = run([martlet(), tool, conf], check=False)
        assert done.returncode == 1 and why in done.stderr and "panicked" not in done.stderr, done


@pytest.mark.parametrize("make", ["martlet", "openstack"])
def test_what_is_lost_is_missed(tmp_path, make):
    ground = Ground(tmp_path, make)
    try:
        ground.configure(dispersion_coverage="60")
        # Many first requests at once for an account that is not there: OpenStack's proxy may answer some with 404.
        client = Client(ground.cluster.auth_url)
        client.send("POST", client.root)
        client.close()
        status, _, err = ground.ask("martlet", "dispersion-populate")
        assert status == 0, err
        lost = []
        for device, kind, arguments in (("sdb1", "objects", ["-p"]), ("sdb2", "containers", ["-j"]), ("sdb2", "objects", ["-d"]), ("sdb1", "containers", ["-j", "-d", "-p"]),
                                        ("sdb3", "containers", ["--container-only"])):
            shutil.rmtree(ground.srv / device / kind)
            lost.append(ground.same("dispersion-report", *arguments))
        output = "".join("".join(out) for _, out, _ in lost)
        assert "missing all copies" in output and "! There were" in output
        assert any("returned a 404" in line for _, _, err in lost for line in err)
        assert any("partition" in line for _, _, err in lost for line in err)
    finally:
        ground.stop()


def test_a_server_that_is_away(tmp_path):
    ground = Ground(tmp_path, "martlet")
    try:
        assert ground.ask("martlet", "dispersion-populate")[0] == 0
        ground.cluster.stop_service("object")
        ground.configure(retries=0)
        status, out, err = ground.ask("martlet", "dispersion-report", "--object-only", "-j")
        assert status == 0 and json.loads(out)["object"]["copies_found"] == 0 and all(line.startswith("ERROR: 127.0.0.1:") for line in err), (out, err)
        ground.configure(retries=1)
        assert json.loads(ground.ask("martlet", "dispersion-report", "--object-only", "-j")[1])["object"]["retries"] == 9
    finally:
        ground.stop()


class Keystone:
    """Says of any password where the account is and gives the token it was made with; keeps what it was asked."""

    def __init__(self, storage, token):
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, asked))
                url = {"region": "two", "publicURL": storage, "internalURL": "http://127.0.0.1:1/v1/AUTH_test", "interface": "public", "url": storage}
                elsewhere = {**url, "region": "one", "publicURL": "http://127.0.0.1:1/x", "url": "http://127.0.0.1:1/x"}
                catalog = [{"type": "volume", "endpoints": [elsewhere]}, {"type": "object-store", "endpoints": [elsewhere, url]}]
                printed = {"access": {"token": {"id": token}, "serviceCatalog": catalog}} if "v2.0" in self.path else {"token": {"catalog": catalog}}
                body = json.dumps(printed).encode()
                self.send_response(201)
                self.send_header("X-Subject-Token", token)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"


def test_keystone_of_both_versions(ground):
    client = Client(ground.cluster.auth_url)
    keystone = Keystone(f"http://127.0.0.1:{client.port}{client.root}", client.token)
    try:
        for version, path, user in (("2.0", "/v2.0", "tenant:user"), ("3.0", "/v3", "user"), ("3", "", "user")):
            ground.configure(auth_version=version, auth_url=keystone.url + path + "/", auth_user=user, region_name="two",
                             project_name="project", project_domain_name="pd", user_domain_name="ud")
            assert ground.ask("martlet", "dispersion-populate")[0] == 0
            assert "100.00% of object copies" in ground.ask("martlet", "dispersion-report")[1]
            ground.configure(auth_version=version, auth_url=keystone.url + path, auth_user=user, region_name="three")
            status, _, err = ground.ask("martlet", "dispersion-report")
            assert status == 1 and "no publicURL of an object-store" in err[0], err
    finally:
        ground.configure()
        keystone.http.shutdown()
        client.close()
    two, three = keystone.asked[0], keystone.asked[3]
    assert two == ("/v2.0/tokens", {"auth": {"tenantName": "tenant", "passwordCredentials": {"username": "user", "password": "testing"}}})
    assert three[0] == "/v3/auth/tokens" and three[1]["auth"]["scope"]["project"] == {"name": "project", "domain": {"name": "pd"}}, three
    assert three[1]["auth"]["identity"]["password"]["user"] == {"name": "user", "password": "testing", "domain": {"name": "ud"}}


class SecureTempAuth:
    """Gives tokens over TLS, for an account that is reached without."""

    def __init__(self, certificate, storage, token):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200)
                for name, value in (("X-Storage-Url", storage), ("X-Auth-Token", token), ("Content-Length", "0")):
                    self.send_header(name, value)
                self.end_headers()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.http.handle_error = lambda *_: None
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.http.server_port}/auth/v1.0"


def test_a_private_authority_and_what_is_wrong_with_a_certificate(ground, tmp_path, monkeypatch):
    client, authority = Client(ground.cluster.auth_url), Authority(tmp_path / "ca")
    wrong = authority.folder / "wrong"
    wrong.write_text("no certificate")
    servers = []

    def attempt(certificate, *arguments, variables=(), **options):
        servers.append(SecureTempAuth(certificate, f"http://127.0.0.1:{client.port}{client.root}", client.token))
        ground.configure(auth_url=servers[-1].url, object_populate="no", retries=0, **options)
        with monkeypatch.context() as patch:
            for name, value in variables:
                patch.setenv(name, str(value))
            status, _, err = ground.ask("martlet", "dispersion-populate", *arguments)
        return status, "\n".join(err)

    try:
        good, named, ended = authority.issue("good"), authority.issue("elsewhere.example", addresses=()), authority.issue("ended", days=-1)
        hashed = tmp_path / "hashed"
        hashed.mkdir()
        shutil.copy(authority.certificate, hashed / "0a1b2c3d.0")
        os.symlink(wrong, hashed / "README")
        for arguments, variables, options in (([], [], {"cafile": authority.certificate}), (["--cafile", authority.certificate], [], {}), ([], [("SSL_CERT_FILE", authority.certificate)], {}),
                                              ([], [("SSL_CERT_DIR", hashed)], {}), (["--insecure"], [], {})):
            assert attempt(good, *arguments, variables=variables, **options) == (0, ""), (arguments, variables, options)
        trusted = {"cafile": authority.certificate}
        for certificate, options, variables, expected in (
                (good, {}, (), "no authority that is trusted here vouches for its certificate: name the file of its authority (cafile, or the variable SSL_CERT_FILE)"),
                (named, trusted, (), "its certificate is for elsewhere.example, not for 127.0.0.1: ask it by a name that is in the certificate"),
                (ended, trusted, (), r"its certificate ended on \w+, \d+ \w+ \d+ [\d:]+ GMT: give the server a new one"),
                (make(tmp_path / "self"), {"cafile": tmp_path / "self/cert.pem"}, (), "it shows the certificate of an authority as its own"),
                (good, {"cafile": wrong}, (), "cafile = .*wrong: expected a PEM file with at least one certificate"),
                (good, {}, [("SSL_CERT_FILE", wrong)], r"wrong: there is no PEM file with a certificate \(SSL_CERT_FILE\)"),
                (good, {}, [("SSL_CERT_DIR", tmp_path / "nowhere")], r"nowhere: .*\(SSL_CERT_DIR\)")):
            status, err = attempt(certificate, variables=variables, **options)
            assert status == 1 and re.search(expected.replace("(cafile, or the variable SSL_CERT_FILE)", r"\(cafile"), err), (expected, err)
    finally:
        ground.configure()
        for server in servers:
            server.http.shutdown()
        client.close()
