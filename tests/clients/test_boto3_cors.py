"""CORS rules of buckets: stored through boto3, and what a browser's page of another origin is answered by them."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from clients.test_boto3 import client_of, code_of
from harness import filters
from harness.client import Client
from harness.systems import running

OPERATORS, PAGE, OTHER = "http://operator.example", "http://page.example", "http://other.example"
SIGNS = "authorization,x-amz-date"


def rule(*, origins=(PAGE,), methods=("GET", "PUT"), **more):
    return {"AllowedOrigins": list(origins), "AllowedMethods": list(methods), "AllowedHeaders": ["Authorization", "x-amz-*"], **more}


@pytest.fixture(scope="module")
def system(tmp_path_factory, request):
    """A cluster whose operator lets pages of one origin send requests."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no CORS rules")
    options = {"cors_preflight_allow_origin": OPERATORS, "storage_domain": "s3.example"}
    yield from running("separate", tmp_path_factory.mktemp("cors"), overrides=filters.overrides(s3api=options))


@pytest.fixture
def s3(system):
    return client_of(system)


@pytest.fixture
def bucket(s3, request):
    name = request.node.originalname.replace("_", "-")[:60]
    s3.create_bucket(Bucket=name)
    return name


def put(s3, bucket, *rules):
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": list(rules)})


def ask(system, method, target, body=None, **headers):
    """Status, headers that matter to a page, and body."""
    connection = http.client.HTTPConnection(urlsplit(system.auth_url).netloc, timeout=30)
    connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    found = {name.lower().removeprefix("access-control-"): value for name, value in answer.getheaders()}
    return answer.status, found, body


def preflight(system, target, *, origin=PAGE, method="PUT", headers=SIGNS, **more):
    asked = {"Access_Control_Request_Headers": headers} if headers else {}
    return ask(system, "OPTIONS", target, Origin=origin, Access_Control_Request_Method=method, **asked, **more)


def seen(s3, call, origin, **arguments):
    """What an answer tells a page of this origin."""
    headers = []
    event = f"before-send.s3.{''.join(word.capitalize() for word in call.split('_'))}"

    def send(request, **_):
        request.headers["Origin"] = origin  # behind the signature, as a browser adds it

    s3.meta.events.register(event, send)
    try:
        headers = getattr(s3, call)(**arguments)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as refused:
        headers = refused.response["ResponseMetadata"]["HTTPHeaders"]
    finally:
        s3.meta.events.unregister(event, send)
    return {name.removeprefix("access-control-"): value for name, value in headers.items() if name.startswith("access-control-") or name == "vary"}


def test_rules_are_kept(system, s3, bucket):
    assert code_of(s3.get_bucket_cors, Bucket=bucket) == "NoSuchCORSConfiguration"
    rules = [rule(ID="one \u00fc", ExposeHeaders=["ETag"], MaxAgeSeconds=7), {"AllowedOrigins": ["*"], "AllowedMethods": ["HEAD"]}]
    put(s3, bucket, *rules)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == rules
    many = [rule(ID=f"rule-{number}", origins=[f"https://app-{number}-{part}.example.com" for part in range(5)]) for number in range(100)]
    put(s3, bucket, *many)
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == many
    for wrong, code, named in [(rule(origins=["http://*.*"]), "InvalidRequest", "http://*.*"), (rule(methods=["PATCH"]), "InvalidRequest", "PATCH"),
                               (rule(ExposeHeaders=["x-*"]), "InvalidRequest", "x-*"), (rule(origins=[]), "MalformedXML", "AllowedOrigin")]:
        with pytest.raises(ClientError) as refused:
            put(s3, bucket, wrong)
        assert refused.value.response["Error"]["Code"] == code and named in refused.value.response["Error"]["Message"]
    with pytest.raises(ClientError, match="MalformedXML"):
        put(s3, bucket, *many, rule())
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == many
    # Swift's clients neither see nor set them.
    swift = Client(system.auth_url)
    swift.do("POST", bucket, headers={"X-Container-Sysmeta-S3api-Cors-0": "[]"}, expect=204)
    assert not [name for name, _ in swift.do("HEAD", bucket).headers if "cors" in name.lower()]
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == many
    s3.delete_bucket_cors(Bucket=bucket)
    s3.delete_bucket_cors(Bucket=bucket)
    assert code_of(s3.get_bucket_cors, Bucket=bucket) == "NoSuchCORSConfiguration"
    assert code_of(s3.put_bucket_cors, Bucket="no-such-bucket", CORSConfiguration={"CORSRules": rules}) == "NoSuchBucket"


