"""Uploads by HTML forms, with policies that boto3 has signed."""

import urllib.error
import urllib.request
import uuid

import pytest

from clients.test_access_keys import Keys, s3_of, sts_of
from clients.test_boto3 import bucket, client_of, code_of  # noqa: F401 (fixtures)
from harness import filters
from harness.systems import running


@pytest.fixture(scope="module", params=["formpost in front", "formpost behind"])
def store(request, shared, tmp_path_factory):
    """The pipeline that `martlet up` writes, and one whose gateway asks s3api before formpost."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api takes no forms")
    if request.param == "formpost in front":
        yield shared.get("up", "up")
        return
    pipeline = filters.PIPELINE.replace("formpost ratelimit s3api", "s3api formpost ratelimit")
    yield from running("separate", tmp_path_factory.mktemp("forms"), overrides=filters.overrides(pipeline=pipeline))


@pytest.fixture(params=["s3v4", "s3"])
def s3(store, request):
    return client_of(store, version=request.param)


class Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def send(form, body, filename="f.txt", **more):
    """The status, headers and body of the answer to a form."""
    boundary, pieces = uuid.uuid4().hex, []
    for name, value in {**form["fields"], **more}.items():
        pieces.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    pieces.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
                  "Content-Type: text/x-file\r\n\r\n".encode() + body + f"\r\n--{boundary}--\r\n".encode())
    request = urllib.request.Request(form["url"], b"".join(pieces), {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    try:
        with urllib.request.build_opener(Unfollowed).open(request) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


def test_a_form_becomes_an_object(s3, bucket):  # noqa: F811
    fields = {"acl": "private", "x-amz-meta-a": "b", "Content-Type": "text/y"}
    form = s3.generate_presigned_post(bucket, "dir/${filename}", Fields=fields, Conditions=[
        {"acl": "private"}, {"x-amz-meta-a": "b"}, ["starts-with", "$Content-Type", "text/"], ["content-length-range", 2, 100_000]])
    status, headers, _ = send(form, b"hello\r\n--world")
    got = s3.get_object(Bucket=bucket, Key="dir/f.txt")
    assert (status, headers["ETag"]) == (204, got["ETag"])
    assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (b"hello\r\n--world", {"a": "b"}, "text/y")
    assert send(form, b"x" * 100_000)[0] == 204 and s3.head_object(Bucket=bucket, Key="dir/f.txt")["ContentLength"] == 100_000
    for body, code in [(b"x", b"EntityTooSmall"), (b"x" * 100_001, b"EntityTooLarge")]:
        status, _, answer = send(form, body, filename="other")
        assert status == 400 and b"<Code>" + code in answer
    assert code_of(s3.head_object, Bucket=bucket, Key="dir/other") == "404"
    for changed in [{"acl": "public-read"}, {"x-amz-meta-b": "c"}, {"key": "elsewhere"}, {"Content-Type": "image/x"}]:
        status, _, answer = send(form, b"hello", **changed)
        assert status == 403 and b"<Code>AccessDenied" in answer and b"Policy" in answer, changed
    assert code_of(s3.head_object, Bucket=bucket, Key="elsewhere") == "404"


def test_answers_of_a_form(s3, bucket):  # noqa: F811
    def asked(**fields):
        form = s3.generate_presigned_post(bucket, "k", Fields=fields, Conditions=[{name: value} for name, value in fields.items()])
        return send(form, b"hello")

    status, headers, answer = asked(success_action_status="201")
    assert (status, headers["Content-Type"]) == (201, "application/xml") and b"<Key>k</Key>" in answer and headers["ETag"].encode()[1:-1] in answer
    assert asked(success_action_status="200")[0] == 200
    status, headers, _ = asked(success_action_redirect="http://other/?x=1")
    assert status == 303 and headers["Location"].startswith(f"http://other/?x=1&bucket={bucket}&key=k&etag=%22")


def test_forms_that_are_refused(s3, bucket):  # noqa: F811
    form = s3.generate_presigned_post(bucket, "k")
    signature = next(name for name in form["fields"] if name.lower().endswith("signature"))
    status, _, answer = send(form, b"hello", **{signature: form["fields"][signature][::-1]})
    assert (status, b"SignatureDoesNotMatch" in answer) == (403, True)
    assert send(s3.generate_presigned_post(bucket, "k", ExpiresIn=-5), b"hello")[0] == 403
    assert send({"url": form["url"], "fields": {"key": "k"}}, b"hello")[0] == 403
    assert send(s3.generate_presigned_post("no-such-bucket", "k"), b"hello")[0] == 404
    bad = dict(form, fields=form["fields"] | {"policy": "e30="})
    assert send(bad, b"hello")[0] == 400
    assert code_of(s3.head_object, Bucket=bucket, Key="k") == "404"


def test_a_field_that_comes_twice_is_refused(s3, bucket):  # noqa: F811
    """The policy would be asked about one of them, and the other be stored."""
    fields = {"Content-Type": "image/png", "x-amz-meta-owner": "app"}
    form = s3.generate_presigned_post(bucket, "k", Fields=fields, Conditions=[{name: value} for name, value in fields.items()])
    for twice in ({"content-type": "text/html"}, {"X-Amz-Meta-Owner": "other"}, {"Key": "elsewhere"}):
        status, _, answer = send(form, b"hello", **twice)
        assert status == 400 and b"<Code>InvalidArgument" in answer and b"twice" in answer, twice
    assert code_of(s3.head_object, Bucket=bucket, Key="k") == "404"


def test_temporary_keys_sign_forms(store, s3, bucket):  # noqa: F811
    key = Keys(store.auth_url).make()
    session = sts_of(store, key).get_session_token()["Credentials"]
    form = s3_of(store, session, s3.meta.config.signature_version).generate_presigned_post(bucket, "form")
    assert send(form, b"hello")[0] == 204 and s3.get_object(Bucket=bucket, Key="form")["Body"].read() == b"hello"
    del form["fields"]["x-amz-security-token"]
    status, _, answer = send(form, b"hello")
    assert status == 403 and b"AccessDenied" in answer  # a condition of its policy names the field
