"""What `martlet bench` does and sees beside the load: commands at set times, phases between them, figures of servers."""

import csv
import json
import signal
import subprocess
import time

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from harness.client import Client
from harness.places import martlet
from harness.process import run
from harness.waiting import until

DEGRADED = """
name = "degraded"
[storage]
type = "swift"
[auth]
type = "tempauth"
auth_url = "http://127.0.0.1:{port}/auth/v1.0"
username = "test:tester"
password = "testing"
[[stage]]
type = "init"
containers = "r(1,1)"
cprefix = "bench-beside-"
[[stage]]
name = "main"
workers = 4
interval = "100ms"
runtime = "14s"
operations = [
    {{ type = "write", ratio = 50, cprefix = "bench-beside-", containers = "c(1)", objects = "u(1,20)", sizes = "c(16)KB" }},
    {{ type = "list", ratio = 50, cprefix = "bench-beside-", containers = "c(1)" }},
]
[[stage]]
type = "cleanup"
containers = "r(1,1)"
cprefix = "bench-beside-"
objects = "r(1,20)"
[[stage]]
type = "dispose"
containers = "r(1,1)"
cprefix = "bench-beside-"
[[action]]
name = "hang"
at = "4s"
run = ["sh", "-c", "echo stopping; kill -STOP {pid}"]
until = "8s"
undo = ["kill", "-CONT", "{pid}"]
[[server]]
name = "martlet"
metrics = "http://127.0.0.1:{port}/metrics"
processes = "up --dir {root} --bind"
[[server]]
name = "gone"
recon = "http://127.0.0.1:1/recon"
[cold]
run = ["sh", "-c", "date +%s.%N > {cold}"]
"""

MOCKED = """
[storage]
type = "mock"
delay = 5
[[stage]]
name = "main"
runtime = "1h"
operations = [{{ type = "read", containers = "c(1)", objects = "c(1)" }}]
[[action]]
name = "down"
at = "10ms"
run = ["touch", "{folder}/down"]
undo = ["touch", "{folder}/up"]
{more}
"""


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def photographed(folder, page):
    """The captions of a page's pictures, its text, and how large its photograph is."""
    options = Options()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    browser = Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        browser.set_window_size(1100, 3600)
        browser.get(f"file://{page}")
        captions = [one.text for one in browser.find_elements("tag name", "figcaption")]
        marks = browser.execute_script("return [...document.querySelectorAll('svg text')].filter(one => one.textContent.includes('hang')).length")
        assert browser.save_screenshot(str(folder / "page.png"))
        return captions, marks, browser.find_element("tag name", "body").text, (folder / "page.png").stat().st_size
    finally:
        browser.quit()


def test_a_server_that_hangs_is_seen_on_the_axis_of_the_load(shared, tmp_path):
    store = shared.get("up", "up")
    workload = tmp_path / "w.toml"
    workload.write_text(DEGRADED.format(port=store.port, pid=store.process.child.pid, root=store.root, cold=tmp_path / "cold"))
    _, complaints = bench("run", workload, status=1)
    assert "the workload runs commands on this machine (hang: sh -c echo stopping" in complaints and "--allow-actions" in complaints
    client = Client(store.auth_url)
    assert client.send("GET", f"{client.root}?prefix=bench-beside-").body == b""
    client.close()
    before = time.time()
    try:
        said, _ = bench("run", workload, "--allow-actions", "--json", tmp_path / "r.json", "--html", tmp_path / "r.html", "--csv", tmp_path / "csv")
    finally:
        store.process.child.send_signal(signal.SIGCONT)  # others use it
    assert before < float((tmp_path / "cold").read_text()) < time.time() and "cold: sh -c date" in said
    main = json.loads((tmp_path / "r.json").read_text())["stages"][1]
    (hang,) = main["actions"]
    assert 4 <= hang["begun"] < hang["undone"] and hang["output"] == "stopping\n" and hang["failures"] == []
    phases = {phase["name"]: phase for phase in main["phases"]}
    assert list(phases) == ["before", "hang", "after"]
    assert phases["before"]["succeeded"] > 0 and phases["after"]["succeeded"] > 0 and phases["hang"]["succeeded"] == 0
    server, gone = main["servers"]
    assert server["failures"] > 0 and server["last_failure"].endswith("no answer in time"), "it hung for four seconds"
    assert server["cpu"] > 0 and server["cpu_per_request"] > 0 and len(server["points"]) >= 3
    assert gone["failures"] >= 2 * len(gone["points"]) and "no connection" in gone["last_failure"]
    events = [row["Event"] for row in csv.DictReader((tmp_path / "csv/s2-main-actions.csv").open())]
    assert events == ["hang", "hang: undone"]
    servers = [row["Server"] for row in csv.DictReader((tmp_path / "csv/s2-main-servers.csv").open())]
    assert set(servers) == {"martlet", "gone"}
    captions, marks, text, size = photographed(tmp_path, tmp_path / "r.html")
    assert "Processors of servers martlet gone" in captions and "Memory of servers martlet gone" in captions
    # Two on each of the pictures of that stage: throughput, latency, its heat map, and four of the servers.
    assert marks == 2 * 7 and "main / hang" in text and "Output of hang" in text and size > 20_000


def test_commands_are_undone_on_ctrl_c(tmp_path):
    (tmp_path / "w.toml").write_text(MOCKED.format(folder=tmp_path, more=""))
    bench_run = subprocess.Popen([martlet(), "bench", "run", tmp_path / "w.toml", "--allow-actions", "--json", tmp_path / "r.json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((tmp_path / "down").exists, within=60, what="the command")
    assert not (tmp_path / "up").exists()
    bench_run.send_signal(signal.SIGINT)
    bench_run.communicate(timeout=60)
    assert bench_run.returncode == 1 and (tmp_path / "up").exists()
    (action,) = json.loads((tmp_path / "r.json").read_text())["stages"][0]["actions"]
    assert action["undone"] > action["begun"] and action["failures"] == []


def test_commands_that_fail_are_named_and_a_store_that_is_not_cold_is_not_called_so(tmp_path):
    text = MOCKED.format(folder=tmp_path, more='[[action]]\nname = "second"\nat = "20ms"\nrun = ["sh", "-c", "exit 3"]\n')
    (tmp_path / "w.toml").write_text(text.replace('"1h"', '"5s"'))
    said, _ = bench("run", tmp_path / "w.toml", "--allow-actions", status=1)
    assert "action second failed: sh -c exit 3: exit status: 3" in said and (tmp_path / "up").exists()
    (tmp_path / "w.toml").write_text(text + '[cold]\nrun = ["sh", "-c", "echo no right; exit 1"]\n')
    said, complaints = bench("run", tmp_path / "w.toml", "--allow-actions", status=1)
    assert said == "" and "stage main is not run, as it would not be cold: sh -c echo no right; exit 1: exit status: 1 no right" in complaints
