"""OpenStack Swift's brokers, driven by JSON: one request per line in, one answer per line out.

Run by tests/oracle.rs with the Python of a virtual environment that has `swift` installed.
Nothing here is Swift's code; it calls what Swift installs.
"""
import json
import os
import sqlite3
import sys

import swift.common.utils as utils
from swift.account.backend import AccountBroker
from swift.container.backend import ContainerBroker
from swift.common.utils import ShardRange

utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b'pre', b'suf'

SYNCS = ''.join('''
        CREATE TABLE %(table)s (remote_id TEXT UNIQUE, sync_point INTEGER, updated_at TEXT DEFAULT 0);
        CREATE TRIGGER %(table)s_insert AFTER INSERT ON %(table)s BEGIN UPDATE %(table)s
            SET updated_at = STRFTIME('%%s', 'NOW') WHERE ROWID = new.ROWID; END;
        CREATE TRIGGER %(table)s_update AFTER UPDATE ON %(table)s BEGIN UPDATE %(table)s
            SET updated_at = STRFTIME('%%s', 'NOW') WHERE ROWID = new.ROWID; END;
        ''' % {'table': table} for table in ('outgoing_sync', 'incoming_sync'))
OLD = {
    # What releases before storage policies made; facts of the format, from the documentation of old releases.
    'container': '''
        CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, size INTEGER,
            content_type TEXT, etag TEXT, deleted INTEGER DEFAULT 0);
        CREATE INDEX ix_object_deleted_name ON object (deleted, name);
        CREATE TRIGGER object_insert AFTER INSERT ON object BEGIN UPDATE container_stat SET
            object_count = object_count + (1 - new.deleted), bytes_used = bytes_used + new.size,
            hash = chexor(hash, new.name, new.created_at); END;
        CREATE TRIGGER object_update BEFORE UPDATE ON object BEGIN
            SELECT RAISE(FAIL, 'UPDATE not allowed; DELETE and INSERT'); END;
        CREATE TRIGGER object_delete AFTER DELETE ON object BEGIN UPDATE container_stat SET
            object_count = object_count - (1 - old.deleted), bytes_used = bytes_used - old.size,
            hash = chexor(hash, old.name, old.created_at); END;
        CREATE TABLE container_stat (account TEXT, container TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0',
            delete_timestamp TEXT DEFAULT '0', object_count INTEGER, bytes_used INTEGER,
            reported_put_timestamp TEXT DEFAULT '0', reported_delete_timestamp TEXT DEFAULT '0',
            reported_object_count INTEGER DEFAULT 0, reported_bytes_used INTEGER DEFAULT 0,
            hash TEXT default '00000000000000000000000000000000', id TEXT, status TEXT DEFAULT '',
            status_changed_at TEXT DEFAULT '0'%s);
        INSERT INTO container_stat (object_count, bytes_used) VALUES (0, 0);
        UPDATE container_stat SET account = 'a', container = 'c', created_at = '1700000000.00000', id = 'old',
            put_timestamp = '1700000000.00000';
        ''',
    'account': '''
        CREATE TABLE container (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, put_timestamp TEXT,
            delete_timestamp TEXT, object_count INTEGER, bytes_used INTEGER, deleted INTEGER DEFAULT 0);
        CREATE INDEX ix_container_deleted_name ON container (deleted, name);
        CREATE TRIGGER container_insert AFTER INSERT ON container BEGIN UPDATE account_stat SET
            container_count = container_count + (1 - new.deleted), object_count = object_count + new.object_count,
            bytes_used = bytes_used + new.bytes_used, hash = chexor(hash, new.name, new.put_timestamp || '-' ||
            new.delete_timestamp || '-' || new.object_count || '-' || new.bytes_used); END;
        CREATE TRIGGER container_update BEFORE UPDATE ON container BEGIN
            SELECT RAISE(FAIL, 'UPDATE not allowed; DELETE and INSERT'); END;
        CREATE TRIGGER container_delete AFTER DELETE ON container BEGIN UPDATE account_stat SET
            container_count = container_count - (1 - old.deleted), object_count = object_count - old.object_count,
            bytes_used = bytes_used - old.bytes_used, hash = chexor(hash, old.name, old.put_timestamp || '-' ||
            old.delete_timestamp || '-' || old.object_count || '-' || old.bytes_used); END;
        CREATE TABLE account_stat (account TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0',
            delete_timestamp TEXT DEFAULT '0', container_count INTEGER, object_count INTEGER DEFAULT 0,
            bytes_used INTEGER DEFAULT 0, hash TEXT default '00000000000000000000000000000000', id TEXT,
            status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0'%s);
        INSERT INTO account_stat (container_count) VALUES (0);
        UPDATE account_stat SET account = 'a', created_at = '1700000000.00000', id = 'old',
            put_timestamp = '1700000000.00000';
        ''',
}
EXTRA = {
    'container': ['', ", metadata TEXT DEFAULT ''", ", metadata TEXT DEFAULT '',"
                  " x_container_sync_point1 INTEGER DEFAULT -1, x_container_sync_point2 INTEGER DEFAULT -1"],
    'account': ['', ", metadata TEXT DEFAULT ''"],
}
NAMES = {'container': 'object', 'account': 'container'}
# What releases before 1.3 made instead.
FIRST = {
    'container': [('name TEXT,', 'name TEXT UNIQUE,'),
                  ('CREATE INDEX ix_object_deleted_name ON object (deleted, name)',
                   'CREATE INDEX ix_object_deleted ON object (deleted)')],
    'account': [('name TEXT,', 'name TEXT UNIQUE,'),
                ('CREATE INDEX ix_container_deleted_name ON container (deleted, name)',
                 'CREATE INDEX ix_container_deleted ON container (deleted);'
                 ' CREATE INDEX ix_container_name ON container (name)')],
}
# What account databases of 2.0 and 2.1 have beside that.
POLICIES = '''
    ALTER TABLE container ADD COLUMN storage_policy_index INTEGER DEFAULT 0;
    CREATE TABLE policy_stat (storage_policy_index INTEGER PRIMARY KEY, object_count INTEGER DEFAULT 0,
        bytes_used INTEGER DEFAULT 0);
    INSERT OR IGNORE INTO policy_stat (storage_policy_index, object_count, bytes_used)
        SELECT 0, object_count, bytes_used FROM account_stat WHERE container_count > 0;
    CREATE TRIGGER container_insert_ps AFTER INSERT ON container BEGIN
        INSERT OR IGNORE INTO policy_stat (storage_policy_index, object_count, bytes_used)
            VALUES (new.storage_policy_index, 0, 0);
        UPDATE policy_stat SET object_count = object_count + new.object_count,
            bytes_used = bytes_used + new.bytes_used WHERE storage_policy_index = new.storage_policy_index; END;
    CREATE TRIGGER container_delete_ps AFTER DELETE ON container BEGIN
        UPDATE policy_stat SET object_count = object_count - old.object_count,
            bytes_used = bytes_used - old.bytes_used WHERE storage_policy_index = old.storage_policy_index; END;
'''
# What sharding had before two columns were added.
SHARDS = '''
    CREATE TABLE shard_range (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, timestamp TEXT, lower TEXT,
        upper TEXT, object_count INTEGER DEFAULT 0, bytes_used INTEGER DEFAULT 0, meta_timestamp TEXT,
        deleted INTEGER DEFAULT 0, state INTEGER, state_timestamp TEXT, epoch TEXT);
    CREATE TRIGGER shard_range_update BEFORE UPDATE ON shard_range BEGIN
        SELECT RAISE(FAIL, 'UPDATE not allowed; DELETE and INSERT'); END;
'''


