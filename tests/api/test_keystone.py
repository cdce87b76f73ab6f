"""A real Keystone, with OpenStack's proxy and Martlet's beside each other on it.

Both systems are asked the same requests by the same users; status, who is challenged how, and what the account
shows must agree. Run with the environment of harness/keystone.py made (the first run makes it).
"""

import http.client
import json
import time

import boto3
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from harness.cluster import Cluster
from harness.keystone import USERS, Keystone, with_keystone
from harness.filters import PIPELINE
from harness.layout import Layout
from harness.memcached import Memcached
from harness.signing import signed_chunks
from harness.waiting import until

# What only owners are shown of a container.
OWNERS_HEADERS = {"x-container-read": ".r:*", "x-container-write": "x", "x-container-sync-key": "k",
                  "x-container-sync-to": "//r/c/AUTH_x/y", "x-container-meta-temp-url-key": "t"}


class Side:
    """One make's cluster, asked in raw requests."""

    def __init__(self, cluster, keystone):
        self.cluster, self.keystone = cluster, keystone

    def ask(self, method, path, user=None, service=None, headers=None, body=None):
        headers = dict(headers or {})
        if user is not None:
            headers["X-Auth-Token"] = self.keystone.tokens.get(user, user)
        if service is not None:
            headers["X-Service-Token"] = self.keystone.tokens.get(service, service)
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=90)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def look(self, *question, **more):
        """What must agree between the makes."""
        status, headers, body = self.ask(*question, **more)
        challenges = sorted(value for name, value in headers if name.lower() == "www-authenticate")
        domain = [value for name, value in headers if name.lower() == "x-account-project-domain-id"]
        owners = sorted((name.lower(), value) for name, value in headers if name.lower() in OWNERS_HEADERS)
        return status, challenges, domain, owners, body if status >= 400 else b""


@pytest.fixture(scope="module")
def keystone(tmp_path_factory):
    keystone = Keystone(tmp_path_factory.mktemp("keystone"), swift_port=8080).start()
    keystone.tokens = {user: keystone.token(user) for user in USERS}
    keystone.keys = {user: keystone.access_key(user) for user in ("tester", "tester3", "tester6")}
    yield keystone
    keystone.stop()


def sides_with(keystone, tmp_path_factory, **options):
    """OpenStack and Martlet on layouts of their own, sharing Keystone but no data."""
    memcached = Memcached().start()
    sides = []
    for kind in ("openstack", "martlet"):
        own = Memcached().start() if kind == "martlet" else memcached
        layout = Layout(tmp_path_factory.mktemp(kind), memcached_port=own.port)
        layout.pipeline = with_keystone(PIPELINE)
        layout.overrides = {"proxy": keystone.filters(**options)}
        cluster = Cluster(layout.write(), kind, python=keystone.python)
        side = Side(cluster, keystone)
        side.memcached = own
        sides.append(side)
        cluster.start()
    return sides


@pytest.fixture(scope="module")
def sides(keystone, tmp_path_factory):
    sides = sides_with(keystone, tmp_path_factory)
    yield sides
    for side in sides:
        side.cluster.stop()
        side.memcached.stop()


def same(sides, *question, **more):
    """What both answer. A listing that may lag behind is asked for again."""
    def agree():
        openstack, martlet = (side.look(*question, **more) for side in sides)
        lagging = question[0] in ("GET", "HEAD") and openstack[0] // 100 == martlet[0] // 100 == 2
        if martlet != openstack and not lagging:
            pytest.fail(f"{question} {more}: OpenStack {openstack}, here {martlet}")
        assert martlet == openstack, (question, more)
        return martlet

    return until(agree, within=30, what="the same answer")


def path(keystone, user, prefix="AUTH_", rest=""):
    return f"/v1/{keystone.account(user, prefix)}{rest}"


def test_everyone_everywhere(sides, keystone):
    """Each user, and no user, on their own account, others' accounts, and accounts that only services reach."""
    for owner in ("tester", "tester4"):
        assert same(sides, "PUT", path(keystone, owner, rest="/c"), user=owner)[0] == 201
        assert same(sides, "PUT", path(keystone, owner, rest="/c/o"), user=owner, body=b"x")[0] == 201
    for method in ("GET", "HEAD", "OPTIONS"):  # few: each such token is a question to Keystone, which takes its time
        same(sides, method, path(keystone, "tester"), user="nonsense")
    for user in (*USERS, None, ""):
        for prefix in ("AUTH_", "SERVICE_", "OTHER_"):
            for owner in ("tester", "tester2", "tester4"):
                for method, rest in (("GET", ""), ("HEAD", ""), ("GET", "/c"), ("PUT", f"/{user or 'anon'}-c"),
                                     ("GET", "/c/o"), ("OPTIONS", "/c")):
                    same(sides, method, path(keystone, owner, prefix, rest), user=user)


