"""The ring builders of both makes, given the same commands, each with files of its own."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

from harness.places import martlet

# Runs every step in one process: the steps are many, and Python takes its time to start.
OPENSTACK = """
import contextlib, io, json, os, sys, traceback
import swift.common.utils as utils
utils.HASH_PATH_SUFFIX = b'changeme'
from swift.cli import ringbuilder
folder, steps = json.load(sys.stdin)
os.chdir(folder)
sys.argv[0] = 'swift-ring-builder'
results = []
for words, answers in steps:
    out, err, status = io.StringIO(), io.StringIO(), 0
    sys.stdin = io.StringIO(answers)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            ringbuilder.main(['swift-ring-builder', *words])
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 2
    results.append([status, out.getvalue(), err.getvalue()])
json.dump(results, sys.__stdout__)
"""


@dataclass
class Step:
    """What one command did."""

    line: str
    status: int
    out: str
    err: str

    @property
    def crashed(self):
        return "Traceback" in self.err


def split(line):
    """`answer | words`: what is typed at questions, and the command."""
    answers, _, words = line.rpartition(" |> ")
    return shlex.split(words), answers.encode().decode("unicode_escape")


def openstack(folder, lines):
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", OPENSTACK], input=json.dumps([str(folder), [split(line) for line in lines]]),
                           capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "COLUMNS": "80"})
    return [Step(line, *results) for line, results in zip(lines, json.loads(ended.stdout))]


def ours(folder, lines, name="swift-ring-builder"):
    link = folder / name
    if not link.is_symlink():
        link.symlink_to(martlet())
    steps = []
    for line in lines:
        words, answers = split(line)
        ended = subprocess.run([link, *words], input=answers, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
        steps.append(Step(line, ended.returncode, ended.stdout, ended.stderr))
    return steps


USAGE = re.compile(r"^(?:Usage: )?swift-ring-builder (?:<|\[options\])")


def shown(text):
    """What must be the same: not clocks, ids, the words of a usage, nor what crashed."""
    lines, in_usage = [], False
    for line in text.splitlines():
        if USAGE.match(line):
            if not in_usage:
                lines.append("USAGE")
            in_usage = True
        elif not in_usage or "error:" in line or "is not a valid number" in line:
            lines.append(line.rstrip())
    text = "\n".join(lines)
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    return re.sub(r"\(\d+(?: days?, \d+)?:\d\d:\d\d remaining\)", lambda it: "(0 remaining)" if it[0] == "(0:00:00 remaining)" else "(SOME remaining)", text)
