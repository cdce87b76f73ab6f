"""Stores of other makes that speak S3, started for a test: moto's server, what `make other-stores` has brought, and one that runs elsewhere.

    with other_stores.started("rgw", folder) as store: …

`make other-stores` lays the programs into target/other-stores (MARTLET_OTHER_STORES names another folder). One that runs already is named by

    MARTLET_OTHER_S3=http://ACCESSKEY:SECRETKEY@HOST:PORT      MinIO, Garage, AWS: its buckets `bench-other-…` are made and deleted
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness import environment
from harness.places import REPOSITORY
from harness.process import Process
from harness.rgw import Rgw
from harness.waiting import free_port, listening

VARIABLE = "MARTLET_OTHER_S3"
FOLDER = Path(os.environ.get("MARTLET_OTHER_STORES", REPOSITORY / "target/other-stores")).absolute()
ACCESS, SECRET = "bench-access", "bench-secret/with+signs"
MAKES = ["moto", "rgw", "versitygw", "named"]


@dataclass
class OtherStore:
    """Where a store is, and who may use it."""

    endpoint: str
    access: str
    secret: str


def named():
    """The store that the environment variable names; None without it."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    url = urlsplit(text)
    if not (url.scheme and url.hostname and url.username and url.password):
        raise RuntimeError(f"{VARIABLE}: expected http://ACCESSKEY:SECRETKEY@HOST:PORT")
    port = f":{url.port}" if url.port else ""
    return OtherStore(f"{url.scheme}://{url.hostname}{port}", unquote(url.username), unquote(url.password))


def missing(make):
    """Why this make cannot be started here; None when it can."""
    if make == "named":
        return None if named() else f"{VARIABLE} names no store"
    program = {"rgw": FOLDER / "ceph/usr/bin/radosgw", "versitygw": FOLDER / "versitygw"}.get(make)
    return f"{program} is not there: `make other-stores` brings it" if program and not program.exists() else None


@contextlib.contextmanager
def started(make, folder):
    """A store of this make, which has its data below the folder and ends with the block."""
    if make == "named":
        yield named()
        return
    if make == "rgw":
        with Rgw(FOLDER / "ceph", folder / "rgw", ACCESS, SECRET) as rgw:
            yield OtherStore(f"http://127.0.0.1:{rgw.port}", ACCESS, SECRET)
        return
    port = free_port()
    address, data = f"127.0.0.1:{port}", folder / "data"
    data.mkdir()
    if make == "moto":  # it holds all in memory and takes any keys
        command = [environment.clients() / "python", "-I", Path(__file__).with_name("moto_server.py"), port]
    else:
        command = [FOLDER / "versitygw", "--port", address, "--access", ACCESS, "--secret", SECRET, "posix", data]
    process = Process(command, folder / f"{make}.log")
    try:
        process.wait_for(lambda: listening(port))
        yield OtherStore(f"http://{address}", ACCESS, SECRET)
    finally:
        process.stop()
