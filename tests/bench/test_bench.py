"""`martlet bench` against stores that speak Swift and S3, ours and OpenStack's, as its users call it."""

import csv
import hashlib
import json
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from harness.client import Client
from harness.places import martlet
from harness.process import run
from harness.waiting import until

COSBENCH = """<?xml version="1.0" encoding="UTF-8" ?>
<workload name="cosbench" description="as COSBench's own sample, smaller">
  <storage type="swift" />
  <auth type="swauth" config="username=test:tester;password=testing;auth_url={auth_url}" />
  <workflow>
    <workstage name="init"><work type="init" workers="2" config="cprefix=cb-;containers=r(1,4)" /></workstage>
    <workstage name="prepare">
      <work type="prepare" workers="3" config="cprefix=cb-;containers=r(1,4);objects=r(1,10);sizes=u(1,20)KB" />
    </workstage>
    <workstage name="main" closuredelay="0">
      <work name="main" workers="4" runtime="2" interval="1">
        <operation type="read" ratio="70" config="cprefix=cb-;containers=u(1,4);objects=u(1,10)" />
        <operation type="write" ratio="20" config="cprefix=cb-;containers=u(1,4);objects=u(11,20);sizes=c(64)KB;chunked=true" />
        <operation type="list" ratio="10" config="cprefix=cb-;containers=u(1,4)" />
      </work>
    </workstage>
    <workstage name="cleanup"><work type="cleanup" workers="4" config="cprefix=cb-;containers=r(1,4);objects=r(1,20)" /></workstage>
    <workstage name="dispose"><work type="dispose" workers="1" config="cprefix=cb-;containers=r(1,4)" /></workstage>
  </workflow>
</workload>
"""

HASHED = """<workload name="hashed"><storage type="swift" />
  <auth type="swauth" config="username=test:tester;password=testing;auth_url={auth_url}" />
  <workflow config="cprefix=cb-hashed-;hashCheck=true;{size}">
    <workstage name="init"><work type="init" workers="1" /></workstage>
    <workstage name="prepare"><work type="prepare" workers="2" /></workstage>
    <workstage name="main"><work name="main" workers="1" totalOps="6" afr="0"><operation type="read" ratio="100" /></work></workstage>
    <workstage name="cleanup"><work type="cleanup" workers="1" /></workstage>
    <workstage name="dispose"><work type="dispose" workers="1" /></workstage>
  </workflow>
</workload>
"""

S3 = """
name = "s3"
[storage]
type = "s3"
endpoint = "{endpoint}"
accesskey = "test:tester"
secretkey = "testing"
[[stage]]
type = "init"
containers = "r(1,2)"
cprefix = "bench-s3-"
[[stage]]
type = "prepare"
workers = 4
containers = "r(1,2)"
cprefix = "bench-s3-"
objects = "r(1,10)"
sizes = "c(5)KB"
[[stage]]
name = "main"
workers = 4
total_operations = 200
operations = [
    {{ type = "read", ratio = 60, cprefix = "bench-s3-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "write", ratio = 20, cprefix = "bench-s3-", containers = "u(1,2)", objects = "u(11,20)", sizes = "c(5)KB" }},
    {{ type = "head", ratio = 10, cprefix = "bench-s3-", containers = "u(1,2)", objects = "u(1,10)" }},
    {{ type = "list", ratio = 10, cprefix = "bench-s3-", containers = "u(1,2)" }},
]
[[stage]]
type = "cleanup"
workers = 2
containers = "r(1,2)"
cprefix = "bench-s3-"
objects = "r(1,20)"
[[stage]]
type = "dispose"
containers = "r(1,2)"
cprefix = "bench-s3-"
"""

READ_ALL = """
[[stage]]
name = "main"
workers = 1
total_operations = 20
operations = [{ type = "read", cprefix = "bench-pebbles-", containers = "c(1)", objects = "r(1,20)" }]
"""


def chromium(profile):
    """Debian's Chromium without a screen, with its files in a folder of the test."""
    options = Options()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    return Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def bench(*arguments, status=0):
    done = run([martlet(), "bench", *arguments], check=False, timeout=240)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.fixture(params=["up", "openstack"], scope="module")
