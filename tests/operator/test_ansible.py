"""etc/ansible makes the cluster of the production page, on machines of their own: made, made again, changed under load, grown, drained."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import ansible, packages
from harness.process import run
from harness.site import Site
from harness.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have other machines"),
    pytest.mark.skipif(not Path("/lib/systemd/systemd").exists(), reason="systemd is not installed"),
    pytest.mark.skipif(not shutil.which("haproxy") or not shutil.which("nginx"), reason="the balancers are not installed"),
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/apt").exists(), reason="python3-apt is not installed"),
]

ADDRESSES = {"admin": "10.0.0.5", "balancer": "10.0.0.10", "proxy1": "10.0.0.21", "proxy2": "10.0.0.22",
             "storage1": "10.0.0.31", "storage2": "10.0.0.32", "storage3": "10.0.0.33", "storage4": "10.0.0.34"}
STORAGE = ["storage1", "storage2", "storage3"]
GATEWAYS = ["proxy1", "proxy2"]
# The main process of each unit and its children, on one machine.
PROCESSES = """
for unit in $(systemctl list-units --plain --no-legend --type=service --state=active 'martlet-*' memcached haproxy nginx | cut -d' ' -f1); do
    main=$(systemctl show --value --property MainPID $unit)
    test "$main" = 0 || echo $unit $main $(cat /proc/$main/task/$main/children)
done
"""
# Stores and reads small objects by TLS, each under a name of its own, until it is enough: one line for each, "201" and its number.
LOAD = """
rm -f /root/enough /root/load
n=0
while [ ! -e /root/enough ]; do
    n=$((n + 1))
    put=$(echo $n | {ask}/load/$n -T - -o /dev/null -w '%{{http_code}}' 2>&1)
    echo "$put $({ask}/load/$n 2>&1)" >> /root/load
    sleep 0.05
done
"""
CURL = "curl -sS --cacert /root/swift.crt --resolve swift.example.org:443:10.0.0.10"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    ansible.program("ansible-playbook")
    place = tmp_path_factory.mktemp("ansible")
    package = packages.released(place / "package")
    ansible.empty_packages(package)
    with Site(place, package, ADDRESSES) as site:
        for machine in site.machines.values():
            ansible.prepare(machine)
        yield site


@pytest.fixture(scope="module")
def operator(site):
    """A cluster that has been made."""
    operator = ansible.Ansible(site.place / "operator", site)
    counts = operator.play()
    # On the balancer these are its certificate, its file and its unit.
    assert {name for name, counted in counts.items() if counted["changed"] >= 3} == set(ADDRESSES) - {"storage4"}, counts
    admin = site.machines["admin"]
    admin.run(f"cat > /root/swift.crt <<'THERE'\n{(operator.folder / 'swift.crt').read_text()}THERE")
    return operator


def processes(site, names):
    """By machine and unit: its main process, and the set of that one's children."""
    found = {}
    for name in names:
        for line in site.machines[name].run(PROCESSES).stdout.splitlines():
            unit, main, *children = line.split()
            found[name, unit.removesuffix(".service")] = main, set(children)
    return found


def logged_in(operator):
    """The beginning of a command that asks for something in the account, through the balancer, with TLS."""
    login = operator.site.machines["admin"].run(
        f"{CURL} -i -H 'X-Auth-User: photos:ada' -H 'X-Auth-Key: {operator.secrets['ada']}' https://swift.example.org/auth/v1.0").stdout
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in login.splitlines() if ": " in line)}
    assert headers["x-storage-url"] == "https://swift.example.org/v1/AUTH_photos", login
    return f"{CURL} -H 'X-Auth-Token: {headers['x-auth-token']}' {headers['x-storage-url']}"


def stored(operator, name):
    """What is read back of an object that was stored through the balancer."""
    admin, ask = operator.site.machines["admin"], logged_in(operator)
    admin.run(f"{ask}/2026 -X PUT -f; echo {name} > /root/object; {ask}/2026/{name} -T /root/object -f")
    return admin.run(f"{ask}/2026/{name}").stdout


