"""Writers and readers at work while something goes wrong, keeping exact account of what was acknowledged."""

import hashlib
import http.client
import random
import threading

from harness.client import Client

SMALL_SIZES = [0, 1, 100, 4096, 4096, 4096, 65536, 65537]
LARGE_SIZES = [300_000, 1_500_000]
SIZES = SMALL_SIZES + LARGE_SIZES
# Nothing goes when each name is written once: large ones are rare, so that drives of 300 MB last for minutes.
SIZES_WRITTEN_ONCE = SMALL_SIZES * 8 + LARGE_SIZES


def fingerprint(body):
    """What is remembered of a body: its length and MD5; None for none."""
    return None if body is None else (len(body), hashlib.md5(body).hexdigest())


class Load:
    """`threads` users that store, replace, describe, read and delete objects of their own until stopped.

    `expected` maps a name to the fingerprints of the bodies it may have now: one when the last change was acknowledged,
    more (None for deleted) when a change was cut off and may or may not have happened. A wrong read is recorded in
    `wrong`, a failed request in `failed`. Without `rewrites` every name is written once: for clusters where a replica may be
    out of date, which Swift lets a reader see. `pause` is how long each user rests between two requests.
    """

    patience = 90  # seconds for one answer

    def __init__(self, auth_url, *, threads=6, container="load", seed=0, rewrites=True, pause=0.0):
        self.auth_url, self.container, self.rewrites, self.pause = auth_url, container, rewrites, pause
        self.expected, self.wrong, self.failed = {}, [], []
        self.acknowledged = 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(f"{seed}-{number}",), daemon=True) for number in range(threads)]

    def __enter__(self):
        Client(self.auth_url).put(self.container)
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive(), "a user of the load hangs"

    def _work(self, user):
        dice, client, counter = random.Random(user), None, 0
        while not self.stopping.wait(self.pause):
            counter += 1
            name = self._name(user, dice, counter)
            try:
                client = client or Client(self.auth_url, timeout=self.patience)
                self._step(client, dice, name)
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(f"{name}: {error!r}")
                client = None
                self.stopping.wait(0.05)
            except AssertionError as error:
                self.failed.append(f"{name}: {error}")

    def _name(self, user, dice, counter):
        return f"{user} {counter if dice.random() < 0.6 else dice.randrange(1, counter + 1)}"  # some old, some new

    def _step(self, client, dice, name):
        known = self.expected.get(name)
        deed = dice.random()
        if known is None or (deed < 0.5 and self.rewrites):
            self._change(client, name, dice.randbytes(dice.choice(SIZES if self.rewrites else SIZES_WRITTEN_ONCE)))
        elif deed < 0.6 and self.rewrites:
            self._change(client, name, None)
        else:
            self.read(client, name)

    def _change(self, client, name, body):
        before, after = self.expected.get(name, (None,)), fingerprint(body)
        self.expected[name] = (*before, after)  # until it is acknowledged, either may be there
        if body is None:
            client.do("DELETE", self.container, name, expect=(204, 404))
        else:
            client.do("PUT", self.container, name, body=body, headers={"Etag": after[1]}, expect=201)
        self.expected[name] = (after,)
        self.acknowledged += 1

    def read(self, client, name, **headers):
        """Read one object and hold it against what may be there; whether it was right."""
        reply = client.do("GET", self.container, name, headers=headers, expect=(200, 404))
        found = fingerprint(reply.body if reply.status == 200 else None)
        if found not in self.expected[name]:
            self.wrong.append(f"{name}: {reply.status} {found} instead of {self.expected[name]}")
        return found in self.expected[name]

    def read_all(self):
        """Read everything ever written, and how many that was.

        A replica that was being replaced when the process died may be the older one, and without upkeep stays so;
        Swift's reader who must know asks for the newest.
        """
        client = Client(self.auth_url)
        for name in list(self.expected):
            if not self.read(client, name):
                self.wrong.pop()
                self.read(client, name, **{"X-Newest": "true"})
        return len(self.expected)
