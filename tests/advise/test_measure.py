"""`martlet advise measure` and what follows from it: limited processes are measured, curves and rates come of that, `buy`
answers with them, and its configuration files start servers."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from harness.places import martlet
from harness.process import Process, run
from harness.waiting import free_port, listening, until

LIMITED = Path(__file__).parent / "limited"
GROUPS = ("cpu", "cpuacct", ".")
LEFT = "martlet-advise-"


def has_control_groups():
    root = Path("/sys/fs/cgroup")
    two = root / "cgroup.controllers"
    has_two = two.exists() and "cpu" in two.read_text().split()
    return os.geteuid() == 0 and (has_two or (root / "cpu").is_dir())


limits = pytest.mark.skipif(not has_control_groups(), reason="needs root, and control groups that may be written")


def advise(*arguments, status=0, timeout=300):
    done = run([martlet(), "advise", *arguments], check=False, timeout=timeout)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def first_port(count):
    """The first of so many free ports in a row."""
    while True:
        ports = [free_port() for _ in range(count)]
        if ports == list(range(ports[0], ports[0] + count)):
            return ports[0]


def plan(folder, **changes):
    numbers = {"gateways": [1], "storage_nodes": [1, 2], "sizes": [4096, 131072], "workers": [16], "repeats": 1, "seconds": 2,
               "warm_up": 1, "objects": 5, "folder": json.dumps(str(folder)), "first_port": first_port(8), **changes}
    path = folder / "plan.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in numbers.items())
                    + "[gateway]\nprocessors = 0.1\n[storage]\nprocessors = 0.05\n")
    return path


def processes():
    """Servers and loads of a measurement that run."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found += [words for word in words if f"/{LEFT}" in word][:1]
    return found


def groups():
    return [path for group in GROUPS for path in Path("/sys/fs/cgroup", group).glob(f"{LEFT}*")]


def belongs(pid, things):
    return [thing for thing in things if f"{LEFT}{pid}" in str(thing)]


@limits
def test_limited_processes_are_measured_fitted_and_bought(tmp_path):
    written = plan(tmp_path)
    said = advise("measure", written, "--output", tmp_path / "out")[0]
    manifests = sorted((tmp_path / "out").glob("*.json"))
    assert len(manifests) == 4 and said.count("requests/s") == 4, said
    for manifest in manifests:
        beside = manifest.with_suffix(".cluster.toml").read_text()
        assert "processes of one machine: control groups limit each gateway to 0.1" in beside
        numbers = {name: float(value) for name, value in re.findall(r"^(\w+) = ([\d.]+)$", beside, re.M)}
        # A kernel gives no more than the limit, but for what it gives back of the period before.
        assert numbers["gateways_busy"] <= 0.1 * 1.15
        assert numbers["storage_busy"] <= 0.05 * numbers["storage_nodes"] * 1.15
        share = max(numbers["gateways_busy"] / 0.1, numbers["storage_busy"] / (0.05 * numbers["storage_nodes"]))
        assert share > 0.6, beside
    # What was measured is not measured again.
    assert "requests/s" not in advise("measure", written, "--output", tmp_path / "out")[0]
    rates = tmp_path / "rates.toml"
    fitted = advise("fit", *manifests, "--at", "1,2,65536,16", "--write-rates", rates)[0]
    assert "4 runs; knee" in fitted and "1 gateways, 2 storage nodes, 65536 bytes" in fitted
    assert 'name = "fitted through 4 runs (reads)"' in rates.read_text()
    answer = json.loads(advise("buy", "most-throughput", LIMITED / "inventory.toml", "--rates", rates, "--json")[0])
    assert answer["rates"]["gateway_read_cpu"]["source"].startswith("martlet advise fit: processor time of gateways in")
    band = answer["answers"][0]["throughput"]["requests"]
    assert 0 < band["low"] < band["value"] < band["high"]
    assert not belongs("", processes()) and [one.name for one in tmp_path.iterdir() if one.name.startswith(LEFT)] == []


@limits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_when_it_is_ended(tmp_path, number):
    written = plan(tmp_path, seconds=60)
    process = Process([martlet(), "advise", "measure", written, "--output", tmp_path / "out"], tmp_path / "log")
    try:
        pid = process.child.pid
        process.wait_for(lambda: any("main" in words for words in processes()), what="load")
        assert belongs(pid, groups())
        os.kill(pid, number)
        status = process.child.wait(30)
        assert status == (-signal.SIGKILL if number == signal.SIGKILL else 1)
        until(lambda: not [words for words in processes() if belongs(pid, [" ".join(words)])], within=10, what="the end of all")
    finally:
        process.kill()
    assert list((tmp_path / "out").glob("*.json")) == []
    if number == signal.SIGKILL:
        # The next one removes what no process could.
        assert belongs(pid, groups()) and belongs(pid, tmp_path.iterdir())
        plan(tmp_path, storage_nodes=[1], sizes=[4096])
        advise("measure", written, "--output", tmp_path / "next")
    else:
        assert "interrupted" in process.text()
    assert not belongs(pid, groups()) and not belongs(pid, tmp_path.iterdir())


