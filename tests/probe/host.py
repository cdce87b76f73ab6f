"""A machine of its own for one file of probe tests: the "Swift All In One" of Swift's documentation, in namespaces.

Comes in: a directory, whose programs to run, what pytest is to run. What comes out: pytest's exit status.
Always holds: nothing outside the directory is touched. Mounts, process ids and the network are the machine's own, so
that `swift-orphans` kills no other machine's daemons and every machine listens on the same ports.
Does not: change a test, or a configuration that an option of the run does not speak of. What lies in /etc/swift are
the files of `doc/saio` in Swift's source distribution, the rings those of its `remakerings`.

It is process 1 there: it ends what is left over, and so the machine, when pytest has ended.
"""

import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "--mount-proc")
LOG_SOCKET = "/run/swift-log"

TEST_CONF = """[probe_test]
check_server_timeout = 60
subprocess_wait_timeout = 120
validate_rsync = yes
proxy_base_url = http://127.0.0.1:8080
"""

# What `resetswift` of doc/saio does, where drives are directories and no service manager runs.
RESET = """#!/bin/sh
set -e
swift-init all kill
swift-orphans -a 0 -k KILL
rm -rf /srv/[1-4]/node/*
for place in 1/node/sdb1 1/node/sdb5 2/node/sdb2 2/node/sdb6 3/node/sdb3 3/node/sdb7 4/node/sdb4 4/node/sdb8; do
    mkdir -p /srv/$place
done
find /var/cache/swift* -type f -name '*.recon' -exec rm -f {} ';'
if [ -f /run/memcached.pid ]; then
    memcached=$(cat /run/memcached.pid)
    kill $memcached
    while kill -0 $memcached 2>/dev/null; do sleep 0.05; done
fi
memcached -d -u root -l 127.0.0.1 -P /run/memcached.pid
"""


def enter(plan):
    """The command that starts this file as process 1 of a new machine, with `plan` to read."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, *NAMESPACES, sys.executable, __file__, str(plan)]


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    root = Path(plan["root"])
    mounts(root)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    threading.Thread(target=collect_logs, args=(root / "daemons.log",), daemon=True).start()
    saio(Path(plan["sdist"]), erasure=plan["erasure"])
    os.environ["PATH"] = f"{programs(root / 'bin', plan)}:/usr/sbin:/usr/bin:/sbin:/bin"
    rings(Path(plan["rings"]), ["bash", Path(plan["sdist"]) / "doc/saio/bin/remakerings"], root / "start.log")
    start(["rsync", "--daemon"], root / "start.log")
    start(["resetswift"], root / "start.log")
    sys.exit(until_it_ends(subprocess.Popen(plan["command"], cwd=plan["sdist"], env={
        **os.environ, "PYTHONPATH": plan["sdist"], "SWIFT_TEST_CONFIG_FILE": "/etc/swift/test.conf"})))


def start(command, log):
    with open(log, "ab") as sink:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)


def rings(kept, remake, log):
    """Rings and builders; those of the run's first machine serve all machines, as making them takes longer than most tests."""
    with open(kept / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        etc, files = Path("/etc/swift"), ("*.ring.gz", "*.builder")
        if not (kept / "made").exists():
            start(remake, log)
            for pattern in files:
                for path in etc.glob(pattern):
                    shutil.copy(path, kept)
            (kept / "made").touch()
            return
    for pattern in files:
        for path in kept.glob(pattern):
            shutil.copy(path, etc)


def mounts(root):
    """The directories whose names the tests and `swift-init` have in them become ours."""
    copy = root / "etc"
    shutil.copytree("/etc", copy, symlinks=True, ignore_dangling_symlinks=True, copy_function=copy_readable)
    (copy / "swift").mkdir()
    subprocess.run(["mount", "--bind", copy, "/etc"], check=True)
    for place in ("/run", "/var/cache", "/var/log", "/srv"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "machine", place], check=True)
    if not holds_attributes(Path("/srv")):
        drives = root / "srv"
        drives.mkdir()
        subprocess.run(["mount", "--bind", drives, "/srv"], check=True)
    caches = [f"/var/cache/swift{number}" for number in ("", 2, 3, 4)]
    for place in ("/run/swift", "/run/lock", "/var/log/swift", *caches):
        Path(place).mkdir()


def copy_readable(source, target):
    """What we may not read (keys, shadow passwords), no test needs."""
    try:
        shutil.copy2(source, target)
    except PermissionError:
        pass
    return target


def holds_attributes(folder):
    """Whether files there can have the attributes that Swift keeps its metadata in (tmpfs only since Linux 6.6)."""
    file = folder / "attributes"
    file.touch()
    try:
        os.setxattr(file, "user.swift.metadata", b"x" * 4000)
        return True
    except OSError:
        return False
    finally:
        file.unlink()


def saio(sdist, *, erasure):
    """/etc/swift and rsyncd.conf as doc/saio has them, with a user that exists and a place for logs."""
    etc = Path("/etc/swift")
    shutil.copytree(sdist / "doc/saio/swift", etc, dirs_exist_ok=True)
    for conf in etc.rglob("*.conf"):
        text = conf.read_text().replace("<your-user-name>", "root")
        conf.write_text(text.replace("[DEFAULT]\n", f"[DEFAULT]\nlog_address = {LOG_SOCKET}\n", 1))
    if not erasure:
        swift_conf = etc / "swift.conf"
        swift_conf.write_text(re.sub(r"\[storage-policy:2\][^\[]*", "", swift_conf.read_text()))
    (etc / "test.conf").write_text(TEST_CONF)
    rsyncd = (sdist / "doc/saio/rsyncd.conf").read_text().replace("<your-user-name>", "root")
    Path("/etc/rsyncd.conf").write_text(rsyncd)


def programs(folder, plan):
    """A directory with every program of Swift's: for the daemons of `links` the one it names. The missing have a
    stand-in that does nothing and fails, because the tests find configurations through `swift-init`, which does so for
    programs that are there."""
    folder.mkdir()
    for tool in Path(sys.executable).parent.glob("swift*"):
        if tool.name not in plan["links"]:
            (folder / tool.name).symlink_to(tool)
    for name, program in plan["links"].items():
        if program:
            (folder / name).symlink_to(program)
        else:
            write_script(folder / name, f"#!/bin/sh\necho there is no {name}\nexit 1\n")
    write_script(folder / "resetswift", RESET)
    return folder


def write_script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def collect_logs(path):
    """What syslog would be: every line the daemons log, into one file."""
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(LOG_SOCKET)
    with open(path, "ab", buffering=0) as log:
        while True:
            log.write(re.sub(rb"^<\d+>", b"", inbox.recv(65536)).rstrip(b"\0\n") + b"\n")


def until_it_ends(child):
    """Reaps what daemons leave, as process 1 must; the exit status of `child`."""
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
