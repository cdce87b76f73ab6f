"""How long the machine stood still meanwhile: what a test takes off durations that it has promised to judge.

A thread does next to nothing again and again, and syncs a few bytes. Who waits for a time-out or for another program does not keep it from that;
a machine that is busy, or stands still, or a disk that is slow, does.
"""

import os
import threading
import time

PAUSE = 0.02
# What all of it takes on a machine at rest, and then some.
USUAL = 0.1


class Stalls:
    """`with Stalls(folder) as stalls:` watches, and `stalls.lost(begin, end)` are the seconds lost between two moments of `time.monotonic()`."""

    def __init__(self, folder):
        self.path, self.is_over, self.lock = folder / "beat", threading.Event(), threading.Lock()
        self.found, self.begun = [], time.monotonic()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self):
        self.begun = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def _beat(self):
        with open(self.path, "wb", buffering=0) as file:
            while not self.is_over.is_set():
                time.sleep(PAUSE)
                os.pwrite(file.fileno(), b"beat", 0)
                os.fsync(file.fileno())
                ended = time.monotonic()
                with self.lock:
                    if ended - self.begun > USUAL:
                        self.found.append((self.begun + USUAL, ended))
                    self.begun = ended

    def lost(self, begin, end):
        with self.lock:
            # The last one may not have ended yet.
            pieces = [(self.begun + USUAL, end), *self.found]
        return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in pieces)
