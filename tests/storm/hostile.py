"""A peer that reaches the ports of the storage servers and means harm, by kind of attack.

An attack gets the storm, dice of its own and an event that ends it. What it sends may cost a server some work, but takes no drive out of
service, no row away and no server down: the storm's own checks prove that. Requests that the protocol permits every peer,
such as a well-formed DELETE, are not among them.
"""

import http.client
import os
import shutil
import socket
import sqlite3
import tempfile
import uuid
from contextlib import closing, suppress
from pathlib import Path

from harness.wire import message, read_reply
from storm.layout import PORTS

ENDLESS = "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n)"
FOREIGN = [
    f"CREATE TRIGGER evil AFTER UPDATE ON container_info BEGIN SELECT count(*) FROM {ENDLESS}; END",
    f"ALTER TABLE container_info RENAME TO stored; CREATE VIEW container_info AS SELECT * FROM stored WHERE (SELECT count(*) FROM {ENDLESS})",
    "CREATE TRIGGER mild AFTER INSERT ON object BEGIN DELETE FROM object WHERE ROWID = new.ROWID; END",
    "CREATE TABLE more (x)",
    "DROP TRIGGER object_delete",
]
MOST_CONNECTIONS = 200  # held by one attack


def send(address, port, payload, timeout=5.0):
    """Send `payload` to a server; its status, 0 for none."""
    with suppress(OSError, http.client.HTTPException), socket.create_connection((address, port), timeout=timeout) as connection:
        connection.sendall(payload)
        return read_reply(connection, "GET").status
    return 0


def targets(storm):
    """(node's address, port, device) of every server and drive."""
    return [(storm.layout.addresses[node], port, device.name) for node, devices in storm.devices.items() for device in devices for port in PORTS.values()]


def foreign_databases(storm, dice, over):
    """Databases of containers as they are, with one statement more, offered to every server that keeps a replica."""
    while not over.wait(0.5):
        found = [path for node in storm.layout.nodes for path in storm.files(node) if path.suffix == ".db" and "containers" in path.parts[-5:]]
        if not found:
            continue
        original = dice.choice(sorted(found))
        statements = dice.choice(FOREIGN)
        with tempfile.TemporaryDirectory() as folder, suppress(OSError, sqlite3.Error):
            changed = Path(folder) / "changed.db"
            shutil.copy(original, changed)
            with closing(sqlite3.connect(changed)) as connection:
                connection.executescript(statements)
            offer(storm, dice, original, changed.read_bytes())


def offer(storm, dice, original, body):
    partition, key = original.parts[-4], original.parent.name
    name = f"{uuid.UUID(int=dice.getrandbits(128))}-storm"  # as senders name theirs
    for node, devices in storm.devices.items():
        for device in devices:
            address = storm.layout.addresses[node], PORTS["container"]
            path = f"/{device.name}/{partition}/{key}"
            if send(*address, message("REPLICATE", path, {"X-Martlet-Database": name}, body)) == 201:
                step = dice.choice(["complete_rsync", "rsync_then_merge"])
                send(*address, message("REPLICATE", path, {}, f'["{step}", "{name}"]'.encode()))


def nonsense(storm, dice, over):
    """Requests that are none, and bodies that are not what their verb says."""
    def request(device):
        part, length = dice.randrange(32), dice.randrange(1, 3000)
        return dice.choice([
            lambda: dice.randbytes(length),
            lambda: message("SSYNC", f"/{device}/{part}", {"X-Backend-Ssync-Frag-Index": "x", "Transfer-Encoding": "chunked"}, b"zz\r\n" + dice.randbytes(length)),
            lambda: message("SSYNC", f"/{device}/{part}", {}, b":MISSING_CHECK: START\r\n" + dice.randbytes(length) + b"\r\n:MISSING_CHECK: END\r\n"),
            lambda: message("REPLICATE", f"/{device}/{part}/" + "-".join(["abc"] * length), {}),
            lambda: message("REPLICATE", f"/{device}/{part}/{'0' * 32}", {}, dice.randbytes(length)),
            lambda: message("REPLICATE", f"/{device}/{part}/{'0' * 32}", {}, b'["merge_items", [' + b'{"name": 1},' * length + b'{}], "x"]'),
            lambda: message("PUT", f"/{device}/{part}/a/c/o", {"X-Timestamp": "nan", "Content-Length": str(2**63)}),
            lambda: message("GET", f"/{device}/{part}/a/c/o", {f"X-{number}": "x" * 100 for number in range(dice.randrange(500))}),
            lambda: message("PUT", f"/../{device}/{part}/a/c/o", {"X-Timestamp": "1.0", "Content-Type": "x", "Transfer-Encoding": "chunked"}, b"5\r\nab"),
        ])()

    places = targets(storm)
    while not over.wait(0.02):
        address, port, device = dice.choice(places)
        send(address, port, request(device), timeout=0.5)


def slow_senders(storm, dice, over):
    """Connections that send nothing, or a byte at a time, of one server after the other."""
    places, held = targets(storm), []
    begun = b"REPLICATE /%s/0/abc HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"
    try:
        while not over.wait(0.01):
            if len(held) < MOST_CONNECTIONS:
                address, port, device = dice.choice(places)
                with suppress(OSError):
                    held.append(socket.create_connection((address, port), timeout=0.5))
                    held[-1].sendall(dice.choice([b"", b"GET / HT", begun % os.fsencode(device)]))
            else:
                with suppress(OSError):
                    held[dice.randrange(len(held))].sendall(b"x")
    finally:
        for connection in held:
            connection.close()


ATTACKS = {"foreign databases": foreign_databases, "nonsense": nonsense, "slow senders": slow_senders}
