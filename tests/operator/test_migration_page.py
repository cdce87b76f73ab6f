"""docs/operating/migration.md is done to a cluster of OpenStack Swift's programs while clients use it: no request fails, forth and back.

The cluster is what such a page finds: three storage nodes and two gateways behind HAProxy, run by `swift-init` from /etc/swift.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest
from swift.common.ring import RingBuilder

from harness import packages, page
from harness.layout import ROLES, ini
from harness.machine import LoadApart
from harness.places import REPOSITORY
from harness.reader import Reader
from harness.site import Site

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have other machines"),
    pytest.mark.skipif(not Path("/lib/systemd/systemd").exists(), reason="systemd is not installed"),
    pytest.mark.skipif(not shutil.which("haproxy"), reason="HAProxy is not installed"),
]

PAGE = REPOSITORY / "docs/operating/migration.md"
STORAGE = {"storage1": "10.0.0.31", "storage2": "10.0.0.32", "storage3": "10.0.0.33"}
GATEWAYS = {"proxy1": "10.0.0.21", "proxy2": "10.0.0.22"}
ADDRESSES = {"balancer": "10.0.0.10", **GATEWAYS, **STORAGE}
PORTS = {"object": 6200, "container": 6201, "account": 6202}
DAEMONS = {"object": ("replicator", "auditor", "updater"), "container": ("replicator", "auditor", "updater"), "account": ("replicator", "auditor", "reaper")}
PIPELINE = "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats tempauth copy slo dlo proxy-logging proxy-server"
AUTH_URL = "http://10.0.0.10:8080/auth/v1.0"

RSYNCD = "uid = swift\ngid = swift\n" + "".join(
    f"[{role}]\npath = /srv/node\nread only = false\nmax connections = 8\nlock file = /var/lock/{role}.lock\n" for role in ROLES)
HAPROXY = """defaults
    mode http
    timeout connect 5s
    timeout client 90s
    timeout server 90s
    option redispatch
    retries 3
listen swift
    bind 10.0.0.10:8080
    option httpchk GET /healthcheck
    default-server check inter 1s fall 2 rise 2
    server proxy1 10.0.0.21:8080
    server proxy2 10.0.0.22:8080
"""
# What stands before the page's first command. As Debian's packages of OpenStack Swift leave it, but for where the programs are.
BEGINNING = f"""set -e
getent passwd swift >/dev/null || useradd --system --user-group --no-create-home swift
install -d -o swift -g swift /etc/swift /srv/node /var/cache/swift /var/run/swift /etc/swift/backups
for program in {Path(sys.executable).parent}/swift-*; do ln -s $program /usr/local/bin/; done
cp -r /package/etc/. /etc/swift/
"""
DRIVES = """for drive in d1 d2; do mkdir /srv/node/$drive; mount -t tmpfs -o mode=755,uid=swift,gid=swift,size=300m tmpfs /srv/node/$drive; done
cp /package/rsyncd.conf /etc/rsyncd.conf; systemctl start rsync
"""
# Gateways are busy again after two seconds here, and the balancer asks each second.
INSTEAD = [(r"^sleep 70$", "sleep 4"), (r"^sleep 10$", "sleep 4")]


def configuration(role):
    """A storage server's file. A machine that is busy is no dead one: hence the time-outs."""
    patient = {"conn_timeout": 5, "node_timeout": 20}
    sections = {
        "DEFAULT": {"bind_ip": "0.0.0.0", "bind_port": PORTS[role], "workers": 0, "user": "swift"},
        "pipeline:main": {"pipeline": f"healthcheck recon {role}-server"},
        f"app:{role}-server": {"use": f"egg:swift#{role}", **(patient if role != "account" else {})},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"}, "filter:recon": {"use": "egg:swift#recon"},
    }
    return sections | {f"{role}-{daemon}": {"interval": 10, **(patient if daemon != "auditor" else {})} for daemon in DAEMONS[role]}


