"""Waiting without luck: every wait is a question asked again until a deadline."""

import random
import socket
import time

_next_port = random.randrange(12000, 30000)


class Late(AssertionError):
    """What was waited for did not come in time."""


def until(question, *, within=20.0, every=0.05, what="the condition"):
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
    """A loopback port nobody listens on, below the ephemeral range so that no client socket takes it."""
    global _next_port
    while True:
        _next_port = 12000 + (_next_port + 1 - 12000) % 20000
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
