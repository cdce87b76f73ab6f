"""Starts processes in an empty process namespace, runs tools among them, tells what they print: JSON in, JSON out.

See `among` in test_small_tools.py.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

request = json.load(sys.stdin)
folder, processes = Path(request["run"]), {}
for name, line in request["lines"].items():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        words = line.split(" ")
        os.execv(request["pause"], words)
    processes[name] = child
    if not name.startswith("no "):
        path = folder / (name if name.endswith(".pid.d") else f"{name}.pid")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{child}\n")


def wait_for_exec():
    """Until each has its own words: amid its exec a process has none."""
    for name, pid in processes.items():
        words = request["lines"][name].replace(" ", "\0").encode() + b"\0"
        while Path(f"/proc/{pid}/cmdline").read_bytes() != words:
            os.sched_yield()


def alive(pid):
    """A process that was sent a deadly signal dies before it stops, however long that takes."""
    try:
        os.kill(pid, signal.SIGSTOP)
        stopped = os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    except (ChildProcessError, ProcessLookupError):
        return False
    if stopped:
        os.kill(pid, signal.SIGCONT)
    return stopped


def named(text):
    """Names for numbers, which differ from run to run; what they take of the line's width stays."""
    names = {str(pid): f"<{name}>" for name, pid in processes.items()}
    return re.sub(r"^((?: *\d+ )? *)(\d+)\b", lambda found: found[1] + names.get(found[2], found[2]), text, flags=re.MULTILINE)


wait_for_exec()
answers = []
for tool in request["tools"]:
    ended = subprocess.run(tool, capture_output=True, text=True, check=False)
    answers.append({"status": ended.returncode, "out": named(ended.stdout), "err": ended.stderr, "alive": [name for name, pid in processes.items() if alive(pid)]})
print(json.dumps(answers))