def test_only_who_may_changes_them(system, s3, bucket):
    put(s3, bucket, rule())
    plain = client_of(system, "test:tester3", "testing3")
    for call, about in [(plain.get_bucket_cors, {}), (plain.delete_bucket_cors, {}), (plain.put_bucket_cors, {"CORSConfiguration": {"CORSRules": [rule()]}})]:
        assert code_of(call, Bucket=bucket, **about) == "AccessDenied"
    s3.put_bucket_policy(Bucket=bucket, Policy=f"""{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Principal": {{"AWS": "test:tester3"}},
                         "Action": ["s3:GetBucketCORS", "s3:PutBucketCORS"], "Resource": "arn:aws:s3:::{bucket}"}}]}}""")
    put(plain, bucket, rule(methods=["HEAD"]))
    assert plain.get_bucket_cors(Bucket=bucket)["CORSRules"] == [rule(methods=["HEAD"])]
    plain.delete_bucket_cors(Bucket=bucket)
    assert code_of(s3.get_bucket_cors, Bucket=bucket) == "NoSuchCORSConfiguration"


def test_preflights(system, s3, bucket):
    target = f"/{bucket}/a%20key"
    assert preflight(system, target)[0] == 401
    put(s3, bucket, rule(ExposeHeaders=["ETag", "x-amz-version-id"], MaxAgeSeconds=7), rule(origins=["https://*.example"], methods=["DELETE"]))
    status, headers, body = preflight(system, target)
    assert (status, body, headers["allow-origin"], headers["allow-methods"], headers["allow-headers"], headers["expose-headers"], headers["max-age"]) == (
        200, "", PAGE, "GET, PUT", "authorization, x-amz-date", "ETag, x-amz-version-id", "7")
    assert headers["allow-credentials"] == "true" and headers["vary"].startswith("Origin, Access-Control-Request-Headers")
    assert headers["x-amz-request-id"]
    assert preflight(system, f"/{bucket}")[0] == 200
    status, headers, _ = preflight(system, target, origin="https://a.b.example", method="DELETE")
    assert (status, headers["allow-origin"], headers["allow-methods"], "max-age" in headers) == (200, "https://a.b.example", "DELETE", False)
    # A signed URL, and a host that names the bucket.
    url = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "a key"})
    assert preflight(system, url.partition(system.auth_url.split("/auth")[0])[2], headers=None)[0] == 200
    assert preflight(system, "/a%20key", Host=f"{bucket}.s3.example", headers=None)[0] == 200
    for origin, method, headers in [(OTHER, "PUT", SIGNS), (PAGE, "DELETE", SIGNS), (PAGE, "PUT", f"{SIGNS},x-other"), ("https://example", "DELETE", SIGNS)]:
        status, shown, body = preflight(system, target, origin=origin, method=method, headers=headers)
        assert (status, "allow-origin" in shown) == (403, False) and f"<Method>{method}</Method><ResourceType>OBJECT</ResourceType>" in body
        assert "<Code>AccessForbidden</Code><Message>CORSResponse: " in body
    # The operator's origins may send requests whatever the rules say, and Swift's paths are Swift's.
    assert preflight(system, target, origin=OPERATORS)[1]["allow-origin"] == OPERATORS
    assert preflight(system, f"/v1/AUTH_test/{bucket}")[0] == 401
    s3.delete_bucket_cors(Bucket=bucket)
    assert preflight(system, target)[0] == 401


def test_rules_of_another_accounts_bucket_are_no_harm(system, s3, bucket):
    """The other's rules let a page ask; what it sees of this bucket's answers this bucket says."""
    other = client_of(system, "test2:tester2", "testing2")
    other.create_bucket(Bucket=bucket)
    put(other, bucket, rule(origins=[OTHER]))
    put(s3, bucket, rule())
    for origin in (PAGE, OTHER):
        assert preflight(system, f"/{bucket}/k", origin=origin)[1]["allow-origin"] == origin
    assert "allow-origin" not in seen(s3, "list_objects_v2", OTHER, Bucket=bucket)
    assert seen(other, "list_objects_v2", OTHER, Bucket=bucket)["allow-origin"] == OTHER
    other.delete_bucket_cors(Bucket=bucket)
    assert preflight(system, f"/{bucket}/k", origin=OTHER)[0] == 403
    assert preflight(system, f"/{bucket}/k")[0] == 200
    put(other, bucket, rule(origins=[OTHER]))
    assert preflight(system, f"/{bucket}/k", origin=OTHER)[0] == 200
    other.delete_bucket(Bucket=bucket)  # and the rules with it
    assert preflight(system, f"/{bucket}/k", origin=OTHER)[0] == 403


