"""Asks OpenStack Swift what object files look like and which of them win; writes golden files.

Run:  ../../.venv/bin/python make.py   (any Python with the `swift` package of 2.38)
Writes table.json (which files of a hash directory win and which go), xattrs.json (metadata and
the bytes they are kept as) and async.json (async_pending records) beside itself.
"""
import itertools
import json
import os
import pickle
import random
import shutil
import sys
import tempfile

import xattr
from swift.common import utils
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp
from swift.obj import diskfile

utils.HASH_PATH_PREFIX = b''
utils.HASH_PATH_SUFFIX = b'endcap'
HERE = os.path.dirname(os.path.abspath(__file__))


class Silent(object):
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def manager(devices):
    return diskfile.DiskFileManager({'devices': devices, 'mount_check': 'false', 'reclaim_age': '604800'}, Silent())


# Far enough ahead that no tombstone is old enough to reclaim, whenever this runs; and long ago.
T = {n: '900000000%d.00000' % n for n in range(1, 5)}
OLD = '1000000000.00000'


def pool():
    names = []
    for n in (1, 2, 3):
        names += [T[n] + '.data', T[n] + '.meta', T[n] + '.ts']
    for meta, ctype in ((1, 1), (2, 2), (2, 1), (3, 3), (3, 2), (3, 1), (4, 2)):
        delta = (ctype - meta) * 100000
        names.append('%s%s%x.meta' % (T[meta], '-' if delta < 0 else '+', abs(delta)))
    names += [T[2] + '_0000000000000001.data', T[2] + '_0000000000000001.meta', T[2] + '_0000000000000002.ts']
    names += [OLD + '.ts', OLD + '.data', OLD + '.meta']
    names += [T[2] + '#1.data', T[3] + '#1#d.data', T[2] + '.durable', 'junk', 'x.data',
              '.' + T[2] + '.data.Xy095a']
    return names


def ask(mgr, files):
    root = tempfile.mkdtemp(dir=WORK)
    hashdir = os.path.join(root, 'objects', '0', 'abc', '0' * 29 + 'abc')
    os.makedirs(hashdir)
    for name in files:
        open(os.path.join(hashdir, name), 'w').close()
    try:
        info = mgr.get_ondisk_files(sorted(files), hashdir)
        chosen = {}
        for key in ('data_file', 'meta_file', 'ctype_file', 'ts_file'):
            chosen[key] = os.path.basename(info[key]) if info.get(key) else None
        mgr.cleanup_ondisk_files(hashdir)
        kept = sorted(os.listdir(hashdir)) if os.path.isdir(hashdir) else []
        return dict(files=sorted(files), kept=kept, **chosen)
    finally:
        shutil.rmtree(root)


def table(mgr):
    names, cases, dice = pool(), [], random.Random(7)
    for size in (1, 2):
        cases += [ask(mgr, c) for c in itertools.combinations(names, size)]
    plain = [n for n in names if not any(c in n for c in '#_') and '.durable' not in n and n[0] == '9']
    for size, count in ((3, 300), (4, 200), (5, 100), (6, 60)):
        for _ in range(count):
            cases.append(ask(mgr, dice.sample(plain if size < 5 else names, size)))
    # Of two POSTs with one timestamp OpenStack may read one and remove just that: its slip, not a rule.
    return [c for c in cases if c['meta_file'] is None or c['meta_file'] in c['kept']]


def xattrs():
    cases = [
        {'X-Timestamp': '1700000000.12345', 'name': '/a/c/o'},
        {'X-Timestamp': '1700000000.12345_0000000000000001', 'Content-Type': 'text/plain', 'Content-Length': '4096',
         'ETag': 'd41d8cd98f00b204e9800998ecf8427e', 'X-Object-Meta-Color': 'bl\u00c3\u00bc', 'name': '/a/c/\u00fc'},
        {'X-Object-Meta-Empty': '', 'X-Object-Meta-Raw': '\u00ff\u00fe', 'name': '/a/c/\u4e2d'},
        {'X-Object-Meta-%d' % n: 'v' * n for n in range(1, 300, 37)},
    ]
    out = []
    for case in cases:
        case.setdefault('name', '/a/c/o')
        fd, path = tempfile.mkstemp(dir=WORK)
        diskfile.write_metadata(fd, case)
        # What a header holds on the wire is latin-1 to Swift; the name is UTF-8.
        items = [[k, v.encode('utf8' if k == 'name' else 'latin1').hex()] for k, v in case.items()]
        out.append({'items': items, 'pickle': xattr.getxattr(path, 'user.swift.metadata').hex(),
                    'checksum': xattr.getxattr(path, 'user.swift.metadata_checksum').decode()})
        os.close(fd)
        os.unlink(path)
    # As a Swift on Python 2 wrote them: byte strings.
    old = b'\x80\x02}q\x01(U\x0bX-TimestampU\x101700000000.12345U\x13X-Object-Meta-ColorU\x04bl\xc3\xbcU\x04nameU\x07/a/c/\xc3\xbcu.'
    pickle.loads(old, encoding='bytes')
    out.append({'items': [['X-Timestamp', b'1700000000.12345'.hex()], ['X-Object-Meta-Color', b'bl\xc3\xbc'.hex()],
                          ['name', b'/a/c/\xc3\xbc'.hex()]], 'pickle': old.hex(), 'checksum': None, 'read_only': True})
    return out


def async_records(mgr):
    out = []
    for policy, update, ts in (
        (0, {'op': 'PUT', 'account': 'a', 'container': 'c', 'obj': 'o',
             'headers': HeaderKeyDict({'x-size': '3', 'x-content-type': 'text/plain', 'x-etag': 'e' * 32,
                                       'x-timestamp': '1700000000.12345', 'x-trans-id': 'tx', 'referer': 'PUT http://h/x',
                                       'user-agent': 'object-server 1', 'X-Backend-Storage-Policy-Index': '0'}),
             'db_state': None}, '1700000000.12345'),
        (0, {'op': 'DELETE', 'account': 'a', 'container': 'c', 'obj': '\u00fc',
             'headers': HeaderKeyDict({'x-timestamp': '1700000001.00000'}), 'db_state': 'unsharded',
             'container_path': '.shards_a/c-1'}, '1700000001.00000'),
    ):
        devices = tempfile.mkdtemp(dir=WORK)
        os.mkdir(os.path.join(devices, 'sda'))
        mgr = manager(devices)
        headers = dict(update['headers'])
        mgr.pickle_async_update('sda', update['account'], update['container'], update['obj'], update,
                                Timestamp(ts), POLICIES[policy])
        for base, _, files in os.walk(devices):
            for name in files:
                path = os.path.join(base, name)
                out.append({'policy': policy, 'timestamp': ts, 'path': os.path.relpath(path, devices),
                            'hash': utils.hash_path(update['account'], update['container'], update['obj']),
                            'update': {k: v for k, v in update.items() if k != 'headers'},
                            'headers': list(headers.items()), 'bytes': open(path, 'rb').read().hex()})
        shutil.rmtree(devices)
    return out


def write(name, cases):
    with open(os.path.join(HERE, name), 'w') as out:
        out.write('[\n' + ',\n'.join(json.dumps(case, sort_keys=True) for case in cases) + '\n]\n')


WORK = tempfile.mkdtemp()
try:
    MGR = manager(WORK)
    write('table.json', table(MGR))
    write('xattrs.json', xattrs())
    write('async.json', async_records(MGR))
finally:
    shutil.rmtree(WORK)
