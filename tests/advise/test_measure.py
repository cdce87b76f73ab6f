"""`martlet advise measure` and what follows from it: limited processes are measured, curves and rates come of that, `buy`
answers with them, and its configuration files start servers."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from harness.places import martlet
from harness.process import Process, run
from harness.waiting import free_port, listening, until

LIMITED = Path(__file__).parent / "limited"
GROUPS = ("cpu", "cpuacct", "blkio", ".")
LEFT = "martlet-advise-"


def has_control_groups():
    root = Path("/sys/fs/cgroup")
    two = root / "cgroup.controllers"
    has_two = two.exists() and "cpu" in two.read_text().split()
    return os.geteuid() == 0 and (has_two or (root / "cpu").is_dir())


limits = pytest.mark.skipif(not has_control_groups(), reason="needs root, and control groups that may be written")


def why_no_devices():
    """What is missing for limits of drives and networks; nothing where all is there."""
    if not has_control_groups():
        return "needs root, and control groups that may be written"
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    if not Path("/sys/fs/cgroup/blkio/blkio.throttle.io_serviced").exists() and not (
            controllers.exists() and "io" in controllers.read_text().split()):
        return "needs a control group that limits block devices"
    missing = [name for name in ("ip", "tc", "mkfs.ext4", "unshare", "nsenter", "nice", "haproxy") if not shutil.which(name)]
    if missing:
        return f"needs {', '.join(missing)}"
    probe = ("ip link add name one type veth peer name two; ip link add name br type bridge; tc qdisc add dev one root tbf rate 1mbit burst 65536 "
             "limit 65536; mount -t tmpfs tmpfs /mnt; truncate -s 8M /mnt/a; mkfs.ext4 -q /mnt/a; mkdir /mnt/b; mount -o loop /mnt/a /mnt/b")
    done = run(["unshare", "--net", "--mount", "sh", "-e", "-c", probe], check=False)
    return done.stderr.strip() if done.returncode else ""


NO_DEVICES = why_no_devices()
devices = pytest.mark.skipif(bool(NO_DEVICES), reason=NO_DEVICES)


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


def plan(folder, sections="[gateway]\nprocessors = 0.1\n[storage]\nprocessors = 0.05\n", **changes):
    numbers = {"gateways": [1], "storage_nodes": [1, 2], "sizes": [4096, 131072], "workers": [16], "repeats": 1, "seconds": 2,
               "warm_up": 1, "objects": 5, "folder": json.dumps(str(folder)), "first_port": first_port(9), **changes}
    path = folder / "plan.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in numbers.items()) + sections)
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
    # Nor is what another plan measured taken for it.
    other = tmp_path / "other.toml"
    other.write_text(written.read_text().replace("processors = 0.05", "processors = 0.06"))
    complaint = advise("measure", other, "--output", tmp_path / "out", status=1)[1]
    assert "g1-s1-4096B-w16-r1.cluster.toml: it was measured by another plan: name another folder" in complaint
    rates = tmp_path / "rates.toml"
    fitted = advise("fit", *manifests, "--at", "1,2,65536,16", "--write-rates", rates)[0]
    assert "4 runs; knee" in fitted and "1 gateways, 2 storage nodes, 65536 bytes" in fitted
    assert 'name = "fitted through 4 runs (reads)"' in rates.read_text()
    answer = json.loads(advise("buy", "most-throughput", LIMITED / "inventory.toml", "--rates", rates, "--json")[0])
    assert answer["rates"]["gateway_read_cpu"]["source"].startswith("martlet advise fit: processor time of gateways in")
    band = answer["answers"][0]["throughput"]["requests"]
    assert 0 < band["low"] < band["value"] < band["high"]
    assert not belongs("", processes()) and [one.name for one in tmp_path.iterdir() if one.name.startswith(LEFT)] == []


def loops(pid):
    """Files below loop devices."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found += belongs(pid, [path.read_text()])
        except OSError:
            continue
    return found


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_alive(pid):
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


ALL_LIMITED = """[gateway]
processors = 0.1
network = "80Mbit/s"
[storage]
processors = 0.05
network = "80Mbit/s"
transfer = "20MB/s"
operations = 500
[balancer]
throughput = "10MB/s"
"""


@limits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_when_it_is_ended(tmp_path, number):
    written = plan(tmp_path, seconds=60, **({} if NO_DEVICES else {"sections": ALL_LIMITED, "drives": 2, "replicas": 2, "sizes": [131072]}))
    process = Process([martlet(), "advise", "measure", written, "--output", tmp_path / "out"], tmp_path / "log")
    try:
        pid = process.child.pid
        process.wait_for(lambda: any("main" in words for words in processes()), what="load")
        assert belongs(pid, groups())
        assert NO_DEVICES or len(loops(pid)) == 2
        begun = children(pid)
        os.kill(pid, number)
        status = process.child.wait(120)
        assert status == (-signal.SIGKILL if number == signal.SIGKILL else 1)
        # After SIGKILL their limits still hold while they end.
        until(lambda: not [words for words in processes() if belongs(pid, [" ".join(words)])], within=300, what="the end of all")
        # Those that hold networks and mounts end by themselves, and the kernel takes both away.
        until(lambda: not any(map(is_alive, begun)), within=300, what="the end of what it began")
        until(lambda: not loops(pid), within=60, what="the end of loop devices")
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