def broker(request):
    if request['kind'] == 'account':
        return AccountBroker(request['path'], account='a')
    return ContainerBroker(request['path'], account='a', container='c')


def create(request):
    made = broker(request)
    os.makedirs(os.path.dirname(request['path']), exist_ok=True)
    made.initialize('1700000000.00000', 0)


def create_old(request):
    kind, path = request['kind'], request['path']
    os.makedirs(os.path.dirname(path), exist_ok=True)
    connection = sqlite3.connect(path)
    connection.create_function('chexor', 3, utils.chexor if hasattr(utils, 'chexor') else __import__(
        'swift.common.db', fromlist=['chexor']).chexor)
    schema = SYNCS + OLD[kind] % EXTRA[kind][request['extra']]
    for now, first in FIRST[kind] if request.get('first') else ():
        assert now in schema
        schema = schema.replace(now, first)
    connection.executescript(schema)
    for i in range(5):
        if kind == 'account':
            connection.execute('INSERT INTO container (name, put_timestamp, delete_timestamp, object_count,'
                               ' bytes_used, deleted) VALUES (?, ?, 0, ?, ?, ?)',
                               ('old%d' % i, '170000000%d.00000' % i, i, i * 10, int(i == 4)))
        else:
            connection.execute('INSERT INTO object (name, created_at, size, content_type, etag, deleted)'
                               ' VALUES (?, ?, ?, ?, ?, ?)',
                               ('old%d' % i, '170000000%d.00000' % i, i, 't', 'e', int(i == 4)))
    connection.executescript({'policies': POLICIES, 'shards': SHARDS}.get(request.get('more'), ''))
    connection.commit()
    connection.close()


