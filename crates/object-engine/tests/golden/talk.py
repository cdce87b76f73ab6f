"""OpenStack Swift's object files, driven by the tests: `talk.py write|read DEVICES`.

`write` stores the objects below with OpenStack's DiskFile on device `sda`; `read` prints what it
finds there for the same names, as JSON: {name: null | {deleted} | {metadata, times, md5}}.
"""
import hashlib
import json
import os
import sys

from swift.common import utils
from swift.common.exceptions import DiskFileDeleted, DiskFileNotExist
from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp
from swift.obj import diskfile

utils.HASH_PATH_PREFIX = b''
utils.HASH_PATH_SUFFIX = b'endcap'
BASE = 9000000000
NAMES = ['small', 'empty', 'big', 'posted', 'typed', 'deleted', 'replaced', 'never', '\u00fc \u4e2d%', 'offset']


class Silent(object):
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def body(name):
    return {'empty': b'', 'big': bytes(i % 251 for i in range(300000))}.get(name, name.encode('utf8'))


def put(df, name, ts, extra=()):
    data = body(name)
    with df.create(size=len(data)) as writer:
        writer.write(data)
        metadata = {'X-Timestamp': ts.internal, 'Content-Type': 'text/plain', 'Content-Length': str(len(data)),
                    'ETag': hashlib.md5(data).hexdigest()}
        metadata.update(extra)
        writer.put(metadata)
        writer.commit(ts)


def post(df, ts, color, ctype=None):
    metadata = {'X-Timestamp': ts.internal, 'X-Object-Meta-Color': color}
    if ctype:
        metadata.update({'Content-Type': ctype[0], 'Content-Type-Timestamp': ctype[1].internal})
    df.write_metadata(metadata)


def write(df, name):
    at = lambda n: Timestamp(BASE + n)
    if name == 'never':
        return
    if name == 'offset':
        return put(df, name, Timestamp(BASE + 1, offset=3))
    put(df, name, at(1), {'X-Object-Meta-Taste': 'bl\u00c3\u00bc', 'X-Object-Sysmeta-Kept': 'yes'})
    if name == 'posted':
        post(df, at(2), 'red')
        post(df, at(3), 'blue')
    if name == 'typed':
        post(df, at(2), 'red', ('image/png', at(2)))
        post(df, at(3), 'blue')
    if name == 'deleted':
        df.delete(at(2))
    if name == 'replaced':
        df.delete(at(2))
        put(df, name, at(3))


def read(df):
    try:
        with df.open():
            times = [df.data_timestamp.internal, df.timestamp.internal, df.content_type_timestamp.internal]
            data = b''.join(df.reader())
            items = {k: v.encode('utf8' if k == 'name' else 'latin1').hex() for k, v in df.get_metadata().items()}
            return {'metadata': items, 'times': times, 'md5': hashlib.md5(data).hexdigest()}
    except DiskFileDeleted as error:
        return {'deleted': error.timestamp.internal}
    except DiskFileNotExist:
        return None


def main(verb, devices):
    mgr = diskfile.DiskFileManager({'devices': devices, 'mount_check': 'false'}, Silent())
    answers = {}
    for name in NAMES:
        df = mgr.get_diskfile('sda', '7', 'a', 'c', name, POLICIES[0])
        if verb == 'write':
            write(df, name)
        else:
            answers[name] = read(df)
    quarantined = os.path.join(devices, 'sda', 'quarantined')
    assert not os.path.exists(quarantined), os.listdir(quarantined)
    print(json.dumps(answers))


main(*sys.argv[1:])
