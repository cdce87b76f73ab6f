"""A drive: a file system of its own in an image file, to which a drive's faults can really happen.

The file system is mounted beside the cluster and bound to its place in it, so that "unmounted" and "read-only" are
the operator's own commands. EIO and the power cut are ext4's own: after its shutdown call every access fails with EIO,
and what was not synced is lost.
"""

import fcntl
import os
import struct
import subprocess
import time
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSHING_THE_LOG = 2


def run(*command):
    subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)


def patiently(command, within=20.0):
    """Run a command that may find its object busy for a while; whether it worked."""
    deadline = time.monotonic() + within
    while subprocess.run([str(part) for part in command], capture_output=True).returncode:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def holders(place):
    """Who has what open below a mount point."""
    found = []
    for link in (*Path("/proc").glob("[0-9]*/fd/*"), *Path("/proc").glob("[0-9]*/cwd"), *Path("/proc").glob("[0-9]*/map_files/*")):
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(f"{place}/") or target == str(place):
            command = (link.parents[len(link.parents) - 3] / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found.append(f"{command.strip()[-120:]}: {target}")
    return found


class Device:
    """The drive `name` of a node, at `place`; image and mount are in `hidden`. `size` is in MiB."""

    def __init__(self, name, place, hidden, size):
        self.name, self.place, self.size = name, place, size
        self.image, self.disk = hidden / f"{name}.img", hidden / name
        self.filler = self.disk / ".filler"
        for folder in (self.place, self.disk):
            folder.mkdir(parents=True)
        self.format()
        self.mount()

    def format(self):
        self.image.unlink(missing_ok=True)
        with open(self.image, "wb") as image:
            image.truncate(self.size * 1024 * 1024)
        run("mkfs.ext4", "-q", "-m", "0", "-I", "512", "-N", self.size * 128, self.image)

    def mount(self):
        run("mount", "-o", "loop,noatime", self.image, self.disk)
        lost = self.disk / "lost+found"
        if lost.exists():
            lost.rmdir()
        self.bind()

    def bind(self):
        run("mount", "--bind", self.disk, self.place)

    def take_away(self):
        """Unmounted while in use; what was written below the bare mount point is the caller's to look for."""
        run("umount", "-l", self.place)

    def below_mount_point(self):
        """What stands where the drive should be mounted."""
        return sorted(path.relative_to(self.place) for path in self.place.rglob("*"))

    def release(self):
        """Unmounts it. No process may use it any more."""
        for place in (self.place, self.disk):
            if not patiently(["umount", place]):
                raise RuntimeError(f"{place} stays busy: {holders(place) or 'no process has a file open there'}")

    def read_only(self, only=True, within=1.0):
        return patiently(["mount", "-o", f"remount,bind,{'ro' if only else 'rw'}", self.place], within)

    def fill(self):
        """Take all the room there is."""
        with open(self.filler, "wb") as filler:
            left = os.fstatvfs(filler.fileno())
            wanted, taken = left.f_bavail * left.f_frsize, 0
            while wanted > 4096:
                try:
                    os.posix_fallocate(filler.fileno(), taken, wanted)
                    taken += wanted
                except OSError:
                    wanted //= 2

    def make_room(self):
        self.filler.unlink(missing_ok=True)

    def fail(self):
        """From now on everything gives EIO, and what was not synced never was."""
        handle = os.open(self.disk, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING_THE_LOG))
        finally:
            os.close(handle)

    def freeze(self):
        """Every writer hangs, and cannot even be killed."""
        run("fsfreeze", "-f", self.disk)

    def thaw(self):
        run("fsfreeze", "-u", self.disk)
