"""The Debian package under systemd, on a machine that is thrown away: units start, reload, come back and are upgraded under load."""

import os
import shutil
from pathlib import Path

import pytest

from harness.layout import ROLES, Layout, ini
from harness.machine import LoadApart, Machine
from harness.waiting import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another machine"),
    pytest.mark.skipif(not Path("/lib/systemd/systemd").exists(), reason="systemd is not installed"),
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed"),
]

SERVERS = ("proxy", *ROLES)
DAEMONS = ("account-auditor", "account-replicator", "account-reaper", "container-auditor", "container-replicator", "container-updater",
           "container-sync", "object-auditor", "object-replicator", "object-updater", "object-expirer")
UNITS = [f"martlet-{name}" for name in (*SERVERS, *DAEMONS)]
OLD = "dpkg -i --force-depends /package/martlet_0.1.0~old_*.deb"
NEW = "dpkg -i --force-depends /package/martlet_0.1.0~one_*.deb"
PURGE = "dpkg --purge --force-depends martlet"


@pytest.fixture
def machine(packages, tmp_path):
    with Machine(tmp_path / "machine", packages) as machine:
        yield machine


def property_of(machine, unit, name):
    return machine.run(f"systemctl show --value --property {name} {unit}").stdout.strip()


def wait_for(machine, unit, name, value):
    until(lambda: property_of(machine, unit, name) == value, within=60, what=f"{name}={value} of {unit}")


def log(machine, unit):
    return machine.run(f"journalctl --no-pager --output cat --unit {unit}").stdout


def build_of(machine, unit):
    """Which packages' programs the processes of a unit are."""
    group = property_of(machine, unit, "ControlGroup")
    ends = machine.run(f"for pid in $(cat /sys/fs/cgroup{group}/cgroup.procs); do tail -c 3 /proc/$pid/exe; echo; done").stdout
    return set(ends.split())


def test_one_node_is_upgraded_in_place_and_loses_no_write(machine):
    machine.run("echo MARTLET_ONE_NODE=yes > /etc/default/martlet; echo 'ARGUMENTS=--bind 127.0.0.1:8080 --devices 3' >> /etc/default/martlet")
    machine.run(OLD)
    assert property_of(machine, "martlet-up", "ActiveState") == "active", log(machine, "martlet-up")
    until(lambda: "ready http://127.0.0.1:8080/auth/v1.0" in log(machine, "martlet-up"), what="its line in the journal")
    assert machine.run("stat -c %U:%a /var/lib/martlet").stdout == "swift:750\n"
    with LoadApart(machine, "http://127.0.0.1:8080/auth/v1.0") as load:
        load.go_on()
        machine.run(NEW)
        until(lambda: build_of(machine, "martlet-up") == {"one"}, what="the new build alone")
        load.go_on()
        machine.run("kill -9 $(systemctl show --value --property MainPID martlet-up)")
        load.go_on()
        report = load.end()
    assert report["wrong"] == [] and report["read"] > 40, report
    assert property_of(machine, "martlet-up", "NRestarts") == "1"
    machine.run(PURGE)
    left = machine.run("ls -d /var/lib/martlet/cluster/etc /etc/default/martlet /etc/systemd/system/*.wants/martlet* /usr/bin/martlet", check=False)
    assert left.stdout == "/var/lib/martlet/cluster/etc\n", left.stdout
    assert machine.run("systemctl list-units --all --no-legend 'martlet*'").stdout == ""


