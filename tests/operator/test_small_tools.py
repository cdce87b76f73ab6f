"""The small tools: what both makes print on the same input, and how they end."""

import fcntl
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.layout import Layout
from harness.tools import both, command, many, run
from harness.waiting import until

# Mount and process namespaces keep what the tools do away from this machine.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs namespaces of its own")


def without_clock(text):
    """Expiry and what is signed over it differ by the second in which a program runs."""
    return re.sub(r"[0-9a-f]{40}", "SIGNATURE", re.sub(r"\b1[789]\d{8}\b", "EXPIRES", text))


@pytest.mark.parametrize("words", [
    ("/v1/a/c/o", "http://x/", "100", "5", "60", "key"),
    ("/v1/a/c", "", "0", "1", "-60", "key"),
    ("/v1/a/c/", "http://x/?a&b", " 5 ", "+0_2", "0", "kéy"),
    ("/v1/a/é///", "", "99999999999999999999999", "1", "9", ""),
    (), ("/v1/a/c", "", "5", "1", "60"), ("/v1/a/c", "", "5", "1", "60", "key", "more"),
    *(("/v1/a/c/o", "", *numbers, "key") for numbers in (("x", "1", "6"), ("-1", "1", "6"), ("1", "0", "6"), ("1", "y", "6"), ("1", "-5", "6"),
                                                         ("1", "1", "1.5"), ("1", "1", "z"), ("1", "1", "-99999999999"), ("1", "1", "-9" + "9" * 30))),
    *((path, "", "1", "1", "6", "key") for path in ("/v1/a", "v1/a/c", "/v2/a/c", "/v1//c", "/v1/a//b", "", "/", "/v1/a/")),
])
def test_form_signature(words):
    theirs, ours = both("form-signature", *words)
    assert (without_clock(ours.out), ours.status) == (without_clock(theirs.out), theirs.status)
    assert not ours.err


def test_form_signature_with_the_same_clock():
    def agree():
        theirs, ours = both("form-signature", "/v1/a/c/o", "http://x/", "100", "5", "60", "key")
        return theirs.lines[0] == ours.lines[0] and (theirs, ours)

    theirs, ours = until(agree, within=120, what="the same second for both")
    assert theirs == ours


@pytest.fixture(scope="module")
def pause(tmp_path_factory):
    """A program that does nothing, whatever its arguments."""
    path = tmp_path_factory.mktemp("pause") / "pause"
    subprocess.run(["gcc", "-x", "c", "-o", path, "-"], input=b"#include <unistd.h>\nint main(void) { for (;;) pause(); }", check=True)
    return path


def among(pause, folder, lines, tools):
    """What each tool prints where only processes with these command lines run, and whether those live on. `lines` maps names
    to command lines; a pid file of the name, below `folder`, knows a process unless its name begins with "no ". In what was
    printed names stand for numbers."""
    script = Path(__file__).with_name("among.py")
    request = {"pause": str(pause), "run": str(folder), "lines": lines, "tools": [[str(word) for word in tool] for tool in tools]}
    ended = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, script], input=json.dumps(request), capture_output=True, text=True, timeout=240, check=True,
                           env={name: value for name, value in os.environ.items() if name != "COLUMNS"})  # ps would cut lines
    return json.loads(ended.stdout)


PROCESSES = {
    "known": "/usr/bin/python3 /usr/bin/swift-object-server /etc/swift/object-server/1.conf",
    "deep/known": "/usr/bin/python3 /usr/local/bin/swift-account-server a.conf",
    "of a directory.pid.d": "/usr/bin/python3 /usr/bin/swift-proxy-server /etc/swift/proxy-server.conf.d",
    "no pid file": "/usr/bin/python3 /usr/bin/swift-container-server c.conf and words and words and words and words and words and words",
    "no pid": "/usr/bin/python /usr/bin/swift-proxy-server",
    "no matter": "/usr/bin/python3 /usr/bin/swift-object-auditor o.conf once",
    "no swift": "/usr/bin/python3 /usr/bin/other",
    "no option": "/usr/bin/python3 -u /usr/bin/swift-x",
}


