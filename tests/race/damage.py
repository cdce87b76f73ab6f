"""What upkeep is to mend, put on the devices of a layout as OpenStack Swift's own code puts it there."""

import hashlib
import itertools
import os
import shutil
from pathlib import Path

from swift.account.backend import AccountBroker
from swift.common import utils
from swift.common.ring import Ring
from swift.common.storage_policy import POLICIES
from swift.container.backend import ContainerBroker
from swift.obj.diskfile import DiskFileManager, write_metadata
from swift.obj.expirer import ExpirerConfig


def pendings(layout, containers, count):
    """`count` rows for `containers` that wait on the devices, each on one."""
    manager = DiskFileManager({"devices": str(layout.srv), "mount_check": "false"}, utils.get_logger({}, "damage"))
    places = itertools.cycle([(device, container) for container in containers for device in layout.devices])
    for number, (device, container) in zip(range(count), places):
        timestamp, name = f"{1_700_000_000 + number}.00000", f"late-{number:06d}"
        headers = {"x-size": "4096", "x-content-type": "application/octet-stream", "x-timestamp": timestamp,
                   "x-etag": "d41d8cd98f00b204e9800998ecf8427e", "x-backend-storage-policy-index": "0",
                   "user-agent": "object-server 1", "referer": f"PUT http://127.0.0.1/{device}/0/AUTH_test/{container}/{name}",
                   "x-trans-id": "tx0"}
        record = {"op": "PUT", "account": "AUTH_test", "container": container, "obj": name, "headers": headers,
                  "container_path": None}
        manager.pickle_async_update(device, "AUTH_test", container, name, record, timestamp, POLICIES[0])


def pendings_left(layout):
    """Records on all devices."""
    return sum(1 for path in Path(layout.srv).glob("*/async_pending*/*/*") if path.is_file())


BODY = b"x" * 1024
EXPIRING = ".expiring_objects"
EXPIRER = ExpirerConfig({})


def objects(layout, numbers, second, only=None, more=()):
    """The objects of these numbers with their replicas in place, written at `second`; on device `only`, if given, and with
    `more` metadata."""
    ring = Ring(str(layout.etc), ring_name="object")
    etag, stamp = hashlib.md5(BODY).hexdigest(), f"{second}.00000"
    for number in numbers:
        name = f"object-{number:07d}"
        partition, nodes = ring.get_nodes("AUTH_test", "many", name)
        digest = utils.hash_path("AUTH_test", "many", name)
        metadata = {"name": f"/AUTH_test/many/{name}", "X-Timestamp": stamp, "Content-Length": str(len(BODY)),
                    "Content-Type": "application/octet-stream", "ETag": etag, **dict(more)}
        for node in nodes:
            if only is None or node["device"] == only:
                folder = layout.srv / node["device"] / "objects" / str(partition) / digest[-3:] / digest
                put(folder, stamp, metadata)
                invalidate(folder.parent)


def put(folder, stamp, metadata):
    """A .data file in place of whatever was in the hash directory, as a PUT leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    before = os.listdir(folder)
    path = folder / f"{stamp}.data"
    path.write_bytes(BODY)
    write_metadata(str(path), metadata)
    for name in before:
        if name != path.name:
            (folder / name).unlink()


def invalidate(suffix):
    """Note in the partition that the suffix has changed."""
    with open(suffix.parent / "hashes.invalid", "a") as notes:
        notes.write(suffix.name + "\n")


def data_files(layout, device):
    """How many .data files the device has."""
    return sum(name.endswith(".data") for _, _, names in os.walk(layout.srv / device / "objects") for name in names)


def newest_everywhere(layout, second):
    """How many .data files of this second there are on each device."""
    name = f"{second}.00000.data"
    return [sum(name in names for _, _, names in os.walk(layout.srv / device / "objects")) for device in layout.devices]


def lose(layout, device):
    """The drive is replaced by an empty one. What it held is put away: an ext4 from which it was just deleted would look
    through its places at every new file, as it takes none of them again for a minute."""
    lost = layout.root / "lost"
    lost.mkdir(exist_ok=True)
    (layout.srv / device).rename(lost / f"{device}-{len(os.listdir(lost))}")
    (layout.srv / device).mkdir()


def expired(layout, count, second, due):
    """Objects written at `second` that are due to be deleted at `due`, in their listing and in the queue of the expirer."""
    objects(layout, range(count), second, more={"X-Delete-At": str(due)})
    names = [f"object-{number:07d}" for number in range(count)]
    row = {"created_at": f"{second}.00000", "deleted": 0, "storage_policy_index": 0}
    listed = {**row, "size": len(BODY), "content_type": "application/octet-stream", "etag": hashlib.md5(BODY).hexdigest()}
    container(layout, "AUTH_test", "many", second, [{**listed, "name": name} for name in names])
    task = {**row, "size": 0, "content_type": "text/plain", "etag": hashlib.md5().hexdigest()}
    queues = {}
    for name in names:
        queue = EXPIRER.get_expirer_container(due, "AUTH_test", "many", name)
        queues.setdefault(str(queue), []).append({**task, "name": f"{due}-AUTH_test/many/{name}"})
    for queue, rows in queues.items():
        container(layout, EXPIRING, queue, second, rows)
    account(layout, EXPIRING, second, queues)


def container(layout, owner, name, second, rows):
    """The databases of a container with these rows; it may be there already."""
    for path in places(layout, "container", owner, name):
        broker = ContainerBroker(str(path), account=owner, container=name)
        if not path.exists():
            broker.initialize(f"{second}.00000", 0)
        broker.merge_items([dict(row) for row in rows])


def account(layout, name, second, containers):
    """The databases of an account with these containers."""
    for path in places(layout, "account", name):
        broker = AccountBroker(str(path), account=name)
        broker.initialize(f"{second}.00000")
        for one, rows in containers.items():
            broker.put_container(one, f"{second}.00000", "0", len(rows), 0, 0)


def places(layout, kind, *names):
    """Where the databases belong."""
    partition, nodes = Ring(str(layout.etc), ring_name=kind).get_nodes(*names)
    digest = utils.hash_path(*names)
    return [layout.srv / node["device"] / f"{kind}s" / str(partition) / digest[-3:] / digest / f"{digest}.db" for node in nodes]