def test_rules_that_are_put_while_others_are_deleted(system, s3, bucket):
    """Whatever is last, preflights find rules exactly where there are some."""
    for _ in range(40):
        put(s3, bucket, rule())
        with ThreadPoolExecutor(6) as several:
            list(several.map(lambda call: call(), [lambda: s3.delete_bucket_cors(Bucket=bucket), lambda: put(s3, bucket, rule())] * 3))
        try:
            has_rules = bool(s3.get_bucket_cors(Bucket=bucket)["CORSRules"])
        except ClientError:
            has_rules = False
        assert preflight(system, f"/{bucket}/k")[0] == (200 if has_rules else 401)


def test_answers(system, s3, bucket):
    Client(system.auth_url).do("POST", bucket, headers={"X-Container-Meta-Access-Control-Allow-Origin": OTHER}, expect=204)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    about = {"Bucket": bucket, "Key": "k"}
    assert seen(s3, "get_object", OTHER, **about)["allow-origin"] == OTHER  # as Swift's container says, without rules
    put(s3, bucket, rule(ExposeHeaders=["ETag"]), {"AllowedOrigins": ["*"], "AllowedMethods": ["HEAD"], "MaxAgeSeconds": 3})
    vary = "Origin, Access-Control-Request-Headers, access-control-request-method"
    allowed = {"allow-origin": PAGE, "allow-credentials": "true", "allow-methods": "GET, PUT", "expose-headers": "ETag", "vary": vary}
    assert seen(s3, "get_object", PAGE, **about) == allowed
    assert seen(s3, "get_object", PAGE, Bucket=bucket, Key="none") == allowed  # a refusal can be read, too
    assert seen(s3, "put_object", PAGE, **about) == allowed
    assert seen(s3, "head_object", PAGE, **about) == {"allow-origin": "*", "allow-methods": "HEAD", "max-age": "3", "vary": vary}
    for origin, call in ((OTHER, "get_object"), (OPERATORS, "get_object"), (PAGE, "delete_object")):
        assert seen(s3, call, origin, **about) == {"vary": vary}


def test_forms(system, s3, bucket):
    put(s3, bucket, rule(methods=["POST"], ExposeHeaders=["ETag"]))
    form = s3.generate_presigned_post(bucket, "k", Fields={"success_action_status": "201"}, Conditions=[{"success_action_status": "201"}])
    parts = [f'--limit\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form["fields"].items()]
    body = "".join(parts) + '--limit\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--limit--\r\n'
    status, headers, _ = ask(system, "POST", f"/{bucket}", body.encode(), Content_Type="multipart/form-data; boundary=limit", Origin=PAGE)
    assert (status, headers["allow-origin"], headers["allow-methods"], headers["expose-headers"]) == (201, PAGE, "POST", "ETag")


def test_rules_where_lists_decide(request, make_system):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no CORS rules")
    options = {"s3_acl": "true", "cors_preflight_allow_origin": OPERATORS}
    system = make_system("separate", overrides=filters.overrides(s3api=options)).start()
    s3, plain = client_of(system), client_of(system, "test:tester3", "testing3")
    s3.create_bucket(Bucket="listed", ACL="public-read-write")
    about = {"Bucket": "listed", "CORSConfiguration": {"CORSRules": [rule()]}}
    assert code_of(plain.put_bucket_cors, **about) == "AccessDenied"
    assert preflight(system, "/listed/k")[0] == 401
    s3.put_bucket_cors(**about)
    assert code_of(plain.get_bucket_cors, Bucket="listed") == code_of(plain.delete_bucket_cors, Bucket="listed") == "AccessDenied"
    assert preflight(system, "/listed/k")[1]["allow-origin"] == PAGE
    plain.put_object(Bucket="listed", Key="k", Body=b"x")
    assert seen(plain, "get_object", PAGE, Bucket="listed", Key="k")["allow-origin"] == PAGE
    s3.delete_bucket_cors(Bucket="listed")
    assert preflight(system, "/listed/k")[0] == 401
