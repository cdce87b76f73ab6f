"""Runs an OpenStack Swift command for each list of arguments in a JSON list on standard input: SWIFT_DIR COMMAND.

Answers with a JSON list of what each printed and how it ended. Each runs in a process of its own, forked from one that has
imported the library. SWIFT_DIR, unless empty, is where swift.conf is, as openstack_main.py has it.
"""

import json
import os
import runpy
import sys
import tempfile
import traceback

swift_dir, command = sys.argv[1:]

from swift.cli import info  # noqa: E402, F401
from swift.common import constraints, storage_policy, utils  # noqa: E402

if swift_dir:
    utils.SWIFT_CONF_FILE = os.path.join(swift_dir, "swift.conf")
    constraints.reload_constraints()
    storage_policy.reload_storage_policies()


def one(arguments):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = [command, *arguments]
            status = 1
            try:
                runpy.run_path(command, run_name="__main__")
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return {"status": status, "out": out.read().decode(errors="surrogateescape"), "err": err.read().decode(errors="surrogateescape")}


json.dump([one(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
