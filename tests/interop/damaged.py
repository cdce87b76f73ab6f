"""Fills sdb1 of a layout with sound and damaged objects, as OpenStack stores them: SWIFT_DIR DEVICES PART_POWER.

Prints JSON: {hash: name}. Run through harness/openstack_main.py, so that names are hashed as the layout says.
"""

import hashlib
import json
import os
import sys
import time

from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp, hash_path, validate_hash_conf
from swift.obj import diskfile

NOW = time.time()
LONG_AGO = NOW - 90000


class Silent:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class Damaged:
    def __init__(self, devices, part_power):
        self.device, self.part_power, self.names = os.path.join(devices, "sdb1"), part_power, {}
        self.manager = diskfile.DiskFileManager({"devices": devices, "mount_check": "false"}, Silent())

    def file(self, name):
        hashed = hash_path("a", "c", name)
        self.names[hashed] = name
        partition = int(hashed[:8], 16) >> (32 - self.part_power)
        return self.manager.get_diskfile("sdb1", partition, "a", "c", name, policy=POLICIES[0])

    def put(self, name, body=b"hello", /, *, drop=None, **metadata):
        """An object; where its file is. `drop` takes a header out, `metadata` sets some (`_` for `-`)."""
        file, stamp = self.file(name), Timestamp(NOW - 100)
        with file.create(size=len(body)) as writer:
            writer.write(body)
            writer.put({"X-Timestamp": stamp.internal, "Content-Type": "text/plain", "Content-Length": str(len(body)),
                        "ETag": hashlib.md5(body).hexdigest()})
            writer.commit(stamp)
        path = os.path.join(file._datadir, stamp.internal + ".data")
        kept = diskfile.read_metadata(path)
        kept.update({key.replace("_", "-"): value for key, value in metadata.items()})
        kept.pop(drop, None)
        strip(path)
        diskfile.write_metadata(path, kept)
        return path

    def post(self, name):
        stamp = Timestamp(NOW - 50)
        file = self.file(name)
        file.write_metadata({"X-Timestamp": stamp.internal, "X-Object-Meta-Color": "red"})
        return os.path.join(file._datadir, stamp.internal + ".meta")

    def delete(self, name, age):
        file, stamp = self.file(name), Timestamp(NOW - 100)
        file.delete(stamp)
        path = os.path.join(file._datadir, stamp.internal + ".ts")
        aged = os.path.join(file._datadir, Timestamp(NOW - age).internal + ".ts")
        os.rename(path, aged)
        return aged

    def fill(self):
        self.put("ok")
        self.put("empty", b"")
        self.put("long ok", b"x" * 300000)
        write(self.put("corrupt"), b"jello")
        write(self.put("long corrupt", b"x" * 300000), b"jello")
        os.truncate(self.put("short"), 3)
        os.truncate(self.put("zeroed"), 0)
        os.truncate(self.put("longer"), 9)
        self.fill_with_bad_metadata()
        self.fill_with_strays()

    def fill_with_bad_metadata(self):
        strip(self.put("no metadata"))
        path = self.put("rubbish")
        strip(path)
        os.setxattr(path, "user.swift.metadata", b"rubbish")
        os.setxattr(self.put("checksum"), "user.swift.metadata_checksum", b"0" * 32)
        self.put("other name", name="/a/c/other")
        self.put("no length", drop="Content-Length")
        self.put("no type", drop="Content-Type")
        self.put("no time", drop="X-Timestamp")
        self.put("bad length", Content_Length="five")
        self.put("bad etag", ETag="0" * 32)
        write(self.put("expired", X_Delete_At=str(int(NOW - 50))), b"jello")
        self.put("bad expiry", X_Delete_At="never")
        # OpenStack's auditor stumbles over these in every pass and leaves them; see the test.
        self.put("no name", drop="name")
        self.put("no etag", drop="ETag")

    def fill_with_strays(self):
        self.delete("grave", 100)
        self.delete("old grave", 8 * 86400)
        strip(self.delete("bad grave", 100))
        self.put("posted")
        self.post("posted")
        self.put("bad post")
        strip(self.post("bad post"))
        os.makedirs(self.file("empty directory")._datadir)
        touch(self.put("junk beside"), "junk")
        path = self.put("rsync")
        os.utime(touch(path, f".{os.path.basename(path)}.AbCdE1"), (LONG_AGO, LONG_AGO))
        touch(path, f".{os.path.basename(path)}.AbCdE2")
        path = self.put("link")
        os.rename(path, os.path.join(self.device, "elsewhere"))
        os.symlink(os.path.join(self.device, "elsewhere"), path)
        path = self.file("file for directory")._datadir
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
        path = write(self.put("taken"), b"jello")
        taken = os.path.join(self.device, "quarantined", "objects", os.path.basename(os.path.dirname(path)))
        os.makedirs(taken)
        touch(os.path.join(taken, "x"), "kept")
        for place in ("objects/3/123/foo", "objects/3/no suffix/foo", "objects/rubbish/123"):
            os.makedirs(os.path.join(self.device, place))
        for place in ("objects/3/124", "objects/file"):
            touch(os.path.join(self.device, place), os.path.basename(place))
        # As above.
        path = self.put("dangling")
        os.unlink(path)
        os.symlink("/nowhere", path)
        path = self.put("directory for file")
        os.unlink(path)
        os.mkdir(path)
        touch(os.path.join(path, "x"), "kept")


def strip(path):
    for key in os.listxattr(path):
        os.removexattr(path, key)


def write(path, body):
    with open(path, "r+b") as file:
        file.write(body)
    return path


def touch(beside, name):
    path = os.path.join(os.path.dirname(beside), name)
    with open(path, "w") as file:
        file.write("x")
    return path


validate_hash_conf()
damaged = Damaged(sys.argv[1], int(sys.argv[2]))
damaged.fill()
for folder, _, files in os.walk(os.path.join(damaged.device, "objects")):
    if "hashes.invalid" in files:
        open(os.path.join(folder, "hashes.invalid"), "w").close()
print(json.dumps(damaged.names))
