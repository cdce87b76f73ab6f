"""The same request to two clusters, and what differs in the answers.

A Story is a few requests in order on a container of its own. `{a}` in a target, header or body stands for the
account path, `{c}` for the story's container, `{n}` for that one's name, `{token}` for the user's token. What must
differ (clocks, transaction ids, tokens, ports) is replaced by its shape; what has not its shape stays and shows as a
difference.
"""

import re
import time
from dataclasses import dataclass, field

from harness.client import Client
from harness.wire import Reply, exchange, message, says_length

LISTING = re.compile(r"(/v1/[^/]+|\{a\})(/[^/]+)?/?|\{c\}/?")  # of an account or a container
UPDATERS_TURN = 40.0  # seconds: those of `martlet up` begin every fifteen, if nothing delays them
REPLICAS_TURN = 1.5  # of objects: nothing but the last of their replicas may be late
IGNORED = {"connection", "keep-alive", "date"}
SHAPES = {
    "x-timestamp": (r"\d{10}\.\d{5}", "TIMESTAMP"),
    "x-put-timestamp": (r"\d{10}\.\d{5}", "TIMESTAMP"),
    "x-backend-timestamp": (r"\d{10}\.\d{5}", "TIMESTAMP"),
    "last-modified": (r"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d GMT", "HTTP-DATE"),
    "x-copied-from-last-modified": (r"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d GMT", "HTTP-DATE"),
    "x-auth-token": (r"AUTH_tk[0-9a-f]{32}", "TOKEN"),
    "x-storage-token": (r"AUTH_tk[0-9a-f]{32}", "TOKEN"),
    "x-auth-token-expires": (r"\d+", "SECONDS"),
    "x-account-object-count": (r"\d+", "COUNT"),
    "x-account-bytes-used": (r"\d+", "COUNT"),
    "x-account-storage-policy-gold-object-count": (r"\d+", "COUNT"),
    "x-account-storage-policy-gold-bytes-used": (r"\d+", "COUNT"),
    "x-account-storage-policy-gold-container-count": (r"\d+", "COUNT"),
    "x-account-storage-policy-silver-object-count": (r"\d+", "COUNT"),
    "x-account-storage-policy-silver-bytes-used": (r"\d+", "COUNT"),
    "x-account-storage-policy-silver-container-count": (r"\d+", "COUNT"),
}
# Sent while an answer takes long, behind the first line of one in XML.
BEATS = re.compile(rb"\A((?:<\?xml[^>]*\?>\n)?) +(\r\n\r\n)")
BATCHES = ("extract-archive", "bulk-delete", "multipart-manifest=delete")  # which beat only when it does; others from the beginning
SETS = {"allow", "access-control-allow-methods", "access-control-allow-headers", "access-control-expose-headers", "vary"}  # order says nothing
IN_BODY = [
    (rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", b"ISO-DATE"),
    (rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d<", b"DATE<"),
    (rb"tx[0-9a-f]{21}-[0-9a-f]{10}", b"TRANSACTION"),
    (rb"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d GMT", b"HTTP-DATE"),
    (rb"127\.0\.0\.1:\d{5}", b"ADDRESS"),
]


@dataclass
class Ask:
    """One request. `level` says how much of the answers must agree: "status", "headers" (and status) or "all"."""

    method: str
    target: str
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    user: str | None = "test:tester"
    level: str = "all"
    raw: bytes | None = None
    hang_up: bool = False
    without: tuple = ()
    also: tuple = ()  # statuses that are as good as OpenStack's, for requests where being stricter is right

    def __str__(self):
        if self.raw is not None:
            return f"{self.raw[:300]!r}{' then hangs up' if self.hang_up else ''}"
        return f"{self.method} {self.target[:120]} {str(self.headers)[:200]} as {self.user}"


@dataclass
class Story:
    """`name` names the container too; `container` False leaves making it to the story."""

    name: str
    asks: list
    container: bool = True

    def __str__(self):
        return self.name


class Side:
    """One of the two clusters, with a token per user."""

    def __init__(self, system):
        self.system, self.tokens = system, {}

    def token(self, user):
        if user not in self.tokens:
            self.tokens[user] = Client(self.system.auth_url, user).token
        return self.tokens[user]

    def ask(self, ask, container="none"):
        """The answer to `ask`, in a connection of its own."""
        token = self.token(ask.user) if ask.user else ""

        def fill(text):
            marks = {"{c}": "{a}/" + container, "{n}": container, "{a}": "/v1/AUTH_test", "{token}": token}
            for mark, value in marks.items():
                text = text.replace(mark.encode() if isinstance(text, bytes) else mark,
                                    value.encode() if isinstance(text, bytes) else value)
            return text

        if ask.raw is not None:
            payload = fill(ask.raw)
        else:
            headers = {name: fill(value) if isinstance(value, (str, bytes)) else value
                       for name, value in ask.headers.items()}
            if ask.user and "X-Auth-Token" not in headers:
                headers["X-Auth-Token"] = token
            payload = message(ask.method, fill(ask.target), headers, ask.body)
        return exchange(self.system.port, payload, method=ask.method, hang_up=ask.hang_up)


def shape(reply: Reply, ask: Ask):
    """What of a reply is compared."""
    found = {"status": reply.status}
    if ask.level == "status":
        return found
    headers = {}
    body = reply.body
    for name, value in reply.headers:
        name = name.lower()
        if name in IGNORED or name in ask.without:
            continue
        pattern, mark = SHAPES.get(name, (None, None))
        if pattern and re.fullmatch(pattern, value):
            value = mark
        if name in SETS:
            parts = {part.strip().lower() for part in value.split(",")}
            value = ", ".join(sorted(parts))
        boundary = re.search(r"boundary=\"?([^\";]+)", value)
        if name == "content-type" and boundary:
            body = body.replace(boundary.group(1).encode(), b"BOUNDARY")
            value = value.replace(boundary.group(1), "BOUNDARY")
        value = re.sub(r"tx[0-9a-f]{21}-[0-9a-f]{10}", "TRANSACTION", value)
        headers[name] = re.sub(r"127\.0\.0\.1:\d{5}", "ADDRESS", value)
    if reply.status != 204 and not says_length(ask.method, reply.status):
        headers.pop("content-length", None)
    found["headers"] = dict(sorted(headers.items()))
    if ask.level == "all":
        body = BEATS.sub(rb"\1" if any(batch in ask.target for batch in BATCHES) else rb"\1 \2", body)
        for pattern, mark in IN_BODY:
            body = re.sub(pattern, mark, body)
        found["body"] = body.decode("utf-8", "backslashreplace")
        if "multipart/byteranges" in headers.get("content-type", ""):
            headers.pop("content-length", None)
    return found


def differences(theirs, ours):
    """Lines saying what differs; none when nothing does."""
    lines = []
    for key in ("status", "body"):
        if theirs.get(key) != ours.get(key):
            lines.append(f"{key}: OpenStack {theirs.get(key)!r:.600} — here {ours.get(key)!r:.600}")
    wanted, given = theirs.get("headers", {}), ours.get("headers", {})
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            lines.append(f"{name}: OpenStack {wanted.get(name)!r:.300} — here {given.get(name)!r:.300}")
    return lines


class Pair:
    """OpenStack and the system under test, asked the same."""

    def __init__(self, openstack, system):
        self.theirs, self.ours = Side(openstack), Side(system)
        self.record = {}
        self.patient = True

    def check(self, story):
        """Run a story on both; fails with every difference of every request in it."""
        container = re.sub(r"[^a-z0-9]+", "-", story.name.lower())
        wrong = []
        self.patient = True
        if story.container:
            for side in (self.theirs, self.ours):
                reply = side.ask(Ask("PUT", "{c}"), container)
                assert reply.status in (201, 202), f"no container on {side.system}: {reply}"
        for ask in story.asks:
            found = self.compare(ask, container, story.name)
            if found:
                self.patient = False  # what differs once will not be cured by waiting each time
                wrong.append(f"{ask}\n    " + "\n    ".join(found))
        assert not wrong, f"{story.name}: answers differ\n" + "\n".join(wrong)

    def compare(self, ask, container, name):
        """Differences for one request; successful reads are asked again, as they may lag: listings until updaters had their turn."""
        read = ask.method in ("GET", "HEAD") and ask.raw is None
        listing = LISTING.fullmatch(ask.target.partition("?")[0])
        deadline = time.monotonic() + (UPDATERS_TURN if listing else REPLICAS_TURN)
        while True:
            theirs, ours = self.theirs.ask(ask, container), self.ours.ask(ask, container)
            expected = shape(theirs, ask)
            found = [] if ours.status in ask.also else differences(expected, shape(ours, ask))
            lagging = read and theirs.status == ours.status and theirs.status // 100 == 2 and self.patient
            if not found or not lagging or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.record.setdefault(name, []).append({"ask": str(ask), "answer": expected})
        return found
