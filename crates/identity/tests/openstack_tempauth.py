"""Asks OpenStack Swift's TempAuth and ACL functions the questions on stdin (a JSON list), in order.

Answers on stdout, one JSON list. Used by openstack.rs; holds no expectations of its own.
"""
import json
import logging
import sys
import time

logging.disable(logging.CRITICAL)

from swift.common.middleware import acl, tempauth
from swift.common.swob import Request, Response


class Cache(object):
    def __init__(self):
        self.data = {}

    def get(self, key, **kwargs):
        return self.data.get(key)

    def set(self, key, value, **kwargs):
        # as memcached would give it back
        self.data[key] = json.loads(json.dumps(value))


class App(object):
    """Behind the filter: authorises as the proxy does: before it knows an ACL, and if refused, with the question's."""
    container_acl = None

    def __call__(self, env, start_response):
        self.env = env
        req = Request(env)
        denied = env['swift.authorize'](req) if 'swift.authorize' in env else None
        if denied:
            req.acl = self.container_acl
            denied = env['swift.authorize'](req)
        return (denied or Response(request=req))(env, start_response)


APP = App()
FILTERS = {}


def account_info(stored_acl):
    sysmeta = {'core-access-control': stored_acl} if stored_acl is not None else {}
    return {'status': 200, 'container_count': 0, 'total_object_count': 0, 'bytes': 0, 'storage_policies': {},
            'meta': {}, 'sysmeta': sysmeta, 'account_really_exists': True}


def filter_of(conf):
    key = json.dumps(conf, sort_keys=True)
    if key not in FILTERS:
        FILTERS[key] = (tempauth.filter_factory(dict(conf))(APP), Cache())
    return FILTERS[key]


def call(conf, method, path, headers, cache_extra=()):
    app, cache = filter_of(conf)
    cache.data.update(cache_extra)
    APP.env = {}
    wire = {k: v.encode('utf8').decode('latin1') for k, v in headers.items()}
    req = Request.blank(path, method=method, headers=wire, environ={'swift.cache': cache})
    return req.get_response(app)


def token_of(conf, user):
    if user is None:
        return None
    if not isinstance(user, list):
        return user  # a literal token
    resp = call(conf, 'GET', '/auth/v1.0', {'X-Auth-User': user[0], 'X-Auth-Key': user[1]})
    return resp.headers['X-Auth-Token']


def authorize(q):
    APP.container_acl = None
    headers = {}
    for name, user in (('X-Auth-Token', q['user']), ('X-Service-Token', q['service'])):
        token = token_of(q['conf'], user)
        if token is not None:
            headers[name] = token
    if q['referer'] is not None:
        headers['Referer'] = q['referer']
    APP.container_acl = q['container_acl']
    account = q['path'].split('/')[2]
    resp = call(q['conf'], q['method'], q['path'], headers,
                {'account/' + account: account_info(q['account_acl'])})
    return {'status': resp.status_int, 'owner': resp.status_int == 200 and bool(APP.env.get('swift_owner')),
            'realm': resp.headers.get('WWW-Authenticate')}


def grant(q):
    APP.container_acl = None
    resp = call(q['conf'], q['method'], q['path'], q['headers'])
    token = resp.headers.get('X-Auth-Token')
    groups = None
    if token:
        _, cache = filter_of(q['conf'])
        keys = [k for k in cache.data if k.endswith('/token/' + token)]
        groups = [keys[0].replace(token, '<token>'), sorted(cache.data[keys[0]][1].split(','))]
    return {'status': resp.status_int, 'url': resp.headers.get('X-Storage-Url'), 'groups': groups,
            'realm': resp.headers.get('WWW-Authenticate')}


def clean(q):
    try:
        return {'ok': acl.clean_acl(q['header'], q['value'])}
    except ValueError as err:
        return {'error': str(err)}


def referrer(q):
    return acl.referrer_allowed(q['referer'], q['rules'])


def account_acl(q):
    app, _ = filter_of(q['conf'])
    req = Request.blank('/v1/AUTH_a', method='POST', headers={
        'X-Account-Access-Control': q['value'].encode('utf8').decode('latin1')})
    return app.extract_acl_and_report_errors(req)


ASK = {'authorize': authorize, 'grant': grant, 'clean': clean, 'referrer': referrer, 'account_acl': account_acl}
json.dump([ASK[q['ask']](q) for q in json.load(sys.stdin)], sys.stdout)
