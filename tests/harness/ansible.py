"""The playbook of etc/ansible, run on the machines of a site (harness/site.py) with an inventory of its own."""

import os
import re
import shutil
from pathlib import Path

import pytest

from harness.places import REPOSITORY
from harness.process import run

PLAYBOOK = REPOSITORY / "etc/ansible"
# What a machine that is thrown away cannot do, and what is done instead, as harness/site.py has it for commands of a page: there are no
# drives to format and to mount, and one clock for all.
INSTEAD = {
    "mkfs.xfs": "exit 0",
    "mount": 'case "$1" in /srv/node/*) exec /usr/bin/mount -t tmpfs -o mode=755,size=300m tmpfs "$1" ;; *) exec /usr/bin/mount "$@" ;; esac',
    "chronyc": "exit 0",
}
CHRONY_UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"


def program(name):
    """A program of the environment that `make ansible-test` makes of tests/requirements-ansible.txt."""
    folder = Path(os.environ.get("MARTLET_ANSIBLE_VENV", REPOSITORY / ".venv-ansible")) / "bin"
    if not (folder / name).exists():
        pytest.skip(f"{folder / name} is not there: run `make ansible-test`")
    return folder / name


def empty_packages(folder):
    """Packages named chrony, whose unit does nothing and whose file has a pool in it as Debian's, and xfsprogs, which is empty."""
    chrony = {"usr/lib/systemd/system/chrony.service": CHRONY_UNIT, "etc/chrony/sources.d/README": "empty\n",
              "etc/chrony/chrony.conf": "pool 2.debian.pool.ntp.org iburst\nsourcedir /etc/chrony/sources.d\n"}
    for name, files in {"chrony": chrony, "xfsprogs": {}}.items():
        stage = folder / name
        control = f"Package: {name}\nVersion: 4.3\nArchitecture: all\nMaintainer: a test <test@localhost>\nDescription: a stand-in\n"
        for path, text in {"DEBIAN/control": control, **files}.items():
            (stage / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / path).write_text(text)
        run(["dpkg-deb", "--root-owner-group", "--build", stage, folder / f"{name}.deb"])
        shutil.rmtree(stage)


def prepare(machine):
    """What a machine gets before Ansible comes to it."""
    machine.run("dpkg -i --force-all /package/chrony.deb /package/xfsprogs.deb")
    for name, script in INSTEAD.items():
        machine.run(f"cat > /usr/local/bin/{name} <<'THERE'\n#!/bin/sh\n{script}\nTHERE\nchmod +x /usr/local/bin/{name}")


class Ansible:
    """An operator's folder: the example's inventory, secrets and a certificate, encrypted as the page says. `log` has all that was printed."""

    def __init__(self, folder, site):
        self.folder, self.site, self.log = folder, site, folder / "log"
        shutil.copytree(PLAYBOOK / "example", folder)
        self.group, self.secrets = folder / "group_vars/all", {}
        (folder / "password").write_text("of the vault\n")
        shutil.copy(next(site.package.glob("martlet_0.1.0_*.deb")), folder / "martlet_0.1.0_amd64.deb")
        (self.group / "test.yml").write_text("ansible_connection: machine\nansible_python_interpreter: /usr/bin/python3\nmartlet_apt_update: false\n")
        (folder / "host_vars").mkdir()
        for name in site.machines:
            (folder / f"host_vars/{name}.yml").write_text(f"machine_init: {site.machines[name].init()}\n")
        self.make_secrets()

    def environment(self):
        return {**os.environ, "ANSIBLE_CONFIG": str(PLAYBOOK / "ansible.cfg"), "ANSIBLE_HOME": str(self.folder / ".ansible"), "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).with_name("ansible_plugins")), "ANSIBLE_FORKS": "8",
                "ANSIBLE_VAULT_PASSWORD_FILE": str(self.folder / "password")}

    def make_secrets(self):
        self.secrets = {name: run(["openssl", "rand", "-hex", "16"]).stdout.strip() for name in ("prefix", "suffix", "ada", "ops")}
        lines = [f"martlet_hash_path_{name}: {self.secrets[name]}" for name in ("prefix", "suffix")]
        users = [("photos", "ada", self.secrets["ada"], ".admin"), ("ops", "ops", self.secrets["ops"], ".admin .reseller_admin"),
                 ("test", "tester", "testing", ".admin")]
        lines += ["martlet_tempauth_users:", *(f"  - {{account: {a}, user: {u}, key: {k}, groups: {g}}}" for a, u, k, g in users)]
        (self.group / "secrets.yml").write_text("\n".join(lines) + "\n")
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365", "-subj", "/CN=swift.example.org",
             "-addext", "subjectAltName=DNS:swift.example.org", "-keyout", self.folder / "swift.key", "-out", self.folder / "swift.crt"])
        self.secrets["key"] = (self.folder / "swift.key").read_text().splitlines()[1]
        run([program("ansible-vault"), "encrypt", self.group / "secrets.yml", self.folder / "swift.key"], env=self.environment())

    def say(self, text, file="changed.yml"):
        """What the inventory says from now on, besides the example."""
        (self.group / file).write_text(text)

    def play(self, *arguments, fails=False):
        """Runs the playbook; by machine, what it counts at the end. With `fails`, it must fail, and what it printed is returned."""
        command = [program("ansible-playbook"), "-vvv", "--diff", "-i", self.folder / "hosts.yml", PLAYBOOK / "site.yml", *arguments]
        done = run(command, check=False, timeout=1800, env=self.environment(), cwd=self.folder)
        with open(self.log, "a") as log:
            log.write(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        assert (done.returncode != 0) == fails, f"ended with {done.returncode}:\n{interesting(done.stdout)}\n{done.stderr[-3000:]}"
        if fails:
            return done.stdout + done.stderr
        recap = done.stdout.rpartition("PLAY RECAP")[2]
        return {line.split()[0]: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)} for line in recap.splitlines() if "ok=" in line}

    def leaked(self):
        """Which secrets Ansible has printed, or has a machine keep in its journal."""
        printed = self.log.read_text()
        kept = "".join(machine.run("journalctl --no-pager").stdout for machine in self.site.machines.values())
        return [name for name, secret in self.secrets.items() if secret in printed or secret in kept]


def interesting(output):
    """The failures of a run, and its end."""
    found = re.findall(r"(?:fatal|failed): .*?(?=\n\n|\nTASK|\nPLAY)", output, re.S)
    return "\n".join(found)[-6000:] + output[-2500:]
