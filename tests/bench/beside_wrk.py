"""What `martlet bench` costs and says beside wrk, for the same load on a server that costs nothing.

    python tests/bench/beside_wrk.py [BINARY] [--connections 32] [--seconds 3] [--rounds 3] [--delay 10000] [--only NAME]

wrk, `martlet bench` and `martlet bench --record` read 4 KiB in turns, with one thread each, from `responder.c` on another processor:
first one that answers at once, for the processor time of the loader (user and system, `wait4`) for each request, which means
something on a busy machine, too; then one that answers after `--delay` microseconds, for rates and percentiles side by side.
Last, 2,000 connections, for memory.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.places import REPOSITORY, martlet  # noqa: E402

SIZE = 4096
WORKLOAD = """
name = "beside-wrk"
[storage]
type = "swift"
storage_url = "{url}/v1/AUTH_test"
token = "AUTH_tk0123456789abcdef0123456789abcdef"
[[stage]]
name = "main"
workers = {connections}
runtime = "{seconds}s"
operations = [{{ type = "read", containers = "c(1)", objects = "u(1,500)" }}]
"""
LOADERS = ("wrk", "bench", "bench --record")


@dataclass
class Load:
    """What one run of a loader did, and what it cost."""

    requests: int
    rate: float
    p50: float
    p99: float
    cpu: float
    memory: float

    @property
    def micros(self):
        """Processor time for each request, in microseconds."""
        return self.cpu / self.requests * 1e6


@contextlib.contextmanager
def responder(delay=0):
    """The address of a server that answers after so many microseconds."""
    binary, source = REPOSITORY / "target/bench/responder", Path(__file__).with_name("responder.c")
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(binary), str(source)], check=True)
    with subprocess.Popen(pinned(1, [binary, SIZE, delay]), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def pinned(at, command):
    """The command on one of the processors that this process may use: loader and server on different ones, if there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(allowed[at % len(allowed)]), *map(str, command)]


def highest_memory(pid):
    """Bytes that a process has held at most so far; 0 when it has ended. What `wait4` says counts the memory of the process that
    started it, too."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def measured(command, cwd=None):
    """Runs a loader: (what it said, processor seconds with those of its children, MiB of memory)."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(pinned(0, command), stdout=output, stderr=subprocess.STDOUT, cwd=cwd)
        memory, ended = 0, 0
        while not ended:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            memory = memory if ended else max(memory, highest_memory(process.pid))
            time.sleep(0 if ended else 0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
        assert process.returncode == 0, (command, text)
        return text, usage.ru_utime + usage.ru_stime, memory / 2**20


def by_wrk(url, connections, seconds):
    text, cpu, memory = measured(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "30s",
                                  "-H", "X-Auth-Token: AUTH_tk0123456789abcdef0123456789abcdef", f"{url}/v1/AUTH_test/mycontainers1/myobjects1"])
    unit = {"us": 0.001, "ms": 1, "s": 1000}

    def percentile(name):
        number, of = re.search(rf"^ +{name}% +([\d.]+)(us|ms|s)$", text, re.MULTILINE).groups()
        return float(number) * unit[of]

    requests = int(re.search(r"(\d+) requests in", text).group(1))
    rate = float(re.search(r"Requests/sec: +([\d.]+)", text).group(1))
    return Load(requests, rate, percentile(50), percentile(99), cpu, memory)


def by_bench(binary, url, connections, seconds, record):
    with tempfile.TemporaryDirectory() as folder:
        workload, report = Path(folder, "w.toml"), Path(folder, "r.json")
        workload.write_text(WORKLOAD.format(url=url, connections=connections, seconds=seconds))
        options = ["--record", Path(folder, "ops.csv.gz")] if record else []
        _, cpu, memory = measured([binary, "bench", "run", workload, "--threads", 1, "--json", report, *options])
        total = json.loads(report.read_text())["stages"][0]["works"][0]["total"]
    assert total["failed"] == 0 and total["bytes"] == total["succeeded"] * SIZE, total["failures"]
    times = total["latency"]["percentiles"]
    return Load(total["succeeded"], total["rate"], times["50"], times["99"], cpu, memory)


def by(loader, binary, url, connections, seconds):
    """One run of one of LOADERS."""
    if loader == "wrk":
        return by_wrk(url, connections, seconds)
    return by_bench(binary, url, connections, seconds, "--record" in loader)


def in_turns(binary, *, delay, connections, seconds, rounds, loaders=LOADERS):
    """{loader: [Load, …]} of loaders that take turns."""
    runs = {loader: [] for loader in loaders}
    with responder(delay) as url:
        for _ in range(rounds):
            for loader in loaders:
                runs[loader].append(by(loader, binary, url, connections, seconds))
    return runs


def median(runs, figure):
    return statistics.median(getattr(run, figure) for run in runs)


def table(runs):
    """Medians of all loaders as Markdown."""
    lines = ["| | GET/s | p50 ms | p99 ms | CPU µs for each | beside wrk's | MiB |", "|---" + "|---:" * 6 + "|"]
    wrk = median(runs["wrk"], "micros") if "wrk" in runs else None
    for loader, all_runs in runs.items():
        rate, p50, p99, micros, memory = (median(all_runs, figure) for figure in ("rate", "p50", "p99", "micros", "memory"))
        beside = f"{micros / wrk:.2f}" if wrk else ""
        lines.append(f"| {loader} | {rate:,.0f} | {p50:.2f} | {p99:.2f} | {micros:.2f} | {beside} | {memory:.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", type=Path)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=int, default=10_000)
    parser.add_argument("--only", choices=["cost", "figures", "memory"])
    options = parser.parse_args()
    binary = (options.binary or martlet()).absolute()
    same = dict(seconds=options.seconds, rounds=options.rounds)
    if options.only in (None, "cost"):
        print(f"{options.connections} connections, answers at once:\n\n{table(in_turns(binary, delay=0, connections=options.connections, **same))}\n")
    if options.only in (None, "figures"):
        runs = in_turns(binary, delay=options.delay, connections=options.connections, **same)
        print(f"{options.connections} connections, answers after {options.delay} µs:\n\n{table(runs)}\n")
    if options.only in (None, "memory"):
        print(f"2,000 connections, answers at once:\n\n{table(in_turns(binary, delay=0, connections=2000, seconds=max(3, options.seconds), rounds=1))}\n")


if __name__ == "__main__":
    main()
