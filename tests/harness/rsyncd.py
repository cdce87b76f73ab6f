"""An rsync daemon on a port of its own, whose modules lead to a directory of devices."""

import getpass

from harness.process import Process
from harness.waiting import free_port, listening


class Rsyncd:
    """`module("container")` is what stands in `rsync_module`; `modules` are in `srv`, or maps each to its folder."""

    def __init__(self, root, srv, modules=("account", "container", "object")):
        self.port = free_port()
        self.conf = root / "rsyncd.conf"
        lines = ["use chroot = no", f"pid file = {root / 'rsyncd.pid'}", f"log file = {root / 'rsyncd.log'}"]
        if getpass.getuser() == "root":
            lines += ["uid = root", "gid = root"]
        for name, path in (modules if isinstance(modules, dict) else dict.fromkeys(modules, srv)).items():
            lines += [f"[{name}]", f"path = {path}", "read only = no", "max connections = 8", f"lock file = {root / name}.lock"]
        self.conf.write_text("\n".join(lines) + "\n")
        command = ["rsync", "--daemon", "--no-detach", f"--port={self.port}", "--address=127.0.0.1", f"--config={self.conf}"]
        self.process = Process(command, root / "log/rsyncd.log")
        self.process.wait_for(lambda: listening(self.port))

    def module(self, name):
        return f"rsync://{{replication_ip}}:{self.port}/{name}"

    def stop(self):
        self.process.stop()
