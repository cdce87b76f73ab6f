"""The faults, by name. Each is a generator: it injects the fault, yields while the fault lasts, and repairs it.

HIDING keeps data from view, and nothing acknowledged may be lost by it, on however many nodes it strikes. LOSSES destroy what
one node holds. Each gets the storm, where to strike, and dice of its own.
"""

import itertools
import os
import shutil
import signal
import threading
import time
from contextlib import suppress

from harness.client import Client
from storm import hostile, upkeep
from storm.nodes import SERVERS

HIDING = {"node": {}, "gateway": {}, "memcached": {}, "rings": {}, "hostile": {}}
LOSSES = {}
LONGER_THAN_EVERY_TIMEOUT = 10.0


def hiding(lane):
    def register(function):
        HIDING[lane][function.__name__.replace("_", " ")] = function
        return function
    return register


def loss(function):
    LOSSES[function.__name__.replace("_", " ")] = function
    return function


def lasts(name):
    """The least number of seconds a fault must last to have an effect."""
    return LONGER_THAN_EVERY_TIMEOUT if name.startswith("SIGSTOP") else 0


# On a node.

@hiding("node")
def kill_one(storm, node, dice):
    """kill -9 of one program."""
    name = dice.choice(storm.nodes.programs_of(node))
    storm.nodes.kill(node, name)
    yield
    storm.nodes.launch(node, name)


@hiding("node")
def kill_all(storm, node, dice):
    """kill -9 of everything the node runs."""
    storm.nodes.kill_all(node)
    yield
    storm.nodes.start(node)


@hiding("node")
def SIGSTOP_one_server(storm, node, dice):
    name = [dice.choice(SERVERS)]
    storm.nodes.signal(node, name, signal.SIGSTOP)
    yield
    storm.nodes.signal(node, name, signal.SIGCONT)


@hiding("node")
def SIGSTOP_all(storm, node, dice):
    names = storm.nodes.programs_of(node)
    storm.nodes.signal(node, names, signal.SIGSTOP)
    yield
    storm.nodes.signal(node, names, signal.SIGCONT)


@hiding("node")
def unmounted(storm, node, dice):
    device = dice.choice(storm.devices[node])
    device.take_away()
    yield
    if below := device.below_mount_point():
        storm.wrong.append(f"written below the bare mount point of {device.name}: {[str(path) for path in below][:8]}")
    device.bind()


@hiding("node")
def full(storm, node, dice):
    device = dice.choice(storm.devices[node])
    device.fill()
    yield
    device.make_room()


@hiding("node")
def read_only(storm, node, dice):
    """Files open for writing keep a drive from it, so the node may have to come up with one."""
    device = dice.choice(storm.devices[node])
    if not device.read_only():
        storm.nodes.kill_all(node)
        if not device.read_only(within=20):
            raise RuntimeError(f"{device.name} cannot be made read-only")
        storm.nodes.start(node)
    yield
    device.read_only(False)


@hiding("node")
def EIO(storm, node, dice):
    """Every access to the drive fails; what was not synced is gone. It is repaired and the node restarted."""
    device = dice.choice(storm.devices[node])
    device.fail()
    yield
    storm.nodes.kill_all(node)
    device.release()
    device.mount()
    storm.nodes.start(node)


@hiding("node")
def power_cut(storm, node, dice):
    """All drives and programs of the node at once."""
    for device in storm.devices[node]:
        device.fail()
    storm.nodes.kill_all(node)
    yield
    for device in storm.devices[node]:
        device.release()
        device.mount()
    storm.nodes.start(node)


@hiding("node")
def drive_hangs(storm, node, dice):
    device = dice.choice(storm.devices[node])
    device.freeze()
    yield
    device.thaw()


@hiding("node")
def drive_slow(storm, node, dice):
    """Most of the time every writer of the drive waits: up to 1.5 s, then it goes on for a moment."""
    device, over = dice.choice(storm.devices[node]), threading.Event()
    waits = [dice.uniform(0.2, 1.5) for _ in range(8)]

    def stall():
        for wait in itertools.cycle(waits):
            if over.is_set():
                return
            device.freeze()
            try:
                over.wait(wait)
            finally:
                device.thaw()
            over.wait(0.05)

    thread = threading.Thread(target=stall)
    thread.start()
    yield
    over.set()
    thread.join()


@hiding("node")
def clock_skew(storm, node, dice):
    """The clock jumps, at times backwards, under running programs, and jumps again."""
    storm.nodes.set_clock(node, dice.choice([-3600, -60, -2, 2, 60, 3600]))
    yield
    storm.nodes.set_clock(node, 0)


@hiding("node")
def partition(storm, node, dice):
    """The node and some of the others, gateways among them, hear nothing of each other."""
    others = [name for name in storm.layout.addresses if name != node]
    lost = dice.sample(others, dice.randint(1, len(others)))
    for other in lost:
        storm.cut(node, other)
    yield
    for other in lost:
        storm.join(node, other)


# On a gateway, on what all share.

@hiding("gateway")
def kill_gateway(storm, gateway, dice):
    storm.nodes.kill(gateway, "proxy-server")
    yield
    storm.nodes.launch(gateway, "proxy-server")


