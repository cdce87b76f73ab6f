"""`/metrics` of every role and daemon: who may see it, what it counts, and that it names no client's thing."""

import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness import upkeep
from harness.client import Client
from harness.layout import ROLES
from harness.places import REPOSITORY, martlet
from harness.process import Process, run
from harness.waiting import free_port, until

SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (\S+)')
CATALOGUE = {name: kind for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", (REPOSITORY / "docs/reference/metrics.md").read_text(), re.M)}


ROOM = {"martlet_device_bytes", "martlet_device_free_bytes", "martlet_device_files", "martlet_device_free_files"}
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def scrape(port, headers=(), host="127.0.0.1", path="/metrics", accept=OPEN_METRICS):
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers={"Accept": accept, **dict(headers)})
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert reply.headers["Content-Type"].startswith(accept), reply.headers
        return reply.read().decode()


def status(port, headers=(), host="127.0.0.1"):
    try:
        scrape(port, headers, host)
        return 200
    except urllib.error.HTTPError as error:
        return error.code


def samples(page):
    """(name, {label: value}) → value; the page must be what the catalogue says."""
    lines = page.splitlines()
    assert lines[-1] == "# EOF", lines[-1]
    found = {}
    for line in lines[:-1]:
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        family = name if name in CATALOGUE else re.sub("_(bucket|sum|count)$", "", name)
        assert family in CATALOGUE, line
        key = name, frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
        assert key not in found, line
        found[key] = float(value)
    return found


def figure(page, name, **labels):
    return samples(page).get((name, frozenset(labels.items())), 0)


def own_ip():
    """An address of this machine that is not loopback's."""
    output = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return next((ip for ip in output if ":" not in ip), None)


def fill(system):
    client = Client(system.auth_url)
    client.put("secretcontainer")
    for number in range(5):
        client.put("secretcontainer", f"secretobject{number}", body=b"x" * 1000)
        client.do("GET", "secretcontainer", f"secretobject{number}", expect=200)
    client.do("GET", "secretcontainer", "missing", expect=404)
    client.close()


def stored(page):
    """Whether the last replica of what `fill` makes is counted: the client does not wait for it."""
    return figure(page, "martlet_requests_total", role="object-server", verb="PUT", status="2xx") >= 15


def test_up_has_one_page_for_all_of_itself(make_system):
    up = make_system("up", overrides={"proxy": {"app:proxy-server": {"metrics_clients": "127.0.0.1/32"}}}).start()
    fill(up)
    page = until(lambda: (text := scrape(up.port)) and "martlet_upkeep_passes_total" in text and stored(text) and text, what="upkeep on the page")
    assert figure(page, "martlet_requests_total", role="proxy-server", verb="PUT", status="2xx") == 6
    assert figure(page, "martlet_requests_total", role="proxy-server", verb="GET", status="4xx") >= 1
    assert figure(page, "martlet_requests_total", role="object-server", verb="PUT", status="2xx") == 15
    assert figure(page, "martlet_request_seconds_count", role="object-server", verb="PUT") == 15
    assert figure(page, "martlet_body_bytes_total", role="proxy-server", direction="received") >= 5000
    assert figure(page, "martlet_body_bytes_total", role="proxy-server", direction="sent") >= 5000
    assert figure(page, "martlet_connections", role="proxy-server") >= 1
    for device in up.devices:
        assert figure(page, "martlet_device_in_service", device=device) == 1
        assert figure(page, "martlet_device_bytes", device=device) > figure(page, "martlet_device_free_bytes", device=device) > 0
        assert figure(page, "martlet_device_files", device=device) >= figure(page, "martlet_device_free_files", device=device)
        # The kernel counts what drives do, and does not for what is no drive.
        number = up.srv.joinpath(device).stat().st_dev
        is_counted = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat").exists()
        assert (figure(page, "martlet_device_operations_total", device=device) > 0) == is_counted
        assert (figure(page, "martlet_device_operation_seconds_total", device=device) > 0) == is_counted
    assert figure(page, "martlet_processors") == len(os.sched_getaffinity(0))
    assert "secret" not in page and "AUTH_test" not in page
    assert scrape(up.port, path="/metrics?x=y")
    # A client behind a forwarding proxy is not the peer that is checked.
    assert status(up.port, {"X-Forwarded-For": "1.2.3.4"}) == 412


def test_what_is_put_aside_is_counted(make_system):
    up = make_system("up").start()
    fill(up)
    damaged = next(path for device in up.devices for path in sorted((up.srv / device / "objects").rglob("*.data")))
    damaged.write_bytes(b"y" * 1000)
    device = damaged.relative_to(up.srv).parts[0]
    client = Client(up.auth_url)
    for number in range(5):
        client.do("GET", "secretcontainer", f"secretobject{number}", headers={"X-Newest": "true"}, expect=200)
    page = until(lambda: figure(text := scrape(up.port), "martlet_quarantined", device=device, kind="objects") and text, what="the count")
    assert sum(value for (name, _), value in samples(page).items() if name == "martlet_quarantined") == 1


def test_a_client_elsewhere_sees_no_page(make_system):
    ip = own_ip()
    if not ip:
        pytest.skip("this machine has no address but loopback's")
    system = make_system("separate", overrides={"proxy": {"DEFAULT": {"bind_ip": "0.0.0.0"}}}).start()
    assert status(system.port) == 200
    assert status(system.port, host=ip) == 412


