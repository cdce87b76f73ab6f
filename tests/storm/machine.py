"""A machine of its own for one storm: mounts, process ids and network are its own, and end with it, however it ends.

It is process 1 there. Comes in: the path of a file with the options. What comes out: result.json beside it.
"""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "--mount-proc")


def enter(options):
    """The command that starts this file as process 1 of a new machine, which ends with the process that started it."""
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, sys.executable, __file__, str(options)]


def end(child):
    """Ends the machine that this process started, and thaws its drives: who waits for a frozen one cannot be killed, and every sync of the host would wait too."""
    try:
        first = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0]
        mounts = open(f"/proc/{first}/ns/mnt")
    except (OSError, IndexError):  # it has ended, or not yet begun
        child.kill()
        return
    with mounts:
        child.kill()
        script = 'for drive in /srv/storm/drives/*/; do fsfreeze --unfreeze "$drive"; done'
        subprocess.run(["nsenter", f"--mount=/proc/self/fd/{mounts.fileno()}", "sh", "-c", script], pass_fds=[mounts.fileno()], capture_output=True)


def obstacle():
    """Why no such machine can be had here; None when it can."""
    if os.geteuid():
        return "not root: neither drives can be mounted nor networks made"
    probe = "ip link add storm type bridge && mount -t tmpfs storm /mnt && cd /mnt && truncate -s 8M a && mkfs.ext4 -q a && mkdir b && mount -o loop a b"
    done = subprocess.run(["unshare", *NAMESPACES, "sh", "-c", probe], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return f"no namespaces, bridges or loop devices here: {done.stderr.strip()[-300:]}" if done.returncode else None


def main():
    """Process 1 reaps what daemons leave, as it must; a child of it is the storm."""
    child = os.fork()
    while child:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)  # and with process 1 everything else ends
    options_file = Path(sys.argv[1])
    options, out = json.loads(options_file.read_text()), options_file.parent
    from storm.course import Storm
    for place, size in (("/run", "16m"), ("/srv", "90%")):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,size={size}", "storm", place], check=True)
    Path("/run/lock").mkdir()
    storm, violations = None, []
    try:
        storm = Storm(options, Path("/srv/storm"), out)
        violations = storm.blow()
        result = storm.report(violations)
    except BaseException as error:
        say = storm.say if storm else print
        say(traceback.format_exc())
        result = {"seed": options["seed"], "error": f"{error!r}"}
    (out / "result.json").write_text(json.dumps(result, indent=1))
    os._exit(0)


if __name__ == "__main__":
    main()
