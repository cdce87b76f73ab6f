"""What must be true when all is calm, of every object, listing, replica and file.

Each check gives lines that say what is wrong. They look at the drives through the rings, not through a server.
"""

import hashlib
import json
import os
import pickle
import re
import sqlite3
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from harness.client import Client
from harness.layout import hash_path

HOUSEKEEPING = {"hashes.pkl", "hashes.invalid", ".lock", ".lock-replication"}
# A copy of a database, under its sender's id.
UNCLAIMED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\w+")
ACCOUNT = "AUTH_test"


def everything(storm):
    """All checks in their order; the first resolves what the later ones expect."""
    clients = [Client(storm.layout.auth_url(gateway)) for gateway in storm.layout.gateways]
    with ThreadPoolExecutor() as pool:
        for lines in pool.map(lambda recorder: settled(storm, recorder), storm.recorders):
            yield from lines
    if storm.whole:
        yield from listings(storm, clients)
        drives = Drives(storm)
        yield from drives.objects()
        yield from drives.databases()
        yield from drives.strays()


def settled(storm, recorder):
    client = Client(storm.layout.auth_url(storm.layout.gateways[0]))
    lines, recorder.wrong = recorder.wrong, []
    lines += recorder.resolve(client, storm.whole)
    client.close()
    return lines


def kept(recorder):
    """Name → state of what certainly exists, once settled."""
    return {name: states[0] for name, states in recorder.expected.items() if len(states) == 1 and states[0]}


def listings(storm, clients):
    """Listings and counters equal the objects."""
    for client in clients:
        total, size = 0, 0
        for recorder in storm.recorders:
            wanted = {name: state[:2] for name, state in kept(recorder).items()}
            where = f"{recorder.container} through {client.host}"
            rows, marker = {}, ""
            while page := json.loads(client.get(recorder.container, query=f"?format=json&limit=1000&marker={marker}".replace(" ", "%20"))):
                rows.update({row["name"]: (row["bytes"], row["hash"]) for row in page})
                marker = page[-1]["name"]
            yield from (f"{where} lists {name!r}, which does not exist" for name in sorted(rows.keys() - wanted.keys()))
            yield from (f"{where} does not list {name!r}" for name in sorted(wanted.keys() - rows.keys()))
            yield from (f"{where} says {rows[name]} of {name!r} instead of {wanted[name]}" for name in sorted(rows.keys() & wanted.keys())
                        if rows[name] != wanted[name])
            head = client.do("HEAD", recorder.container)
            counted = head["X-Container-Object-Count"], head["X-Container-Bytes-Used"]
            right = str(len(wanted)), str(sum(state[0] for state in wanted.values()))
            if counted != right:
                yield f"{where} counts {counted} instead of {right}"
            total, size = total + len(wanted), size + int(right[1])
        head = client.do("HEAD")
        counted = head["X-Account-Container-Count"], head["X-Account-Object-Count"], head["X-Account-Bytes-Used"]
        right = str(len(storm.recorders)), str(total), str(size)
        if counted != right:
            yield f"the account counts {counted} containers, objects, bytes through {client.host} instead of {right}"