def beginning(package):
    """The files of the cluster, to be copied to its machines."""
    etc = package / "etc"
    etc.mkdir()
    files = {f"{role}-server.conf": configuration(role) for role in ROLES}
    files["swift.conf"] = {"swift-hash": {"swift_hash_path_prefix": "before", "swift_hash_path_suffix": "after"},
                           "storage-policy:0": {"name": "three", "default": "yes"}}
    files["proxy-server.conf"] = {
        "DEFAULT": {"bind_ip": "0.0.0.0", "bind_port": 8080, "workers": 0, "user": "swift"},
        "pipeline:main": {"pipeline": PIPELINE},
        # The page waits a minute for gateways to forget a node that was away; these forget it sooner, and so does the test.
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true", "conn_timeout": 5, "node_timeout": 20, "error_suppression_interval": 2},
        "filter:tempauth": {"use": "egg:swift#tempauth", "user_test_tester": "testing .admin"},
        "filter:cache": {"use": "egg:swift#memcache", "memcache_servers": "10.0.0.10:11211", "connect_timeout": 5, "pool_timeout": 5},
        "filter:healthcheck": {"use": "egg:swift#healthcheck", "disable_path": "/etc/swift/away"},
        **{f"filter:{name}": {"use": f"egg:swift#{name.replace('-', '_')}"}
           for name in ("catch_errors", "gatekeeper", "proxy-logging", "listing_formats", "copy", "slo", "dlo")},
    }
    for name, sections in files.items():
        (etc / name).write_text(ini(sections))
    for role in ROLES:
        builder = RingBuilder(6, 3, 1)
        for number, (name, address) in enumerate(STORAGE.items()):
            for drive in ("d1", "d2"):
                builder.add_dev({"region": 1, "zone": number + 1, "weight": 100.0, "device": drive, "ip": address, "port": PORTS[role],
                                 "replication_ip": address, "replication_port": PORTS[role], "meta": ""})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(etc / f"{role}.ring.gz"))
    (package / "rsyncd.conf").write_text(RSYNCD)
    (package / "haproxy.cfg").write_text(HAPROXY)


def begin(site, whole):
    def on(name):
        script = BEGINNING + (DRIVES if name in STORAGE else "")
        if name in STORAGE:
            # In the short run the daemons of one node stand for those of all.
            daemons = " ".join(f"{role}-{daemon}" for role in ROLES for daemon in DAEMONS[role]) if whole or name == "storage1" else ""
            script += f"swift-init {' '.join(f'{role}-server' for role in ROLES)} {daemons} start\n"
        elif name in GATEWAYS:
            script += "swift-init proxy-server start\n"
        else:
            script += "cp /package/haproxy.cfg /etc/haproxy/; printf '%s\\n' '-u memcache' '-l 10.0.0.10' > /etc/memcached.conf; systemctl restart memcached haproxy\n"
        said, status = site.terminals[name].type(f"(\n{script})")
        assert status == 0, f"{name}: {said}"
    site.on_each(list(ADDRESSES), on)
    wait = "for second in $(seq 100); do curl -sf http://10.0.0.10:8080/healthcheck && exit; sleep 1; done; exit 1"
    assert site.terminals["balancer"].type(f"({wait})")[1] == 0


def read(tmp_path, steps, *, whole):
    package = packages.released(tmp_path / "package")
    beginning(package)
    with Site(tmp_path, package, ADDRESSES, INSTEAD) as site, open(tmp_path / "transcript", "w") as transcript:
        begin(site, whole)
        reader = Reader(PAGE.name, site, transcript)
        with LoadApart(site.machines["balancer"], AUTH_URL, rewrites=False) as load:
            load.go_on()
            for step in steps:
                reader.do(step)
                load.go_on()
            report = load.end()
        assert report["failed"] == [] and report["wrong"] == [] and report["read"] > 100, report
    assert not reader.wrong, "\n\n".join(reader.wrong)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_node_and_one_gateway_change_hands_and_come_back(tmp_path):
    steps = [step for step in page.steps(PAGE) if not step.path]
    for step in steps:
        step.machines = [name for name in step.machines if name in ("storage1", "proxy1")]
    read(tmp_path, steps, whole=False)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_whole_page(tmp_path):
    read(tmp_path, page.steps(PAGE), whole=True)
