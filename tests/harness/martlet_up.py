"""`martlet up`: a whole cluster in one process, driven the way its user drives it."""

import re
from pathlib import Path

from harness.places import martlet
from harness.process import Process
from harness.waiting import free_port


class MartletUp:
    """One `martlet up` on a directory, with the same handles as Cluster."""

    def __init__(self, root, *, arguments=(), port=None, host="127.0.0.1", scheme="http", env=None, binary=None):
        self.root = Path(root)
        self.etc, self.srv = self.root / "etc", self.root / "srv"
        self.arguments, self.env, self.binary = list(arguments), env, binary or martlet()
        self.port, self.host, self.scheme = port or free_port(), host, scheme
        self.process = None

    @property
    def auth_url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}/auth/v1.0"

    @property
    def devices(self):
        return sorted(entry.name for entry in self.srv.iterdir() if entry.is_dir())

    def launch(self):
        """Start without waiting."""
        self._log = self.root.with_name(self.root.name + ".log")
        self._seen = self._log.stat().st_size if self._log.exists() else 0
        command = [self.binary, "up", "--dir", self.root, "--bind", f"{self.host}:{self.port}", *self.arguments]
        self.process = Process(command, self._log, env=self.env)
        return self

    def start(self, within=180.0):
        """Start and wait for the line that says it is ready."""
        self.launch()
        line = self.process.wait_for(self.ready_line, within=within)
        assert line.split()[1] == self.auth_url, line
        return self

    def ready_line(self):
        match = re.search(r"^ready .*$", self.log(), re.MULTILINE)
        return match and match.group(0)

    def log(self):
        """What this start has printed so far."""
        return self._log.read_bytes()[self._seen:].decode(errors="replace")

    def alive(self):
        return self.process is not None and self.process.alive()

    def stop(self, **within):
        return self.process.stop(**within) if self.process else 0

    def kill(self):
        return self.process.kill()

    def rss(self):
        return self.process.rss()

    def cpu_seconds(self):
        return self.process.cpu_seconds()
