"""OpenStack's suffix hashes: `hashes.py DEVICES` prints {partition: [computed, {suffix: hash}]} of device `sda`."""
import json
import os
import sys

from swift.common.storage_policy import POLICIES
from swift.obj import diskfile


class Silent(object):
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


devices = sys.argv[1]
manager = diskfile.DiskFileManager({'devices': devices, 'mount_check': 'false'}, Silent())
partitions = sorted(os.listdir(os.path.join(devices, 'sda', 'objects')))
print(json.dumps({p: manager._get_hashes('sda', p, POLICIES[0]) for p in partitions if p.isdigit()}))