def test_service_tokens(sides, keystone):
    for service in ("tester5", "tester2", "nonsense", ""):
        for prefix in ("AUTH_", "SERVICE_"):
            for user in ("tester", "tester3", None):
                for method in ("GET", "PUT") if service != "nonsense" else ("GET",):
                    same(sides, method, path(keystone, "tester", prefix, "/s" if method == "PUT" else ""),
                         user=user, service=service)
    assert same(sides, "GET", path(keystone, "tester", "SERVICE_"), user="tester", service="tester5")[0] in (200, 204)


def acls(keystone):
    project, user = keystone.projects["test2"], keystone.users["tester2"]
    return ["test2:tester2", "*:tester2", "test2:*", f"{project}:{user}", f"{project}:*", f"*:{user}", "*:*",
            project, user, "member", "Member,x", f"{project}:x", ".r:*", ".r:*,.rlistings", "test4:tester4",
            f"{keystone.projects['test4']}:*"]


def test_acls(sides, keystone):
    for owner in ("tester", "tester4"):
        for acl in acls(keystone):
            headers = {"X-Container-Read": acl} if ".r" in acl else {"X-Container-Read": acl, "X-Container-Write": acl}
            assert same(sides, "PUT", path(keystone, owner, rest="/acl"), user=owner, headers=headers)[0] in (201, 202)
            for user in ("tester", "tester2", "tester3", "tester4", "tester5", "tester6", "auditor", None):
                for method, rest in (("GET", ""), ("HEAD", ""), ("PUT", "/o"), ("GET", "/o"), ("DELETE", "/o"),
                                     ("POST", "")):
                    same(sides, method, path(keystone, owner, rest="/acl" + rest), user=user)
            for side in sides:  # nothing of this round is left for the next
                side.ask("DELETE", path(keystone, owner, rest="/acl/o"), user=owner)
                side.ask("POST", path(keystone, owner, rest="/acl"), user=owner,
                         headers={"X-Remove-Container-Write": "x", "X-Remove-Container-Read": "x"})


@pytest.mark.parametrize("acl", [".r:*", ".r:*,.rlistings", "*:*", "test:tester", "member,admin"])
def test_owners_of_open_containers(sides, keystone, acl):
    """An ACL that lets owners in like anybody else does not take the owner's view from them."""
    target = path(keystone, "tester", rest="/open")
    headers = {**OWNERS_HEADERS, "X-Container-Read": acl}
    headers.pop("x-container-read")
    headers.pop("x-container-sync-to")
    assert same(sides, "PUT", target, user="tester", headers=headers)[0] in (201, 202)
    for method in ("HEAD", "GET"):
        for user in USERS:
            shown = same(sides, method, target, user=user)[3]
            assert user != "tester" or [name for name, _value in shown] == [
                "x-container-meta-temp-url-key", "x-container-read", "x-container-sync-key", "x-container-write"]


def test_domains_of_accounts(sides, keystone):
    """Who makes an account decides whose domain it is said to be in."""
    for number, (maker, owner) in enumerate((("tester6", "tester5"), ("tester6", "swift"))):
        place = path(keystone, owner)
        assert same(sides, "PUT", place, user=maker)[0] in (201, 202)
        assert same(sides, "GET", place, user="tester6")[2] == ["_unknown"], number
    assert same(sides, "HEAD", path(keystone, "tester4"), user="tester4")[2] == [keystone.domains["test-domain"]]
    same(sides, "POST", path(keystone, "swift"), user="swift")
    assert same(sides, "GET", path(keystone, "swift"), user="swift")[2] == ["default"]


def test_headers_of_a_client_say_nothing(sides, keystone):
    forged = {"X-Identity-Status": "Confirmed", "X-Roles": "admin,ResellerAdmin", "X-User-Id": "x", "X-Tenant-Id": "x",
              "X-Project-Id": keystone.projects["test"], "X-Service-Identity-Status": "Confirmed",
              "X-Service-Roles": "service", "X-Account-Sysmeta-Project-Domain-Id": "default"}
    for user in (None, "tester2", "tester3"):
        for prefix in ("AUTH_", "SERVICE_"):
            status = same(sides, "GET", path(keystone, "tester", prefix), user=user, headers=forged)[0]
            assert status in (401, 403)


