"""Waiting without luck: every wait is a question asked again until a deadline."""

import os
import random
import socket
import time

# Runs at the same time (the workers of `pytest -n`, the parts of `make test`) have ports of their own.
_RANGE = [int(port) for port in os.environ.get("MARTLET_TEST_PORTS", "12000-31999").split("-")]
_PORTS = (_RANGE[1] + 1 - _RANGE[0]) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_FIRST_PORT = _RANGE[0] + _PORTS * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_next_port = _FIRST_PORT + random.randrange(_PORTS)


class Late(AssertionError):
    """What was waited for did not come in time."""


def until(question, *, within=120.0, every=0.05, what="the condition"):
    """The first truthy answer of `question`, or Late with the last answer or error seen."""
    deadline = time.monotonic() + within
    while True:
        try:
            last = question()
            if last:
                return last
        except (OSError, AssertionError) as error:
            last = error
        if time.monotonic() > deadline:
            raise Late(f"{what} did not hold within {within} s; last answer: {last!r}")
        time.sleep(every)


def free_port():
    """A loopback port without a listener, below the ephemeral range so that no client socket takes it."""
    global _next_port
    while True:
        _next_port = _FIRST_PORT + (_next_port + 1 - _FIRST_PORT) % _PORTS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", _next_port))
                return _next_port
            except OSError:
                continue


def listening(port):
    """Whether something accepts connections on the loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False
