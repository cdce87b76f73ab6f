"""What the disk itself gives: objects as a storage server leaves them, written by nothing but system calls.

Each is staged, given its metadata, synced, named, and its directory synced, by as many threads as make the disk fastest.
"""

import os
import pickle
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

THREADS = (4, 16, 32)


def fastest(root, count, body):
    """The most objects per second that any number of threads reaches below `root`."""
    return max(run(root, count, body, threads) for threads in THREADS)


def run(root, count, body, threads):
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    metadata = pickle.dumps({"name": "/AUTH_test/many/object", "X-Timestamp": "1700000000.00000", "Content-Length": str(len(body)),
                             "Content-Type": "application/octet-stream", "ETag": "0" * 32}, 2)
    os.sync()
    began = time.monotonic()
    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda number: put(root, number, body, metadata), range(count)))
        return count / (time.monotonic() - began)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def put(root, number, body, metadata):
    folder = root / str(number % 256) / f"{number // 256 % 4096:03x}" / f"{number:032x}"
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    try:
        os.write(file, body)
        os.setxattr(file, "user.swift.metadata", metadata)
        os.fsync(file)
        # With a descriptor of a directory Python follows the link, as an unnamed file needs it.
        os.link(f"/proc/self/fd/{file}", folder / "1700000000.00000.data", src_dir_fd=file, follow_symlinks=True)
    finally:
        os.close(file)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