@hiding("gateway")
def gateway_clock_skew(storm, gateway, dice):
    """The clock of a gateway jumps by up to a minute under running requests, and jumps back: its writes are stamped with it."""
    storm.nodes.set_clock(gateway, dice.choice([-55, -20, -2, -0.5, 0.5, 2, 20, 55]))
    yield
    storm.nodes.set_clock(gateway, 0)


@hiding("memcached")
def memcached_dead(storm, _, dice):
    storm.nodes.kill("memcached", "memcached")
    yield
    storm.nodes.launch("memcached", "memcached")


@hiding("memcached")
def SIGSTOP_memcached(storm, _, dice):
    storm.nodes.signal("memcached", ["memcached"], signal.SIGSTOP)
    yield
    storm.nodes.signal("memcached", ["memcached"], signal.SIGCONT)


@hiding("rings")
def rings_changed(storm, _, dice):
    """Partitions move; the machines learn of it one at a time, in any order."""
    storm.layout.rebalance(dice)
    holders = list(storm.layout.addresses)
    dice.shuffle(holders)
    for holder in holders[:-2]:
        storm.layout.roll_out(holder)
        storm.pause(dice.uniform(0.1, 1.0))
    yield
    for holder in holders[-2:]:
        storm.layout.roll_out(holder)


# On the storage network: a peer that means harm (hostile.py).

def attack(name):
    def fault(storm, _, dice):
        over = threading.Event()

        def run():
            try:
                hostile.ATTACKS[name](storm, dice, over)
            except Exception as error:  # the attack itself does not work
                storm.broken.append(f"{name}: {error!r}")

        thread = threading.Thread(target=run)
        thread.start()
        yield
        over.set()
        thread.join()
    return fault


HIDING["hostile"] |= {f"hostile peer: {name}": attack(name) for name in hostile.ATTACKS}


# What one node holds.

@loss
def bits_flipped_in_data(storm, node, dice):
    spoil(storm, node, dice, lambda path: path.suffix == ".data" and path.stat().st_size, flip)


@loss
def bits_flipped_in_xattr(storm, node, dice):
    def flip_xattr(path, dice):
        name = dice.choice([name for name in os.listxattr(path) if name.startswith("user.swift.")])
        value = bytearray(os.getxattr(path, name))
        value[dice.randrange(len(value))] ^= 1 << dice.randrange(8)
        os.setxattr(path, name, bytes(value))

    spoil(storm, node, dice, lambda path: path.suffix == ".data", flip_xattr)


@loss
def bits_flipped_in_databases(storm, node, dice):
    """In bytes that every open checks: SQLite keeps no checksum of rows, so a wrong row could not be detected."""
    def flip_header(path, dice):
        with open(path, "r+b") as file:
            offset = dice.choice([*range(16), 100])  # the magic words, and the kind of the page that holds the schema
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x80]))

    spoil(storm, node, dice, lambda path: path.suffix == ".db", flip_header)


@loss
def bits_flipped_in_hashes(storm, node, dice):
    spoil(storm, node, dice, lambda path: path.name in ("hashes.pkl", "hashes.invalid") and path.stat().st_size, flip)


@loss
def a_drive_replaced(storm, node, dice):
    device = dice.choice(storm.devices[node])
    storm.nodes.kill_all(node)
    device.release()
    device.format()
    device.mount()
    storm.nodes.start(node)


@loss
def a_node_emptied(storm, node, dice):
    storm.nodes.kill_all(node)
    for device in storm.devices[node]:
        device.release()
        device.format()
        device.mount()
    storm.nodes.start(node)


@loss
def a_node_returned_after_reclaim(storm, node, dice):
    """The node was away when things were deleted, and for longer than any server keeps tombstones.

    Its databases are wiped before it returns, as the rule is for such a node; its objects are what the auditor's watcher for
    dark data is for, once all is calm.
    """
    storm.nodes.kill_all(node)
    storm.nodes.end_daemons()
    for recorder in storm.recorders:
        client = Client(recorder.auth_url)
        storm.say(f"  {recorder.delete_some(client, dice)} objects of {recorder.container} deleted")
        client.close()
    time.sleep(1.5)
    storm.wrong += upkeep.run_passes(storm, ("object-replicator", "container-replicator"), besides=node, conf="server-long-after")
    for device in storm.devices[node]:
        for kind in ("containers", "accounts"):
            shutil.rmtree(device.disk / kind, ignore_errors=True)
    storm.nodes.start_everything()
    storm.dark = True


def spoil(storm, node, dice, wanted, how):
    """Damages a tenth of the files of a kind that the node has, one at least. What upkeep takes away meanwhile is spared."""
    found = []
    for path in sorted(storm.files(node)):
        with suppress(FileNotFoundError):
            found += [path] if wanted(path) else []
    for path in dice.sample(found, max(1, len(found) // 10)) if found else []:
        storm.damaged.add(storm.devices_by_path(path))
        with suppress(FileNotFoundError):
            how(path, dice)


def flip(path, dice):
    with open(path, "r+b") as file:
        offset = dice.randrange(os.fstat(file.fileno()).st_size)
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << dice.randrange(8))]))