@as_root
def test_oldies_and_orphans(pause, tmp_path):
    calls = [("oldies", "-a", "0"), ("oldies", "-a", "0", "-p"), ("oldies",), ("oldies", "-a", "1"), ("orphans", "-a", "0", "-r", tmp_path),
             ("orphans", "-a", "0", "-r", tmp_path / "nosuch"), ("orphans", "-r", tmp_path), ("orphans", "-a", "0", "-r", tmp_path, "-k", "NOPE"),
             ("orphans", "-a", "0", "-r", tmp_path, "-k", "usr1")]
    theirs, ours = (among(pause, tmp_path, PROCESSES, [command(make, name, words) for name, *words in calls]) for make in ("openstack", "martlet"))
    for call, wanted, found in zip(calls, theirs, ours, strict=True):
        if call[-1] == tmp_path / "nosuch":
            assert found.pop("err").startswith(f"cannot read {tmp_path}/nosuch: ") and not wanted.pop("err")
        assert found == wanted, call
    assert ours[0]["out"].count("\n") > 4 and ours[4]["out"].count("\n") == 3
    assert set(ours[-1]["alive"]) == PROCESSES.keys() - {"no pid file", "no pid"}


@as_root
@pytest.mark.parametrize("odd", ["nosuch", "loop.pid", "junk.pid"])
def test_orphans_signals_nothing_where_servers_may_be_known(pause, tmp_path, odd):
    """A pid file that says nothing may be a server's that runs; OpenStack's takes a missing run directory for an empty one."""
    folder = tmp_path / odd if odd == "nosuch" else tmp_path
    if odd == "loop.pid":
        (tmp_path / odd).symlink_to(odd)
    if odd == "junk.pid":
        (tmp_path / odd).write_text("")
    calls = [("-a", "0", "-r", folder), ("-a", "0", "-r", folder, "-k", "TERM"), ("-r", folder, "-k", "TERM")]
    listed, refused, none_old = among(pause, tmp_path, PROCESSES, [command("martlet", "orphans", words) for words in calls])
    assert (listed["status"], refused["status"], none_old["status"]) == (0, 1, 0)
    assert "<no pid file>" in listed["out"] and refused["out"] == listed["out"] and not none_old["out"]
    assert all(f"cannot read {tmp_path}/{odd}: " in done["err"] for done in (listed, refused, none_old)), (listed, refused, none_old)
    assert "No signal is sent" in refused["err"] and "No signal" not in listed["err"]
    assert set(none_old["alive"]) == PROCESSES.keys()


@as_root
def test_martlet_s_processes_are_swift_s_too(pause, tmp_path):
    lines = {"known": "/usr/bin/martlet object-server o.conf", "no link": "/usr/bin/swift-object-auditor o.conf", "no elsewhere": "/opt/v/bin/python3.11 /opt/v/bin/swift-x " + "w" * 99}
    listed, wide, killed = among(pause, tmp_path, lines, [command("martlet", name, words) for name, *words in (
        ("oldies", "-a", "0"), ("orphans", "-w", "-a", "0", "-r", tmp_path), ("orphans", "-a", "0", "-r", tmp_path, "-k", "TERM"))])
    assert [line.split("> ")[1].split()[0] for line in listed["out"].splitlines()[1:]] == ["object-server", "object-auditor", "x"]
    assert "w" * 99 in wide["out"] and "object-server" not in wide["out"]
    assert killed["alive"] == ["known"] and killed["status"] == 0


def test_wrong_ages():
    """Numbers are those of optparse: 010 is eight."""
    for words in (("-a", "0x7fffffff"), ("-a", "0b1" + "0" * 30), ("-a", " 9999999"), ("-a", "077777777"), ("-a", "9" * 30)):
        theirs, ours = both("oldies", *words)
        assert ours == theirs and ours.status == 0, words
    theirs, ours = both("orphans", "-r", "", "-a", "9999999", "and", "more")
    assert (ours.status, ours.out) == (theirs.status, theirs.out) == (0, "")
    for tool in ("oldies", "orphans"):
        for words in (("-a", "x"), ("-a", "0.5"), ("-a", "08"), ("-a", ""), ("--nonsense",)):
            theirs, ours = both(tool, *words)
            assert ours.status == theirs.status == 2 and ours.err


def inside(etc, *words):
    """A command that has `etc` for its /etc/swift."""
    mount = 'd="$0.etc" && mkdir -p "$d" && mount -t tmpfs none "$d" && cp -a /etc/. "$d" && mkdir -p "$d/swift" && mount --bind "$0" "$d/swift" && mount --rbind "$d" /etc && exec "$@"'
    return ["unshare", "-m", "bash", "-c", mount, etc, *words]