def apply(request):
    target = broker(request)
    for name, *arguments in request['operations']:
        if name == 'settle':
            target.get_info()
        else:
            getattr(target, name)(*arguments)
    target.get_info()


def migrate(request):
    """Uses the database, so that OpenStack's broker adds what it misses."""
    target = broker(request)
    if request['kind'] == 'account':
        target.put_container('new', '1700000009.00000', '0', 1, 2, 0)
        target.get_policy_stats(do_migrations=True)
    else:
        target.put_object('new', '1700000009.00000', 1, 't', 'e')
        if request.get('shards'):
            ranges = [ShardRange('.shards_a/c-1', '1700000009.00000', lower='a', upper='m')]
            target.merge_shard_ranges(ranges)
        target.set_x_container_sync_points(1, 2)
    target.update_metadata({'X-Meta': ['v', '1700000009.00000']})
    target.get_info()


def dump(request):
    broker(request).get_info()
    connection = sqlite3.connect(request['path'])
    kind = request['kind']
    stat = 'account_stat' if kind == 'account' else 'container_info'
    row = connection.execute('SELECT * FROM ' + stat)
    columns = [d[0] for d in row.description]
    values = dict(zip(columns, row.fetchone()))
    rows = [list(r)[1:] for r in connection.execute('SELECT * FROM %s ORDER BY name, storage_policy_index'
                                                    % NAMES[kind])]
    schema = sorted([kind_, name] for kind_, name in connection.execute(
        "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
    policies = [list(r) for r in connection.execute('SELECT * FROM policy_stat ORDER BY 1')]
    return {'stat': values, 'rows': rows, 'schema': schema, 'policies': policies,
            'deleted': broker(request).is_deleted(), 'empty': broker(request).empty()}


def listing(request):
    target = broker(request)
    answers = []
    for query in request['queries']:
        path = query.pop('path', None)
        if request['kind'] == 'account':
            found = target.list_containers_iter(allow_reserved=query.pop('reserved'), **query)
            answers.append([[r[0], bool(r[5])] + ([] if r[5] else [r[1], r[2], r[3]]) for r in found])
        else:
            found = target.list_objects_iter(allow_reserved=query.pop('reserved'), path=path, **query)
            answers.append([[r[0], r[3] is None] + ([] if r[3] is None else [r[1], r[2], r[3], r[4]])
                            for r in found])
    return answers


COMMANDS = {'create': create, 'migrate': migrate, 'create_old': create_old, 'apply': apply, 'dump': dump, 'list': listing}

if __name__ == '__main__':
    for line in sys.stdin:
        request = json.loads(line)
        answer = COMMANDS[request.pop('command')](request)
        print(json.dumps(answer), flush=True)