class Drives:
    """Every file on every drive, sorted by its kind."""

    def __init__(self, storm):
        self.storm, self.layout = storm, storm.layout
        self.device_nodes = {name: node for node, names in self.layout.devices.items() for name in names}
        self.files = defaultdict(lambda: defaultdict(dict))  # (kind, partition, hash) → drive → file name → path
        self.partitions = defaultdict(set)  # (kind, partition) → drives that have a directory for it
        self.others = []
        for node, devices in storm.devices.items():
            for device in devices:
                for path in storm.files_of(device):
                    self._sort(device, path)
                for kind in os.listdir(device.disk):
                    if kind.split("-")[0] in ("objects", "containers", "accounts"):
                        for partition in os.listdir(device.disk / kind):
                            if partition.isdigit():
                                self.partitions[kind, int(partition)].add(device.name)

    def _sort(self, device, path):
        parts = path.relative_to(device.disk).parts
        if parts[0].split("-")[0] in ("objects", "containers", "accounts") and len(parts) == 5 and parts[1].isdigit():
            self.files[parts[0], int(parts[1]), parts[3]][device.name][parts[4]] = path
        elif path.name not in HOUSEKEEPING and not path.name.startswith("auditor_status"):
            self.others.append((device, parts))

    def primaries(self, kind, partition):
        name = {"accounts": "account", "containers": "container", "objects": "object"}.get(kind, kind.replace("objects", "object"))
        return {device["device"] for device in self.storm.ring(name).get_part_nodes(partition)}

    def objects(self):
        """Every replica in its place and equal, and no object that was never stored."""
        wanted = {}
        for recorder in self.storm.recorders:
            index = next(index for index, name in self.layout.policies.items() if name == recorder.policy)
            kind = "objects" + (f"-{index}" if index else "")
            for name, states in recorder.expected.items():
                if len(states) > 1:
                    continue  # wrong already, and reported
                key = hash_path(f"/{ACCOUNT}/{recorder.container}/{name}")
                partition = self.storm.ring(kind.replace("objects", "object")).get_part(ACCOUNT, recorder.container, name)
                wanted[kind, partition, key] = f"{recorder.container}/{name}", states[0]
        for key in wanted.keys() | {key for key in self.files if key[0].startswith("objects")}:
            yield from self._replicas(key, *wanted.get(key, (None, None)))

    def _replicas(self, key, name, state):
        kind, partition, name_hash = key
        where = f"{name or 'an object that was never stored'} ({kind}/{partition}/…/{name_hash})"
        found, homes = self.files.get(key, {}), self.primaries(kind, partition)
        data = {drive: sorted(file for file in files if file.endswith((".data", ".meta"))) for drive, files in found.items()}
        data = {drive: files for drive, files in data.items() if files}
        if state is None:
            # A POST without a body counts for no reader. OpenStack's servers keep it beside an older tombstone, too, until its reclaim age.
            dark = {drive: files for drive, files in data.items() if any(file.endswith(".data") for file in files)}
            if dark:
                yield f"dark data: {where} should not exist, but lies on {', '.join(sorted(dark))}: {dark}"
            return
        if missing := homes - data.keys():
            yield f"{where} has no replica on {', '.join(sorted(missing))}; it is on {', '.join(sorted(data)) or 'no drive'}"
        if extra := data.keys() - homes:
            yield f"{where} has a copy left on the handoff {', '.join(sorted(extra))}"
        if len({str(files) for files in data.values()}) > 1:
            yield f"{where} has unequal replicas: {data}"
            return
        for file in next(iter(data.values()), []):
            contents = {drive: fingerprint(found[drive][file]) for drive in data}
            if len(set(contents.values())) > 1:
                yield f"{where} has replicas of {file} that differ in bytes or metadata: {contents}"
        for drive, files in found.items():
            if unknown := [file for file in files if not file.endswith((".data", ".meta", ".ts"))]:
                yield f"{where} has stray files on {drive}: {unknown}"

    def databases(self):
        """Every database on its primaries, whole, and with equal rows."""
        wanted = {("accounts", self.storm.ring("account").get_part(ACCOUNT), hash_path(f"/{ACCOUNT}")): ACCOUNT}
        for recorder in self.storm.recorders:
            partition = self.storm.ring("container").get_part(ACCOUNT, recorder.container)
            wanted["containers", partition, hash_path(f"/{ACCOUNT}/{recorder.container}")] = recorder.container
        for key, name in wanted.items():
            found, homes = self.files.get(key, {}), self.primaries(*key[:2])
            where = f"the database of {name} ({key[0]}/{key[1]}/…/{key[2]})"
            holders = {drive: files[f"{key[2]}.db"] for drive, files in found.items() if f"{key[2]}.db" in files}
            if missing := homes - holders.keys():
                yield f"{where} is missing on {', '.join(sorted(missing))}"
            if extra := holders.keys() - homes:
                yield f"{where} has a copy left on the handoff {', '.join(sorted(extra))}"
            contents = {drive: database(path, key[0]) for drive, path in holders.items()}
            if len(set(map(str, contents.values()))) > 1:
                yield f"{where} has unequal replicas: {differences(contents)}"
            for drive, files in found.items():
                pending = files.get(f"{key[2]}.db.pending")
                if pending and pending.stat().st_size:
                    yield f"{where} has rows on {drive} that were never merged: {pending.stat().st_size} bytes"
        for (kind, partition, name_hash), found in self.files.items():
            if not kind.startswith("objects") and (kind, partition, name_hash) not in wanted:
                where = f"{kind}/{partition}/…/{name_hash} on {', '.join(found)}"
                yield from self._queue_or_stray(kind, next(iter(found.values())).get(f"{name_hash}.db"), where)

    def _queue_or_stray(self, kind, path, where):
        """The expirer's own databases may be there, but no task may still have something to delete.

        One whose object was replaced on servers that never had the version it is of stays until reclaim_age, as OpenStack's do.
        """
        table, about = ("object", "container_info") if kind == "containers" else ("container", "account_stat")
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as connection:
                account = connection.execute(f"SELECT account FROM {about}").fetchone()[0]
                tasks = [name for name, in connection.execute(f"SELECT name FROM {table} WHERE deleted = 0")]
        except sqlite3.Error as error:
            yield f"a database that belongs to nothing, {where}: {error!r}"
            return
        if account != ".expiring_objects":
            yield f"a database that belongs to nothing, of {account}: {where}"
        elif kind == "containers" and (left := [task for task in tasks if self._expires(task)]):
            yield f"{len(left)} tasks of the expirer are left in {where}: {left[:3]}"

    def _expires(self, task):
        """Whether any drive holds the version that a task is of."""
        due, _, path = task.partition("-")
        index = next(index for index, name in self.layout.policies.items() if path.split("/")[1].startswith(name))
        kind = "objects" + (f"-{index}" if index else "")
        partition = self.storm.ring(kind.replace("objects", "object")).get_part(*path.split("/", 2))
        replicas = self.files.get((kind, partition, hash_path(f"/{path}")), {}).values()
        data = [file for files in replicas for name, file in files.items() if name.endswith((".data", ".meta"))]
        return any(metadata(file).get("X-Delete-At") == str(int(due)) for file in data)

    def strays(self):
        """Nothing temporary, nothing pending, no handoff, no quarantine where nothing was damaged."""
        for (kind, partition), drives in self.partitions.items():
            for drive in sorted(drives - self.primaries(kind, partition)):
                yield f"a handoff is left: {drive}/{kind}/{partition}"
        quarantines = defaultdict(list)
        for device, parts in self.others:
            if parts[0] == "quarantined":
                quarantines[device.name].append("/".join(parts))
            elif parts[0] == "tmp" and UNCLAIMED.fullmatch(parts[-1]):
                continue  # a database whose sender was killed before it said what to do with it: goes after an hour
            elif self.storm.tidy or not (parts[0].startswith("tmp") or parts[-1].endswith(".tmp")):
                yield f"a stray file: {device.name}/{'/'.join(parts)}"
        for drive, paths in quarantines.items():
            if drive not in self.storm.damaged:
                yield f"{len(paths)} files in quarantine on {drive}, where nothing was damaged: {paths[:3]}"


