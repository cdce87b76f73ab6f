"""Runs an OpenStack Swift command with its swift.conf elsewhere than /etc/swift: SWIFT_DIR COMMAND ARGUMENTS….

Swift reads policies and constraints while it is imported, from /etc/swift; the `swift_dir` option comes too late
for them. This names the directory first and then runs the command as installed, unchanged.
"""

import atexit
import os
import runpy
import sys
import threading


def run(swift_dir, command, *arguments):
    """Run the command here, as if it were the program. Without `swift_dir`, /etc/swift stays what it reads."""
    if swift_dir:
        from swift.common import utils

        utils.SWIFT_CONF_FILE = os.path.join(swift_dir, "swift.conf")

        from swift.common import constraints, storage_policy

        constraints.reload_constraints()
        storage_policy.reload_storage_policies()
    sys.argv[:] = command, *arguments  # where it was imported before, too
    runpy.run_path(command, run_name="__main__")


def run_in_fork(swift_dir, command, *arguments):
    """`run`, and the end of this process: as an interpreter ends, but for taking apart what was imported, which takes longer than most programs."""
    status = 0
    try:
        try:
            run(swift_dir, command, *arguments)
        except Exception:
            status = 1
            sys.excepthook(*sys.exc_info())
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as an interpreter's that cannot write its last words
    os._exit(status & 0xFF)


if __name__ == "__main__":
    run(*sys.argv[1:])
