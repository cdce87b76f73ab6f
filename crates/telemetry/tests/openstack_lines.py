"""Writes OpenStack Swift's log lines for the requests on stdin (a JSON list); a JSON list on stdout."""
import json
import logging
import sys

logging.disable(logging.CRITICAL)

from swift.common import utils
from swift.common.middleware import proxy_logging
from swift.common.registry import register_sensitive_param
from swift.common.swob import Request, Response

register_sensitive_param('temp_url_sig')


class Lines(object):
    def __init__(self):
        self.lines = []

    def info(self, message, *args):
        self.lines.append(message % args if args else message)

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def app(env, start_response):
    env['wsgi.input'].read()
    q = env['test.q']
    headers = {}
    if q['policy'] is not None:
        headers['X-Backend-Storage-Policy-Index'] = str(q['policy'])
    if q['info']:
        env['swift.log_info'] = q['info'].split(',')
    if q['user']:
        env['swift.access_logging'] = {'user_id': q['user']}
    resp = Response(request=Request(env), status=q['status'], body=b'x' * q['sent'], headers=headers)
    return resp(env, start_response)


def request(q):
    headers = {k: v.encode('utf8').decode('latin1') for k, v in q['headers'].items()}
    req = Request.blank(q['url'], method=q['method'], body=b'x' * q['received'], headers=headers,
                        environ={'swift.trans_id': 'tx123', 'SERVER_PROTOCOL': 'HTTP/1.1', 'test.q': q})
    if not q['received']:
        req.headers.pop('Content-Length', None)
    req.headers.pop('Host', None)
    req.remote_addr = q['remote']
    return req


def proxy(q):
    middleware = proxy_logging.filter_factory({'reveal_sensitive_prefix': str(q['reveal'])})(app)
    middleware.access_logger = Lines()
    request(q).get_response(middleware).body
    return middleware.access_logger.lines[0]


def template(q):
    middleware = proxy_logging.filter_factory({
        'log_msg_template': q['template'], 'log_anonymization_method': q['hash'], 'log_anonymization_salt': q['salt'],
        'access_log_headers': 'true', 'access_log_headers_only': 'Referer'})(app)
    middleware.access_logger = Lines()
    req = request(q)
    req.headers['Host'] = q['headers']['Host']
    req.get_response(middleware).body
    return middleware.access_logger.lines[0]


def storage(q):
    req = request(q)
    resp = Response(request=req, status=q['status'], body=b'x' * q['sent'])
    if q['policy'] is not None:
        req.headers['X-Backend-Storage-Policy-Index'] = str(q['policy'])
    return utils.get_log_line(req, resp, q['took'], q['info'], utils.LOG_LINE_DEFAULT_FORMAT, 'MD5', '')


json.dump([{'proxy': proxy, 'storage': storage, 'template': template}[q['line']](q) for q in json.load(sys.stdin)], sys.stdout)
