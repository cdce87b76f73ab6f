"""How many instructions and system calls the whole of `martlet up` spends on one request.

    python tests/race/instructions.py BINARY [BINARY …] [--kinds PUT GET] [--profile DIR]

Unlike rates, both counts mean something on a busy machine. Instructions in user space are counted by callgrind, system calls by
the kernel's tracepoints (`perf stat`, as root) in a run of its own. One client on one connection sends the same request over and over;
a first round fills caches and pools and does not count. Gateway, three object servers and, for writes, three container servers are
all in that process. With --profile, callgrind's files for `callgrind_annotate` stay in DIR.
"""

import argparse
import contextlib
import http.client
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.client import Client  # noqa: E402
from harness.waiting import free_port, until  # noqa: E402

SMALL, LARGE = b"m" * 4096, b"m" * 2**20
# Name: verb, body, objects that are read or a fresh name for each, how often for instructions, how often for system calls.
KINDS = {
    "GET 4 KiB": ("GET", None, "read-small", 300, 3000),
    "S3 GET 4 KiB": ("GET", None, "read-small", 300, 3000),
    "HEAD": ("HEAD", None, "read-small", 300, 3000),
    "GET 1 MiB": ("GET", None, "read-large", 40, 300),
    "S3 GET 1 MiB": ("GET", None, "read-large", 40, 300),
    "PUT 4 KiB": ("PUT", SMALL, "small", 200, 1000),
    "S3 PUT 4 KiB": ("PUT", SMALL, "s3-small", 200, 1000),
    "DELETE": ("DELETE", None, "deleted", 200, 1000),
    "PUT 1 MiB": ("PUT", LARGE, "large", 20, 100),
}
# Each event takes a descriptor for each thread: only those that a request may make.
CALLS = """close connect fadvise64 fallocate fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstatfs fsync ftruncate
    futex epoll_ctl epoll_wait getdents64 getrandom ioctl lgetxattr linkat lseek madvise mkdirat mmap mprotect munmap
    nanosleep clock_nanosleep newfstat newfstatat open openat openat2 pipe2 pread64 preadv pwrite64 pwritev read readlink readlinkat
    recvfrom recvmsg rename renameat renameat2 rmdir sched_yield sendfile64 sendmsg sendto setsockopt shutdown socket splice statfs statx
    sync_file_range syncfs unlink unlinkat utimensat write writev""".split()
# No upkeep beside the requests. First passes begin within half a minute.
DAEMONS = {
    "object-server": ["object-auditor", "object-replicator", "object-updater"],
    "object-expirer": ["object-expirer"],
    "container-server": ["container-auditor", "container-replicator", "container-updater", "container-sync"],
    "account-server": ["account-auditor", "account-replicator", "account-reaper"],
    "container-reconciler": ["container-reconciler"],
}
FIRST_PASSES = 40
EVENTS = ",".join(["page-faults", *(f"syscalls:sys_enter_{call}" for call in CALLS)])
WAITS = ("futex", "epoll_wait", "epoll_pwait", "sched_yield")
ALLOCATION = re.compile(r"(mi_)?(malloc|calloc|zalloc|realloc)(_aligned)?$")