def store(request, shared):
    """`martlet up`, and OpenStack's proxy and servers: any store that speaks Swift."""
    return shared.get(request.param, request.param)


def containers(store, prefix):
    client = Client(store.auth_url)
    found = client.send("GET", f"{client.root}?prefix={prefix}").body.decode().split()
    client.close()
    return found


def test_a_cosbench_workload_runs_as_it_is(store, tmp_path):
    (tmp_path / "w.xml").write_text(COSBENCH.format(auth_url=store.auth_url))
    said, complaints = bench("run", tmp_path / "w.xml", "--verify", "--json", tmp_path / "r.json", "--csv", tmp_path / "csv")
    assert complaints == "" and "main / main: 4 workers, 2.0 s measured" in said
    report = json.loads((tmp_path / "r.json").read_text())
    works = {stage["name"]: stage["works"][0] for stage in report["stages"]}
    counts = {name: (work["total"]["succeeded"], work["total"]["failed"]) for name, work in works.items()}
    assert {name: counts[name] for name in ("init", "prepare", "cleanup", "dispose")} == {
        "init": (4, 0), "prepare": (40, 0), "cleanup": (80, 0), "dispose": (4, 0)}
    read, write, listing = works["main"]["operations"]
    assert read["succeeded"] > write["succeeded"] > 0 and listing["succeeded"] > 0 and works["main"]["total"]["failed"] == 0
    assert write["bytes"] == write["succeeded"] * 64_000
    assert read["latency"]["percentiles"]["99"] >= read["latency"]["percentiles"]["50"] > 0
    lines = list(csv.DictReader((tmp_path / "csv/w1-cosbench.csv").open()))
    assert [(line["Stage"], line["Op-Type"]) for line in lines] == [
        ("s1-init", "init"), ("s2-prepare", "prepare"), ("s3-main", "read"), ("s3-main", "write"), ("s3-main", "list"),
        ("s4-cleanup", "cleanup"), ("s5-dispose", "dispose")]
    assert {line["Succ-Ratio"] for line in lines} == {"100%"} and int(lines[1]["Op-Count"]) == 40
    masked = COSBENCH.format(auth_url=store.auth_url).replace("password=testing", "password=***")
    assert (tmp_path / "csv/workload-config.xml").read_text() == masked
    assert "testing" not in (tmp_path / "r.json").read_text()
    assert containers(store, "cb-") == []


def test_bodies_carry_checksums_as_cosbenchs_do(shared, tmp_path):
    store = shared.get("up", "up")
    size = "containers=r(1,1);objects=r(1,6);sizes=c(2)KB"
    (tmp_path / "w.xml").write_text(HASHED.format(auth_url=store.auth_url, size=size))
    bench("run", tmp_path / "w.xml", "--stages", "init,prepare")
    client = Client(store.auth_url)
    body = client.get("cb-hashed-1", "myobjects1")
    assert body[1960:] == b"!!!!" + hashlib.md5(body[:1960]).hexdigest().encode() + b"!!!!" and len(body) == 2000
    # One as COSBench writes it, one that was changed, one that lost its checksum, and one that is too short for any.
    theirs = b"qwertz" * 400
    client.put("cb-hashed-1", "myobjects2", body=theirs + b"!!!!" + hashlib.md5(theirs).hexdigest().encode() + b"!!!!")
    client.put("cb-hashed-1", "myobjects3", body=b"x" + body[1:])
    client.put("cb-hashed-1", "myobjects4", body=body[:-1])
    client.put("cb-hashed-1", "myobjects5", body=b"short")
    said, _ = bench("run", tmp_path / "w.xml", "--stages", "main", "--json", tmp_path / "r.json", status=1)
    (main,) = json.loads((tmp_path / "r.json").read_text())["stages"]
    total = main["works"][0]["total"]
    assert (total["succeeded"], total["failures"]) == (4, {"wrong body": 2}), said
    bench("run", tmp_path / "w.xml", "--stages", "cleanup,dispose")
    client.close()


