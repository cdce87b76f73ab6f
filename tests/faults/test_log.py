"""A log that cannot be written, or whose reader stands still, takes nothing else along."""

import os
import signal
import subprocess

import pytest

from harness.client import Client
from harness.places import martlet
from harness.waiting import free_port, until


@pytest.fixture
def start(tmp_path, request):
    """Starts `martlet up` with this as its log."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("about Martlet's log")
    processes = []

    def start(log):
        command = [martlet(), "up", "--dir", tmp_path / "up", "--bind", f"127.0.0.1:{free_port()}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        processes.append(process)
        words = next(line for line in process.stdout if line.startswith(b"ready ")).split()
        return process, Client(words[1].decode())

    yield start
    for process in processes:
        process.kill()
        process.wait()


def used(client, number):
    client.put("c")
    for each in range(number):
        client.put("c", f"o{each}", body=b"x")
        assert client.get("c", f"o{each}") == b"x"


def lost(client):
    lines = client.send("GET", "/metrics").body.decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("martlet_log_lines_lost_total"))


def end(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_full_disk_costs_lines_of_the_log(start):
    with open("/dev/full", "wb") as full:
        process, client = start(full)
    used(client, 20)
    until(lambda: lost(client) >= 40, what="lost lines being counted")
    end(process)


def test_a_reader_that_has_gone_costs_lines_of_the_log(start):
    read, write = os.pipe()
    process, client = start(write)
    os.close(write)
    os.close(read)
    used(client, 20)
    until(lambda: lost(client) >= 40, what="lost lines being counted")
    end(process)


def test_a_reader_that_stands_still_keeps_nothing_waiting(start):
    """A pipe holds 64 KiB, which some hundred lines fill."""
    read, write = os.pipe()
    process, client = start(write)
    os.close(write)
    used(client, 300)
    end(process)
    with open(read, "rb") as log:
        assert b"PUT /v1/AUTH_test/c/o0 " in log.read()