def of_devices(folder, drive, gateway, size):
    """An inventory whose design has these kinds, and a plan that measures that design."""
    inventory = folder / "devices.toml"
    text = (LIMITED / "devices.toml").read_text()
    text = text.replace('gateway = "gateway-slow-port"', f'gateway = "{gateway}"').replace('drive = "slow"', f'drive = "{drive}"')
    inventory.write_text(text.replace('size = "65536B"', f'size = "{size}B"'))
    sections = f'[gateway]\nkind = "{gateway}"\n[storage]\nkind = "storage-1"\ndrive = "{drive}"\n'
    return inventory, plan(folder, sections, inventory='"devices.toml"', storage_nodes=[2], sizes=[size], workers=[8], drives=1, replicas=2,
                           objects=40, seconds=3)


@devices
@pytest.mark.parametrize("drive, gateway, size, bound, said", [
    ("slow", "gateway-fast-port", 98304, "drives of objects", "limited to 20.0 MB/s and 30.0 operations a second"),
    # Small ones are read from the drives as well: nothing of them is kept in memory.
    ("slow", "gateway-fast-port", 4096, "drives of objects", "limited to 20.0 MB/s and 30.0 operations a second"),
    ("fast", "gateway-slow-port", 98304, "gateways' networks", "1.50 MB/s for each gateway, 100 MB/s for each storage node"),
])
def test_a_limited_drive_and_a_limited_network_bear_what_predict_says(tmp_path, drive, gateway, size, bound, said):
    inventory, written = of_devices(tmp_path, drive, gateway, size)
    predicted = json.loads(advise("predict", inventory, "--json")[0])["answers"][0]["throughput"]
    # A short run counts whole requests, and what other programs of the machine take for a moment a token bucket does not give back.
    low, high = predicted["requests"]["low"] * 0.9, predicted["requests"]["high"] * 1.05
    rates = []
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        line = advise("measure", written, "--output", folder)[0]
        manifest = folder / f"g1-s2-{size}B-w8-r1.json"
        rates.append(json.loads(manifest.read_text())["stages"][-1]["works"][0]["total"]["rate"])
        if rates[-1] >= low:
            break
    assert rates[-1] >= low and max(rates) <= high, (rates, predicted, line)
    # What limited it is what was said to, and was busy.
    assert predicted["bottleneck"] == {"slow": "drives", "fast": "gateway_network"}[drive]
    assert float(re.search(rf"{bound} (\d+) %", line)[1]) > 80, line
    beside = manifest.with_suffix(".cluster.toml").read_text()
    assert said in beside and "stands for each drive" in beside and "no balancer" in beside, beside
    reads = float(re.search(r"^drive_reads = ([\d.]+)$", beside, re.M)[1])
    assert drive == "fast" or 40 < reads < 72, beside
    assert not belongs("", processes()) and [one.name for one in tmp_path.iterdir() if one.name.startswith(LEFT)] == []


SAMPLED = """[gateway]
processors = 0.5
[storage]
processors = 0.3
drive = "slow"
[balancer]
throughput = "6MB/s"
[prices]
gateway = 100
storage = 10
"""


