#!/usr/bin/python
"""Makes a ring, and lets it follow the list of its devices, by `martlet ring-builder`."""

from __future__ import annotations

import hashlib
import os
import re

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: martlet_ring
short_description: A ring of a Martlet or OpenStack Swift cluster
description:
  - Makes a builder and its ring when there is none.
  - With I(follow), adds devices that the builder lacks, changes weights, zones and regions, removes devices that are not
    in the list any more, and rebalances.
  - A device that still holds partitions is not removed unless I(forget_undrained) says so.
  - The part power of a builder that exists is never changed.
options:
  builder: {description: The builder's file. The ring is written beside it., type: path, required: true}
  part_power: {description: Power of two that is the number of partitions., type: int, required: true}
  replicas: {description: Copies of each partition., type: float, required: true}
  min_part_hours: {description: Hours that a partition stays after it has moved., type: int, required: true}
  devices: {description: What the ring is to have., type: list, elements: dict, required: true}
  follow: {description: Whether a builder that exists follows the list., type: bool, default: true}
  rebalance: {description: Whether to rebalance although the list asks for nothing new., type: bool, default: false}
  forget_undrained: {description: Whether devices may go that still hold partitions., type: bool, default: false}
author: The maintainers of Martlet
"""

EXAMPLES = """
- name: The ring of objects
  martlet_ring:
    builder: /etc/swift/builders/object.builder
    part_power: 13
    replicas: 3
    min_part_hours: 24
    devices:
      - {node: storage1, region: 1, zone: 1, ip: 10.0.0.31, port: 6200, device: d1, weight: 16000}
"""

RETURN = """
did: {description: What was changed, in words., type: list, returned: always}
rebalanced: {description: Whether the ring was written anew., type: bool, returned: always}
undrained: {description: Devices of weight 0 that still hold partitions., type: list, returned: always}
"""

# One line of the builder's table of devices.
ROW = re.compile(r"\s*(?P<id>\d+)\s+(?P<region>\d+)\s+(?P<zone>\d+)\s+(?P<ip>\S+):(?P<port>\d+)\s+\S+\s+(?P<device>\S+)"
                 r"\s+(?P<weight>[\d.]+)\s+(?P<partitions>\d+)\s+-?[\d.]+(?P<rest>.*)$")


def place(device):
    """What a device is known by, in the list and in the builder."""
    return f"{device['ip']}:{device['port']}/{device['device']}"


class Ring:
    """A builder, and what the module did to it."""

    def __init__(self, module):
        self.module, self.parameters = module, module.params
        self.builder = self.parameters["builder"]
        self.file = re.sub(r"(\.builder)?$", ".ring.gz", self.builder, count=1)
        self.did, self.rebalanced = [], False

    def ask(self, *words, may=(0,)):
        """What a subcommand prints."""
        command = ["martlet", "ring-builder", self.builder, *(str(word) for word in words)]
        status, output, errors = self.module.run_command(command, cwd=os.path.dirname(self.builder))
        if status not in may:
            self.module.fail_json(msg=f"{' '.join(command)} ended with {status}: {(output + errors).strip()}", did=self.did)
        return output

    def change(self, what, *words):
        self.did.append(what)
        if not self.module.check_mode:
            self.ask(*words)

    def read(self):
        """The builder's own figures, its devices by their places, and whether its ring is current."""
        output = self.ask()
        figures = re.search(r"^(\d+) partitions, ([\d.]+) replicas", output, re.M)
        hours = re.search(r"can be reassigned is (\d+) ", output)
        if not figures or not hours:
            self.module.fail_json(msg=f"no figures in what ring-builder says of {self.builder}: {output}")
        rows = [row.groupdict() for row in map(ROW.match, output.splitlines()) if row]
        devices = {place({**row, "ip": row["ip"].strip("[]")}): row for row in rows if "DEL" not in row["rest"].split()}
        # A device that is marked goes with the next rebalance.
        current = "is up-to-date" in output and len(devices) == len(rows)
        return int(figures[1]).bit_length() - 1, float(figures[2]), int(hours[1]), devices, current

    def make(self):
        p = self.parameters
        self.change(f"made a builder of 2^{p['part_power']} partitions", "create", p["part_power"], p["replicas"], p["min_part_hours"])
        for device in p["devices"]:
            self.add(device)

    def add(self, device):
        ip = f"[{device['ip']}]" if ":" in device["ip"] else device["ip"]
        words = f"r{device['region']}z{device['zone']}-{ip}:{device['port']}/{device['device']}"
        self.change(f"added {place(device)} of {device['node']}", "add", words, device["weight"])

    def follow(self):
        """Brings the builder to what the list says; what must not be is refused before anything is changed."""
        p = self.parameters
        part_power, replicas, hours, has, current = self.read()
        wanted = {place(device): device for device in p["devices"]}
        if part_power != p["part_power"]:
            self.module.fail_json(msg=f"{self.builder} has a part power of {part_power}, and keeps it: {p['part_power']} is asked for")
        gone = {name: row for name, row in has.items() if name not in wanted}
        held = [name for name, row in gone.items() if int(row["partitions"])]
        if held and not p["forget_undrained"]:
            self.module.fail_json(msg=f"{', '.join(held)} would leave {self.builder}, and still holds partitions: drain it first "
                                      "(martlet_drained), or say that it is lost (-e martlet_forget_undrained=true)")
        if replicas != p["replicas"]:
            self.change(f"set replicas to {p['replicas']}", "set_replicas", p["replicas"])
        if hours != p["min_part_hours"]:
            self.change(f"set min_part_hours to {p['min_part_hours']}", "set_min_part_hours", p["min_part_hours"])
        for name, device in wanted.items():
            if name not in has:
                self.add(device)
                continue
            for field in ("region", "zone", "weight"):
                if float(has[name][field]) != float(device[field]):
                    self.change(f"set the {field} of {name} to {device[field]}", f"set_{field}", f"d{has[name]['id']}", device[field], "--yes")
        for name, row in gone.items():
            self.change(f"removed {name}", "remove", f"d{row['id']}", "--yes")
        return bool(self.did) or not current or p["rebalance"]

    def rebalance(self):
        """A rebalance that may move nothing yet leaves the ring as it is, and says why."""
        if self.module.check_mode:
            self.did.append("rebalanced")
            return
        before = fingerprint(self.file)
        output = self.ask("rebalance", may=(0, 1))
        self.rebalanced = fingerprint(self.file) != before
        if self.rebalanced:
            self.did.append("rebalanced: " + " ".join(line for line in output.splitlines() if line.startswith("Reassigned")))
        elif not self.parameters["rebalance"]:
            lines = output.split("--format-version=2")[-1].split("\n")
            self.module.warn(f"{self.builder} was not rebalanced: {' '.join(line.strip() for line in lines if line.strip())}")

    def undrained(self):
        if not os.path.exists(self.builder):
            return []
        return [name for name, row in self.read()[3].items() if not float(row["weight"]) and int(row["partitions"])]


def fingerprint(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return None


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec={
        "builder": {"type": "path", "required": True},
        "part_power": {"type": "int", "required": True},
        "replicas": {"type": "float", "required": True},
        "min_part_hours": {"type": "int", "required": True},
        "devices": {"type": "list", "elements": "dict", "required": True, "options": {
            "node": {"type": "str", "required": True},
            "region": {"type": "int", "required": True},
            "zone": {"type": "int", "required": True},
            "ip": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "device": {"type": "str", "required": True},
            "weight": {"type": "float", "required": True}}},
        "follow": {"type": "bool", "default": True},
        "rebalance": {"type": "bool", "default": False},
        "forget_undrained": {"type": "bool", "default": False}})
    if not module.params["devices"]:
        module.fail_json(msg="a ring without devices is not made")
    ring = Ring(module)
    if not os.path.exists(ring.builder):
        ring.make()
        asked = True
    else:
        asked = ring.follow() if module.params["follow"] else not os.path.exists(ring.file)
    if asked:
        ring.rebalance()
    module.exit_json(changed=bool(ring.did), did=ring.did, rebalanced=ring.rebalanced, undrained=ring.undrained())


if __name__ == "__main__":
    main()
