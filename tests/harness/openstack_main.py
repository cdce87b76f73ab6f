"""Runs an OpenStack Swift command with its swift.conf elsewhere than /etc/swift: SWIFT_DIR COMMAND ARGUMENTS….

Swift reads policies and constraints while it is imported, from /etc/swift; the `swift_dir` option comes too late
for them. This names the directory first and then runs the command as installed, unchanged.
"""

import os
import runpy
import sys

swift_dir, command, *arguments = sys.argv[1:]

from swift.common import utils  # noqa: E402

utils.SWIFT_CONF_FILE = os.path.join(swift_dir, "swift.conf")

from swift.common import constraints, storage_policy  # noqa: E402

constraints.reload_constraints()
storage_policy.reload_storage_policies()
sys.argv = [command, *arguments]
runpy.run_path(command, run_name="__main__")
