"""Runs an OpenStack Swift command for each list of arguments in a JSON list on standard input: SWIFT_DIR COMMAND.

Answers with a JSON list of what each printed and how it ended. Each runs in a process of its own, forked from one that has
imported the library. SWIFT_DIR, unless empty, is where swift.conf is, as openstack_main.py has it.
"""

import json
import os
import sys
import tempfile

import openstack_main
from swift.cli import info  # noqa: F401

swift_dir, command = sys.argv[1:]


def one(arguments):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            openstack_main.run_in_fork(swift_dir, command, *arguments)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return {"status": status, "out": out.read().decode(errors="surrogateescape"), "err": err.read().decode(errors="surrogateescape")}


json.dump([one(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
