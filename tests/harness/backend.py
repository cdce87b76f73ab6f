"""Storage servers spoken to directly, in the backend's language, and what they leave on disk, byte for byte.

Timestamps are given by the request here, and lie far in the future, so that two servers asked the same must leave
the same bytes, and no tombstone is too old to keep; times of today came from a server's own clock and are masked.
"""

import io
import json
import os
import pickle
import re
import sqlite3
from dataclasses import dataclass, field

from harness import disk, layout
from harness.wire import exchange, message, says_length

UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CLOCK = re.compile(rb"1[7-9]\d{8}\.\d{5}|\w{3}, \d\d \w{3} 20[2-5]\d \d\d:\d\d:\d\d GMT|20[2-5]\d-\d\d-\d\dT[0-9:]{8}\.\d{6}")
THEN = 4_000_000_000
IGNORED = {"date", "connection", "keep-alive", "x-trans-id", "x-openstack-request-id", "server"}


@dataclass
class Call:
    """One backend request. `path` starts after /device/partition; a timestamp may be given short ("5")."""

    method: str
    path: str
    time: str | None = None
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    device: str = "sdb1"
    partition: str = "7"
    level: str = "all"
    also: tuple = ()

    def __str__(self):
        return f"{self.method} {self.path} at {self.time} {self.headers}"


def replicate(name, *operation, **more):
    """A question of one replica of an account or a container ("/a/c") to another; what it does is seen on disk."""
    body = json.dumps(operation).encode()
    return Call("REPLICATE", f"/{layout.hash_path(name)}", headers={"Content-Type": "application/json"}, body=body, level="status", **more)


def stamp(time):
    """A short number as seconds after THEN, as Swift writes them; anything else goes out as it is."""
    return f"{THEN + float(time):016.5f}" if re.fullmatch(r"\d{1,3}(\.\d+)?", time) else time


def call(port, request):
    headers = {"User-Agent": "proxy-server 1", "X-Trans-Id": "tx-test", **request.headers}
    if request.time is not None:
        headers["X-Timestamp"] = stamp(request.time)
    target = f"/{request.device}/{request.partition}{request.path}"
    return exchange(port, message(request.method, target, headers, request.body), method=request.method)


def answer(reply, request):
    """What must agree between two servers' answers."""
    if request.level == "status":
        return {"status": reply.status}
    headers = {name.lower(): CLOCK.sub(b"CLOCK", value.encode("latin-1")).decode("latin-1")
               for name, value in reply.headers if name.lower() not in IGNORED}
    if not says_length(request.method, reply.status):
        headers.pop("content-length", None)
    body = reply.body
    boundary = re.search(r"boundary=\"?([^\";]+)", headers.get("content-type", ""))
    if boundary:
        body = body.replace(boundary.group(1).encode(), b"BOUNDARY")
        headers["content-type"] = "multipart"
        headers.pop("content-length", None)
    return {"status": reply.status, **dict(sorted(headers.items())), **({"": CLOCK.sub(b"CLOCK", body)} if request.level == "all" else {})}


def tree(srv):
    """Every file below srv: its bytes and its Swift attributes. Databases appear as their schema and rows."""
    found = {}
    for path in disk.files(srv):
        name = str(path.relative_to(srv))
        if name.endswith(".db"):
            found[name] = database(path)
        elif "async_pending" in name:
            found[name] = pending_update(path.read_bytes())
        elif not name.endswith(("-wal", "-shm", "-journal", ".lock")):
            names = sorted(key for key in os.listxattr(path) if key.startswith("user.swift."))
            found[name] = (path.read_bytes(), {key: os.getxattr(path, key) for key in names})
    return found


class _PlainUnpickler(pickle.Unpickler):
    """Reads pickles of data; OpenStack's dictionary of headers counts as one, everything else is refused."""

    def find_class(self, module, name):
        if (module, name) == ("swift.common.header_key_dict", "HeaderKeyDict"):
            return type("HeaderKeyDict", (dict,), {})
        if (module, name) in (("copy_reg", "_reconstructor"), ("copyreg", "_reconstructor"), ("__builtin__", "dict"), ("builtins", "dict")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def pending_update(raw):
    """An update waiting for its container server, as data: the pickles differ, what they say must not."""
    update = _PlainUnpickler(io.BytesIO(raw)).load()
    headers = {name.lower(): value for name, value in update["headers"].items()}
    headers["user-agent"] = re.sub(r"object-server \d+", "object-server PID", headers.get("user-agent", ""))
    return {**update, "headers": headers}


def database(path):
    """The schema and all rows of a database, without what is random or from the clock by design."""
    with sqlite3.connect(path, timeout=20) as connection:
        connection.text_factory = bytes
        schema = {re.sub(rb"\s+", b" ", sql or b"").strip()
                  for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
        rows = {}
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            name = table.decode()
            cursor = connection.execute(f"SELECT * FROM {name}")
            columns = [column[0] for column in cursor.description]
            rows[name] = [{column: mask(column, value) for column, value in zip(columns, row)} for row in cursor]
    return {"schema": schema, "rows": rows}


def mask(column, value):
    if isinstance(value, bytes):
        value = CLOCK.sub(b"CLOCK", UUID.sub(b"UUID", value))
    return "CLOCK" if column == "updated_at" and value else value


def compare_trees(theirs, ours):
    """Lines naming files that differ between two trees, and how."""
    lines = [f"only OpenStack has {name}" for name in sorted(theirs.keys() - ours.keys())]
    lines += [f"only this has {name}" for name in sorted(ours.keys() - theirs.keys())]
    for name in sorted(theirs.keys() & ours.keys()):
        if theirs[name] == ours[name]:
            continue
        if name.endswith(".db"):
            lines += _compare_databases(name, theirs[name], ours[name])
        else:
            lines.append(f"{name}: OpenStack {theirs[name]!r:.1500}\n      here {ours[name]!r:.1500}")
    return lines


def _compare_databases(name, theirs, ours):
    lines = [f"{name}: only OpenStack has {sql}" for sql in theirs["schema"] - ours["schema"]]
    lines += [f"{name}: only this has {sql}" for sql in ours["schema"] - theirs["schema"]]
    for table in sorted(theirs["rows"].keys() | ours["rows"].keys()):
        wanted, given = theirs["rows"].get(table), ours["rows"].get(table)
        if wanted != given:
            lines.append(f"{name} {table}: OpenStack {wanted!r:.1500}\n      here {given!r:.1500}")
    return lines
