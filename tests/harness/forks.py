"""OpenStack Swift's programs without the time of their start, which is most of what its commands and daemons take in a test.

A process of each worker, `openstack_forks.py`, imports the library once and forks them. What needs an interpreter of its own is started
in the plain way: other interpreters, libraries that are loaded first, commands within others (`unshare`). Only pytest switches it on
(`use`): in races, OpenStack's programs are what their operators start.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from harness.places import MAIN

SERVER = Path(__file__).with_name("openstack_forks.py")
# Variables by which an interpreter, or what it has imported, becomes another.
OF_THE_START = ("LD_", "PYTHON", "EVENTLET_", "GREENLET_", "LANG", "LC_")
# The last words of the names of those that begin with eventlet's patches: servers and daemons.
PATCHED = ("server", "replicator", "auditor", "updater", "expirer", "reconciler", "reconstructor", "sync", "sharder", "reaper")
# Within so many seconds a server has imported the library and forked, however slow the machine is.
FIRST_WORD = 180

_inherited = None  # what the environment has of these where programs are forked
_requests = {}
_lock = threading.Lock()


def use():
    """From here on, `start` forks what it can."""
    global _inherited
    _inherited = of_the_start(os.environ)


def of_the_start(environment):
    return {name: value for name, value in environment.items() if name.startswith(OF_THE_START)}


def start(command, *, stdout, stderr, start_new_session=False, cwd=None, env=None):
    """A program with nothing on standard input: a `Forked`, else a `subprocess.Popen`."""
    command = [str(part) for part in command]
    if forked := as_forked(command, env):
        return Forked(command, *forked, stdout=stdout, stderr=stderr, session=start_new_session, cwd=cwd, env=env)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=start_new_session, cwd=cwd, env=env)


def run(command, *, timeout, cwd=None, env=None, errors="strict"):
    """A program to its end, with text output, as `subprocess.run` has it."""
    command = [str(part) for part in command]
    if not as_forked(command, env):
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors=errors, timeout=timeout, cwd=cwd, env=env, check=False)
    with tempfile.TemporaryFile("w+", errors=errors) as out, tempfile.TemporaryFile("w+", errors=errors) as err:
        program = start(command, stdout=out, stderr=err, cwd=cwd, env=env)
        try:
            status = program.wait(timeout)
        except BaseException:
            program.kill()
            program.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read())


def as_forked(command, env):
    """(swift_dir or None, words) of what can be forked: one of OpenStack's commands, in the forms that `places` and `tools` give it."""
    if _inherited is None or of_the_start(os.environ if env is None else env) != _inherited:
        return None
    if command[:3] != [sys.executable, "-W", "ignore"]:
        return None
    swift_dir, words = (command[4], command[5:]) if command[3] == str(MAIN) else (None, command[3:])
    program = Path(words[0])
    return (swift_dir, words) if program.parent == Path(sys.executable).parent and program.name.startswith("swift-") else None


def requests(program):
    """The socket of this worker's server for such a program, which is started when it is first wanted and ends with the worker."""
    is_patched = program.rpartition("-")[2] in PATCHED
    with _lock:
        if is_patched not in _requests:
            _requests[is_patched], its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with its:
                subprocess.Popen([sys.executable, "-W", "ignore", SERVER, str(its.fileno()), *(["patched"] if is_patched else [])],
                                 stdin=subprocess.DEVNULL, pass_fds=[its.fileno()], start_new_session=True)
        return _requests[is_patched]


class Forked:
    """What `subprocess.Popen` is of a program that was started, of one that was forked."""

    def __init__(self, command, swift_dir, words, *, stdout, stderr, session, cwd, env):
        self.args, self.returncode, self._lock = command, None, threading.Lock()
        self._told, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._told.settimeout(FIRST_WORD)
        program = {"command": command, "swift_dir": swift_dir, "words": words, "session": session, "cwd": str(cwd or os.getcwd()),
                   "env": dict(os.environ) if env is None else env}
        with told:
            errors = stdout if stderr == subprocess.STDOUT else stderr
            socket.send_fds(requests(words[0]), [json.dumps(program).encode()], [stdout.fileno(), errors.fileno(), told.fileno()])
        self.pid = self._hear()

    def _hear(self):
        """The next number that the server tells."""
        number = self._told.recv(64)
        if not number:
            raise RuntimeError(f"{SERVER.name} has ended: nothing more is known of {self.args}")
        return int(number)

    def poll(self):
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout=None):
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._told, select.POLLIN)
            if not poll.poll(None if timeout is None else max(timeout, 0) * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout)
            with self._lock:
                if self.returncode is None:
                    self.returncode = self._hear()
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and is not reported yet
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(15)

    def kill(self):
        self.send_signal(9)
