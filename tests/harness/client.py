"""A small Swift client for tests that must know exactly what was asked and answered: no retries, no magic."""

import http.client
import time
from urllib.parse import quote, urlsplit

from harness.wire import Reply

# Users of a cluster that `martlet up` makes, and those that harness/layout.py has besides.
KEYS = {"test:tester": "testing", "test:tester2": "testing2", "test:tester3": "testing3", "test2:tester2": "testing2",
        "test5:tester5": "testing5", "test:tester6": "testing6", "admin:admin": "admin"}
MORE_KEYS = {"test3:tester": "testing"}


class Client:
    """One user of one cluster over one kept-alive connection. Not for sharing between threads."""

    def __init__(self, auth_url, user="test:tester", timeout=60):
        self.host, self.port, self.timeout = urlsplit(auth_url).hostname, urlsplit(auth_url).port, timeout
        self.connection, self.used = None, 0.0
        self.token = None
        reply = self.send("GET", "/auth/v1.0", headers={"X-Auth-User": user, "X-Auth-Key": (KEYS | MORE_KEYS)[user]})
        if reply.status != 200:
            raise AssertionError(f"no token for {user}: {reply}")
        self.token, self.root = reply["X-Auth-Token"], urlsplit(reply["X-Storage-Url"]).path

    def send(self, method, target, body=None, headers=None):
        """One request to an absolute target; connection errors are the caller's to see."""
        headers = {**({"X-Auth-Token": self.token} if self.token else {}), **(headers or {})}
        if time.monotonic() - self.used > 10:  # the server may have closed an idle one
            self.close()
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            early = self._ask(method, target, body, headers)
            response = self.connection.getresponse()
            reply = Reply(response.status, response.reason, response.getheaders(), response.read())
            if early:
                self.close()
            return reply
        except BaseException:
            self.close()
            raise
        finally:
            self.used = time.monotonic()

    def _ask(self, method, target, body, headers):
        """Sends a request; whether the server hung up before it had all of the body: what it answered says why."""
        try:
            self.connection.request(method, target, body=body, headers=headers)
        except BrokenPipeError:
            return True
        return False

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def path(self, *names):
        return "/".join([self.root, *(quote(name, safe="/") for name in names)])

    def do(self, method, *names, body=None, headers=None, query="", expect=None):
        """A request on the account, a container or an object; `expect` names the statuses that are right."""
        reply = self.send(method, self.path(*names) + query, body, headers)
        if expect is not None:
            allowed = (expect,) if isinstance(expect, int) else expect
            assert reply.status in allowed, f"{method} {names}{query}: {reply.status} {reply.body[:300]!r}"
        return reply

    def put(self, *names, body=b"", headers=None):
        return self.do("PUT", *names, body=body, headers=headers, expect=(201, 202))

    def get(self, *names, query="", headers=None):
        return self.do("GET", *names, query=query, headers=headers, expect=(200, 204, 206)).body

    def delete(self, *names):
        return self.do("DELETE", *names, expect=(204, 404))