class Served:
    """A cluster in one process, and one client's connection to it."""

    def __init__(self, binary, root, wrapper=()):
        self.port = free_port()
        command = [binary, "up", "--dir", root, "--bind", f"127.0.0.1:{self.port}"]
        self.start(command)  # writes the configuration
        self.stop()
        for server, daemons in DAEMONS.items():
            path = Path(root, "etc", f"{server}.conf")
            for daemon in daemons:
                head, _, rest = path.read_text().partition(f"[{daemon}]\n")
                path.write_text(f"{head}\n[{daemon}]\ninterval = 1000000\n{rest}")
        self.start([*wrapper, *command])
        time.sleep(FIRST_PASSES)
        self.client = Client(f"http://127.0.0.1:{self.port}/auth/v1.0", timeout=300)
        for names, body in ((("counted",), None), (("counted", "read-small"), SMALL), (("counted", "read-large"), LARGE)):
            # callgrind makes the first of each kind so slow that it may be refused.
            until(lambda: self.client.send("PUT", self.client.path(*names), body).status in (201, 202), within=300, what=f"a PUT of {names}")
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def start(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while not self.process.stdout.readline().startswith("ready "):
            assert self.process.poll() is None, f"{command} ended with {self.process.returncode}"

    def prepare(self, kind, count):
        if kind == "DELETE":
            self.send("PUT 4 KiB", count, name=KINDS[kind][2])

    def send(self, kind, count, first=0, name=None):
        """The same request so often; each write has a name of its own."""
        verb, body, own_name, _, _ = KINDS[kind]
        name = name or own_name
        for number in range(first, first + count):
            object_name = name if name.startswith("read") else f"{name}-{number}"
            if kind.startswith("S3 "):
                path = f"/counted/{object_name}"
                headers = self.signed(verb, path, body)
            else:
                path = self.client.path("counted", object_name)
                headers = {"X-Auth-Token": self.client.token}
            self.connection.request(verb, path, body=body, headers=headers)
            answer = self.connection.getresponse()
            answer.read()
            assert answer.status in (200, 201, 204), answer.status

    def signed(self, verb, path, body):
        """The headers of a request of S3, as boto3 signs it."""
        request = AWSRequest(verb, f"http://127.0.0.1:{self.port}{path}", data=body)
        S3SigV4Auth(Credentials("test:tester", "testing"), "s3", "us-east-1").add_auth(request)
        return dict(request.headers)

    def stop(self):
        self.process.terminate()
        self.process.wait(120)


def instructions(binary, kinds, profile):
    """By kind: (instructions, allocations) of one request."""
    with tempfile.TemporaryDirectory() as root:
        served = Served(binary, f"{root}/data", ["valgrind", "--tool=callgrind", "--separate-threads=no", f"--callgrind-out-file={profile}/callgrind.out"])
        try:
            costs = {}
            for kind in kinds:
                count = KINDS[kind][3]
                served.prepare(kind, 2 * count)
                served.send(kind, count)
                control(served, "-z")
                served.send(kind, count, count)
                before = set(Path(profile).iterdir())
                control(served, f"-d={kind.replace(' ', '-')}")
                (dump,) = set(Path(profile).iterdir()) - before
                costs[kind] = [total / count for total in counted(dump.read_text())]
                dump.rename(dump.with_name(f"{kind.replace(' ', '-')}.callgrind"))
            return costs
        finally:
            served.stop()


def counted(dump):
    """(instructions, calls of the allocator) in a dump of callgrind."""
    names, calls = {}, 0
    caller = called = ""
    for line in dump.splitlines():
        if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
            is_call, number, name = match.groups()
            if name:
                names[number] = re.sub(r"'\d+$", "", name)
            if is_call:
                called = names[number]
            else:
                caller = names[number]
        elif line.startswith("calls=") and ALLOCATION.match(called) and not re.match("_?mi_", caller):
            calls += int(line.split()[0].removeprefix("calls="))
    return int(re.search(r"^(?:totals|summary): (\d+)", dump, re.MULTILINE).group(1)), calls


def control(served, argument):
    subprocess.run(["callgrind_control", argument, str(served.process.pid)], check=True, stdout=subprocess.DEVNULL)


def system_calls(binary, kinds):
    """By kind: {system call: how many of it one request makes}."""
    with tempfile.TemporaryDirectory() as root:
        served = Served(binary, f"{root}/data")
        try:
            costs = {}
            for kind in kinds:
                count = KINDS[kind][4]
                served.prepare(kind, 2 * count)
                served.send(kind, count)
                report = Path(root, "perf")
                with counters(served.process.pid, report):
                    served.send(kind, count, count)
                calls = {}
                for line in report.read_text().splitlines():
                    fields = line.split(",")
                    if len(fields) > 2 and fields[0].isdigit() and int(fields[0]):
                        calls[fields[2].removeprefix("syscalls:sys_enter_")] = int(fields[0]) / count
                costs[kind] = calls
            return costs
        finally:
            served.stop()


@contextlib.contextmanager
def counters(pid, report):
    """Has perf count while the context lasts."""
    for _ in range(20):
        told, asks = os.pipe()
        answers, tells = os.pipe()
        command = ["perf", "stat", "-D", "-1", f"--control=fd:{told},{tells}", "-x", ",", "-o", report, "-e", EVENTS, "-p", str(pid)]
        perf = subprocess.Popen(command, pass_fds=(told, tells), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(told)
        os.close(tells)
        with open(asks, "w") as asks, open(answers) as answers:
            if not say("enable", asks, answers):
                perf.wait(60)
                continue  # a thread ended while its counters were opened
            yield
            say("disable", asks, answers)
            perf.send_signal(signal.SIGINT)
            perf.wait(60)
            return
    raise AssertionError("perf does not count: it has to run as root")


def say(what, asks, answers):
    """Whether perf has done it."""
    try:
        asks.write(f"{what}\n")
        asks.flush()
    except BrokenPipeError:
        return False
    return answers.readline().startswith("ack")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", type=Path)
    parser.add_argument("--kinds", nargs="+", default=[""], help="only requests whose name begins with one of these")
    parser.add_argument("--profile", type=Path, help="where callgrind's files stay, a folder for each binary")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kinds = [kind for kind in KINDS if kind.startswith(tuple(options.kinds))]
    first = {}
    print("| request | build | instructions | of the first | allocations | system calls | without futex and epoll | page faults |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    lines = {kind: [] for kind in kinds}
    for number, binary in enumerate(options.binaries):
        with tempfile.TemporaryDirectory() as scratch:
            profile = options.profile / str(number) if options.profile else Path(scratch)
            profile.mkdir(parents=True, exist_ok=True)
            costs = instructions(binary.absolute(), kinds, profile)
            calls = system_calls(binary.absolute(), kinds)
        for kind in kinds:
            (count, allocated), by_name = costs[kind], calls[kind]
            share = count / first.setdefault(kind, count)
            waits = sum(by_name.get(name, 0) for name in WAITS)
            faults = by_name.pop("page-faults", 0)
            total = sum(by_name.values())
            lines[kind].append(f"| {kind} | {binary} | {count:,.0f} | {share:.3f} | {allocated:,.0f} | {total:.1f} | {total - waits:.1f} | {faults:.1f} |")
            if options.profile:
                rows = sorted(by_name.items(), key=lambda row: -row[1])
                (profile / f"{kind.replace(' ', '-')}.calls").write_text("".join(f"{each:10.2f} {name}\n" for name, each in rows))
    for kind in kinds:
        print("\n".join(lines[kind]))


if __name__ == "__main__":
    main()
