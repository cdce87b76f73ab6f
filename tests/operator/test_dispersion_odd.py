"""What `dispersion-report` and `dispersion-populate` say where servers are away, refuse, or answer rubbish: both makes, asking servers made for it."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from harness import ring_builder as builders
from harness.places import martlet, openstack_command
from harness.process import run

SWIFT_CONF = "[swift-hash]\nswift_hash_path_suffix = changeme\n[storage-policy:0]\nname = gold\ndefault = yes\n"


class Servers:
    """One address that is the auth server, the proxy and every storage server; `statuses` says what devices answer."""

    def __init__(self, root, replicas=3, third="127.0.0.1"):
        self.root, self.statuses, self.asked, self.page, self.objects, self.dripping = root, {}, [], None, 1, set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def drip(self):
                try:
                    for byte in b"HTTP/1.1 200 OK\r\nX-Much-To-Say: " + bytes(60):
                        self.wfile.write(bytes([byte or 120]))
                        time.sleep(1)
                except OSError:
                    self.close_connection = True

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(body)}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                asked = urlsplit(self.path)
                if asked.path in ("/auth", "/au%74h"):
                    return self.answer(200, X_Storage_Url=f"{outer.url}/v1/AUTH_test", X_Auth_Token="token")
                query = parse_qs(asked.query)
                made = outer.page or json.dumps(outer.names(asked.path) if "marker" not in query else []).encode()
                return self.answer(200, made, Content_Type="application/json")

            def do_PUT(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append(urlsplit(self.path).path)
                return self.answer(201)

            def do_HEAD(self):
                device = self.path.split("/")[1]
                outer.asked.append(self.path)
                if device in outer.dripping:
                    return self.drip()
                return self.answer(outer.statuses.get(device, 200))

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        (root / "swift.conf").write_text(SWIFT_CONF)
        devices = " ".join(f"r1z{number}-{address}:{port}/{name} 1" for number, (name, address, port) in enumerate(
            [("a", "127.0.0.1", self.port), ("b", "127.0.0.1", self.port), ("c", third, self.port if third == "127.0.0.1" else 1)][:replicas], 1))
        for ring in ("container", "object"):
            builders.openstack(root, [f"{ring}.builder create 4 {replicas} 1", f"{ring}.builder add {devices}", f"{ring}.builder rebalance --seed 3"])
        self.configure()

    def names(self, path):
        if not path.endswith("dispersion_objects_0"):
            return [{"name": "dispersion_0_0"}]
        return [{"name": f"dispersion_{number}"} for number in range(self.objects)]

    def configure(self, **options):
        output = {"auth_url": f"{self.url}/auth", "auth_user": "u", "auth_key": "k", "swift_dir": self.root, "retries": 0, **options}
        self.conf = self.root / "dispersion.conf"
        self.conf.write_text("[dispersion]\n" + "".join(f"{key} = {value}\n" for key, value in output.items()))

    def ask(self, make, tool, *arguments):
        """Status, lines of standard output without the time that it took, and standard error."""
        command = [martlet(), tool] if make == "martlet" else openstack_command(self.root, f"swift-{tool}")
        done = run([*command, *arguments, self.conf], check=False, timeout=60)
        out = re.sub(r", \d+[smh], ", ", T, ", done.stdout.replace("\x1b[K", ""))
        return done.returncode, [line for line in re.split("[\r\n]+", out) if line], done.stderr

    def both(self, tool, *arguments):
        return [self.ask(make, tool, *arguments) for make in ("openstack", "martlet")]


@pytest.fixture
def servers(tmp_path):
    made = []

    def make(**how):
        made.append(Servers(tmp_path, **how))
        return made[-1]

    yield make
    for one in made:
        one.http.shutdown()
        one.http.server_close()


@pytest.mark.parametrize("replicas, statuses", [(3, {}), (3, {"a": 404}), (3, {"a": 404, "c": 404}), (3, {"a": 404, "b": 404, "c": 404}), (2, {"a": 404}), (2, {"a": 404, "b": 404})])
def test_one_partition_is_no_plural(servers, replicas, statuses):
    there = servers(replicas=replicas)
    there.statuses = statuses
    for arguments in ([], ["-p"], ["-j"], ["-d", "--object-only"]):
        theirs, ours = there.both("dispersion-report", *arguments)
        assert ours[:2] == theirs[:2] and ours[0] == 0, (theirs, ours)
        assert sorted(set(ours[2].splitlines())) == sorted(set(theirs[2].splitlines())), (theirs, ours)


def test_a_device_that_is_unmounted_is_named_once(servers):
    there = servers()
    there.statuses = {"b": 507}
    for arguments in ([], ["-j"]):
        theirs, ours = there.both("dispersion-report", *arguments)
        assert ours == theirs and ours[2].count("\n") == 1 and "is unmounted" in ours[2], (theirs, ours)


@pytest.mark.parametrize("status", [400, 403, 412])
def test_who_refuses_is_not_asked_again(servers, status):
    there = servers()
    there.statuses = {"c": status}
    there.configure(retries=5)
    began = time.monotonic()
    theirs, ours = there.both("dispersion-report")
    # Five more questions would have pauses of 1, 2, 4, 8 and 16 seconds between them.
    assert time.monotonic() - began < 30 and len(there.asked) == 12
    assert ours[:2] == theirs[:2] and ours[2] == f"ERROR: 127.0.0.1:{there.port}/c: answered {status}\n", (theirs, ours)


@pytest.mark.extra
def test_servers_that_drip_are_set_aside(servers):
    """Objects in nearly all of sixteen partitions: waiting for each request and its repetitions would take minutes. (OpenStack's waits.)"""
    there = servers()
    there.objects = 40
    there.dripping = {"b"}
    there.configure(retries=5, concurrency=5)
    began = time.monotonic()
    status, out, err = there.ask("martlet", "dispersion-report", "--object-only")
    # Three rounds of fifteen seconds, and a pause of one and of two between them.
    assert time.monotonic() - began < 55, (out, err)
    place = f"127.0.0.1:{there.port}/b"
    assert f"ERROR: {place} has not answered, 3 times in a row -- It is not asked again, and copies there are considered missing.\n" in err, err
    assert (status, "66.67% of object copies found" in "".join(out)) == (0, True), (out, err)


def test_addresses_of_ipv6_stand_in_brackets(servers):
    there = servers(third="::1")
    theirs, ours = there.both("dispersion-report")
    assert ours[:2] == theirs[:2]
    assert all("ERROR: [::1]:1/c: " in report[2] for report in (theirs, ours)), (theirs, ours)


@pytest.mark.parametrize("page, why", [(b'[{"name": "dispersion_0"}]', "ends where the one before it ended"), (b'{"error": 1}', "no listing"), (b"junk", "GET "), (b"[]", None)])
def test_listings_that_are_none(servers, page, why):
    """OpenStack's ask for the same page for ever, or end with a traceback."""
    there = servers()
    there.page = page
    status, _, err = there.ask("martlet", "dispersion-report")
    assert (status, "No containers to query" in err) == ((0, True) if why is None else (1, False)) and (why or "") in err and "panicked" not in err, err


def test_suffixes_begin_at_none_below_zero(servers):
    there, made = servers(), []
    there.configure(dispersion_coverage=20)
    for make in ("openstack", "martlet"):
        there.asked = []
        status, out, err = there.ask(make, "dispersion-populate", "--container-suffix-start", "-7", "--object-suffix-start=-1")
        made.append((status, out, err, sorted(there.asked)))
    assert made[0] == made[1] and made[0][0] == 0, made
    status, out, err = there.ask("martlet", "dispersion-populate", "--container-only", "--container-suffix-start", str(2**63 - 1))
    assert status == 0 and "panicked" not in err, (out, err)


@pytest.mark.parametrize("options, why", [({"retries": "x"}, "retries"), ({"concurrency": "many"}, "concurrency"), ({"swift_dir": "/nowhere"}, "/nowhere"),
                                          ({"auth_url": "nonsense"}, "auth_url"), ({"auth_version": "9"}, "auth_version")])
def test_options_that_make_no_sense(servers, options, why):
    """OpenStack's end with a traceback, and the same status."""
    there = servers()
    there.configure(**options)
    for tool in ("dispersion-report", "dispersion-populate"):
        theirs, ours = there.both(tool)
        assert theirs[0] == ours[0] == 1 and why in ours[2] and ours[2].count("\n") == 1, (theirs, ours)


def test_a_doubled_percent_sign_is_one(servers):
    there = servers()
    there.configure(auth_url=f"{there.url}/au%%74h")
    theirs, ours = there.both("dispersion-report")
    assert ours[:2] == theirs[:2], (theirs, ours)
