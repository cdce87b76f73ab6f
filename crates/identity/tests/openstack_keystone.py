"""Asks OpenStack Swift's keystoneauth the questions on stdin (a JSON list), in order.

Answers on stdout, one JSON list. Used by openstack_keystone.rs; holds no expectations of its own. A question's `headers` are
what authtoken would have left on the request.
"""
import json
import logging
import sys

logging.disable(logging.CRITICAL)

from swift.common.middleware import keystoneauth
from swift.common.swob import Request, Response


class Cache(object):
    def __init__(self):
        self.data = {}

    def get(self, key, **kwargs):
        return self.data.get(key)

    def set(self, key, value, **kwargs):
        self.data[key] = value


class App(object):
    """Behind the filter: authorises as the proxy does: before it knows an ACL, and if refused, with the question's."""

    def __call__(self, env, start_response):
        self.env = env
        req = Request(env)
        denied = env['swift.authorize'](req) if 'swift.authorize' in env else None
        if denied:
            req.acl = self.container_acl
            denied = env['swift.authorize'](req)
        self.domain_sent = req.headers.get('X-Account-Sysmeta-Project-Domain-Id')
        return (denied or Response(request=req, headers=self.answer))(env, start_response)


APP = App()
FILTERS = {}


def account_info(domain, exists):
    sysmeta = {} if domain is None else {'project-domain-id': domain}
    return {'status': 200 if exists else 404, 'container_count': 0, 'total_object_count': 0, 'bytes': 0,
            'storage_policies': {}, 'meta': {}, 'sysmeta': sysmeta, 'account_really_exists': exists}


def token_info(headers):
    """What authtoken would have read the domains from, if the token has any."""
    user, project = headers.get('X-User-Domain-Id'), headers.get('X-Project-Domain-Id')
    if user is None:
        return None
    token = {'user': {'id': headers.get('X-User-Id'), 'domain': {'id': user}}}
    if project is not None:
        token['project'] = {'id': headers.get('X-Project-Id'), 'domain': {'id': project}}
    return {'token': token}


def authorize(q):
    key = json.dumps(q['conf'], sort_keys=True)
    if key not in FILTERS:
        FILTERS[key] = keystoneauth.filter_factory(dict(q['conf']))(APP)
    cache = Cache()
    account = (q['path'].split('/') + ['', ''])[2]
    cache.data['account/' + account] = account_info(q['domain'], q['exists'])
    APP.container_acl, APP.env, APP.domain_sent, APP.answer = q['acl'], {}, None, {}
    headers = dict(q['headers'])
    if q['referer'] is not None:
        headers['Referer'] = q['referer']
    environ = {'swift.cache': cache}
    info = token_info(q['headers'])
    if info:
        environ['keystone.token_info'] = info
    if q.get('override'):
        environ['swift.authorize_override'] = True
    wire = {k: v.encode('utf8').decode('latin1') for k, v in headers.items()}
    if q.get('stored'):
        APP.answer = {'X-Account-Sysmeta-Project-Domain-Id': q['stored']}
    resp = Request.blank(q['path'], method=q['method'], headers=wire, environ=environ).get_response(FILTERS[key])
    allowed = resp.status_int == 200
    return {'status': resp.status_int, 'owner': allowed and bool(APP.env.get('swift_owner')),
            'reseller': allowed and bool(APP.env.get('reseller_request')),
            'domain_sent': APP.domain_sent if allowed else None,
            'domain_shown': resp.headers.get('X-Account-Project-Domain-Id'),
            'realm': resp.headers.get('WWW-Authenticate')}


json.dump([authorize(q) for q in json.load(sys.stdin)], sys.stdout)
