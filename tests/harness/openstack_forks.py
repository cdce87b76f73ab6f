"""Forks OpenStack Swift's programs from this process, which has imported the library: SOCKET [patched].

Each message is a program to run, as JSON (`forks.Forked` writes it), with three descriptors: its standard output, its standard error, and a
socket that is told the process number and, at its end, the exit status. The end of SOCKET (a descriptor) is this process's end; programs go on.
"patched" does for servers and daemons what they begin with, which takes as long as an import: eventlet's sockets, threads and `select`.

A forked program is as one that was started by itself: what depends on swift.conf is read again, and where that names constraints,
which the library copies while it is imported, the program is started in the plain way. Names of processes differ: `ps` shows this one's.
"""

import gc
import importlib.metadata
import json
import os
import select
import socket
import sys
import time

import openstack_main

POLLIN = select.POLLIN


def import_all():
    """Import what OpenStack Swift's programs and pipelines do, but for what needs libraries that are not there, and what keeps the path
    of swift.conf as it is when it is imported."""
    for entry in importlib.metadata.distribution("swift").entry_points:
        try:
            entry.load()
        except ModuleNotFoundError:
            pass
    for name, module in list(sys.modules.items()):
        if name.startswith("swift.") and name != "swift.common.utils" and hasattr(module, "SWIFT_CONF_FILE"):
            del sys.modules[name]


def patch():
    """What `run_daemon` and `run_wsgi` do first."""
    import eventlet.hubs
    from swift.common import utils

    eventlet.hubs.use_hub(utils.get_hub())
    utils.eventlet_monkey_patch()


def serve(requests, poll):
    """Fork for each message; returns in a forked process only, with what it is to be."""
    poll.register(requests, POLLIN)
    running = {}
    while True:
        for ready, _ in poll.poll():
            if ready in running:
                pid, teller = running.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                tell(teller, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os.close(teller)
                continue
            message, descriptors, _, _ = socket.recv_fds(requests, 1 << 18, 3)
            if not message:
                sys.exit()
            out, err, teller = descriptors
            pid = os.fork()
            if pid == 0:
                requests.detach()
                program = json.loads(message)
                become(program, out, err, teller)
                return program
            os.close(out)
            os.close(err)
            watched = os.pidfd_open(pid)
            running[watched] = pid, teller
            poll.register(watched, POLLIN)


def tell(teller, number):
    try:
        os.write(teller, b"%d" % number)
    except OSError:
        pass  # whoever asked for it has gone


def become(program, out, err, teller):
    """Make this process what a new one would be: session, descriptors, environment, folder."""
    if program["session"]:
        os.setsid()
    tell(teller, os.getpid())
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(program["env"])
    time.tzset()
    os.chdir(program["cwd"])


def copies_constraints(swift_dir):
    try:
        with open(os.path.join(swift_dir, "swift.conf"), encoding="utf-8", errors="replace") as conf:
            return "[swift-constraints]" in conf.read()
    except OSError:
        return False


if __name__ == "__main__":
    asked, waiting = socket.socket(fileno=int(sys.argv[1])), select.poll()  # before they are patched
    import_all()
    if sys.argv[2:] == ["patched"]:
        patch()
    gc.freeze()
    program = serve(asked, waiting)
    if copies_constraints(program["swift_dir"] or "/etc/swift"):
        os.execv(sys.executable, program["command"])
    openstack_main.run_in_fork(program["swift_dir"], *program["words"])
