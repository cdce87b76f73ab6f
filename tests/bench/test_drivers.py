"""`martlet bench run --drivers`: several drivers, each a process of its own, load one store together."""

import json
import signal
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest

from harness.client import Client
from harness.drivers import Drivers
from harness.process import Process, run
from harness.waiting import until

MOCK = """
name = "long"
[storage]
type = "mock"
delay = 1
size = 1000
[[stage]]
name = "prepare"
type = "prepare"
workers = 6
containers = "r(1,5)"
objects = "r(1,20)"
sizes = "c(1)KB"
[[stage]]
name = "main"
workers = 6
runtime = "{runtime}"
operations = [{{ type = "read", containers = "u(1,5)", objects = "u(1,20)" }}]
[[stage]]
name = "cleanup"
type = "cleanup"
workers = 6
containers = "r(1,5)"
objects = "r(1,20)"
"""


@pytest.fixture
def drivers(tmp_path):
    started = Drivers(tmp_path, 3)
    yield started
    started.stop()


def with_action(workload, *command):
    """The workload, amid whose load the controller runs a command: whatever the machine does, it is amid the load."""
    return workload + f'[[action]]\nname = "fault"\nstage = "main"\nat = "1s"\nrun = {json.dumps([str(word) for word in command])}\n'


def report_of(path):
    report = json.loads(path.read_text())
    totals = {stage["name"]: stage["works"][0]["total"] for stage in report["stages"]}
    return report, {name: (total["succeeded"], total["failed"]) for name, total in totals.items()}


def test_a_store_is_loaded_by_several_drivers(drivers, shared, tmp_path):
    store = shared.get("up", "up")
    line = drivers.command("run", "SmlRead", "-A", store.auth_url, "-U", "test:tester", "-K", "testing", "--verify", "--runtime", "2s",
                           "--containers", "4", "--objects", "25", "--workers", "6", "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")
    done = run(line, timeout=240)
    report, totals = report_of(tmp_path / "r.json")
    counts = [totals[name] for name in ("init", "prepare", "cleanup", "dispose")]
    assert counts == [(4, 0), (100, 0), (200, 0), (4, 0)] and totals["main"][0] > 0 and totals["main"][1] == 0
    for name in ("succeeded", "bytes"):
        whole = sum(stage["works"][0]["total"][name] for stage in report["stages"])
        parts = [driver[name] for driver in report["drivers"]]
        assert sum(parts) == whole and all(part > 0 for part in parts), (name, parts)
    main = report["stages"][2]["works"][0]
    assert main["measured"] == pytest.approx(2.0) and main["total"]["rate"] == pytest.approx(main["total"]["succeeded"] / 2.0)
    assert all(abs(driver["clock_offset"]) < 100 and driver.get("lost") is None for driver in report["drivers"])
    assert "driver driver1 (127.0.0.1:" in done.stdout and "driver3 (127.0.0.1:" in (tmp_path / "r.html").read_text()
    client = Client(store.auth_url)
    assert client.send("GET", f"{client.root}?prefix=bench-smlread-").body == b""
    client.close()
    # The password goes to the drivers, and stands in nothing that they or the report say.
    assert all("testing" not in drivers.said(number) for number in range(3))
    assert "testing" not in (tmp_path / "r.json").read_text()


def test_a_run_goes_on_without_a_driver_that_is_killed(drivers, tmp_path):
    (tmp_path / "w.toml").write_text(with_action(MOCK.format(runtime="4s"), "kill", "-KILL", drivers.processes[1].child.pid))
    controller = Process(drivers.command("run", tmp_path / "w.toml", "--allow-actions", "--json", tmp_path / "r.json"), tmp_path / "controller")
    status = controller.child.wait(120)
    said = controller.log.read_text()
    assert status == 1 and "driver driver2 (127.0.0.1:" in said and " is lost, " in said and ": LOST " in said
    report, totals = report_of(tmp_path / "r.json")
    assert [bool(driver["lost"]) for driver in report["drivers"]] == [False, True, False]
    # What it had to clean up is cleaned up by the others.
    assert totals["prepare"] == totals["cleanup"] == (100, 0) and totals["main"][0] > 0
    of_main = [driver["succeeded"] for driver in report["drivers"]]
    assert sum(of_main) == sum(count for count, _ in totals.values())
    done = subprocess.run(drivers.command("run", tmp_path / "w.toml", "--allow-actions"), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "driver driver2 (127.0.0.1:" in done.stderr and "s measured" not in done.stdout


def test_a_driver_that_hangs_is_given_up(drivers, tmp_path):
    """Its connection stands, and it says nothing: after 15 s the run goes on without it."""
    begun = tmp_path / "begun"
    hang = with_action(MOCK.format(runtime="4s"), "sh", "-c", f"touch {begun}; kill -STOP {drivers.processes[1].child.pid}")
    (tmp_path / "w.toml").write_text(hang)
    controller = Process(drivers.command("run", tmp_path / "w.toml", "--allow-actions", "--json", tmp_path / "r.json"), tmp_path / "controller")
    status = controller.child.wait(120)
    assert status == 1 and 14 < time.time() - begun.stat().st_mtime < 60
    report, totals = report_of(tmp_path / "r.json")
    said = [driver["lost"] for driver in report["drivers"]]
    assert said[0] is None and said[2] is None and "it said nothing" in said[1], said
    assert totals["main"][0] > 0 and totals["main"][1] == 0 and totals["cleanup"] == (100, 0)
    # Once it wakes up, its controller is gone, and it serves the next one.
    drivers.processes[1].signal(signal.SIGCONT)
    until(lambda: "the run was given up" in drivers.said(1) or "the run has ended" in drivers.said(1), within=60, what="the end of the run that it slept through")
    (tmp_path / "next.toml").write_text(MOCK.format(runtime="1s"))
    run(drivers.command("run", tmp_path / "next.toml"), timeout=120)


def test_an_interrupted_run_ends_on_all_drivers(drivers, tmp_path):
    begun = tmp_path / "begun"
    (tmp_path / "w.toml").write_text(with_action(MOCK.format(runtime="1h"), "touch", begun))
    controller = Process(drivers.command("run", tmp_path / "w.toml", "--allow-actions", "--json", tmp_path / "r.json", "--clean-up"), tmp_path / "controller")
    until(begun.exists, what="the load")
    controller.child.send_signal(signal.SIGINT)
    status = controller.child.wait(120)
    assert status == 1 and "interrupted: " in controller.log.read_text()
    report, totals = report_of(tmp_path / "r.json")
    assert report["interrupted"] and totals["cleanup"] == (100, 0) and set(totals) == {"prepare", "main", "cleanup"}
    for number, process in enumerate(drivers.processes):
        until(lambda number=number: "the run has ended" in drivers.said(number), within=60, what="the end of the run")
        process.child.send_signal(signal.SIGTERM)
        assert process.child.wait(60) == 0


def test_connections_that_say_nothing_keep_no_controller_out(drivers, tmp_path):
    """More of them, from another address, than a driver greets at a time; each for as long as the driver lets it."""
    (tmp_path / "w.toml").write_text(MOCK.format(runtime="1s"))
    with ExitStack() as silent:
        for address in drivers.addresses:
            host, port = address.rsplit(":", 1)
            for _ in range(100):
                silent.enter_context(socket.create_connection((host, int(port)), source_address=("127.0.0.2", 0)))
        run(drivers.command("run", tmp_path / "w.toml"), timeout=120)
