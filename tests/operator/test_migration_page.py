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
from harness.waiting import until

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
# OpenStack's; a machine sees all of this one's files but those in /tmp, where a clone may lie.
PROGRAMS = Path(sys.executable).parent.resolve()
# What stands before the page's first command. As Debian's packages of OpenStack Swift leave it, but for where the programs are.
BEGINNING = f"""set -e
ls {PROGRAMS}/swift-init >/dev/null
getent passwd swift >/dev/null || useradd --system --user-group --no-create-home swift
install -d -o swift -g swift /etc/swift /srv/node /var/cache/swift /var/run/swift /etc/swift/backups
for program in {PROGRAMS}/swift-*; do ln -s $program /usr/local/bin/; done
cp -r /package/etc/. /etc/swift/
"""
# It listens only a moment after it was started, and what OpenStack's gateways cannot keep there, a token say, is lost without a word.
MEMCACHED = """printf '%s\\n' '-u memcache' '-l {address}' > /etc/memcached.conf; systemctl restart memcached
for wait in $(seq 600); do (exec 3<>/dev/tcp/{address}/11211) 2>/dev/null && break; sleep 0.1; done
"""
DRIVES = """for drive in d1 d2; do mkdir /srv/node/$drive; mount -t tmpfs -o mode=755,uid=swift,gid=swift,size=600m tmpfs /srv/node/$drive; done
cp /package/rsyncd.conf /etc/rsyncd.conf; systemctl start rsync
"""
# Gateways are busy again after two seconds here, and the balancer asks each second.
INSTEAD = [(r"^sleep 70$", "sleep 4"), (r"^sleep 10$", "sleep 4")]


def configuration(role):
    """A storage server's file. A machine that is busy is no dead one: hence the time-outs. Without workers OpenStack's servers would stay root's, and
    their files, too."""
    patient = {"conn_timeout": 5, "node_timeout": 20}
    sections = {
        "DEFAULT": {"bind_ip": "0.0.0.0", "bind_port": PORTS[role], "workers": 1, "user": "swift"},
        "pipeline:main": {"pipeline": f"healthcheck recon {role}-server"},
        f"app:{role}-server": {"use": f"egg:swift#{role}", **(patient if role != "account" else {})},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"}, "filter:recon": {"use": "egg:swift#recon"},
    }
    return sections | {f"{role}-{daemon}": {"interval": 10, **(patient if daemon != "auditor" else {})} for daemon in DAEMONS[role]}


def beginning(package, storage, memcached):
    """The files of the cluster, to be copied to its machines; `memcached` is the address of the one that runs it."""
    etc = package / "etc"
    etc.mkdir()
    files = {f"{role}-server.conf": configuration(role) for role in ROLES}
    files["swift.conf"] = {"swift-hash": {"swift_hash_path_prefix": "before", "swift_hash_path_suffix": "after"},
                           "storage-policy:0": {"name": "three", "default": "yes"}}
    files["proxy-server.conf"] = {
        "DEFAULT": {"bind_ip": "0.0.0.0", "bind_port": 8080, "workers": 1, "user": "swift"},
        "pipeline:main": {"pipeline": PIPELINE},
        # The page waits a minute for gateways to forget a node that was away; these forget it sooner, and so does the test.
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true", "conn_timeout": 5, "node_timeout": 20, "error_suppression_interval": 2},
        "filter:tempauth": {"use": "egg:swift#tempauth", "user_test_tester": "testing .admin"},
        "filter:cache": {"use": "egg:swift#memcache", "memcache_servers": f"{memcached}:11211", "connect_timeout": 5, "pool_timeout": 20, "io_timeout": 20},
        "filter:healthcheck": {"use": "egg:swift#healthcheck", "disable_path": "/etc/swift/away"},
        **{f"filter:{name}": {"use": f"egg:swift#{name.replace('-', '_')}"}
           for name in ("catch_errors", "gatekeeper", "proxy-logging", "listing_formats", "copy", "slo", "dlo")},
    }
    for name, sections in files.items():
        (etc / name).write_text(ini(sections))
    for role in ROLES:
        builder = RingBuilder(6, min(3, 2 * len(storage)), 1)
        for number, address in enumerate(storage.values()):
            for drive in ("d1", "d2"):
                builder.add_dev({"region": 1, "zone": number + 1, "weight": 100.0, "device": drive, "ip": address, "port": PORTS[role],
                                 "replication_ip": address, "replication_port": PORTS[role], "meta": ""})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(etc / f"{role}.ring.gz"))
    (package / "rsyncd.conf").write_text(RSYNCD)
    (package / "haproxy.cfg").write_text(HAPROXY)


