#!/usr/bin/python
"""Has units run with the configuration as it is now, one after the other, each only if it does not yet."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import time

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: martlet_services
short_description: Units of systemd that run with the configuration as it is now
description:
  - For each unit, a record below I(records) says with what it was last started, reloaded or restarted. A unit is
    touched only when what it reads is something else now, or when it does not run. So what an interrupted run left
    undone is done by the next, and a change of one section of a file reaches only the processes that read that section.
  - A server is reloaded without losing a request; the module waits until a new worker serves, and answers.
  - The first unit that fails ends the module; what follows stays as it is.
options:
  units:
    description:
      - The units, in their order.
      - I(reads) has files, each with C(sections) it reads or C(without) sections it does not read.
      - I(on_change) is C(reload), C(restart) or C(nothing).
      - I(worker) is true where a reload gives the main process a new child (servers of Martlet).
      - I(answers) says where a GET must be answered with 200.
    type: list
    elements: dict
    required: true
  records: {description: Where it is noted with what each unit runs., type: path, default: /var/lib/martlet/applied}
  patience: {description: Seconds until a unit must answer., type: int, default: 150}
author: The maintainers of Martlet
"""

EXAMPLES = """
- name: The object server
  martlet_services:
    units:
      - name: martlet-object
        on_change: reload
        worker: true
        reads: [{file: /etc/swift/object-server.conf, without: [object-auditor]}]
        answers: {host: 10.0.0.31, port: 6200}
"""

RETURN = """
enabled: {description: Units that were enabled., type: list, returned: always}
started: {description: Units that were started., type: list, returned: always}
reloaded: {description: Units that were reloaded., type: list, returned: always}
restarted: {description: Units that were restarted., type: list, returned: always}
stopped: {description: Units that were stopped., type: list, returned: always}
"""


