"""What upkeep is to mend, put on the devices of a layout as OpenStack Swift's own code puts it there."""

import itertools
from pathlib import Path

from swift.common import utils
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
