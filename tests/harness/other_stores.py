"""Stores of other makes that speak S3: moto's server, and one that runs elsewhere and is named by an environment variable.

    MARTLET_OTHER_S3=http://ACCESSKEY:SECRETKEY@HOST:PORT      MinIO, Garage, RGW, AWS: its buckets `bench-other-…` are made and deleted
"""

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from harness import environment
from harness.process import Process
from harness.waiting import free_port, listening

VARIABLE = "MARTLET_OTHER_S3"


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


class Moto:
    """moto's server, which holds all in memory and takes any keys."""

    def __init__(self, folder):
        self.port = free_port()
        command = [environment.clients() / "python", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = Process(command, folder / "moto.log")

    def __enter__(self):
        self.process.wait_for(lambda: listening(self.port))
        return OtherStore(f"http://127.0.0.1:{self.port}", "any", "anything")

    def __exit__(self, *_):
        self.process.stop()