def read_part(reads):
    """The lines of a file that a unit reads: without comments, of some sections, or of all."""
    try:
        with open(reads["file"], "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return b"absent"
    sections, without = reads.get("sections"), reads.get("without")
    if sections is None and without is None:
        return content
    kept, section = [], None
    for line in content.decode(errors="surrogateescape").splitlines():
        line = line.rstrip()
        if not line or line.lstrip().startswith(("#", ";")):
            continue
        if line.startswith("["):
            section = line.strip("[] ")
        if section in sections if sections is not None else section not in without:
            kept.append(line)
    return "\n".join(kept).encode(errors="surrogateescape")


def fingerprint(unit):
    digest = hashlib.sha256()
    for reads in unit["reads"]:
        part = read_part(reads)
        digest.update(f"{reads['file']} {len(part)}\n".encode() + part)
    return digest.hexdigest()


def children(process):
    """The processes that it has started and that still run."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return set(file.read().split())
    except FileNotFoundError:
        return set()


class Services:
    """What was done to which unit."""

    def __init__(self, module):
        self.module, self.patience, self.records = module, module.params["patience"], module.params["records"]
        self.done = {"enabled": [], "started": [], "reloaded": [], "restarted": [], "stopped": []}

    def fail(self, unit, why):
        _, journal, _ = self.module.run_command(["journalctl", "--no-pager", "--output", "cat", "--lines", "15", "--unit", unit["name"]])
        self.module.fail_json(msg=f"{unit['name']}: {why}; the end of its journal:\n{journal.strip()}", **self.done)

    def systemctl(self, unit, verb):
        status, output, errors = self.module.run_command(["systemctl", verb, "--quiet", unit["name"]])
        if status:
            self.fail(unit, f"systemctl {verb} ended with {status}: {(output + errors).strip()}")

    def properties(self, unit):
        command = ["systemctl", "show", "--property", "ActiveState,SubState,UnitFileState,MainPID,StatusText", unit["name"]]
        _, output, _ = self.module.run_command(command, check_rc=True)
        return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)

    def record(self, unit):
        return os.path.join(self.records, unit["name"])

    def noted(self, unit):
        try:
            with open(self.record(unit), encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return None

    def note(self, unit, mark):
        os.makedirs(self.records, mode=0o700, exist_ok=True)
        new = self.record(unit) + ".new"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(mark + "\n")
        os.replace(new, self.record(unit))

    def bring(self, unit):
        """One unit to where it shall be."""
        is_now = self.at_rest(unit)
        enabled, active = is_now.get("UnitFileState") == "enabled", is_now["ActiveState"] in ("active", "reloading")
        if unit["state"] == "stopped":
            if enabled or active:
                self.do(unit, "stopped", ["disable", "stop"])
            return
        if not enabled:
            self.do(unit, "enabled", ["enable"])
        mark = fingerprint(unit)
        if not active:
            self.do(unit, "started", ["start"])
        elif unit["on_change"] != "nothing" and (mark != self.noted(unit) or "failed" in is_now["StatusText"]):
            if unit["on_change"] == "reload":
                self.reload(unit, is_now)
            else:
                self.do(unit, "restarted", ["restart"])
        if self.module.check_mode:
            return
        if unit["answers"]:
            self.await_answer(unit)
        if unit["on_change"] != "nothing" and mark != self.noted(unit):
            self.note(unit, mark)

    def do(self, unit, word, verbs):
        self.done[word].append(unit["name"])
        if not self.module.check_mode:
            for verb in verbs:
                self.systemctl(unit, verb)

    def at_rest(self, unit):
        """Its properties, once a reload that others have asked for is over: installing a newer package asks for one."""
        deadline = time.monotonic() + self.patience
        while True:
            found = self.properties(unit)
            if found["ActiveState"] != "reloading" or self.module.check_mode:
                return found
            if time.monotonic() > deadline:
                self.fail(unit, f"it has been reloading for {self.patience} s")
            time.sleep(0.1)

    def reload(self, unit, before):
        """Ends when the new worker serves. The main process reports RELOADING before it starts one, and READY after."""
        workers = children(before["MainPID"])
        failed_before = "failed" in before["StatusText"]
        self.do(unit, "reloaded", ["reload"])
        if self.module.check_mode or not unit["worker"]:
            return
        deadline, seen = time.monotonic() + self.patience, False
        while time.monotonic() < deadline:
            # In this order: systemd has been told of the reload before there was a new child.
            seen = seen or bool(children(before["MainPID"]) - workers)
            now = self.properties(unit)
            if now["MainPID"] != before["MainPID"]:
                self.fail(unit, "its main process ended during the reload")
            if "failed" in now["StatusText"] and (seen or not failed_before):
                self.fail(unit, now["StatusText"])
            if seen and now["ActiveState"] == "active" and now["StatusText"] == "":
                return
            time.sleep(0.1)
        self.fail(unit, f"no new worker served within {self.patience} s")

    def await_answer(self, unit):
        deadline, last = time.monotonic() + self.patience, None
        while True:
            try:
                last = answer(unit["answers"])
            except OSError as error:
                last = str(error)
            if last == 200:
                return
            if time.monotonic() > deadline or self.properties(unit)["ActiveState"] == "failed":
                self.fail(unit, f"port {unit['answers']['port']} of {unit['answers']['host']} does not answer as it should: {last}")
            time.sleep(0.2)


def answer(where):
    """The status that a GET gets."""
    with socket.create_connection((where["host"], where["port"]), timeout=10) as connection:
        if where["proxy_protocol"]:
            connection.sendall(b"PROXY UNKNOWN\r\n")
        if where["tls"]:
            # Which certificate clients trust is theirs to say; here it is asked whether all on the way answer.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection, server_hostname=where["host"])
        connection.sendall(f"GET {where['path']} HTTP/1.1\r\nHost: {where['host']}\r\nConnection: close\r\n\r\n".encode())
        words = connection.makefile("rb").readline().split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else "no HTTP"


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec={
        "units": {"type": "list", "elements": "dict", "required": True, "options": {
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["running", "stopped"], "default": "running"},
            "on_change": {"type": "str", "choices": ["reload", "restart", "nothing"], "default": "nothing"},
            "worker": {"type": "bool", "default": False},
            "reads": {"type": "list", "elements": "dict", "default": [], "options": {
                "file": {"type": "path", "required": True},
                "sections": {"type": "list", "elements": "str"},
                "without": {"type": "list", "elements": "str"}}},
            "answers": {"type": "dict", "options": {
                "host": {"type": "str", "required": True},
                "port": {"type": "int", "required": True},
                "path": {"type": "str", "default": "/healthcheck"},
                "tls": {"type": "bool", "default": False},
                "proxy_protocol": {"type": "bool", "default": False}}}}},
        "records": {"type": "path", "default": "/var/lib/martlet/applied"},
        "patience": {"type": "int", "default": 150}})
    services = Services(module)
    for unit in module.params["units"]:
        services.bring(unit)
    module.exit_json(changed=any(services.done.values()), **services.done)


if __name__ == "__main__":
    main()