def test_tokens_end(sides, keystone):
    """A revoked token that a gateway has not seen is refused; one it has is believed for token_cache_time."""
    token = keystone.token("tester")
    keystone.revoke(token)
    assert same(sides, "GET", path(keystone, "tester"), user=token)[0] == 401
    token = keystone.token("tester")
    assert same(sides, "GET", path(keystone, "tester"), user=token)[0] in (200, 204)
    keystone.revoke(token)
    assert same(sides, "GET", path(keystone, "tester"), user=token)[0] in (200, 204)


def s3_of(side, key, secret=None, **signing):
    """boto3's client with an access key of Keystone."""
    return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{side.cluster.port}", region_name="us-east-1",
                        aws_access_key_id=key["access"], aws_secret_access_key=secret or key["secret"],
                        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, **signing))


def code_of(call, **arguments):
    """The code with which S3 refuses."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return refused.value.response["Error"]["Code"]


def both_answer(sides, question):
    """What both makes answer to a question that takes a side."""
    openstack, martlet = (question(side) for side in sides)
    assert martlet == openstack
    return martlet


def test_access_keys(sides, keystone):
    """An access key is its project's: what is put with it through S3 lies in the project's account."""
    for side in sides:
        s3_of(side, keystone.keys["tester"]).create_bucket(Bucket="photos")
        for version in ("s3v4", "s3"):
            s3 = s3_of(side, keystone.keys["tester"], signature_version=version)
            s3.put_object(Bucket="photos", Key=version, Body=b"hello")
            assert side.ask("GET", path(keystone, "tester", rest=f"/photos/{version}"), user="tester")[2] == b"hello"
            assert "photos" in [found["Name"] for found in s3.list_buckets()["Buckets"]]
            link = s3.generate_presigned_url("get_object", Params={"Bucket": "photos", "Key": version})
            assert side.ask("GET", link.removeprefix(f"http://127.0.0.1:{side.cluster.port}"))[2] == b"hello"
    both_answer(sides, lambda side: s3_of(side, keystone.keys["tester"]).list_buckets()["Owner"])


def test_version_2_of_a_bucket(sides, keystone):
    """SDKs sign the path of a bucket with a slash that they do not send. OpenStack's refuses such a signature."""
    for side in sides:
        s3_of(side, keystone.keys["tester"]).create_bucket(Bucket="slash")
    s3 = s3_of(sides[1], keystone.keys["tester"], signature_version="s3")
    assert s3.list_objects(Bucket="slash")["Name"] == "slash"


def test_access_keys_refused(sides, keystone):
    """A user whose roles do not suffice, a wrong secret, and a key that Keystone does not know."""
    tester, member = keystone.keys["tester"], keystone.keys["tester3"]
    assert both_answer(sides, lambda side: code_of(s3_of(side, member).create_bucket, Bucket="others")) == "AccessDenied"
    for key, secret in ((tester, "wrong"), ({"access": "0" * 32, "secret": "x"}, None)):
        for version in ("s3v4", "s3"):
            def refused(side):
                return code_of(s3_of(side, key, secret, signature_version=version).list_buckets)
            assert both_answer(sides, refused) == "SignatureDoesNotMatch"


def test_access_keys_for_other_projects(sides, keystone):
    """KEY:PROJECT is the account of another project, for those who may do anything there."""
    for user, expected in (("tester6", []), ("tester3", "AccessDenied")):
        key = keystone.keys[user]
        other = {**key, "access": f"{key['access']}:{keystone.projects['test4']}"}

        def listed(side):
            s3 = s3_of(side, other)
            if user == "tester3":
                return code_of(s3.create_bucket, Bucket="others")
            s3.create_bucket(Bucket="foreign")
            assert side.ask("HEAD", path(keystone, "tester4", rest="/foreign"), user="tester4")[0] == 204
            s3.delete_bucket(Bucket="foreign")
            return []
        assert both_answer(sides, listed) == expected


def test_forged_headers_of_signed_requests(sides, keystone):
    """A member who claims the administrator's role in a header is a member."""
    key = keystone.keys["tester3"]
    for side in sides:
        claimed = {"X-Roles": "admin", "X-Identity-Status": "Confirmed"}
        request = AWSRequest("PUT", f"http://127.0.0.1:{side.cluster.port}/forged", headers=claimed)
        S3SigV4Auth(Credentials(key["access"], key["secret"]), "s3", "us-east-1").add_auth(request)
        assert side.ask("PUT", "/forged", headers={**dict(request.headers), "Content-Length": "0"})[0] == 403


def test_signed_chunks_with_an_access_key(sides, keystone):
    """The signatures of a body's chunks are checked with the secret that Keystone has shown."""
    key = keystone.keys["tester"]
    for side in sides:
        s3_of(side, key).create_bucket(Bucket="chunked")
        host = f"127.0.0.1:{side.cluster.port}"
        for forged, status in ((True, 403), (False, 200)):
            headers, body = signed_chunks(host, "/chunked/k", key["access"], key["secret"], b"hello" * 2000, forged=forged)
            assert side.ask("PUT", "/chunked/k", headers=headers, body=body)[0] == status
        assert s3_of(side, key).get_object(Bucket="chunked", Key="k")["Body"].read() == b"hello" * 2000