def configure(machine, packages, tmp_path):
    """A cluster of all servers and daemons on this machine; where its gateway is."""
    everywhere = {"user": "swift", "bind_ip": "0.0.0.0"}
    layout = Layout(tmp_path / "layout", policies=("gold",), memcached_port=11211, overrides={
        **{role: {"DEFAULT": {**everywhere, "mount_check": "true"}} for role in ROLES},
        "object": {"DEFAULT": {**everywhere, "mount_check": "true"}, "object-expirer": {}, "object-replicator": {"interval": 1}},
        "container": {"DEFAULT": {**everywhere, "mount_check": "true"}, "container-sync": {}},
        "proxy": {"DEFAULT": everywhere},
    })
    layout.srv, layout.run = "/srv/node", "/var/cache/swift"
    layout.write()
    (layout.etc / "internal-client.conf").write_text(ini({
        "DEFAULT": {}, "pipeline:main": {"pipeline": "catch_errors proxy-logging cache proxy-server"},
        "app:proxy-server": {"use": "egg:swift#proxy"}, "filter:cache": {"use": "egg:swift#memcache"},
        "filter:proxy-logging": {"use": "egg:swift#proxy_logging"}, "filter:catch_errors": {"use": "egg:swift#catch_errors"}}))
    for conf in layout.etc.glob("*.conf"):
        conf.write_text(conf.read_text().replace(str(layout.etc), "/etc/swift"))
    shutil.copytree(layout.etc, packages / "etc", dirs_exist_ok=True)
    machine.run("cp /package/etc/* /etc/swift/; systemctl start memcached")
    # It listens only a moment after it was started.
    until(lambda: machine.run("bash -c ': < /dev/tcp/127.0.0.1/11211'", check=False).returncode == 0, what="memcached")
    for device in layout.devices:
        machine.run(f"mkdir -p /srv/node/{device}; mount -t tmpfs -o uid=swift,gid=swift,mode=755 tmpfs /srv/node/{device}")
    return layout, f"http://127.0.0.1:{layout.proxy_port}/auth/v1.0"


def test_servers_and_daemons_go_on_whatever_is_done_to_them(machine, packages, tmp_path):
    machine.run(OLD)
    layout, auth_url = configure(machine, packages, tmp_path)
    machine.run(f"systemctl enable --now martlet.target {' '.join(UNITS)}")
    states = {unit: property_of(machine, unit, "ActiveState") for unit in UNITS}
    assert set(states.values()) == {"active"}, states
    with LoadApart(machine, auth_url) as load:
        load.go_on()
        pids = {name: property_of(machine, f"martlet-{name}", "MainPID") for name in SERVERS}
        machine.run("systemctl reload martlet.target")
        load.go_on()
        machine.run(NEW)
        for unit in UNITS:
            until(lambda unit=unit: build_of(machine, unit) == {"one"}, within=60, what=f"{unit} as the new build")
        load.go_on()
        assert {name: property_of(machine, f"martlet-{name}", "MainPID") for name in SERVERS} == pids
        report = load.end()
    assert report["wrong"] == [] and report["failed"] == [] and report["read"] > 40, report
    # A configuration that is wrong changes nothing, and systemctl says so.
    machine.run("cp /etc/swift/proxy-server.conf /tmp/good; sed -i 's/pipeline = .*/pipeline = nonsense/' /etc/swift/proxy-server.conf; systemctl reload martlet-proxy")
    until(lambda: "serving as before" in property_of(machine, "martlet-proxy", "StatusText"), what="the reload's failure")
    assert property_of(machine, "martlet-proxy", "ActiveState") == "active"
    machine.run("cp /tmp/good /etc/swift/proxy-server.conf; systemctl reload martlet-proxy")
    wait_for(machine, "martlet-proxy", "StatusText", "")
    # Killed, they come back.
    machine.run("kill -9 $(systemctl show --value --property MainPID martlet-object martlet-object-replicator)")
    for unit in ("martlet-object", "martlet-object-replicator"):
        wait_for(machine, unit, "NRestarts", "1")
        wait_for(machine, unit, "ActiveState", "active")
    machine.run("systemctl start martlet-recon-cron")
    assert "async_pending" in machine.run("cat /var/cache/swift/object.recon").stdout
    # The daemon knows its devices by the addresses of the machine; a drive that is taken out is let go of.
    until(lambda: "object_replication_last" in machine.run("cat /var/cache/swift/object.recon", check=False).stdout, within=90, what="a pass of the replicator")
    assert "cannot list the addresses" not in log(machine, "martlet-object-replicator")
    machine.run("umount -l /srv/node/sdb1")
    url = f"http://127.0.0.1:{layout.ports['object', 0]}/sdb1/0/a/c/o"
    until(lambda: machine.run(f"curl -s -o /dev/null -w '%{{http_code}}' {url}").stdout == "507", within=60, what="507 of a drive taken out")
    machine.run("systemctl stop martlet.target")
    # systemctl waits for the target, and not for those that stop with it.
    until(lambda: {property_of(machine, unit, "ActiveState") for unit in UNITS} == {"inactive"}, within=60, what="the end of all units")
    assert {property_of(machine, unit, "Result") for unit in UNITS} == {"success"}