@devices
def test_sampling_ends_where_the_balancer_does(tmp_path):
    # One storage node bears 30 requests a second, the balancer 61 at most.
    shutil.copy(LIMITED / "devices.toml", tmp_path)
    written = plan(tmp_path, SAMPLED, inventory='"devices.toml"', storage_nodes=[1, 3, 4], sizes=[98304], workers=[8], drives=1,
                   replicas=1, repeats=2, objects=30, first_port=first_port(20))
    said = advise("measure", written, "--output", tmp_path / "out", "--sample")[0]
    # By chance a step may gain a little more than noise.
    assert re.search(r"^Throughput (stops growing at N = 3: with 4 it is |still grows at N = 4, or its noise )", said, re.M), said
    assert re.search(r"^Magic N = [34]: [\d.]+ EUR for each MB/s", said, re.M), said
    steps = {int(nodes): float(rate) for nodes, rate in re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+ +\d+ ", said, re.M)}
    assert steps.keys() == {1, 3, 4} and 22 < steps[1] < 38 and 45 < steps[3] < 67, said
    manifests = sorted((tmp_path / "out").glob("*.json"))
    assert len(manifests) == 2 * len(steps)
    beside = (tmp_path / "out/g1-s4-98304B-w8-r2.cluster.toml").read_text()
    assert "haproxy, limited to 6.00 MB/s of bodies in each direction, stands before the gateways" in beside
    said = advise("measure", written, "--output", tmp_path / "out", "--sample")[0]
    assert said.count("measured already") == len(manifests) and "Magic N = " in said


@devices
def test_what_limits_need_is_named(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "sleep", "setpriv", "unshare", "nsenter", "taskset", "nice", "ip"):
        (tools / name).symlink_to(shutil.which(name))
    written = plan(tmp_path, ALL_LIMITED, drives=1, replicas=1, storage_nodes=[1], sizes=[131072])
    command = [martlet(), "advise", "measure", written, "--output", tmp_path / "out"]
    done = run(command, check=False, env={"PATH": str(tools)})
    assert done.returncode == 1 and "networks of nodes (needs root, ip and tc of iproute2" in done.stderr, done.stderr
    assert "tc: not found" in done.stderr, done.stderr
    (tools / "tc").symlink_to(shutil.which("tc"))
    done = run(command, check=False, env={"PATH": str(tools)})
    assert done.returncode == 1 and "drives on loop devices with ext4 (needs mkfs.ext4" in done.stderr, done.stderr
    complaint = advise("measure", written, "--output", tmp_path / "out", "--unlimited", status=1)[1]
    assert "has a balancer, which stands in a network of its own: leave it or --unlimited out" in complaint
    assert list(tmp_path.glob(f"{LEFT}*")) == []


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
    # As another measurement whose servers do not listen yet has it.
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0martlet-advise-{port + 1}")
        other.listen()
        complaint = advise("measure", written, "--output", tmp_path / "out", "--unlimited", status=1)[1]
        assert f"port {port + 1} of 127.0.0.1 is taken by another program" in complaint


def test_a_second_measurement_is_told(tmp_path):
    written = plan(tmp_path, storage_nodes=[1], sizes=[4096], seconds=10)
    command = [martlet(), "advise", "measure", written, "--output", tmp_path / "out", "--unlimited"]
    first = Process(command, tmp_path / "log")
    try:
        first.wait_for(lambda: processes(), what="servers")
        first.child.send_signal(signal.SIGSTOP)  # so that it goes on until the second one has been told
        complaint = advise("measure", written, "--output", tmp_path / "second", "--unlimited", status=1)[1]
        first.child.send_signal(signal.SIGCONT)
        assert f"another measurement goes on here, of process {first.child.pid} " in complaint and "wait until it has ended" in complaint
        assert not (tmp_path / "second").exists()
        assert first.child.wait(120) == 0, first.text()
    finally:
        first.kill()
    # The first one ended, and left nothing that would refuse the next.
    advise("measure", written, "--output", tmp_path / "out", "--unlimited")


@pytest.mark.parametrize("change, why", [
    (("processors = 0.1", "processors = 1024"), "gateway: processors = 1024, and this machine gives "),
    (("sizes = [4096]", "sizes = [1000000000]\nreplicas = 3"), "MB free, and 1000 objects in each of 4 containers"),
    (("storage_nodes = [1]", "storage_nodes = [1, 1]"), "storage_nodes: 1 stands there twice: expected each once"),
    (("storage_nodes = [1]", "storage_nodes = [1]\ndrives = 1"), "replicas = 3: the smallest cluster of the plan has 1 drives: expected 1 to 1"),
    (("processors = 0.05", 'kind = "storage-1"'), "drives = 3: \"storage-1\" has 1 bays: expected 1 drives or fewer"),
    (("processors = 0.05", 'kind = "storage-9"'), 'storage: kind = "storage-9": expected one of storage-1'),
    (("gateways = [1]", "gateways = [1, 3]"), 'gateways: 3: the inventory has most = 2 of "gateway-few": expected 2 or fewer'),
])
@limits
def test_a_plan_that_contradicts_itself_or_the_machine_is_refused(tmp_path, change, why):
    text = (LIMITED / "devices.toml").read_text()
    (tmp_path / "devices.toml").write_text(text.replace("gateway-fast-port\"", "gateway-few\"\nmost = 2", 1))
    sections = "[gateway]\nkind = \"gateway-few\"\nprocessors = 0.1\n[storage]\nprocessors = 0.05\n"
    written = plan(tmp_path, sections, storage_nodes=[1], sizes=[4096], inventory='"devices.toml"', objects=1000)
    assert change[0] in written.read_text()
    written.write_text(written.read_text().replace(*change))
    complaint = advise("measure", written, "--output", tmp_path / "out", status=1)[1]
    assert why in complaint and str(written) in complaint, complaint
    assert not (tmp_path / "out").exists()


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
