"""What a system takes of memory while it is asked."""

import threading


class Watch(threading.Thread):
    """Looks at the resident memory ten times a second; `most` is the most it saw."""

    def __init__(self, system):
        super().__init__(daemon=True)
        self.system, self.first, self.most, self.done = system, system.rss(), 0, threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            self.most = max(self.most, self.system.rss())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def growth(self):
        return self.most - self.first
