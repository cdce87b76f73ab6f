"""The load of a storm, and what it knows: every change that was acknowledged, and every one that may have happened.

An answer that never came, or says that something failed, leaves both states possible; so does "not found" for a DELETE, which
a replica that was out of date may have said. During the faults a reader may get an older state, as Swift
allows, but never get bytes that were never stored under that name. When all is calm there is one right answer.
"""

import http.client
import random
import threading
import time

from harness.client import Client
from harness.load import Load, fingerprint

SIZES = [0, 1, 100, 4096, 4096, 4096, 20_000, 65537, 200_000]
EXPIRES = 3  # seconds after which some do


class Recorder(Load):
    """A Load whose objects have a description too (POST), over `names` names a user, that can be begun again.

    A state is (length, MD5, description), or None for no object.
    """

    patience = 40

    def __init__(self, auth_url, *, container, policy, seed, threads=2, names=40):
        super().__init__(auth_url, threads=0, container=container, seed=seed)
        self.policy, self.seed, self.users, self.names = policy, seed, threads, names
        self.stored = {}  # name → every (length, MD5) that was ever sent for it
        self.uncertain = self.reads = self.listings = 0
        self.expired_by = 0.0  # all that was to expire has, by then
        self.count = 0

    def make_container(self):
        client = Client(self.auth_url)
        client.do("PUT", self.container, headers={"X-Storage-Policy": self.policy}, expect=(201, 202))
        client.close()

    def begin(self, round_number):
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(f"{self.seed}-{round_number}-{number}",), daemon=True)
                        for number in range(self.users)]
        for thread in self.threads:
            thread.start()

    def _name(self, user, dice, counter):
        return f"{user.rpartition('-')[2]} {dice.randrange(self.names)}"

    def _step(self, client, dice, name):
        self.stopping.wait(dice.uniform(0, 0.06))
        deed, known = dice.random(), self.expected.get(name)
        if known is None or deed < 0.4:
            self._change(client, name, dice.randbytes(dice.choice(SIZES)), expires=dice.random() < 0.05)
        elif deed < 0.55:
            self._change(client, name, None)
        elif deed < 0.65 and len(known) == 1 and known[0]:
            self._describe(client, name)
        elif deed < 0.7:
            self._list(client)
        else:
            self._glance(client, name)

    def _change(self, client, name, body, expires=False):
        """What expires does so before all is calm, so that in the end there is nothing."""
        before = self.expected.get(name, (None,))
        if body is None:
            self._ask(client, name, before, (None,), (204,), "DELETE")
        else:
            self.count += 1
            size, md5 = fingerprint(body)
            self.stored.setdefault(name, set()).add((size, md5))
            note = f"put-{self.count}"
            headers = {"Etag": md5, "X-Object-Meta-Note": note, **({"X-Delete-At": str(int(time.time()) + EXPIRES)} if expires else {})}
            try:
                self._ask(client, name, before, (None if expires else (size, md5, note),), (201,), "PUT", body=body, headers=headers)
            finally:
                if expires:
                    self.expired_by = time.time() + EXPIRES

    def _describe(self, client, name):
        self.count += 1
        before = self.expected[name]
        after = (*before[0][:2], f"post-{self.count}")
        self._ask(client, name, before, (after,), (202,), "POST", headers={"X-Object-Meta-Note": after[2]})

    def _ask(self, client, name, before, after, good, method, **request):
        """One change: until it is acknowledged either state may be there."""
        self.expected[name] = tuple(dict.fromkeys((*before, *after)))
        self.uncertain += 1
        status = self._send(client, method, name, **request).status
        if status not in good:
            raise AssertionError(f"{method} {self.container}/{name}: {status}")
        self.expected[name] = after
        self.uncertain -= 1
        self.acknowledged += 1

    def _send(self, client, method, *name, **request):
        reply = client.do(method, self.container, *name, **request)
        if reply.status == 401:
            raise http.client.HTTPException("the token is not known any more")  # makes the user ask for a new one
        return reply

    def _glance(self, client, name):
        reply = self._send(client, "GET", name)
        self.reads += 1
        if reply.status == 200 and fingerprint(reply.body) not in self.stored[name]:
            self.wrong.append(f"a reader of {self.container}/{name} got {len(reply.body)} bytes that were never stored there "
                              f"(etag {reply['Etag']}, {reply['X-Trans-Id']})")
        elif reply.status not in (200, 404):
            raise AssertionError(f"GET {self.container}/{name}: {reply.status}")

    def _list(self, client):
        reply = self._send(client, "GET")
        self.listings += 1
        if reply.status in (200, 204):
            strange = set(reply.body.decode().splitlines()) - self.expected.keys()
            self.wrong.extend(f"{self.container} lists {name!r}, which was never stored" for name in strange)

    def delete_some(self, client, dice):
        """Delete a tenth of what certainly exists; how many that was.

        A node that is away may have two of the three replicas: then two handoffs have nothing to delete and their 404 is
        the answer, as it is OpenStack's. All three keep the deletion, so that the object must be gone from then on.
        """
        sure = sorted(name for name, states in self.expected.items() if len(states) == 1 and states[0])
        chosen = dice.sample(sure, len(sure) // 10)
        for name in chosen:
            self._ask(client, name, self.expected[name], (None,), (204, 404), "DELETE")
        return len(chosen)

    def resolve(self, client, healed):
        """When all is calm: read everything, hold it against what is possible, and know from now on what there is.

        Where nothing has `healed` the replicas a reader should know to ask for the newest.
        """
        for name, possible in list(self.expected.items()):
            reply = self._send(client, "GET", name, headers={} if healed else {"X-Newest": "true"})
            found = None
            if reply.status == 200:
                found = (*fingerprint(reply.body), reply["X-Object-Meta-Note"])
            elif reply.status != 404:
                yield f"GET of {self.container}/{name} says {reply.status} when all is calm ({reply['X-Trans-Id']})"
                continue
            if found in possible:
                self.expected[name] = (found,)
            else:
                yield f"{self.container}/{name} {judge(found, possible)}: {found} instead of {list(possible)} ({reply['X-Trans-Id']})"


def judge(found, possible):
    if found is None:
        return "is lost"
    return "came back after it was deleted" if possible == (None,) else "is not the newest"


def dice_of(*parts):
    return random.Random("/".join(map(str, parts)))
