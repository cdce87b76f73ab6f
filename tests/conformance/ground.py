"""Where the clusters lie while they are asked: a file system that can hold what the suite stores, in memory if possible.

Swift wants a file system with large extended attributes (its documentation says XFS). The suite stores more metadata
with an object than ext4 holds by itself, and announces bodies of 5 GiB, for which servers make room. So: an ext4 made
for large attributes, in a sparse file, on a loop device. Who may not mount gets the directory for temporary files.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
IMAGE_SIZE = 48 << 30  # sparse: what is announced and not sent takes no room
ROOM = 6 << 30  # what must be free to use memory


@contextlib.contextmanager
def ground():
    """A new directory for clusters, removed in the end."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM and free_memory() > ROOM
    with tempfile.TemporaryDirectory(prefix="conformance-", dir=MEMORY if in_memory else None) as folder:
        mounted = mount(Path(folder))
        if mounted:
            try:
                yield mounted
            finally:
                subprocess.run(["umount", "--lazy", mounted], check=False)
            return
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        yield Path(folder)


def mount(folder):
    """The mounted file system, or None where that is not allowed."""
    if os.geteuid() != 0:
        return None
    image, point = folder / "image", folder / "mounted"
    point.mkdir()
    with open(image, "wb") as file:
        file.truncate(IMAGE_SIZE)
    steps = (["mkfs.ext4", "-q", "-F", "-O", "ea_inode", "-I", "1024", "-N", "500000", image],
             ["mount", "-o", "loop,discard,noinit_itable", image, point])
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        image.unlink()
        return None
    return point


def free_memory():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
