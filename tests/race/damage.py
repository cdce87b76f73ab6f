"""What upkeep is to mend, put on the devices of a layout as OpenStack Swift's own code puts it there."""

import hashlib
import itertools
import os
import pickle
import shutil
from pathlib import Path

from swift.common import utils
from swift.common.ring import Ring
from swift.common.storage_policy import POLICIES
from swift.obj.diskfile import DiskFileManager

PREFIX, SUFFIX = b"before", b"after"  # as layout.py writes swift.conf


def pendings(layout, containers, count):
    """`count` rows for `containers` that wait on the devices, each on one."""
    utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = PREFIX, SUFFIX
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


def objects(layout, numbers, second, only=None):
    """The objects of these numbers with their replicas in place, written at `second`; on device `only`, if told."""
    utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = PREFIX, SUFFIX
    ring = Ring(str(layout.etc), ring_name="object")
    etag, stamp = hashlib.md5(BODY).hexdigest(), f"{second}.00000"
    for number in numbers:
        name = f"object-{number:07d}"
        partition, nodes = ring.get_nodes("AUTH_test", "many", name)
        digest = utils.hash_path("AUTH_test", "many", name)
        metadata = {"name": f"/AUTH_test/many/{name}", "X-Timestamp": stamp, "Content-Length": str(len(BODY)),
                    "Content-Type": "application/octet-stream", "ETag": etag}
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
    os.setxattr(path, "user.swift.metadata", pickle.dumps(metadata, 2))
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
    """The drive is replaced by an empty one."""
    shutil.rmtree(layout.srv / device)
    (layout.srv / device).mkdir()