class Load:
    """A client at work on the machine `admin`, while something is done to the others."""

    def __init__(self, operator):
        self.admin, self.ask = operator.site.machines["admin"], logged_in(operator)

    def __enter__(self):
        self.admin.run(f"{self.ask}/load -X PUT -f")
        self.thread = ThreadPoolExecutor(1)
        self.work = self.thread.submit(self.admin.run, LOAD.format(ask=self.ask), timeout=5400)
        return self

    def __exit__(self, *_):
        self.admin.run("touch /root/enough")
        self.thread.shutdown()

    def lines(self):
        return self.admin.run("cat /root/load", check=False).stdout.splitlines()

    def go_on(self, requests=20):
        enough = len(self.lines()) + requests
        until(lambda: self.work.done() or len(self.lines()) >= enough, within=120, what="the load going on")

    def failed(self):
        """What was not as it should be, when all is done."""
        self.admin.run("touch /root/enough")
        self.work.result()
        lines = self.lines()
        assert len(lines) > 40, lines
        return [line for number, line in enumerate(lines, 1) if line != f"201 {number}"]


def devices(operator, builder):
    """Weight and partitions of each device of a ring."""
    lines = operator.site.machines["admin"].run(f"martlet ring-builder /etc/swift/builders/{builder}.builder").stdout.splitlines()
    rows = [line.split() for line in lines[lines.index(next(line for line in lines if line.startswith("Devices:"))) + 1:]]
    return {f"{row[3].partition(':')[0]}/{row[5]}": (float(row[6]), int(row[7])) for row in rows}


def a_day_passes(operator):
    for builder in ("account", "container", "object"):
        operator.site.machines["admin"].run(f"martlet ring-builder /etc/swift/builders/{builder}.builder pretend_min_part_hours_passed")


def test_the_cluster_stores_by_tls_and_a_second_run_changes_nothing(operator, site):
    assert stored(operator, "first") == "first\n"
    counts = operator.play()
    assert {name: counted["changed"] for name, counted in counts.items()} == dict.fromkeys(counts, 0)
    assert len(counts) == 7
    modes = site.machines["proxy1"].run("stat -c '%U:%G %a' /etc/swift/proxy-server.conf /etc/swift/swift.conf").stdout
    assert modes == "root:swift 640\n" * 2
    assert site.machines["balancer"].run("stat -c '%U:%G %a' /etc/haproxy/swift.pem").stdout == "root:root 640\n"
    # The servers of time that the inventory names are the only ones.
    assert site.machines["storage1"].run("grep -hE '^(pool|server) ' /etc/chrony/chrony.conf /etc/chrony/sources.d/*.sources").stdout == "server ntp.example.org iburst\n"
    # The expirer runs once, the rings are the same everywhere, and copies of the builders are with the operator.
    expirers = [name for name in STORAGE if (name, "martlet-object-expirer") in processes(site, [name])]
    assert expirers == ["storage1"]
    sums = {site.machines[name].run("cd /etc/swift && md5sum *.ring.gz swift.conf").stdout for name in [*STORAGE, *GATEWAYS, "admin"]}
    assert len(sums) == 1
    assert {file.name for file in (operator.folder / "rings").iterdir()} == {
        f"{kind}.{ending}" for kind in ("account", "container", "object") for ending in ("builder", "ring.gz")}
    assert operator.leaked() == []


def test_a_changed_option_reaches_its_readers_alone_and_no_request_fails(operator, site):
    before = processes(site, [*STORAGE, *GATEWAYS, "balancer"])
    with Load(operator) as load:
        load.go_on()
        operator.say("martlet_container_options: {'app:container-server': {allow_versions: 'true'}, container-auditor: {interval: 900}}\n")
        counts = operator.play()
        load.go_on()
        after = processes(site, [*STORAGE, *GATEWAYS, "balancer"])
        operator.say("martlet_proxy_options: {'filter:ratelimit': {account_ratelimit: 0}}\n", "gateways.yml")
        operator.play("--tags", "gateway")
        load.go_on()
        at_last = processes(site, [*STORAGE, *GATEWAYS, "balancer"])
        assert load.failed() == []
    assert {name for name, counted in counts.items() if counted["changed"]} == set(STORAGE)
    assert {which for which in after if after[which] != before[which]} == {
        (name, unit) for name in STORAGE for unit in ("martlet-container", "martlet-container-auditor")}
    for name in STORAGE:
        # Reloaded: the same main process, and another worker. Restarted: another main process.
        assert after[name, "martlet-container"][0] == before[name, "martlet-container"][0]
        assert after[name, "martlet-container-auditor"][0] != before[name, "martlet-container-auditor"][0]
    newer = {which for which in at_last if at_last[which][1] - after[which][1]}
    assert newer == {(name, "martlet-proxy") for name in GATEWAYS}