CONFIGURATIONS = {
    "proxy-server.conf": """[DEFAULT]
bind_port = 8080
Mixed_Case = X
list = a
  b
# comment
[pipeline:main]
pipeline = cache proxy-server
[filter:cache]
use = egg:swift#memcache
set log_name = cache-log
set bind_port = 9
[app:proxy-server]
use = egg:swift#proxy
percent = %(bind_port)s
double = 100%%
empty =
""",
    "container-server.conf.d/10.conf": "[DEFAULT]\nbind_port=6201\n",
    "container-server.conf.d/20.conf": "[DEFAULT]\nbind_port=6301\nx=y\n[app:c]\nuse = egg:swift#container\n[pipeline:main]\npipeline = c\n",
    "container-reconciler.conf": "[container-reconciler]\ninterval = 5\n",
    "account-server.conf": "no section\n",
    **{f"object-server/{number}.conf": f"[DEFAULT]\nbind_port = 620{number}\n[app:object-server]\nuse = egg:swift#object\n[pipeline:main]\n"
       "pipeline = object-server\n[object-replicator]\nconcurrency = 5\n" for number in (1, 2, 10)},
    "object-server/3.conf.d/a.conf": "[app:main]\nuse = egg:swift#object\n",
    "object-server/sub/4.conf": "[x]\n", "object-server/readme.txt": "[x]\n",
    "swift.conf": "[swift-hash]\nswift_hash_path_suffix = x\n",
}


@as_root
def test_config(tmp_path):
    for name, text in CONFIGURATIONS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    calls = ["", "proxy", "proxy -w", "proxy -s filter:cache", "proxy-server -s cache", "proxy -w -s application:proxy-server", "object", "object-auditor -c 2", "object -w -c 1",
             "object -c 9", "container", "container -w", "container-reconciler", "object-expirer", "nope", "account", "nope object.1 proxy -s pipeline:main",
             "object-server.nope", "main", "object -w -c 4", "-s", "-c x proxy", "-c 0x1 object", "-c -9 object", "-c -1 object", "-c -2 object", "-c=-3 object", "-wc-3 object", "--config=-4 object", "-s -x proxy", tmp_path / "object-server/1.conf", tmp_path / "container-server.conf.d"]
    calls = [(call, str(call).split()) for call in calls]
    for (call, words), theirs in zip(calls, many("config", [words for _, words in calls], prefix=inside(tmp_path)), strict=True):
        ours = run("martlet", "config", "--swift-dir", tmp_path, *words)
        out = ours.out.replace(str(tmp_path), "/etc/swift") if not isinstance(call, Path) else ours.out
        assert ours.status == theirs.status, (call, ours, theirs)
        assert out == theirs.out, call
        assert bool(ours.err) == bool(theirs.err), (call, ours.err, theirs.err)


def test_config_cannot_command_the_terminal(tmp_path):
    """Lines and tabs stay as they are."""
    conf = tmp_path / "proxy-server.conf"
    conf.write_text("[DEFAULT]\nname\x1b = \x1b[31mö\tred\x7f\n  next \x9b31m line\n[se\x07ction]\n")
    done = run("martlet", "config", "--swift-dir", tmp_path, "proxy")
    assert done.status == 0 and "[se\\x07ction]\nname\\x1b = \\x1b[31mö\tred\\x7f\nnext \\xc2\\x9b31m line\n" in done.out, done
    conf.write_text("[x]\nno value\x1b[31m\n")
    done = run("martlet", "config", "--swift-dir", tmp_path, "proxy")
    assert done.status == 1 and "\x1b" not in done.out + done.err and done.err.count("\n") == 1, done


EXPIRER = "[object-expirer]\ninterval = 5\n"


@as_root
@pytest.mark.parametrize("files", [("object-server.conf",), ("object-server.conf", "object-expirer.conf"), ("object-expirer.conf",), ("object-expirer.conf.d/1.conf",),
                                   ("object-expirer/1.conf", "object-expirer/2.conf"), ("object-server/2.conf", "object-expirer/1.conf"), ()])
def test_config_of_the_expirer(tmp_path, files):
    """It is in an object server's configuration; one of its own counts where none has the section, and is warned of."""
    servers = {"object-server.conf": "[DEFAULT]\nbind_port = 1\n", "object-server/1.conf": "[x]\ny = 1\n"}
    for name, text in {**servers, **{name: servers.get(name, "") + EXPIRER for name in files}}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    calls = [call.split() for call in ("object-expirer", "object-expirer.1", "object-expirer.2", "-c 2 object-expirer", "-s object-expirer object-expirer",
                                       "object-updater object-expirer", "OBJECT-expirer", "object")]
    for words, theirs in zip(calls, many("config", calls, prefix=inside(tmp_path)), strict=True):
        ours = run("martlet", "config", "--swift-dir", tmp_path, *words)
        assert (ours.out.replace(str(tmp_path), "/etc/swift"), ours.status) == (theirs.out, theirs.status), (files, words)