def test_each_server_has_its_page(make_system):
    own = free_port()
    system = make_system("separate", overrides={"proxy": {"DEFAULT": {"metrics_port": own}}}).start()
    fill(system)
    assert figure(scrape(own), "martlet_requests_total", role="proxy-server", verb="PUT", status="2xx") == 6
    for role in ROLES:
        page = scrape(system.layout.ports[role, 0])
        assert {dict(key[1])["role"] for key in samples(page) if key[0] == "martlet_requests_total"} == {f"{role}-server"}
        assert "secret" not in page and "AUTH_test" not in page
    page = until(lambda: (text := scrape(system.layout.ports["object", 0])) and stored(text) and text, what="all replicas counted")
    assert figure(page, "martlet_requests_total", role="object-server", verb="PUT", status="2xx") == 15
    assert figure(page, "martlet_request_seconds_bucket", role="object-server", verb="PUT", le="+Inf") == 15


def test_a_daemon_has_a_port_of_its_own(make_system, tmp_path):
    port = free_port()
    system = make_system("separate", overrides={"object": {"object-updater": {"metrics_port": port, "interval": 1}}}).start()
    fill(system)
    daemon = Process([martlet(), "object-updater", system.etc / "object-server.conf"], tmp_path / "updater.log")
    try:
        page = until(lambda: reached(port), what="a pass of the updater")
        assert figure(page, "martlet_upkeep_pass_failed", daemon="object-updater") == 0
        output = until(lambda: (text := scrape(system.layout.ports["object", 0])) and "martlet_async_pending_oldest" in text and text,
                     what="the updater's figures at the server")
        assert figure(output, "martlet_async_pending_oldest_seconds") == 0
        assert figure(output, "martlet_daemon_last_pass_age_seconds", daemon="object-updater") < 60
        # A second process on the port goes on without it.
        other = Process([martlet(), "object-updater", system.etc / "object-server.conf"], tmp_path / "other.log")
        other.wait_for(lambda: "metrics_port: cannot listen" in other.text())
        assert other.stop() == 0
    finally:
        assert daemon.stop() == 0


@pytest.mark.parametrize("role, daemon", [("account", "account-auditor"), ("container", "container-auditor"),
                                          ("container", "container-updater"), ("object", "object-auditor"), ("account", "account-replicator")])
def test_a_server_tells_the_age_of_the_last_pass_of_daemons_with_figures(make_system, role, daemon):
    system = make_system("separate").start()
    run([martlet(), daemon, system.etc / f"{role}-server.conf", "once"], timeout=60)
    page = scrape(system.layout.ports[role, 0])
    assert 0 <= figure(page, "martlet_daemon_last_pass_age_seconds", daemon=daemon) < 60
    assert figure(page, "martlet_daemon_last_pass_seconds", daemon=daemon) >= 0


@pytest.mark.parametrize("role, daemon", [("account", "account-reaper"), ("container", "container-sync"), ("container", "container-reconciler")])
def test_a_server_tells_the_age_of_the_last_pass_of_daemons_without_figures(make_system, role, daemon):
    """They make no file that OpenStack's daemons do not make."""
    system = make_system("separate").start()
    conf = system.etc / f"{role}-server.conf"
    if role == "container":
        own = {} if daemon == "container-reconciler" else {"internal_client_conf_path": system.etc / f"{daemon}.conf"}
        conf = upkeep.write_conf(system, f"{daemon}.conf", daemon, devices=system.srv, mount_check="false", **own)
    before = set(system.layout.run.glob("*.recon"))
    run([martlet(), daemon, conf, "once"], timeout=60)
    page = scrape(system.layout.ports[role, 0])
    assert 0 <= figure(page, "martlet_daemon_last_pass_age_seconds", daemon=daemon) < 60, page
    assert set(system.layout.run.glob("*.recon")) == before


def test_what_is_quarantined_is_told_once_on_a_node(make_system):
    system = make_system("separate").start()
    client = Client(system.auth_url)
    client.put("c")
    client.put("c", "o", body=b"x")
    device = system.layout.devices[0]
    aside = {"accounts": "account", "containers": "container", "objects": "object", "objects-1": "object"}
    for kind in aside:
        (system.srv / device / "quarantined" / kind / "damaged").mkdir(parents=True)
    # A server knows a device once a request was about it.
    for number in range(30):
        client.put(f"c{number}")
        client.put(f"c{number}", "o", body=b"x")

    def told(role):
        page = scrape(system.layout.ports[role, 0])
        return {dict(labels)["kind"] for (name, labels) in samples(page) if name == "martlet_quarantined"}
    for role in ROLES:
        wanted = {kind for kind, whose in aside.items() if whose == role}
        until(lambda role=role, wanted=wanted: told(role) == wanted, what=f"figures of the {role} server, and of no other")


def test_the_room_of_a_device_is_told_once_on_a_node(make_system):
    system = make_system("separate").start()
    client = Client(system.auth_url)
    for number in range(30):
        client.put(f"c{number}")
        client.put(f"c{number}", "o", body=b"x")

    def tellers():
        pages = {role: samples(scrape(system.layout.ports[role, 0])) for role in ROLES}
        return {(dict(labels)["device"], name, role) for role, page in pages.items() for name, labels in page if name in ROOM}
    told = {(device, name, "object") for device in system.layout.devices for name in ROOM}
    until(lambda: tellers() == told, what="the room of each device, told by the object server alone")


def reached(port):
    try:
        page = scrape(port)
    except (OSError, urllib.error.URLError):
        return None
    return page if figure(page, "martlet_upkeep_passes_total", daemon="object-updater") >= 1 else None


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_finds_nothing_to_object_to(make_system):
    up = make_system("up").start()
    fill(up)
    page = scrape(up.port, accept="text/plain; version=0.0.4")
    assert "# TYPE martlet_requests_total counter" in page
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
