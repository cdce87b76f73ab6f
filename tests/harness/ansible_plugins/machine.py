"""How Ansible reaches a machine of a test (harness/machine.py): by its namespaces, with the environment of a terminal there."""

import subprocess
from shlex import quote

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: machine
short_description: A machine of a test
description: Enters the namespaces of a process, as root.
author: The maintainers of Martlet
options:
  init:
    description: The first process of the machine.
    type: int
    required: true
    vars: [{name: machine_init}]
"""


class Connection(ConnectionBase):
    transport = "machine"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def close(self):
        self._connected = False

    def exec_command(self, cmd, in_data=None, sudoable=True):
        command = ["nsenter", "--target", str(self.get_option("init")), "--net", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd=/",
                   "--", "env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "sh", "-c", cmd]
        given = {"stdin": subprocess.DEVNULL} if in_data is None else {"input": in_data}
        done = subprocess.run(command, capture_output=True, check=False, **given)
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path, out_path):
        with open(in_path, "rb") as file:
            self._must(f"cat > {quote(out_path)}", file.read())

    def fetch_file(self, in_path, out_path):
        content = self._must(f"cat {quote(in_path)}")
        with open(out_path, "wb") as file:
            file.write(content)

    def _must(self, command, in_data=None):
        status, output, errors = self.exec_command(command, in_data)
        if status:
            raise AnsibleConnectionFailure(f"{command}: {errors.decode(errors='replace')}")
        return output