def test_what_it_has_not_made_is_left_alone(store):
    client = Client(store.auth_url)
    client.put("bench-smlread-1")
    client.put("bench-smlread-1", "mine", body=b"precious")
    login = ["-A", store.auth_url, "-U", "test:tester", "-K", "testing"]
    said, complaints = bench("run", "SmlRead", *login, "--containers", "2", "--objects", "2", status=1)
    assert said == "" and "container bench-smlread-1 is there, and no benchmark has made it" in complaints
    assert client.get("bench-smlread-1", "mine") == b"precious" and containers(store, "bench-smlread-") == ["bench-smlread-1"]
    client.do("DELETE", "bench-smlread-1", "mine")
    client.do("DELETE", "bench-smlread-1")
    client.close()


def test_other_bodies_are_found_and_missing_ones(store, tmp_path):
    client = Client(store.auth_url)
    login = ["-A", store.auth_url, "-U", "test:tester", "-K", "testing"]
    size = ["--containers", "1", "--objects", "20", "--workers", "2"]
    bench("run", "pebbles", *login, *size, "--stages", "init,prepare")
    client.put("bench-pebbles-1", "myobjects7", body=b"x" * 10_000)
    client.do("DELETE", "bench-pebbles-1", "myobjects8")
    (tmp_path / "w.toml").write_text(READ_ALL)
    bench("run", tmp_path / "w.toml", *login, "--verify", "--json", tmp_path / "r.json", status=1)
    (main,) = json.loads((tmp_path / "r.json").read_text())["stages"]
    total = main["works"][0]["total"]
    assert (total["succeeded"], total["failures"]) == (18, {"wrong body": 1, "status 404": 1})
    bench("run", "pebbles", *login, *size, "--stages", "cleanup,dispose")
    client.close()