@pytest.fixture
def node(tmp_path):
    """An object server's configuration and devices with updates that wait."""
    for name in ("sda/async_pending/abc/1", "sda/async_pending/abc/2", "sda/async_pending-1/def/1", "sda/async_pendings/abc/1", "sdb/objects/1", "sdc/async_pending/loose", "file"):
        (tmp_path / "srv" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "srv" / name).touch()
    (tmp_path / "cache").mkdir()
    conf = tmp_path / "object-server.conf"
    conf.write_text(f"[DEFAULT]\ndevices = {tmp_path}/srv\nrecon_cache_path = {tmp_path}/cache\n[filter:recon]\nrecon_lock_path = {tmp_path}/lock/deep\n")
    return conf


def test_recon_cron(node, tmp_path):
    cache, results = tmp_path / "cache/object.recon", []
    for make in ("openstack", "martlet"):
        for before in ("", "junk", '{"a": 1, "async_pending": 9}'):
            cache.write_text(before)
            output = run(make, "recon-cron", node, "and more")
            assert (output.status, output.out) == (0, "")
            figures = json.loads(cache.read_text())
            assert isinstance(figures.pop("async_pending_last"), float)
            results.append((run(make, "recon-cron", tmp_path / "nosuch.conf"), figures))
    assert [figures for _, figures in results[3:]] == [figures for _, figures in results[:3]]
    assert results[-1][1] == {"a": 1, "async_pending": 3}
    assert all(failed.status == 1 and failed.err for failed, _ in results)
    theirs, ours = both("recon-cron")
    assert ours == theirs and ours.status == 1


def test_recon_cron_counts_all_or_nothing(node, tmp_path):
    node.write_text(node.read_text().replace("/srv", "/srv/file"))
    for make in ("openstack", "martlet"):
        output = run(make, "recon-cron", node)
        assert output.status == 1 and output.out.startswith("Exception during recon-cron while accessing devices: "), output
        assert str(tmp_path / "srv/file") in output.out and not (tmp_path / "cache/object.recon").exists()


def test_recon_cron_fails_where_it_cannot_write(node, tmp_path):
    """OpenStack's logs a line and ends well; the figures that the recon filter tells stay old either way."""
    node.write_text(node.read_text().replace("/cache", "/not/there"))
    output = run("martlet", "recon-cron", node)
    assert output.status == 1 and f"cannot write figures to {tmp_path}/not/there/object.recon: " in output.err, output
    assert len(output.err.splitlines()) == 1 and not (tmp_path / "not").exists(), output


def test_recon_cron_lets_one_count(node, tmp_path):
    assert run("openstack", "recon-cron", node).status == 0
    lock = tmp_path / "lock/deep/swift-recon-object-cron/.lock"
    with open(lock, "a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        output = run("martlet", "recon-cron", node)
    assert output.status == 1 and output.out == f"Exception during recon-cron while accessing devices: 10 seconds: {lock}\n"


class Asked(http.server.BaseHTTPRequestHandler):
    """A container server that takes everything, and remembers it."""

    def do_PUT(self):
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@as_root
def test_reconciler_enqueue(tmp_path):
    made = Layout(tmp_path).write()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", made.ports["container", 0]), Asked)
    server.asked, server.statuses = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for statuses, words in (([], "0 /a/c/o 1700000000.12345"), ([], "-X DELETE 1 /a/c/ö/p?q 1700000000.12345_0000000000000001"), ([], "-f -X PUT 1 /a/c/o 17"),
                                ([503], "0 /a/c/o 1700000000"), ([503, 507], "0 /a/c/o 1700000000"), ([], "0 a/c/o 1"), ([], "0 /a/c 1"), ([], "x /a/c/o 1"),
                                ([], "9 /a/c/o 1"), ([], "0 /a/c/o junk"), ([], "-X FOO 0 /a/c/o 1")):
            asked = []
            for make in ("openstack", "martlet"):
                server.asked, server.statuses = [], list(statuses)
                line = command(make, "reconciler-enqueue", words.split())
                line = inside(made.etc, *line) if make == "openstack" else [*line, "--swift-dir", made.etc]
                output = subprocess.run([str(word) for word in line], capture_output=True, text=True, check=False)
                for _, headers in server.asked:
                    for name in ("host", "accept-encoding", "user-agent", "connection", "content-length", *(["x-timestamp"] if "-f" in words else [])):
                        headers.pop(name, None)
                asked.append((output.returncode, output.stdout, bool(output.stderr), sorted(server.asked, key=str)))
            (*theirs, their_requests), (*ours, our_requests) = asked
            assert our_requests == their_requests, words
            assert ours[:2] == theirs[:2] and (ours[0] == 0 or ours[2]), (words, ours, theirs)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    for words in ((), ("0", "/a/c/o"), ("0", "/a/c/o", "1", "2")):
        theirs, ours = both("reconciler-enqueue", *words)
        assert ours.status == theirs.status == 0 and ours.lines[:7] == theirs.lines[:7]
