"""What lies on the devices: object files, temporary files, databases."""

import os
import pickle
import sqlite3
from pathlib import Path


def files(srv):
    """Every file below the devices directory. Notes of what is under way come and go."""
    return [Path(folder) / name for folder, _, names in os.walk(srv) for name in names if not name.startswith(".updates-")]


def contents(srv):
    """Every file below the devices directory, notes of what is under way among them, with its bytes and those of its extended
    attributes together. What a server removes or renames meanwhile is left out."""
    for path in (Path(folder) / name for folder, _, names in os.walk(srv) for name in names):
        try:
            yield path, path.read_bytes() + b"".join(os.getxattr(path, name) for name in os.listxattr(path))
        except FileNotFoundError:
            continue


def temporary(srv):
    """Files left in any device's tmp directory, plus half-renamed ones elsewhere."""
    return [path for path in files(srv) if path.parent.name == "tmp" or path.suffix == ".tmp"]


def objects(srv, suffix=".data"):
    """Object files of every policy."""
    return sorted(path for path in files(srv)
                  if path.suffix == suffix and path.relative_to(srv).parts[1].split("-")[0] == "objects")


def databases(srv, kind):
    """Database files of "accounts" or "containers"."""
    return sorted(path for path in files(srv) if path.suffix == ".db" and path.relative_to(srv).parts[1] == kind)


def check_databases(srv):
    """Assert that every database opens and is whole; how many there are."""
    found = databases(srv, "accounts") + databases(srv, "containers")
    for path in found:
        with sqlite3.connect(path, timeout=20) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), path
    return len(found)


def metadata(path):
    """The metadata in an object file's extended attributes; what a test spoiled is not asked for again."""
    value, index = b"", 0
    while True:
        try:
            value += os.getxattr(path, "user.swift.metadata" + (str(index) if index else ""))
        except OSError:
            break
        index += 1
    try:
        return pickle.loads(value, encoding="bytes")
    except (EOFError, pickle.UnpicklingError):
        return {}  # junk a test put there


def find_object(srv, name):
    """The .data files whose metadata names this /account/container/object."""
    return [path for path in objects(srv)
            if metadata(path).get(b"name", metadata(path).get("name", b"")) in (name, name.encode())]
