"""`httpauth` with Digest: lighttpd asks for it in front of a cluster that asks for nothing, and `martlet bench` proves who it is."""

import json
import re
import subprocess

import pytest

from harness import filters
from harness.cluster import Cluster
from harness.layout import Layout
from harness.places import martlet
from harness.process import Process, run
from harness.waiting import free_port, listening

PASSWORD = "so: secret \"words\\\""
CONF = """
server.document-root = "{root}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_auth", "mod_authn_file", "mod_proxy", "mod_accesslog" )
server.errorlog = "{root}/error.log"
accesslog.filename = "{root}/access.log"
auth.backend = "plain"
auth.backend.plain.userfile = "{root}/users"
auth.require = ( "/" => ( "method" => "{method}", "algorithm" => "{algorithm}", "realm" => "the store", "require" => "valid-user" ) )
proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => {behind} )) )
"""

WORKLOAD = """
name = "digest"
[storage]
type = "swift"
storage_url = "http://127.0.0.1:{port}/v1/AUTH_digest"
[auth]
type = "httpauth"
username = "someone"
password = '{password}'
[[stage]]
type = "init"
cprefix = "bench-digest-"
containers = "r(1,2)"
[[stage]]
type = "prepare"
workers = 3
cprefix = "bench-digest-"
containers = "r(1,2)"
objects = "r(1,10)"
sizes = "c(70)KB"
[[stage]]
name = "main"
workers = 3
total_operations = 120
operations = [
    {{ type = "read", ratio = 40, cprefix = "bench-digest-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "write", ratio = 30, cprefix = "bench-digest-", containers = "u(1,2)", objects = "u(11,20)", sizes = "c(100)KB" }},
    {{ type = "write", ratio = 10, cprefix = "bench-digest-", containers = "u(1,2)", objects = "u(21,22)", sizes = "c(150)KB", part_size = "64KB" }},
    {{ type = "head", ratio = 10, cprefix = "bench-digest-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "list", ratio = 10, cprefix = "bench-digest-", containers = "u(1,2)" }},
]
[[stage]]
type = "cleanup"
cprefix = "bench-digest-"
containers = "r(1,2)"
objects = "r(1,22)"
[[stage]]
type = "dispose"
cprefix = "bench-digest-"
containers = "r(1,2)"
"""


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """A cluster that takes requests of anyone."""
    pipeline = filters.LEAN.replace(" cache", "").replace(" tempauth", " slo")
    system = Cluster(Layout(tmp_path_factory.mktemp("behind"), policies=("gold",), pipeline=pipeline).write(), "martlet", verbose=False).start()
    yield system
    system.stop()


class Lighttpd:
    """lighttpd before a cluster; `method` and `algorithm` are what it asks for."""

    def __init__(self, folder, behind, method, algorithm):
        self.root, self.port = folder, free_port()
        (folder / "users").write_text(f"someone:{PASSWORD}\n")
        conf = folder / "lighttpd.conf"
        conf.write_text(CONF.format(root=folder, port=self.port, behind=behind.port, method=method, algorithm=algorithm))
        self.process = Process(["lighttpd", "-D", "-f", conf], folder / "out.log")

    def __enter__(self):
        self.process.wait_for(lambda: listening(self.port))
        return self

    def __exit__(self, *_):
        self.process.stop()

    def statuses(self):
        """Of all requests, in their order."""
        return re.findall(r'HTTP/1\.1" (\d{3}) ', (self.root / "access.log").read_text())


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_a_store_that_asks_for_digest_is_loaded(behind, tmp_path, algorithm):
    with Lighttpd(tmp_path, behind, "digest", algorithm) as server:
        proof = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{server.port}/v1/AUTH_digest"], capture_output=True, text=True)
        assert proof.stdout == "401", "the server asks"
        workload, report = tmp_path / "w.toml", tmp_path / "r.json"
        workload.write_text(WORKLOAD.format(port=server.port, password=PASSWORD))
        said, complaints = bench("run", workload, "--verify", "--threads", "1", "--json", report)
        totals = [stage["works"][0]["total"] for stage in json.loads(report.read_text())["stages"]]
        assert [total["failed"] for total in totals] == [0] * 5 and totals[2]["succeeded"] == 120 and totals[1]["succeeded"] == 20
        server.process.stop()  # which writes its log
        refused, done = server.statuses().count("401"), sum(status[0] == "2" for status in server.statuses())
        # curl's, the question how users log in, one for each of five looks at containers and for each of nine workers: not one for each request.
        assert refused == 1 + 1 + 5 + 9 and done > 180, server.statuses()
        assert PASSWORD not in said + complaints + report.read_text() + (tmp_path / "access.log").read_text()


def test_a_wrong_password_is_said_before_anything_is_made(behind, tmp_path):
    with Lighttpd(tmp_path, behind, "digest", "SHA-256") as server:
        workload = tmp_path / "w.toml"
        workload.write_text(WORKLOAD.format(port=server.port, password="wrong"))
        _, complaints = bench("run", workload, status=1)
        assert "HEAD bench-digest-1: status 401" in complaints and "wrong" not in complaints
        server.process.stop()
        assert set(server.statuses()) == {"401"}, "it asks no third time"


def test_a_store_that_asks_for_basic_gets_it(behind, tmp_path):
    with Lighttpd(tmp_path, behind, "basic", "MD5") as server:
        workload, report = tmp_path / "w.toml", tmp_path / "r.json"
        workload.write_text(WORKLOAD.format(port=server.port, password=PASSWORD))
        bench("run", workload, "--json", report)
        assert all(stage["works"][0]["total"]["failed"] == 0 for stage in json.loads(report.read_text())["stages"])
        server.process.stop()
        assert server.statuses().count("401") == 1, "the question how users log in"