def test_without_limits_results_say_so(tmp_path):
    written = plan(tmp_path, storage_nodes=[1], sizes=[4096])
    advise("measure", written, "--output", tmp_path / "out", "--unlimited")
    beside = (tmp_path / "out/g1-s1-4096B-w16-r1.cluster.toml").read_text()
    assert "nothing limits their processors" in beside and "busy" not in beside
    written.write_text(written.read_text().replace("processors = 0.1", "processors = 0"))
    complaint = advise("measure", written, "--output", tmp_path / "out", status=1)[1]
    assert f"{written}: gateway: processors = 0: expected" in complaint
    # Processor time would not be known, so nothing would tell whether limits limited.
    complaint = advise("measure", plan(tmp_path, seconds=1), "--output", tmp_path / "out", status=1)[1]
    assert "seconds: 1: expected 2 to 3600" in complaint


def test_a_port_that_is_taken_is_named(tmp_path):
    written = plan(tmp_path, storage_nodes=[1], sizes=[4096])
    port = int(re.search(r"first_port = (\d+)", written.read_text())[1])
    taken = Process(["python3", "-c", f"import socket,time; s=socket.create_server(('127.0.0.1',{port})); time.sleep(600)"],
                    tmp_path / "taken.log")
    try:
        until(lambda: listening(port), what="the other program")
        complaint = advise("measure", written, "--output", tmp_path / "out", "--unlimited", status=1)[1]
        assert f"port {port} of 127.0.0.1 is taken by another program" in complaint
        assert list(tmp_path.glob(f"{LEFT}*")) == []
    finally:
        taken.kill()


def test_a_server_that_does_not_start_is_named(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho cannot do this: $1 >&2\nexit 3\n")
    broken.chmod(0o755)
    complaint = advise("measure", plan(tmp_path), "--output", tmp_path / "out", "--unlimited", "--program", broken, status=1)[1]
    assert re.search(r"\w+-0 on 127.0.0.1:\d+ has ended: cannot do this: \w+-server", complaint), complaint
    assert list(tmp_path.glob(f"{LEFT}*")) == []


def test_configuration_files_of_an_answer_start_servers(tmp_path):
    catalogue = tmp_path / "inventory.toml"
    text = advise("catalogue")[0]
    for old, new in (('capacity = "500TB"', 'capacity = "20TB"'), ("objects = 200e6", "objects = 10e6"), ('throughput = "500MB/s"', 'throughput = "5MB/s"')):
        assert old in text
        text = text.replace(old, new)
    catalogue.write_text(text)
    etc = tmp_path / "etc"
    answer = json.loads(advise("buy", "least-cost", catalogue, "--top", "1", "--json", "--write-configuration", etc)[0])["answers"][0]
    assert "it is there already: name another folder" in advise(
        "buy", "least-cost", catalogue, "--write-configuration", etc, status=1)[1]
    assert {path.stat().st_mode & 0o077 for path in etc.iterdir()} == {0}
    # On this machine: loopback addresses, free ports, folders instead of drives.
    ports = {old: free_port() for old in ("6200", "6201", "6202", "8080", "11211")}
    for path in etc.iterdir():
        changed = path.read_text().replace("10.0.0.", "127.0.0.").replace("10.1.0.", "127.1.0.")
        for old, new in ports.items():
            changed = re.sub(rf"(?<!\d){old}(?!\d)", str(new), changed)
        changed = changed.replace("[DEFAULT]\n", f"[DEFAULT]\nswift_dir = {etc}\nuser = {os.environ.get('USER', 'root')}\n")
        changed = changed.replace("devices = /srv/node", f"devices = {tmp_path}/srv\nmount_check = false")
        path.write_text(changed.replace("use = egg:swift#recon", f"use = egg:swift#recon\nrecon_cache_path = {tmp_path}"))
    subprocess.run(["sh", "rings.sh"], cwd=etc, env={**os.environ, "MARTLET": martlet()}, check=True, capture_output=True,
                   timeout=120)
    drives = {line["count"] for line in answer["bill"] if line["role"] == "drive for objects"}
    devices = set(re.findall(r"/([dl]\d+) ", (etc / "rings.sh").read_text()))
    assert len([name for name in devices if name.startswith("d")]) * answer["counts"]["storage"] in drives
    for name in devices:
        (tmp_path / "srv" / name).mkdir(parents=True)
    running = []
    try:
        for server in ("account", "container", "object", "proxy"):
            conf = etc / f"{server}-server.conf"
            run([martlet(), f"{server}-server", "--test-config", conf], timeout=60)
            running.append(Process([martlet(), f"{server}-server", conf], tmp_path / f"{server}.log"))
        running[-1].wait_for(lambda: all(listening(ports[port]) for port in ("6200", "6201", "6202", "8080")))
        key = re.search(r"user_admin_admin = (\w+)", (etc / "proxy-server.conf").read_text())[1]
        url = f"http://127.0.0.1:{ports['8080']}"

        def ask(method, address, headers, body=None):
            request = urllib.request.Request(address, method=method, headers=headers, data=body)
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.headers, reply.read()

        granted = ask("GET", f"{url}/auth/v1.0", {"X-Auth-User": "admin:admin", "X-Auth-Key": key})[0]
        account, token = granted["X-Storage-Url"], {"X-Auth-Token": granted["X-Auth-Token"]}
        ask("PUT", f"{account}/c", token, b"")
        ask("PUT", f"{account}/c/o", token, b"as bought")
        assert ask("GET", f"{account}/c/o", token)[1] == b"as bought"
    finally:
        for process in running:
            process.stop()