def test_what_is_wrong_stops_at_the_first_machine_and_changes_nothing(operator, site):
    before = processes(site, [*STORAGE, *GATEWAYS])
    sums = {name: site.machines[name].run("cd /etc/swift && md5sum *.conf").stdout for name in [*STORAGE, *GATEWAYS]}
    operator.say("martlet_object_options: {DEFAULT: {mount_chek: 'false'}}\n", "wrong.yml")
    assert "did you mean mount_check?" in operator.play("--tags", "storage", fails=True)
    operator.say("martlet_proxy_options: {'pipeline:main': {pipeline: nonsense}}\n", "wrong.yml")
    assert "/etc/swift/proxy-server.conf.refused" in operator.play("--tags", "gateway", fails=True)
    operator.say("martlet_hash_path_suffix: another\n", "wrong.yml")
    assert "has another swift_hash_path_suffix than the inventory" in operator.play("--tags", "machine", fails=True)
    (operator.group / "wrong.yml").unlink()
    assert {name: site.machines[name].run("cd /etc/swift && md5sum *.conf").stdout for name in sums} == sums
    assert processes(site, [*STORAGE, *GATEWAYS]) == before
    refused = [name for name in GATEWAYS if site.machines[name].run("test -e /etc/swift/proxy-server.conf.refused", check=False).returncode == 0]
    assert refused == ["proxy1"]
    operator.play("--tags", "gateway")
    assert site.machines["proxy1"].run("ls /etc/swift").stdout.count("refused") == 0
    assert operator.leaked() == []


def test_a_node_comes_and_a_drive_goes_by_the_inventory(operator, site):
    hosts = operator.folder / "hosts.yml"
    three = hosts.read_text()
    line = "        storage3: {ansible_host: 10.0.0.33, martlet_zone: 3}\n"
    a_day_passes(operator)
    hosts.write_text(three.replace(line, f"{line}        storage4: {{ansible_host: 10.0.0.34, martlet_zone: 4}}\n"))
    counts = operator.play()
    assert counts["storage4"]["changed"] > 3
    for ring in ("account", "container", "object"):
        assert devices(operator, ring)["10.0.0.34/d1"] == (16000.0, 3072), ring
    # A drive leaves: first what it holds, then the drive.
    drives = operator.folder / "host_vars/storage2.yml"
    its = drives.read_text()
    drives.write_text(its + "martlet_devices: [{name: d1, disk: /dev/sdb, weight: 16000}]\n")
    assert "10.0.0.32:6202/d2 would leave" in operator.play("--tags", "rings", fails=True)
    drives.write_text(its + "martlet_drained: [d2]\n")
    a_day_passes(operator)
    operator.play("--tags", "rings")
    for ring in ("account", "container", "object"):
        assert devices(operator, ring)["10.0.0.32/d2"] == (0.0, 0), ring
    drives.write_text(its + "martlet_devices: [{name: d1, disk: /dev/sdb, weight: 16000}]\n")
    operator.play("--tags", "rings,check")
    assert "10.0.0.32/d2" not in devices(operator, "object") and len(devices(operator, "object")) == 7
    assert stored(operator, "after") == "after\n"


def test_keystone_and_nginx_take_the_place_of_the_others(operator, site):
    operator.say("martlet_balancer: nginx\n", "balancer.yml")
    operator.play("--limit", "balancer")
    assert site.machines["balancer"].run("systemctl is-active haproxy nginx", check=False).stdout == "inactive\nactive\n"
    assert stored(operator, "nginx") == "nginx\n"
    operator.say("martlet_auth: keystone\nmartlet_keystone: {auth_url: 'http://127.0.0.1:5000', username: swift, password: of-the-gateway,\n"
                 "  project_name: service, user_domain_name: Default, project_domain_name: Default}\n", "keystone.yml")
    operator.secrets["keystone"] = "of-the-gateway"
    operator.play("--limit", "proxy2")
    assert "authtoken keystoneauth" in site.machines["proxy2"].run("cat /etc/swift/proxy-server.conf").stdout
    assert operator.leaked() == []


def test_the_checker_of_ansible_finds_nothing():
    environment = {**os.environ, "PATH": f"{ansible.program('ansible-lint').parent}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    run([ansible.program("ansible-lint"), "--offline", "--profile", "production", "site.yml"], cwd=ansible.PLAYBOOK, env=environment)