def metadata(path):
    value, index = b"", 0
    while True:
        try:
            value += os.getxattr(path, "user.swift.metadata" + (str(index) if index else ""))
        except OSError:
            break
        index += 1
    return {as_text(key): as_text(item) for key, item in pickle.loads(value, encoding="bytes").items()} if value else {}


def fingerprint(path):
    return hashlib.md5(Path(path).read_bytes()).hexdigest(), str(sorted(metadata(path).items()))


def as_text(value):
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def database(path, kind):
    """The rows that count, and what the database says of itself; an error where it cannot be read."""
    if kind == "containers":
        query = "SELECT name, created_at, size, content_type, etag, storage_policy_index FROM object WHERE deleted = 0 ORDER BY name"
        about = "SELECT status, object_count, bytes_used FROM container_stat"
    else:
        query = "SELECT name, put_timestamp, delete_timestamp, object_count, bytes_used, storage_policy_index FROM container WHERE deleted = 0 ORDER BY name"
        about = "SELECT container_count, object_count, bytes_used FROM account_stat"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as connection:
            whole = connection.execute("PRAGMA integrity_check").fetchone()[0]
            return [("integrity", whole), *connection.execute(query), *connection.execute(about)]
    except sqlite3.Error as error:
        return [("error", repr(error))]


def differences(contents):
    common = set.intersection(*(set(rows) for rows in contents.values()))
    return {drive: [row for row in rows if row not in common][:3] for drive, rows in contents.items()}
