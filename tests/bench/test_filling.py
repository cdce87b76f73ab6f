"""`martlet bench run NAME --full 30%`: devices are filled before the load, by recon's figures, and emptied again."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.client import Client
from harness.memcached import Memcached
from harness.places import martlet
from harness.process import run
from harness.systems import make

TOO_FEW = """
[[server]]
name = "node"
recon = "{recon}"
[[stage]]
type = "init"
containers = "r(1,1)"
cprefix = "bench-few-"
[[stage]]
type = "prepare"
full = "90%"
containers = "r(1,1)"
objects = "r(1,5)"
cprefix = "bench-few-"
sizes = "c(10)KB"
[[stage]]
type = "dispose"
containers = "r(1,1)"
cprefix = "bench-few-"
emptied = true
"""


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.fixture(params=["separate", pytest.param("openstack", marks=pytest.mark.extra)])
def small(request, tmp_path):
    """A cluster whose devices are file systems of 80 MiB, and where they are."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system")
    memcached = Memcached().start()
    system = make(request.param, tmp_path / "cluster", memcached_port=memcached.port)
    devices = [Path(system.layout.srv_of(0), name) for name in system.layout.devices]
    for device in devices:
        device.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", device], check=True)
    try:
        yield system.start(), devices
    finally:
        system.stop()
        memcached.stop()
        for device in devices:
            subprocess.run(["umount", "-l", device], check=True)


def share(devices):
    """How full they are, as recon counts it."""
    found = [os.statvfs(device) for device in devices]
    return 1 - sum(one.f_bfree for one in found) / sum(one.f_blocks for one in found)


def test_devices_are_filled_and_emptied(small, tmp_path):
    system, devices = small
    recon = f"http://127.0.0.1:{system.layout.ports['object', 0]}/recon"
    login = ["-A", system.auth_url, "-U", "test:tester", "-K", "testing"]
    fill = ["run", "pebbles", *login, "--containers", "2", "--objects", "5", "--workers", "4", "--sizes", "c(100)KB", "--full", "30%", "--recon", recon]
    report = tmp_path / "r.json"
    said, _ = bench(*fill, "--stages", "init,prepare,fill-init,fill", "--json", report)
    filling = json.loads(report.read_text())["stages"][-1]["filling"]
    assert filling["before"] < 0.1 and filling["asked"] == 0.3 <= filling["reached"] < 0.5, filling
    assert share(devices) >= 0.3 and f"are {100 * filling['reached']:.1f} % full" in said
    # Full enough already: nothing more is written.
    again = tmp_path / "again.json"
    bench(*fill, "--stages", "fill", "--json", again)
    (stage,) = json.loads(again.read_text())["stages"]
    assert stage["works"][0]["total"]["succeeded"] == 0 and stage["filling"]["before"] >= 0.3
    bench(*fill, "--stages", "cleanup,dispose,fill-dispose")
    client = Client(system.auth_url)
    left = client.send("GET", client.root).body.decode().split()
    assert [name for name in left if name.startswith("bench-")] == []
    client.close()


def test_what_does_not_fill_and_what_nobody_sees_is_said(small, tmp_path):
    system, _ = small
    recon = f"http://127.0.0.1:{system.layout.ports['object', 0]}/recon"
    login = ["-A", system.auth_url, "-U", "test:tester", "-K", "testing"]
    workload = tmp_path / "w.toml"
    workload.write_text(TOO_FEW.format(recon=recon))
    said, _ = bench("run", workload, *login, status=1)
    assert "% full; 90.0 % were asked for" in said
    workload.write_text(TOO_FEW.format(recon="http://127.0.0.1:1/recon"))
    _, error = bench("run", workload, *login, "--stages", "prepare", status=1)
    assert "http://127.0.0.1:1/recon/diskusage: no connection" in error
    _, error = bench("run", "pebbles", *login, "--full", "30%", status=2)
    assert "--recon" in error
    _, error = bench("search", workload, *login, status=1)
    assert "stage prepare: devices are filled by `martlet bench run` alone" in error
    _, error = bench("sweep", "pebbles", *login, "--full", "30%", "--recon", recon, status=1)
    assert "stage fill: devices are filled by `martlet bench run` alone" in error
    workload.write_text(TOO_FEW.replace("recon =", "processes =").format(recon="none"))
    _, error = bench("check", workload, status=1)
    assert "prepare: full: expected a [[server]] with recon" in error
