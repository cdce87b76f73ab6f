"""The small tools: what both makes print on the same input, and how they end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.tools import both, command, many, run

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
                                                         ("1", "1", "1.5"), ("1", "1", "z"))),
    *((path, "", "1", "1", "6", "key") for path in ("/v1/a", "v1/a/c", "/v2/a/c", "/v1//c", "/v1/a//b", "", "/", "/v1/a/")),
])
def test_form_signature(words):
    theirs, ours = both("form-signature", *words)
    assert (without_clock(ours.out), ours.status) == (without_clock(theirs.out), theirs.status)
    assert not ours.err


def test_form_signature_with_the_same_clock():
    for _ in range(5):
        theirs, ours = both("form-signature", "/v1/a/c/o", "http://x/", "100", "5", "60", "key")
        if theirs.lines[0] == ours.lines[0]:
            assert theirs == ours
            return
    pytest.fail("the clock never agreed")


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
    told = {"pause": str(pause), "run": str(folder), "lines": lines, "tools": [[str(word) for word in tool] for tool in tools]}
    ended = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, script], input=json.dumps(told), capture_output=True, text=True, timeout=60, check=True,
                           env={name: value for name, value in os.environ.items() if name != "COLUMNS"})  # ps would cut lines
    return json.loads(ended.stdout)


PROCESSES = {
    "known": "/usr/bin/python3 /usr/bin/swift-object-server /etc/swift/object-server/1.conf",
    "deep/known": "/usr/bin/python3 /usr/local/bin/swift-account-server a.conf",
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
        assert found == wanted, call
    assert ours[0]["out"].count("\n") > 4 and ours[4]["out"].count("\n") == 3
    assert set(ours[-1]["alive"]) == PROCESSES.keys() - {"no pid file", "no pid"}


@as_root
def test_martlet_s_processes_are_swift_s_too(pause, tmp_path):
    lines = {"known": "/usr/bin/martlet object-server o.conf", "no link": "/usr/bin/swift-object-auditor o.conf", "no elsewhere": "/opt/v/bin/python3.11 /opt/v/bin/swift-x " + "w" * 99}
    listed, wide, killed = among(pause, tmp_path, lines, [command("martlet", name, words) for name, *words in (
        ("oldies", "-a", "0"), ("orphans", "-w", "-a", "0", "-r", tmp_path), ("orphans", "-a", "0", "-r", tmp_path, "-k", "TERM"))])
    assert [line.split("> ")[1].split()[0] for line in listed["out"].splitlines()[1:]] == ["object-server", "object-auditor", "x"]
    assert "w" * 99 in wide["out"] and "object-server" not in wide["out"]
    assert killed["alive"] == ["known"] and killed["status"] == 0


def test_wrong_ages():
    for tool in ("oldies", "orphans"):
        for words in (("-a", "x"), ("-a", "0.5"), ("--nonsense",)):
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
             "object-server.nope", "main", "object -w -c 4", "-s", "-c x proxy", tmp_path / "object-server/1.conf", tmp_path / "container-server.conf.d"]
    calls = [(call, str(call).split()) for call in calls]
    for (call, words), theirs in zip(calls, many("config", [words for _, words in calls], prefix=inside(tmp_path)), strict=True):
        ours = run("martlet", "config", *words, "--swift-dir", tmp_path)
        out = ours.out.replace(str(tmp_path), "/etc/swift") if not isinstance(call, Path) else ours.out
        assert ours.status == theirs.status, (call, ours, theirs)
        assert out == theirs.out, call
        assert bool(ours.err) == bool(theirs.err), (call, ours.err, theirs.err)
