"""OpenStack Swift's account and container servers, asked by JSON: one request per line in, one answer per line out.

Run by tests/as_openstack.rs with the Python of a virtual environment that has `swift` installed.
The first argument is the directory of devices. Nothing here is Swift's code; it calls what Swift installs.
"""
import json
import logging
import sys

import swift.common.storage_policy as storage_policy
import swift.common.utils as utils

utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b'pre', b'suf'
storage_policy._POLICIES = storage_policy.StoragePolicyCollection([
    storage_policy.StoragePolicy(0, 'gold', True), storage_policy.StoragePolicy(1, 'silver', False),
    storage_policy.StoragePolicy(2, 'old', False, is_deprecated=True)])

from swift.account.server import AccountController  # noqa: E402
from swift.common.swob import Request  # noqa: E402
from swift.container.server import ContainerController  # noqa: E402

logging.raiseExceptions = False
CONF = {'devices': sys.argv[1], 'mount_check': 'false', 'fallocate_reserve': '0'}
SERVERS = {'container': ContainerController(CONF), 'account': AccountController(CONF)}

for line in sys.stdin:
    asked = json.loads(line)
    headers = {name: value.encode('utf8').decode('latin1') for name, value in asked['headers']}
    request = Request.blank(asked['path'], environ={'REQUEST_METHOD': asked['method']}, headers=headers,
                            body=asked.get('body', '').encode('utf8'))
    request.method = asked['method']
    answer = request.get_response(SERVERS[asked['server']])
    print(json.dumps({
        'status': answer.status_int,
        'headers': {name.lower(): value.encode('latin1').decode('utf8') for name, value in answer.headers.items()},
        'body': answer.body.decode('utf8'),
    }), flush=True)