def test_s3(shared, tmp_path):
    store = shared.get("separate", "separate")
    endpoint = urlsplit(store.auth_url)
    (tmp_path / "w.toml").write_text(S3.format(endpoint=f"{endpoint.scheme}://{endpoint.netloc}"))
    bench("run", tmp_path / "w.toml", "--verify", "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    totals = [stage["works"][0]["total"] for stage in report["stages"]]
    assert [(total["succeeded"], total["failed"]) for total in totals] == [(2, 0), (20, 0), (200, 0), (40, 0), (2, 0)]
    assert containers(store, "bench-s3-") == []
    client = Client(store.auth_url)
    client.put("bench-s3-1")
    _, complaints = bench("run", tmp_path / "w.toml", status=1)
    assert "container bench-s3-1 is there, and no benchmark has made it" in complaints
    client.do("DELETE", "bench-s3-1")
    client.close()


# A command amid its load tells that it is there.
LONG = """
[storage]
type = "mock"
delay = 1
[[stage]]
name = "prepare"
type = "prepare"
containers = "r(1,1)"
objects = "r(1,10)"
sizes = "c(1)KB"
[[stage]]
name = "main"
runtime = "1h"
operations = [{{ type = "read", containers = "c(1)", objects = "u(1,10)" }}]
[[action]]
name = "begun"
stage = "main"
at = "10ms"
run = ["touch", "{begun}"]
"""


def test_an_interrupted_run_says_so_and_keeps_what_it_has(tmp_path):
    begun = tmp_path / "begun"
    (tmp_path / "w.toml").write_text(LONG.format(begun=begun))
    run = subprocess.Popen([martlet(), "bench", "run", tmp_path / "w.toml", "--allow-actions", "--json", tmp_path / "r.json"],
                           stdout=(tmp_path / "out").open("w"), stderr=subprocess.PIPE, text=True)
    until(begun.exists, what="the load")
    run.send_signal(signal.SIGINT)
    _, complaints = run.communicate(timeout=60)
    assert run.returncode == 1 and complaints.startswith("interrupted: what is reported was measured until then")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["interrupted"] and [stage["name"] for stage in report["stages"]] == ["prepare", "main"]


@pytest.mark.parametrize("command", [["run", "w.xml"], ["search", "w.xml"], ["sweep", "w.xml"], ["swift", "-U", "u", "-K", "k"]], ids=lambda command: command[0])
def test_a_store_that_answers_nothing_can_be_left(tmp_path, command):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/auth/v1.0"
        (tmp_path / "w.xml").write_text(COSBENCH.format(auth_url=url))
        arguments = ["-A", url] if command[0] == "swift" else []
        program = subprocess.Popen([martlet(), "bench", *command, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        connection, _ = silent.accept()
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        _, complaints = program.communicate(timeout=60)
        connection.close()
    assert program.returncode == 1 and complaints.startswith("interrupted"), complaints
    assert time.monotonic() - began < 5, "no answer was waited for"


def test_a_second_interruption_waits_for_nothing(tmp_path):
    """The store takes logins and containers, and then answers nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        waits = threading.Event()
        threading.Thread(target=answer_all_but_objects, args=(server, url, waits), daemon=True).start()
        program = subprocess.Popen([martlet(), "bench", "swift", "-A", f"{url}/auth/v1.0", "-U", "u", "-K", "k"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        assert waits.wait(timeout=30), "no object was sent"
        program.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(timeout=1)
        program.send_signal(signal.SIGINT)
        _, complaints = program.communicate(timeout=10)
    assert program.returncode == 1 and "interrupted twice" in complaints, complaints


def answer_all_but_objects(server, url, waits):
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the test has ended
            return
        threading.Thread(target=answer_until_object, args=(connection, url, waits), daemon=True).start()


def answer_until_object(connection, url, waits):
    with connection, connection.makefile("rb") as requests:
        while request := requests.readline():
            while requests.readline().strip():
                pass
            method, path, _ = request.decode().split()
            if path.count("/") > 3:
                waits.set()
                threading.Event().wait()
            headers = f"X-Storage-Url: {url}/v1/a\r\nX-Auth-Token: t\r\nContent-Length: 0\r\n"
            connection.sendall(f"HTTP/1.1 {404 if method == 'HEAD' else 201} -\r\n{headers}\r\n".encode())


@pytest.mark.parametrize("found, replaced, complaint", [
    ('workers="4"', 'wrokers="4"', 'w.xml:11: <work name="main">: attribute wrokers: expected name, type, workers'),
    ("u(1,4)", "u(4,1)", 'containers="u(4,1)": expected c(n), u(a,b)'),
    ('ratio="70"', 'ratio="60"', 'w.xml:11: <work name="main">: the ratios of its operations add up to 90: expected 100'),
    ('type="read"', 'type="raed"', 'type="raed": expected read, write, filewrite, delete, list, head, post or copy'),
    ('<storage type="swift" />', '<storage type="ampli" />', '<storage type="ampli">: this program speaks swift, s3, mock or none'),
    ("runtime=", "totalOps='5' runtime=", "expected only one of runtime, totalOps and totalBytes"),
    ("{auth_url}", "http://127.0.0.1:1/auth/v1.0", "http://127.0.0.1:1/auth/v1.0: cannot connect"),
])
def test_mistakes_are_named_before_anything_is_made(tmp_path, found, replaced, complaint):
    (tmp_path / "w.xml").write_text(COSBENCH.replace(found, replaced, 1).replace("{auth_url}", "http://127.0.0.1:1/auth/v1.0"))
    said, complaints = bench("run", tmp_path / "w.xml", status=1)
    assert said == "" and complaint in complaints


def test_workloads_are_listed_checked_and_printed(tmp_path):
    names = [line.split()[0] for line in bench("list")[0].splitlines()]
    assert {"SmlRead", "boulders", "replay"} <= set(names)
    names.remove("replay")  # needs a log: tests/bench/test_replay.py
    for name in names:
        (tmp_path / "w.toml").write_text(bench("check", name, "--print")[0])
        assert bench("check", tmp_path / "w.toml") == bench("check", name)
    _, complaints = bench("check", "SmlRaed", status=1)
    assert 'workload="SmlRaed": expected a file, or SmlRead, SmlWrite' in complaints


def compared(folder, before, after):
    """How often a comparison says that figures are worse, and how often that they are better."""
    done = run([martlet(), "bench", "compare", folder / f"{before}.json", folder / f"{after}.json"], check=False)
    words = [done.stdout.count(word) for word in (": worse", ": better")]
    assert done.returncode == (1 if words[0] else 0), done
    return words


def test_two_runs_are_compared(tmp_path):
    for _ in range(4):
        # So far apart that no noise of the machine comes in between.
        for name, delay in (("fast", 1), ("slow", 40)):
            (tmp_path / "w.toml").write_text(f"""
[storage]
type = "mock"
delay = {delay}
[[stage]]
name = "main"
workers = 2
runtime = "3s"
interval = "100ms"
operations = [{{ type = "read", containers = "c(1)", objects = "u(1,10)" }}]
""")
            bench("run", tmp_path / "w.toml", "--json", tmp_path / f"{name}.json")
        words = compared(tmp_path, "fast", "slow"), compared(tmp_path, "slow", "fast")
        if words == ([2, 0], [0, 2]):  # a machine that stands still leaves rates without a difference that is sure
            break
    assert words == ([2, 0], [0, 2])
    _, complaints = bench("compare", tmp_path / "w.toml", tmp_path / "fast.json", status=1)
    assert "w.toml: expected a report of `run --json`" in complaints


@pytest.mark.long
def test_the_capacity_of_a_store_is_found_within_three_per_cent():
    said, _ = bench("search", "SmlRead", "--storage", "mock:delay=0;capacity=2000", "--workers", "64", "--constant", "--step", "3s",
                    "--p99", "50ms", "--containers", "1", "--objects", "1", "--from", "500")
    borne = float(said.split("bears ")[1].split()[0])
    assert 1940 <= borne <= 2060, said


STALLS = """
name = "stalls"
description = "a store that fails at first and stalls for a second"
[storage]
type = "mock"
delay = 2
errors = 40
stall = "1:1"
[[stage]]
name = "main"
workers = 8
runtime = "4s"
interval = "250ms"
rate = 300
arrivals = "poisson"
accepted_failures = 1000000
operations = [
    { type = "read", ratio = 80, containers = "c(1)", objects = "u(1,10)" },
    { type = "write", ratio = 20, containers = "c(1)", objects = "u(1,10)", sizes = "c(4)KB" },
]
"""

# What of a page's pictures is to be seen: their captions, how large they are, and how many shapes each has.
PICTURES = """return [...document.querySelectorAll('figure')].map(figure => {
    const box = figure.querySelector('svg').getBoundingClientRect();
    return [figure.querySelector('figcaption').textContent.trim().replace(/\\s+/g, ' '), box.width > 500 && box.height > 100,
            figure.querySelectorAll('svg polyline').length, figure.querySelectorAll('svg rect').length];
})"""


def test_a_page_shows_the_run_in_a_browser(tmp_path):
    (tmp_path / "w.toml").write_text(STALLS)
    bench("run", tmp_path / "w.toml", "--html", tmp_path / "run.html", "--json", tmp_path / "run.json")
    browser = chromium(tmp_path / "profile")
    try:
        browser.set_window_size(1100, 2000)
        browser.get(f"file://{tmp_path}/run.html")
        assert browser.title == "stalls"
        pictures = {caption: (is_large, lines, cells) for caption, is_large, lines, cells in browser.execute_script(PICTURES)}
        assert list(pictures) == ["Throughput read write", "Latency p50 p99 p99.9", "Latency, as a heat map", "Errors read write"]
        assert all(is_large for is_large, _, _ in pictures.values())
        assert pictures["Latency, as a heat map"][2] > 20
        # Nothing is asked for but the page itself, and nothing goes wrong on it.
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
        text = browser.find_element("tag name", "body").text
        report = json.loads((tmp_path / "run.json").read_text())
        total = report["stages"][0]["works"][0]["total"]
        assert f"all {total['succeeded']} {total['failed']} " in text and "Failed: status 500, 40 times." in text and 'stall = "1:1"' in text
        photograph = tmp_path / "run.png"
        assert browser.save_screenshot(str(photograph)) and photograph.stat().st_size > 20_000
    finally:
        browser.quit()