def begin(site, with_daemons, memcached):
    """Start OpenStack's programs, with the daemons of the nodes `with_daemons`; `memcached` is the machine that runs it."""
    def on(name):
        script = BEGINNING + (MEMCACHED.format(address=site.addresses[name]) if name == memcached else "") + (DRIVES if name in STORAGE else "")
        if name in STORAGE:
            daemons = " ".join(f"{role}-{daemon}" for role in ROLES for daemon in DAEMONS[role]) if name in with_daemons else ""
            script += f"swift-init {' '.join(f'{role}-server' for role in ROLES)} {daemons} start\n"
        elif name in GATEWAYS:
            script += "swift-init proxy-server start\n"
        else:
            script += "cp /package/haproxy.cfg /etc/haproxy/; systemctl restart haproxy\n"
        said, status = site.terminals[name].type(f"(\n{script})")
        assert status == 0, f"{name}: {said}"
    site.on_each(list(site.addresses), on)


def answers(site, name, url):
    wait = f"for second in $(seq 100); do curl -sf {url}/healthcheck >/dev/null && exit; sleep 1; done; exit 1"
    assert site.terminals[name].type(f"({wait})")[1] == 0


def read(tmp_path, steps, with_daemons):
    package = packages.released(tmp_path / "package")
    beginning(package, STORAGE, ADDRESSES["balancer"])
    with Site(tmp_path, package, ADDRESSES, INSTEAD) as site, open(tmp_path / "transcript", "w") as transcript:
        begin(site, with_daemons, "balancer")
        answers(site, "balancer", "http://10.0.0.10:8080")
        reader = Reader(PAGE.name, site, transcript)
        with LoadApart(site.machines["balancer"], AUTH_URL, rewrites=False) as load:
            load.go_on()
            for step in steps:
                reader.do(step)
                load.go_on()
            report = load.end()
        assert report["failed"] == [] and report["wrong"] == [] and report["read"] > 100, report
    assert not reader.wrong, "\n\n".join(reader.wrong)


def steps_of(machines):
    """What the page has done on them alone."""
    steps = [step for step in page.steps(PAGE) if not step.path]
    for step in steps:
        step.machines = [name for name in step.machines if name in machines]
    return [step for step in steps if step.machines]


# A client on the gateway: `put NAME`, and `get NAME`, which fails when the object does not say its name.
CLIENT = """URL=http://127.0.0.1:8080
TOKEN=$(curl -s -D - -o /dev/null -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' $URL/auth/v1.0 | tr -d '\r' | sed -n 's/^X-Auth-Token: //p')
ask() { curl -sS --fail-with-body -H "X-Auth-Token: $TOKEN" "$@"; }
put() { ask -X PUT --data-binary "$1" $URL/v1/AUTH_test/c/$1; }
get() { test "$(ask $URL/v1/AUTH_test/c/$1)" = "$1"; }
"""


class Client:
    """Someone who uses the cluster in between: what was written stays, whose ever servers answer."""

    def __init__(self, site):
        self.site, self.written = site, []
        self.type("ask -X PUT $URL/v1/AUTH_test/c")

    def type(self, script):
        said, status = self.site.terminals["proxy1"].type(f"(set -e\n{CLIENT}\n{script})")
        assert status == 0, said
        return said

    def use(self, word):
        """Reads what was written, writes some more, reads it and lists it."""
        names = [f"{word}-{number}" for number in range(4)]
        self.type("\n".join([*(f"get {name}" for name in self.written), *(f"put {name}" for name in names), *(f"get {name}" for name in names)]))
        self.written += names
        # Rows may arrive behind the answers.
        until(lambda: sorted(line for line in self.type("ask $URL/v1/AUTH_test/c") if line) == sorted(self.written), what="the listing")


def test_one_node_and_one_gateway_change_hands_and_come_back(tmp_path):
    """The page's commands on the only node and the only gateway of a cluster. What asks the whole cluster is left out."""
    machines = {name: ADDRESSES[name] for name in ("storage1", "proxy1")}
    package = packages.released(tmp_path / "package")
    beginning(package, {"storage1": machines["storage1"]}, machines["proxy1"])
    with Site(tmp_path, package, machines, [(r"^sleep \d+$", "true"), *INSTEAD]) as site, open(tmp_path / "transcript", "w") as transcript:
        begin(site, ["storage1"], "proxy1")
        answers(site, "proxy1", "http://10.0.0.21:8080")
        client, reader = Client(site), Reader(PAGE.name, site, transcript)
        client.use("first")
        for step in steps_of(machines):
            if not step.commands[0][0].startswith("martlet recon"):
                reader.do(step)
                answers(site, "proxy1", "http://10.0.0.21:8080")
                client.use(f"line-{step.line}")
        said, _ = site.type("storage1", "pgrep --list-full martlet")
        assert said == [""], "all is OpenStack's again"
    assert not reader.wrong, "\n\n".join(reader.wrong)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_one_node_and_one_gateway_of_several_change_hands_under_load(tmp_path):
    read(tmp_path, steps_of(("storage1", "proxy1")), ["storage1"])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_whole_page(tmp_path):
    read(tmp_path, page.steps(PAGE), list(STORAGE))
