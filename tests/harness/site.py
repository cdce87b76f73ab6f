"""Several machines on one network, each with a terminal: what a page for operators is tried on.

The machines are copies of this one with a systemd of their own (harness/machine.py), so that packages are installed by
dpkg, units are started by systemctl, and each process sees the files, addresses and mounts of its own node alone.
"""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness.machine import Machine
from harness.process import run
from harness.waiting import until

END = "-- the end of a command:"

# What a machine that is thrown away cannot do, and what is done instead. The pattern is searched in each command.
INSTEAD = [
    # All machines share one clock, which none of them may set, and have no drives.
    (r"^(systemctl \w+ chrony|chronyc .*|sed .* /etc/chrony/\S+|echo .* > /etc/chrony/.*|apt install -y chrony( xfsprogs)?|apt install -y xfsprogs)$", "true"),
    # The repositories of Debian are out of reach on a network of its own; `make packages` has installed these before.
    (r"^apt install -y ([a-z][-a-z ]*)$", r"dpkg-query -W \1"),
    # dpkg alone, for the same reason: apt would look for the dependencies.
    (r"^apt install -y \./(\S+\.deb)$", r"dpkg -i --force-depends /package/\1 >/dev/null"),
    # There are no drives to format and to mount: a tmpfs is a mount point with extended attributes as well.
    (r"^mkfs\.xfs .*$", "true"),
    (r"^mount (/srv/node/\w+)$", r"mount -t tmpfs -o mode=755,size=300m tmpfs \1"),
    # Rings that were made a minute ago: for the reader a day has passed.
    (r"^(martlet ring-builder (\w+)\.builder add r1z4-.*)$", r"\1 && martlet ring-builder \2.builder pretend_min_part_hours_passed >/dev/null"),
]
# There are no keys and no daemon of ssh, and `admin` alone may reach others: what `scp` is given, and what `ssh` is told, is laid down;
# `deliver` brings it to the other machine. What `scp` shall fetch is laid down as a command of the machine that has it.
LAID_DOWN = {
    "scp": """#!/bin/bash
test "$(hostname)" = admin || { echo "scp: Connection closed"; exit 255; }
to=${*: -1}
case $to in *:*) folder=/package/scp/${to%%:*}/${to#*:} ;; *) folder=/package/scp/admin/$(realpath "$to") ;; esac
mkdir -p "$folder" /package/fetch
for file in "${@:1:$#-1}"; do case $file in
    -*) ;;
    *:*) echo "cp ${file#*:} $folder" >> "/package/fetch/${file%%:*}" ;;
    *) cp "$file" "$folder" || exit ;;
esac; done
""",
    "ssh": """#!/bin/bash
test "$(hostname)" = admin || { echo "Permission denied (publickey)."; exit 255; }
mkdir -p /package/ssh
echo "${*:2}" >> "/package/ssh/$1"
""",
}


class Terminal:
    """A shell on a machine that goes on between commands: a directory or a variable of one is there for the next."""

    def __init__(self, machine):
        command = ["nsenter", "--target", machine.init(), "--net", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd=/",
                   "--", "env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                   "bash", "--noprofile", "--norc"]
        self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors="replace")
        self.type("cd")

    def type(self, command):
        """The lines that the command prints, and its exit status."""
        self.child.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' '{END}' $?\n")
        self.child.stdin.flush()
        lines = []
        for line in self.child.stdout:
            if line.startswith(END):
                return "".join(lines).removesuffix("\n").split("\n"), int(line.split()[-1])
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}:\n{''.join(lines)}")

    def close(self):
        self.child.kill()
        self.child.wait()


class Site:
    """`addresses` by names of machines, all in one network; `package` is the folder that all see as /package; `instead`
    is what is done instead of some commands, besides INSTEAD. What fails leaves the machines' journals in `place`."""

    def __init__(self, place, package, addresses, instead=()):
        self.place, self.package, self.addresses, self.instead = place, package, addresses, [*instead, *INSTEAD]
        self.machines, self.terminals, self.switch = {}, {}, None

    def __enter__(self):
        try:
            self.switch = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link add lan type bridge && ip link set lan up && exec sleep infinity"])
            until(lambda: run(["nsenter", "--target", self.switch.pid, "--net", "ip", "link", "show", "lan"], check=False).returncode == 0
                  and "sleep" in run(["ps", "-o", "comm=", "-p", self.switch.pid]).stdout, what="the network")
            with ThreadPoolExecutor(4) as several:
                list(several.map(self.boot, self.addresses))
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self, name):
        machine = Machine(self.place / name, self.package)
        machine.__enter__()
        self.machines[name] = machine
        run(["ip", "link", "add", "eth0", "netns", machine.init(), "type", "veth", "peer", "name", name, "netns", self.switch.pid])
        run(["nsenter", "--target", self.switch.pid, "--net", "ip", "link", "set", name, "master", "lan", "up"])
        # What others have left on this machine is not on a new one.
        machine.run("rm -rf /etc/swift /srv/node /var/cache/swift /var/lib/martlet")
        machine.run(f"hostname {name}; ip address add {self.addresses[name]}/24 dev eth0; ip link set eth0 up")
        for command, script in LAID_DOWN.items():
            machine.run(f"cat > /usr/local/bin/{command} <<'THERE'\n{script}THERE\nchmod +x /usr/local/bin/{command}")
        self.terminals[name] = Terminal(machine)

    def __exit__(self, kind=None, *_):
        if kind:
            for name in self.terminals:
                journal = self.machines[name].run("journalctl --no-pager", check=False).stdout
                (self.place / f"{name}.journal").write_text(journal)
        for terminal in self.terminals.values():
            terminal.close()
        for machine in self.machines.values():
            machine.__exit__()
        if self.switch:
            self.switch.kill()
            self.switch.wait()

    def on_each(self, names, what):
        """What `what(name)` gives for each, done on all at once."""
        with ThreadPoolExecutor(len(names)) as several:
            return dict(zip(names, several.map(what, names)))

    def put(self, name, path, text, *, appended):
        """Write a file there, as an editor would: in a folder that exists."""
        redirect = ">>" if appended else ">"
        _, status = self.terminals[name].type(f"cat {redirect} '{path}' <<'THERE'\n{text}THERE")
        assert status == 0, f"{path} cannot be written on {name}"

    def type(self, name, command):
        """What the command, or what stands for it here, prints on that machine, and its exit status."""
        for pattern, other in self.instead:
            command, changed = re.subn(pattern, other, command)
            if changed:
                break
        return self.terminals[name].type(command)

    def deliver(self):
        """What `scp` and `ssh` have laid down for others."""
        for name in self.terminals:
            self.do_what_is_laid_down("fetch", name)
        for name, terminal in self.terminals.items():
            if (self.package / "scp" / name).exists():
                terminal.type(f"cp -r /package/scp/{name}/. / && rm -r /package/scp/{name}")
            self.do_what_is_laid_down("ssh", name)

    def do_what_is_laid_down(self, folder, name):
        if (self.package / folder / name).exists():
            said, status = self.terminals[name].type(f"sh -e /package/{folder}/{name} && rm /package/{folder}/{name}")
            assert status == 0, said