def test_secrets_are_kept(sides, keystone):
    """Keystone is not asked again about a key whose secret is kept, and may be away for a while."""
    known = keystone.keys["tester"]
    for side in sides:
        s3_of(side, known).list_buckets()
    keystone.stop()
    try:
        for side in sides:
            s3_of(side, known).list_buckets()
        # OpenStack's says InvalidURI, which clients do not repeat.
        assert code_of(s3_of(sides[1], known, secret="wrong").list_buckets) == "ServiceUnavailable"
    finally:
        keystone.serve()


def test_a_cache_shared_with_openstack(keystone, tmp_path_factory, sides):
    """What one make's proxy validated the other need not ask about: both keep it in memcached alike."""
    openstack, martlet = sides
    layout = Layout(tmp_path_factory.mktemp("shared"), memcached_port=openstack.memcached.port)
    layout.pipeline = with_keystone(PIPELINE)
    layout.overrides = {"proxy": keystone.filters()}
    both = Side(Cluster(layout.write(), "martlet", python=keystone.python), keystone)
    both.cluster.start()
    try:
        for first, second in ((openstack, both), (both, openstack)):
            token = keystone.token("tester")
            assert first.look("GET", path(keystone, "tester"), user=token)[0] in (200, 204)
            keystone.revoke(token)
            assert second.look("GET", path(keystone, "tester"), user=token)[0] in (200, 204)
    finally:
        both.cluster.stop()


def test_keystone_away(keystone, tmp_path_factory, sides):
    """Known tokens stay good; unknown ones are refused; when Keystone is back all is well, without a restart."""
    known, unknown = keystone.token("tester"), keystone.token("tester2")
    same(sides, "GET", path(keystone, "tester"), user=known)
    keystone.stop()
    try:
        assert same(sides, "GET", path(keystone, "tester"), user=known)[0] in (200, 204)
        assert same(sides, "GET", path(keystone, "tester2"), user=unknown)[0] == 401
    finally:
        keystone.serve()
    for side in sides:
        until(lambda: side.ask("GET", path(keystone, "tester2"), user=unknown)[0] in (200, 204))


def test_without_delay(keystone, tmp_path_factory):
    """delay_auth_decision off: authtoken itself answers, in JSON, and 503 when it cannot know."""
    sides = sides_with(keystone, tmp_path_factory, delay_auth_decision="False", http_request_max_retries="0",
                       service_token_roles_required="True")
    try:
        for user, service in ((None, None), ("nonsense", None), ("tester", None), ("tester", "nonsense"),
                              ("tester", "tester2")):
            for method in ("GET", "HEAD"):
                same(sides, method, path(keystone, "tester"), user=user, service=service)
        unknown = keystone.token("tester2")
        keystone.stop()
        try:
            assert same(sides, "GET", path(keystone, "tester2"), user=unknown)[0] == 503
        finally:
            keystone.serve()
    finally:
        for side in sides:
            side.cluster.stop()
            side.memcached.stop()


def test_expired_tokens_of_services(tmp_path_factory):
    """An expired token is good only in the hands of a trusted service."""
    keystone = Keystone(tmp_path_factory.mktemp("brief"), swift_port=8080, token_life=30).start()
    try:
        keystone.tokens = {}
        sides = sides_with(keystone, tmp_path_factory)
        try:
            token, made = keystone.token("tester"), time.time()
            until(lambda: time.time() > made + 31, within=60)
            place = path(keystone, "tester")
            assert same(sides, "GET", place, user=token)[0] == 401
            service = keystone.token("tester5")
            assert same(sides, "GET", place, user=token, service=service)[0] in (200, 204)
        finally:
            for side in sides:
                side.cluster.stop()
                side.memcached.stop()
    finally:
        keystone.stop()


def test_who_it_was(sides, keystone):
    """The access log names the user by id."""
    _openstack, martlet = sides
    asked = path(keystone, "tester", rest="/logged")
    martlet.ask("GET", asked, user="tester")
    line = until(lambda: next((line for line in martlet.cluster.log().splitlines() if asked in line), None))
    assert keystone.users["tester"] in line and keystone.tokens["tester"] not in line


def test_info(sides):
    report = [json.loads(side.ask("GET", "/info")[2]) for side in sides]
    assert "keystoneauth" not in report[0] and "keystoneauth" not in report[1] and "tempauth" not in report[1]
