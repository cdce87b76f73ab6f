"""Clients that want nothing or little, in great numbers, and ordinary ones beside them that are timed.

Each kind of client is a process of its own: what one does, delays none of the others. They come from several loopback
addresses, so that the ports of one do not limit them. A process may only have so many files open: many clients of one
kind are spread over several processes.
"""

import asyncio
import contextlib
import multiprocessing
import os
import resource
import socket
import time
from pathlib import Path

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]
REQUEST_TIMEOUT = 30
DRIP = 1.0  # seconds between two bytes of a slow client


def address(number):
    return ADDRESSES[number % len(ADDRESSES)]


async def connect(port, number, *, receive_buffer=None):
    """A socket that is connected, from one of the addresses."""
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: ports are shared between targets
    sock.bind((address(number), 0))
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    return sock


async def idle(port, count, tell):
    """Connections that say nothing."""
    held = []
    for number in range(count):
        held.append(await connect(port, number))
    tell(len(held))
    await asyncio.Event().wait()


async def slow(port, head, count, tell, receive_buffer=None):
    """Connections that send `head`, then send and take one byte at a time. One that is ended begins anew."""
    loop = asyncio.get_running_loop()
    begun = 0

    async def one(number):
        nonlocal begun
        first = True
        while True:
            try:
                sock = await connect(port, number, receive_buffer=receive_buffer)
                with sock:
                    await loop.sock_sendall(sock, head)
                    begun += first
                    first = False
                    while True:
                        await asyncio.sleep(DRIP)
                        if receive_buffer:
                            if not await loop.sock_recv(sock, 1):
                                break
                        else:
                            await loop.sock_sendall(sock, b"x")
            except OSError:
                await asyncio.sleep(DRIP)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))
        while begun < count:
            await asyncio.sleep(0.05)
        tell(begun)


async def connects(port, rate, tell):
    """So many connections a second that are closed at once."""
    number, began = 0, time.monotonic()
    tell(0)
    while True:
        while number < (time.monotonic() - began) * rate:
            number += 1
            try:
                (await connect(port, number)).close()
            except OSError:
                pass
        await asyncio.sleep(0.005)


async def ordinary(port, requests, rate, tell, results):
    """Requests at a steady rate, each on a connection of its own; seconds and status of each, in the order of `requests`."""
    tell(0)
    answers = {name: [] for name, _ in requests}

    async def ask(name, message):
        began = time.monotonic()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(message)
                status = int((await reader.readline()).split()[1])
                while await reader.read(65536):
                    pass
                writer.close()
        except (OSError, TimeoutError, IndexError, asyncio.IncompleteReadError) as error:
            status = type(error).__name__
        answers[name].append((time.monotonic() - began, status))

    number, began = 0, time.monotonic()
    async with asyncio.TaskGroup() as group:
        while not results.poll():
            while number < (time.monotonic() - began) * rate:
                group.create_task(ask(*requests[number % len(requests)]))
                number += 1
            await asyncio.sleep(0.002)
    results.send(answers)


def shares(count, most):
    """`count` in numbers of at most `most`, as equal as can be."""
    parts = -(-count // most)
    return [count // parts + (number < count % parts) for number in range(parts)]


def processor(pids):
    """Seconds that the living threads of these processes have run, and that they waited for a processor."""
    ran = waited = 0
    for pid in pids:
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().split()
                ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return ran / 1e9, waited / 1e9


def go_first(pid):
    """The session of `pid` comes before the other work of this machine. For root; where the scheduler does not group by
    session, its nice value does it."""
    group = Path(f"/proc/{pid}/autogroup")
    if group.exists():
        group.write_text("-10")
    os.setpriority(os.PRIO_PGRP, os.getpgid(pid), -10)


def _run(kind, arguments, pipe):
    os.setsid()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    extra = {"results": pipe} if kind is ordinary else {}
    asyncio.run(kind(*arguments.pop("args"), tell=pipe.send, **arguments, **extra))


class Clients:
    """One kind of clients, in a process: `with Clients(idle, port, 1000):` returns when all of them are there.

    The process has a session of its own, so that a scheduler that groups processes by session gives it a share of its own.
    """

    def __init__(self, kind, *args, **arguments):
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self.kind = kind.__name__
        self.process = context.Process(target=_run, args=(kind, {"args": args, **arguments}, theirs), daemon=True)

    def __enter__(self):
        self.process.start()
        if not self.pipe.poll(120):
            raise AssertionError("the clients did not all come to it within two minutes")
        self.pipe.recv()
        return self

    def finish(self):
        """What ordinary clients saw: for each request its [(seconds, status)]."""
        self.pipe.send("finish")
        assert self.pipe.poll(REQUEST_TIMEOUT + 30), "requests are still under way"
        return self.pipe.recv()

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def message(verb, path, token, *, length=None, stay=False):
    """The head of a request."""
    lines = [f"{verb} {path} HTTP/1.1", "Host: x", f"X-Auth-Token: {token}"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    lines += [] if stay else ["Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode()


def percentile(seconds, share):
    """The value below which `share` of them are."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
