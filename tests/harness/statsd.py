"""Who takes StatsD metrics in a test: one socket per server or daemon, and what was sent to it."""

import contextlib
import http.client
import re
import socket
import threading
import time

from harness import waiting

SO_RCVBUFFORCE = 33
MARK = b"all before this has come "
LOOK = 0.02  # seconds between two looks at what has come
# name:value|kind|@rate
METRIC = re.compile(r"([^:|]+):([^|]*)\|([a-z]+)(?:\|@([\d.]+))?")


class Listener:
    """A UDP port of its own; keeps every message until `take` is asked for them."""

    def __init__(self, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        with contextlib.suppress(PermissionError):  # only root may have more than the machine's limit
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        self.socket.bind((host, 0))
        self.host, self.port = host, self.socket.getsockname()[1]
        self.messages, self.mark = [], 0
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            try:
                message = self.socket.recv(65536)
            except OSError:
                return
            if message.startswith(MARK):
                self.mark = max(self.mark, int(message.removeprefix(MARK)))
                continue
            self.messages.append(message.decode())

    def caught_up(self):
        """Returns when all that was sent before is among the messages, however busy the machine is."""
        mark = self.mark + 1

        def seen():
            self.socket.sendto(MARK + b"%d" % mark, self.socket.getsockname())
            return self.mark >= mark

        waiting.until(seen, every=0.005, what="a message to ourselves")

    def heard(self, name):
        """Whether a metric of this name is among what came since `take`."""
        return any(name in message for message in list(self.messages))

    @property
    def options(self):
        """For a section of a configuration file."""
        return {"log_statsd_host": self.host, "log_statsd_port": self.port}

    def take(self, silence=0.3):
        """What has come, once nothing more comes. The silence is counted in looks: while the machine stands still there is none to hear."""
        heard, looks = len(self.messages), 0
        while looks * LOOK < silence:
            time.sleep(LOOK)
            looks = looks + 1 if len(self.messages) == heard else 0
            heard = len(self.messages)
        self.caught_up()
        taken, self.messages = self.messages, []
        return taken

    def metrics(self, silence=0.3):
        """The messages since the last call, as {(name, kind, rate): [values]}."""
        found = {}
        for message in self.take(silence):
            match = METRIC.fullmatch(message)
            assert match, f"not a metric: {message!r}"
            found.setdefault((match[1], match[3], match[4]), []).append(float(match[2]))
        return found

    def stop(self):
        self.socket.close()


def ask(port, method, path, headers=(), body=b""):
    """The status of one request to a storage server, with no more headers than given."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers_sent = dict(headers)
    if method in ("PUT", "POST", "UPDATE", "REPLICATE"):
        headers_sent.setdefault("Content-Length", str(len(body)))
    try:
        connection.putrequest(method, path)
        for name, value in headers_sent.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        reply = connection.getresponse()
        reply.read()
        return reply.status
    finally:
        connection.close()
