"""An operator's tool of either make, run on the same files: what it printed, and how it ended."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import forks
from harness.places import martlet, openstack

# What pip makes of swift-form-signature cannot start: its main wants the arguments handed over.
STARTERS = {"form-signature": "import sys; from swift.cli.form_signature import main; sys.exit(main(['swift-form-signature'] + sys.argv[1:]))"}


@dataclass
class ToolResult:
    """What a tool left behind."""

    status: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()


def command(make, tool, arguments):
    if make == "martlet":
        return [martlet(), tool, *arguments]
    if tool in STARTERS:
        return [sys.executable, "-W", "ignore", "-c", STARTERS[tool], *arguments]
    return [sys.executable, "-W", "ignore", openstack(f"swift-{tool}"), *arguments]


def run(make, tool, *arguments, env=None, cwd=None, within=60, prefix=()):
    """The tool of "martlet" or "openstack". `prefix` is a command that runs it, as `unshare` does."""
    ended = forks.run([*prefix, *command(make, tool, arguments)], timeout=within, errors="surrogateescape",
                      cwd=cwd, env={**os.environ, "COLUMNS": "80", **(env or {})})
    return ToolResult(ended.returncode, ended.stdout, ended.stderr)


def many(tool, calls, swift_dir=None, prefix=()):
    """What OpenStack's tool says to each of many lists of arguments; it is imported once, and forked for each. `prefix` as in `run`."""
    script = Path(__file__).with_name("openstack_many.py")
    words = [[str(word) for word in call] for call in calls]
    line = [*prefix, sys.executable, "-W", "ignore", script, str(swift_dir or ""), openstack(f"swift-{tool}")]
    ended = subprocess.run(line, input=json.dumps(words), capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "80"}, check=True)
    return [ToolResult(**results) for results in json.loads(ended.stdout)]


def both(tool, *arguments, **options):
    """(OpenStack's, ours)."""
    return run("openstack", tool, *arguments, **options), run("martlet", tool, *arguments, **options)
