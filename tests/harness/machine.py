"""Copies of this machine that are thrown away: what is installed, written and started there never reaches the machine itself.

A copy is an overlay over `/` in a mount namespace. A machine is a copy with processes, a network, control groups and a
systemd of its own, and without the capabilities by which it could reach the kernel they share.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.process import run
from harness.waiting import until

# $1: an empty folder, $2: what shall be seen as /package.
COPY = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
# What the host happens to have of Swift.
rm -rf "$root/etc/swift" "$root/var/cache/swift" "$root/var/lib/martlet"
mkdir -p "$root/package"
mount --bind "$2" "$root/package"
"""

SHELL = COPY + """
mount --rbind /dev "$root/dev"
exec chroot "$root" sh -e -c "$3"
"""

# What would reach beyond the copy (`kernel.*` and `fs.*` belong to the whole host), and what only costs time.
MASKED = """systemd-sysctl.service systemd-modules-load.service systemd-remount-fs.service systemd-udevd.service systemd-udev-trigger.service
systemd-logind.service systemd-hwdb-update.service systemd-binfmt.service systemd-random-seed.service systemd-timesyncd.service
dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount
networking.service""".split()

BOOT = COPY + f"""
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
for unit in {" ".join(MASKED)}; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
# As systemd has it, but not where it finds itself in a container.
mount --make-rshared "$root"
ip link set lo up
# systemd would let its units have 1024 open files when it cannot raise the limit that it was started with.
mkdir -p "$root/etc/systemd/system.conf.d"
printf '[Manager]\nDefaultLimitNOFILE=1024:%s\n' "$(ulimit -Hn)" > "$root/etc/systemd/system.conf.d/files.conf"
exec setpriv --bounding-set -sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog,-mac_admin,-mac_override,-wake_alarm,-bpf,-perfmon \\
    chroot "$root" env -i container=martlet PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    /lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
"""

NUMBERS = itertools.count()
APART = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]


def on_a_copy(place, package, script):
    """How a shell ended that ran `script` on a copy of this machine, made in the empty folder `place`."""
    place.mkdir()
    command = [*APART, "sh", "-c", SHELL, "sh", place, package]
    probe = run([*command, "true"], check=False)
    if probe.returncode:
        pytest.skip(f"no overlay of / can be made here: {probe.stderr.strip()}")
    return run([*command, script], check=False, timeout=500)


class Machine:
    """A copy that has booted. Its network is its own: `run(…, inside=False)` has that network alone, and this machine's files."""

    def __init__(self, place, package):
        self.place, self.package, self.log = Path(place), package, Path(f"{place}.log")

    def __enter__(self):
        self.place.mkdir()
        self.group = cgroup_of_its_own()
        with open(self.log, "wb") as sink:
            self.child = subprocess.Popen(
                [*APART, "--cgroup", "--net", "--uts", "--ipc", "sh", "-c", BOOT, "sh", self.place, self.package],
                stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=lambda: (self.group / "cgroup.procs").write_text("0"))
        try:
            self.await_boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def await_boot(self):
        def booted():
            if self.child.poll() is not None:
                pytest.skip(f"no systemd can be had on a copy of this machine: {self.log.read_text().strip()}")
            return self.init() and self.run("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded")
        until(booted, within=240, what="systemd on the copy")

    def __exit__(self, *_):
        if self.child.poll() is None:
            # Its first process takes all others along.
            os.kill(self.child.pid, signal.SIGKILL)
        self.child.wait(30)
        until(lambda: throw_away(self.group), what="the end of all that ran on the copy")

    def init(self):
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return children[0] if children else None

    def run(self, command, *, check=True, inside=True, **options):
        """What a shell on the machine says to `command`; or a command with its arguments outside of it, but in its network."""
        where = ["--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd=/"] if inside else []
        words = ["sh", "-e", "-c", command] if inside else command
        return run(["nsenter", "--target", self.init(), "--net", *where, "--", *words], check=check, **options)


def cgroup_of_its_own():
    """A new control group for a machine to be in."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    unified = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if not unified:
        pytest.skip("no unified control groups here")
    group = unified / f"martlet-test-{os.getpid()}-{next(NUMBERS)}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    return group


def throw_away(group):
    """Whether it is gone, with all that are below it."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except OSError:
        return False
    return True


class LoadApart:
    """Users at work on a machine, while something is done to it."""

    def __init__(self, machine, auth_url, *, rewrites=True):
        command = ["nsenter", "--target", machine.init(), "--net", "--", sys.executable, Path(__file__).with_name("load_apart.py"), auth_url,
                   *([] if rewrites else ["--once"])]
        self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])})

    def told(self):
        """How many writes were acknowledged so far, and the last failure."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def go_on(self, writes=20):
        """Until so many more writes were acknowledged."""
        enough = self.told()["acknowledged"] + writes

        def is_enough():
            told = self.told()
            assert told["acknowledged"] >= enough, told
            return True
        until(is_enough, within=120, what="the load going on")

    def end(self):
        """What was acknowledged, failed, was wrong, and was read back at the end."""
        output, _ = self.child.communicate(timeout=1800)
        return json.loads(output.splitlines()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
