"""`s3_acl`: a gateway of each make before the same storage decides alike who may do what, and keeps lists that the other reads.

Each make has buckets of its own for the table of operations; what one has written the other serves.
"""

import base64
import hashlib
import http.client
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from swift.common.ring import Ring

from clients.test_boto3 import client_of
from harness import filters
from harness.client import KEYS, Client
from harness.cluster import Cluster, healthy
from harness.layout import Layout
from harness.memcached import Memcached
from harness.places import martlet, openstack_command
from harness.process import Process
from harness.waiting import free_port, until

OWNER, ADMIN, PLAIN, ELSEWHERE, RESELLER = "test:tester", "test:tester2", "test:tester3", "test2:tester2", "test:tester6"
ALL = 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'
SIGNED = 'uri="http://acs.amazonaws.com/groups/global/AuthenticatedUsers"'
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
DELETE = b"<Delete><Object><Key>none</Key></Object></Delete>"
DIGEST = {"Content-MD5": base64.b64encode(hashlib.md5(DELETE).digest()).decode()}
SUSPEND = b"<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"
PRIVATE = {"x-amz-acl": "private"}


class Gateway:
    """A gateway of this make with these options of `s3api`, on a port of its own."""

    def __init__(self, cluster, make, **options):
        self.make, self.port, self.cluster = make, free_port(), cluster
        self.auth_url = f"http://127.0.0.1:{self.port}/auth/v1.0"
        conf = (cluster.etc / "proxy-server.conf").read_text().replace(f"bind_port = {cluster.port}", f"bind_port = {self.port}")
        more = "".join(f"{name} = {value}\n" for name, value in options.items())
        path = cluster.etc / f"proxy-server-{self.port}.conf"
        path.write_text(conf.replace("[filter:s3api]\n", f"[filter:s3api]\ns3_acl = true\n{more}"))
        command = [martlet(), "proxy-server", path]
        if make == "openstack":
            command = openstack_command(cluster.etc, "swift-proxy-server", path)
        self.process = Process(command, cluster.root / f"log/proxy-{self.port}.log")

    def ready(self):
        self.process.wait_for(lambda: healthy(self.port), within=60)
        return self

    def client(self, user=OWNER):
        return client_of(self, user, KEYS[user])

    def ask(self, user, method, target, body=b"", headers=None, presigned=False):
        """Status, code and body of a request that this user has signed."""
        body = body.encode() if isinstance(body, str) else body
        request = AWSRequest(method, f"http://127.0.0.1:{self.port}{target}", headers=headers or {}, data=body)
        keys = Credentials(user, KEYS[user])
        if presigned:
            S3SigV4QueryAuth(keys, "s3", "us-east-1").add_auth(request)
            url = urlsplit(request.url)
            target = f"{url.path}?{url.query}"
        else:
            request.headers["x-amz-content-sha256"] = hashlib.sha256(body).hexdigest()
            S3SigV4Auth(keys, "s3", "us-east-1").add_auth(request)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, body=body, headers=dict(request.headers))
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        code = re.search("<Code>(.*?)</Code>", text)
        return SimpleNamespace(status=reply.status, code=code and code.group(1), text=text,
                               short=f"{reply.status} {code.group(1)}" if code else str(reply.status))

    def do(self, *arguments, **more):
        """A request that must succeed."""
        reply = self.ask(*arguments, **more)
        assert reply.status < 300, (arguments, reply.text)
        return reply

    def kept(self, container, key=None):
        """What a storage server keeps of a list."""
        kind = "object" if key else "container"
        names = ["AUTH_test", container, *([key] if key else [])]
        partition, nodes = Ring(str(self.cluster.etc), ring_name=kind).get_nodes(*names)
        connection = http.client.HTTPConnection("127.0.0.1", nodes[0]["port"], timeout=60)
        try:
            connection.request("HEAD", "/".join(["", nodes[0]["device"], str(partition), *names]),
                               headers={"X-Backend-Storage-Policy-Index": "0"})
            reply = connection.getresponse()
            reply.read()
        finally:
            connection.close()
        return {name: reply.getheader(f"X-{kind}-Sysmeta-S3Api-{name}") for name in ("Acl", "Tmpacl")
                if reply.getheader(f"X-{kind}-Sysmeta-S3Api-{name}")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    memcached = Memcached().start()
    layout = Layout(tmp_path_factory.mktemp("s3-acl"), memcached_port=memcached.port, devices=1, replicas=1)
    cluster = Cluster(layout.write(), "martlet")
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        memcached.stop()


@pytest.fixture(scope="module")
def gateways(cluster, ours):
    """By name: each make's, and each make's with `allow_no_owner` and `check_bucket_owner`."""
    open_options = {"allow_no_owner": "true", "check_bucket_owner": "true"}
    made = {"theirs": Gateway(cluster, "openstack"), "ours": Gateway(cluster, ours),
            "theirs open": Gateway(cluster, "openstack", **open_options), "ours open": Gateway(cluster, ours, **open_options)}
    try:
        yield {name: gateway.ready() for name, gateway in made.items()}
    finally:
        for gateway in made.values():
            gateway.process.stop()


@pytest.fixture
def sides(gateways):
    return gateways["theirs"], gateways["ours"]


PERMISSIONS = ("read", "write", "read-acp", "write-acp", "full-control")
OPERATIONS = {
    "ListBuckets": ("GET", "/"), "HeadBucket": ("HEAD", "/B"), "ListObjects": ("GET", "/B"), "ListObjectsV2": ("GET", "/B?list-type=2"),
    "ListObjectVersions": ("GET", "/B?versions"), "ListMultipartUploads": ("GET", "/B?uploads"), "GetBucketLocation": ("GET", "/B?location"),
    "GetBucketLogging": ("GET", "/B?logging"), "GetBucketAcl": ("GET", "/B?acl"), "CreateBucket": ("PUT", "/B"),
    "PutBucketVersioning": ("PUT", "/B?versioning", SUSPEND, {}), "PutBucketAcl": ("PUT", "/B?acl", b"", PRIVATE),
    "PutBucketAcl wrong": ("PUT", "/B?acl", b"", {"x-amz-acl": "wrong"}), "DeleteBucket": ("DELETE", "/B"),
    "DeleteObjects": ("POST", "/B?delete", DELETE, DIGEST), "PutObject": ("PUT", "/B/new", b"new", {}), "DeleteObject": ("DELETE", "/B/new"),
    "DeleteObject none": ("DELETE", "/B/none"), "GetObject": ("GET", "/B/o"), "HeadObject": ("HEAD", "/B/o"), "GetObject none": ("GET", "/B/none"),
    "HeadObject none": ("HEAD", "/B/none"), "GetObjectAcl": ("GET", "/B/o?acl"), "GetObjectAcl none": ("GET", "/B/none?acl"),
    "PutObjectAcl": ("PUT", "/B/o?acl", b"", PRIVATE), "CopyObject from": ("PUT", "/B-public/copy", b"", {"x-amz-copy-source": "/B/o"}),
    "CopyObject to": ("PUT", "/B/new", b"", {"x-amz-copy-source": "/B-public/o"}), "CreateMultipartUpload": ("POST", "/B/parts?uploads"),
    "ListParts": ("GET", "/B/upload?uploadId=ID"), "UploadPart": ("PUT", "/B/upload?partNumber=1&uploadId=ID", b"part", {}),
    "UploadPartCopy": ("PUT", "/B/upload?partNumber=2&uploadId=ID", b"", {"x-amz-copy-source": "/B/o"}),
    "AbortMultipartUpload": ("DELETE", "/B/upload?uploadId=ID"),
}
# What OpenStack's answers to every user of the account, or not at all.
STRICTER = {"GetBucketVersioning": ("GET", "/B?versioning"), "GetObjectLockConfiguration": ("GET", "/B?object-lock"),
            "GetBucketTagging": ("GET", "/B?tagging"), "GetObjectTagging": ("GET", "/B/o?tagging"),
            "PutObjectTagging": ("PUT", "/B/o?tagging", b"<Tagging><TagSet/></Tagging>", {}),
            "GetObjectAttributes": ("GET", "/B/o?attributes", b"", {"x-amz-object-attributes": "ETag"}),
            "condition": ("GET", "/B/o", b"", {"If-Match": '"x"'})}


class Ground:
    """A bucket and an object of OWNER's, as they are before each operation."""

    def __init__(self, gateway, bucket):
        self.gateway, self.bucket = gateway, bucket
        for name in (bucket, f"{bucket}-public"):
            gateway.do(OWNER, "PUT", f"/{name}", headers={"x-amz-acl": "public-read-write"})
            gateway.do(OWNER, "PUT", f"/{name}/o", b"hello", {"x-amz-acl": "public-read"})
        self.upload = gateway.client().create_multipart_upload(Bucket=bucket, Key="upload")["UploadId"]

    def grant(self, on_bucket, on_object, whom):
        """Set both lists anew: nothing, or one permission for `whom`."""
        for target, permission in ((f"/{self.bucket}", on_bucket), (f"/{self.bucket}/o", on_object)):
            headers = {f"x-amz-grant-{permission}": whom} if permission else PRIVATE
            self.gateway.do(OWNER, "PUT", f"{target}?acl", headers=headers)

    def answers(self, user, grants, operations, whom):
        """Operation → what the user gets."""
        found = {}
        for name, (method, target, *more) in operations.items():
            target = re.sub(r"^/B", f"/{self.bucket}", target).replace("=ID", f"={self.upload}")
            body, headers = more or (b"", {})
            headers = {key: value.replace("/B", f"/{self.bucket}") for key, value in headers.items()}
            found[name] = self.gateway.ask(user, method, target, body, headers).short
            if found[name] == "204" and name.startswith("Abort"):
                self.upload = self.gateway.client().create_multipart_upload(Bucket=self.bucket, Key="upload")["UploadId"]
            if found[name] == "200" and name in ("PutBucketAcl", "PutObjectAcl"):
                self.grant(*grants, whom)
        return found


@pytest.fixture(scope="module")
def grounds(gateways):
    return [Ground(gateways[name], f"ground-{name}") for name in ("theirs", "ours")]


CASES = [(PLAIN, f'id="{PLAIN}"', grants) for grants in
         [(None, None), *((permission, None) for permission in PERMISSIONS), *((None, permission) for permission in PERMISSIONS)]]
CASES += [(ADMIN, f"id={ADMIN}", grants) for grants in [(None, None), ("write", "read"), ("full-control", "full-control")]]
CASES += [(RESELLER, f"id={PLAIN}", ("full-control", "full-control")), (OWNER, f"id={PLAIN}", ("read", "read")),
          (PLAIN, ALL, ("read", "read")), (PLAIN, SIGNED, ("write", "read-acp")),
          (PLAIN, 'uri="http://acs.amazonaws.com/groups/s3/LogDelivery"', ("full-control", "full-control"))]


@pytest.mark.parametrize("user, whom, grants", CASES, ids=lambda value: str(value).replace("/", "-"))
def test_operations_by_grants_and_users(grounds, user, whom, grants):
    answers = []
    for ground in grounds:
        ground.grant(*grants, whom)
        answers.append(ground.answers(user, grants, OPERATIONS, whom))
    theirs, ours = answers
    assert ours == theirs
    if grants == (None, None):  # the table says something
        assert {ours[name] for name in ("ListObjects", "PutObject", "GetObject", "DeleteBucket")} == {"403 AccessDenied"}


def test_more_is_checked_than_by_openstacks(grounds, ours):
    """Tags are the owner's, versioning and locks are for readers, and conditions tell nothing of what may not be read."""
    if ours != "martlet":
        pytest.skip("OpenStack's answers these to all")
    ground = grounds[1]
    for grants, user, expected in (
            ((None, None), PLAIN, ["403"] * 7), (("read", "read"), PLAIN, ["200", "404", "403", "403", "403", "200", "412"]),
            ((None, None), OWNER, ["200", "404", "200", "200", "200", "200", "412"])):
        ground.grant(*grants, f"id={PLAIN}")
        found = ground.answers(user, grants, STRICTER, f"id={PLAIN}")
        assert [short[:3] for short in found.values()] == expected, found


def policy(grants, owner=OWNER):
    return f"<AccessControlPolicy><Owner><ID>{owner}</ID></Owner><AccessControlList>{grants}</AccessControlList></AccessControlPolicy>"


def to(kind, whom, permission):
    return f'<Grant><Grantee {XSI} xsi:type="{kind}">{whom}</Grantee><Permission>{permission}</Permission></Grant>'


USER = to("CanonicalUser", f"<ID>{PLAIN}</ID>", "READ")
LISTS = [
    *({"x-amz-acl": name} for name in ("private", "public-read", "public-read-write", "authenticated-read", "bucket-owner-read",
                                       "bucket-owner-full-control", "log-delivery-write", "aws-exec-read", "wrong", "")),
    {"x-amz-grant-read": f'id="{PLAIN}",{ALL}'}, {"x-amz-grant-write-acp": "Id=a", "x-amz-grant-full-control": "id='b'"},
    {"x-amz-grant-read": "id=a,"}, {"x-amz-grant-read": ""}, {"x-amz-grant-read": "name=a"}, {"x-amz-grant-write": "uri=http://x"},
    {"x-amz-grant-write": "emailAddress=a@b"}, {"x-amz-acl": "private", "x-amz-grant-read": "id=a"},
    policy(""), policy(USER), policy(USER + to("Group", f"<URI>{ALL[5:-1]}</URI>", "FULL_CONTROL")), policy(USER, owner=ADMIN),
    policy(to("CanonicalUser", "<ID> ü\U0001f426 </ID><DisplayName>x</DisplayName>", "WRITE_ACP")), policy(USER * 2), policy(USER + "<Other/>"),
    policy(to("Group", "<URI>http://x</URI>", "READ")), policy(to("Other", "<ID>a</ID>", "READ")), policy(to("CanonicalUser", "", "READ")),
    policy(to("AmazonCustomerByEmail", "<EmailAddress>a@b</EmailAddress>", "READ")), policy(to("CanonicalUser", "<ID>a</ID>", "OTHER")),
    "<Other/>", "<a", "", f"<!DOCTYPE x [<!ENTITY e 'z'>]>{policy(to('CanonicalUser', '<ID>u&e;v</ID>', 'READ'))}",
    f"<!DOCTYPE x [<!ENTITY e 'READ'>]>{policy(to('CanonicalUser', '<ID>u</ID>', '&e;'))}",
]


def test_lists_are_kept_alike(sides):
    found = []
    for gateway in sides:
        bucket = f"lists-{gateway.port}"
        gateway.do(OWNER, "PUT", f"/{bucket}")
        gateway.do(OWNER, "PUT", f"/{bucket}/o", b"hello", {"x-amz-meta-a": "b", "Content-Type": "text/x"})
        mine = []
        for wanted in LISTS:
            body, headers = (b"", wanted) if isinstance(wanted, dict) else (wanted, {})
            for target, names in ((f"/{bucket}", (bucket,)), (f"/{bucket}/o", (bucket, "o"))):
                short = gateway.ask(OWNER, "PUT", f"{target}?acl", body, headers).short
                shown = re.sub("/>|></[A-Za-z]+>", "/>", gateway.do(OWNER, "GET", f"{target}?acl").text)
                mine.append((wanted, short, gateway.kept(*names)["Acl"], shown))
            if isinstance(wanted, dict):
                short = gateway.ask(OWNER, "PUT", f"/{bucket}/made", b"x", wanted).short
                mine.append((wanted, short, short == "200" and gateway.kept(bucket, "made")))
                short = gateway.ask(OWNER, "PUT", f"/{bucket}-made", b"", wanted).short
                mine.append((wanted, short, short == "200" and gateway.kept(f"{bucket}-made")))
                gateway.ask(OWNER, "DELETE", f"/{bucket}-made")
        got = gateway.client().get_object(Bucket=bucket, Key="o")
        mine.append((got["Body"].read(), got["Metadata"], got["ContentType"], got["ETag"]))
        found.append(mine)
    for theirs, ours in zip(*found, strict=True):
        assert ours == theirs


def test_grantees_may_stand_apart(gateways, ours):
    """AWS's own examples have spaces behind the commas; OpenStack's refuses them."""
    if ours == "martlet":
        gateway = gateways["ours"]
        gateway.do(OWNER, "PUT", "/apart", headers={"x-amz-grant-read": f"id=a, {ALL}"})
        assert '"AllUsers"' in gateway.kept("apart")["Acl"]


@pytest.mark.parametrize("first, second", [("theirs", "ours"), ("ours", "theirs")])
def test_each_serves_what_the_other_wrote(gateways, first, second):
    first, second = gateways[first], gateways[second]
    bucket = f"shared-{first.port}"
    mine, others = first.client(), second.client(PLAIN)
    mine.create_bucket(Bucket=bucket, GrantWrite=f'id="{PLAIN}"', GrantReadACP=f'id="{PLAIN}"')
    mine.put_object(Bucket=bucket, Key="public", Body=b"1", ACL="public-read")
    mine.put_object(Bucket=bucket, Key="private", Body=b"2")
    assert others.get_object(Bucket=bucket, Key="public")["Body"].read() == b"1"
    assert second.ask(PLAIN, "GET", f"/{bucket}/private").code == "AccessDenied"
    assert others.get_bucket_acl(Bucket=bucket)["Grants"] == mine.get_bucket_acl(Bucket=bucket)["Grants"]
    assert others.get_bucket_acl(Bucket=bucket)["Owner"]["ID"] == OWNER

    # a list that one replaces holds at the other, whose cache knew the old one
    mine.put_object_acl(Bucket=bucket, Key="public", ACL="private")
    assert second.ask(PLAIN, "GET", f"/{bucket}/public").code == "AccessDenied"
    second.client().put_object_acl(Bucket=bucket, Key="private", ACL="authenticated-read")
    assert first.ask(PLAIN, "GET", f"/{bucket}/private", presigned=True).text == "2"
    second.client().put_bucket_acl(Bucket=bucket, GrantRead=f'id="{PLAIN}"', GrantWrite=f'id="{PLAIN}"')
    # what a gateway knows of containers may be a second old
    until(lambda: first.ask(PLAIN, "GET", f"/{bucket}").status == 200, what="the bucket's new list")
    assert [found["Key"] for found in first.client(PLAIN).list_objects(Bucket=bucket)["Contents"]] == ["private", "public"]

    # an upload that one has begun, of a user who is no administrator, ends at the other
    which = {"Bucket": bucket, "Key": "parts"}
    which["UploadId"] = first.client(PLAIN).create_multipart_upload(**which, ACL="bucket-owner-read")["UploadId"]
    assert set(first.kept(f"{bucket}+segments", f"parts/{which['UploadId']}")) == {"Tmpacl"}
    etag = others.upload_part(**which, PartNumber=1, Body=b"part")["ETag"]
    mine_too = second.client()
    mine_too.complete_multipart_upload(**which, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert first.client(PLAIN).get_object_acl(Bucket=bucket, Key="parts")["Owner"]["ID"] == PLAIN
    assert mine.get_object(Bucket=bucket, Key="parts")["Body"].read() == b"part"
    assert first.ask(ADMIN, "GET", f"/{bucket}/parts").code == "AccessDenied"
    second.client(PLAIN).put_object_acl(Bucket=bucket, Key="parts", ACL="public-read")
    assert first.client(ADMIN).get_object(Bucket=bucket, Key="parts")["Body"].read() == b"part"
    etag = mine.head_object(Bucket=bucket, Key="parts")["ETag"]
    if second.make == "martlet":  # OpenStack's shows another in listings then
        assert [found["ETag"] for found in mine.list_objects(Bucket=bucket, Prefix="parts")["Contents"]] == [etag]

    # versions have lists of their own
    mine.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    versions = [mine.put_object(Bucket=bucket, Key="v", Body=b"v", ACL=acl)["VersionId"] for acl in ("public-read", "private")]
    until(lambda: second.ask(ADMIN, "GET", f"/{bucket}/v?versionId={versions[0]}").status == 200, what="the bucket's versions")
    assert [second.ask(ADMIN, "GET", f"/{bucket}/v?versionId={version}").status for version in versions] == [200, 403]
    second.client().put_object_acl(Bucket=bucket, Key="v", ACL="public-read")
    assert first.ask(ADMIN, "GET", f"/{bucket}/v").status == 200

    # an object is its writer's, a copy that of who made it; the bucket's owner may delete both
    others.put_object(Bucket=bucket, Key="theirs", Body=b"3")
    assert first.ask(OWNER, "GET", f"/{bucket}/theirs").code == "AccessDenied"
    others.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "private"}, ACL="bucket-owner-full-control")
    assert mine.get_object_acl(Bucket=bucket, Key="copy")["Owner"]["ID"] == PLAIN
    assert {found["Key"] for found in mine.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": "theirs"}, {"Key": "copy"}]})["Deleted"]} == {"theirs", "copy"}


def test_clients_of_swift(sides):
    """Lists do not hold for them, and show them nothing. What they make has no owner."""
    found = []
    for gateway in sides:
        bucket, mine = f"swift-{gateway.port}", []
        gateway.do(OWNER, "PUT", f"/{bucket}", headers={"x-amz-acl": "public-read"})
        gateway.do(OWNER, "PUT", f"/{bucket}/o", b"hello", {"x-amz-acl": "public-read"})
        swift, plain = Client(gateway.auth_url, OWNER), Client(gateway.auth_url, PLAIN)
        for names in ((bucket,), (bucket, "o")):
            mine.append(sorted(name for name, _ in swift.do("HEAD", *names).headers))
            mine.append(plain.do("GET", *names).status)
        swift.do("POST", bucket, headers={"X-Container-Read": PLAIN}, expect=204)
        swift.do("POST", bucket, "o", headers={"X-Object-Meta-A": "b"}, expect=202)
        mine += [plain.do("GET", bucket, "o").status, gateway.kept(bucket), gateway.kept(bucket, "o")]
        swift.do("COPY", bucket, "o", headers={"Destination": f"{bucket}/copy"}, expect=201)
        swift.put(bucket, "o", body=b"anew")
        swift.put(f"{bucket}-made")
        swift.put(f"{bucket}-made", "o", body=b"o")
        mine += [gateway.kept(bucket, "copy"), gateway.kept(bucket, "o")]
        for user in (OWNER, ADMIN, PLAIN):
            for target in (f"/{bucket}/o", f"/{bucket}-made", f"/{bucket}-made?acl", f"/{bucket}-made/o"):
                mine.append(gateway.ask(user, "GET", target).short)
            mine.append(gateway.ask(user, "PUT", f"/{bucket}-made").short)
            mine.append(gateway.ask(user, "PUT", f"/{bucket}-made/new", b"").short)
        mine.append(gateway.ask(OWNER, "DELETE", f"/{bucket}/o").short)
        found.append(mine)
    assert found[1] == found[0]


def test_without_owner(gateways):
    """`allow_no_owner` opens what has none to all; `check_bucket_owner` lists only what is one's own."""
    found = []
    for gateway in (gateways["theirs open"], gateways["ours open"]):
        bucket, mine = f"open-{gateway.port}", []
        swift = Client(gateway.auth_url)
        swift.put(bucket)
        swift.put(bucket, "o", body=b"o")
        gateway.do(ADMIN, "PUT", f"/{bucket}-owned", headers={"x-amz-acl": "public-read-write"})
        for user in (OWNER, ADMIN, PLAIN, ELSEWHERE):
            for method, target, headers in (
                    ("GET", "", {}), ("GET", "?location", {}), ("GET", "/o", {}), ("PUT", "/new", {}), ("DELETE", "/new", {}),
                    ("PUT", "/copy", {"x-amz-copy-source": f"/{bucket}/o"}), ("POST", "/parts?uploads", {}), ("PUT", "/o?acl", {"x-amz-acl": "wrong"})):
                mine.append((user, method, target, gateway.ask(user, method, f"/{bucket}{target}", headers=headers).short))
            shown = gateway.client(user).list_buckets()["Buckets"]
            mine.append([found["Name"].replace(bucket, "") for found in shown if found["Name"].startswith(bucket)])
        mine.append(gateway.do(PLAIN, "GET", f"/{bucket}?acl").text.replace("></ID>", "/>").count("<ID/>"))
        gateway.do(ADMIN, "PUT", f"/{bucket}?acl", policy(USER, owner=ADMIN))
        mine += [gateway.kept(bucket), gateway.ask(OWNER, "GET", f"/{bucket}").short, gateway.ask(PLAIN, "GET", f"/{bucket}").short]
        found.append(mine)
    assert found[1] == found[0]


def test_parts_are_no_source(gateways, ours):
    """The containers behind buckets have no lists, and no owner: a copy does not lead into them."""
    gateway = gateways["ours open"]
    which = {"Bucket": "hidden", "Key": "k"}
    gateway.do(OWNER, "PUT", "/hidden")
    which["UploadId"] = gateway.client().create_multipart_upload(**which)["UploadId"]
    gateway.client().upload_part(**which, PartNumber=1, Body=b"secret")
    gateway.do(ADMIN, "PUT", "/seeker")
    source = f"/hidden%2Bsegments/k/{which['UploadId']}/1"
    reply = gateway.ask(ADMIN, "PUT", "/seeker/k", headers={"x-amz-copy-source": source})
    assert ours != "martlet" or reply.code == "NoSuchBucket"


def test_a_new_list_is_as_old_as_its_object(gateways, ours):
    """A write that comes while a list is replaced must be the later one."""
    if ours != "martlet":
        pytest.skip("OpenStack's gives the object a new time")
    gateway = gateways["ours"]
    gateway.do(OWNER, "PUT", "/aged")
    gateway.do(OWNER, "PUT", "/aged/o", b"o")
    swift = Client(gateway.auth_url)
    ticks = []
    for acl in ("public-read", "private"):
        gateway.do(OWNER, "PUT", "/aged/o?acl", headers={"x-amz-acl": acl})
        ticks.append(int(swift.do("HEAD", "aged", "o")["X-Timestamp"].replace(".", "")))
    assert ticks[1] == ticks[0] + 1


def test_links_of_swift_do_not_lead_to_other_accounts(gateways, ours):
    """What has no owner is open to the users of its account: a link of another account's does not make it so to them."""
    gateway = gateways["ours open"]
    victim, attacker = Client(gateway.auth_url, ELSEWHERE), Client(gateway.auth_url)
    for client in (victim, attacker):
        client.put("linked")
        client.put("linked", "o", body=b"secret")
    for target in ("AUTH_test2", "AUTH_test"):
        attacker.put("linked", f"link {target}", headers={"X-Symlink-Target": "linked/o", "X-Symlink-Target-Account": target})
    if ours == "martlet":
        for user in (OWNER, PLAIN):
            assert gateway.do(user, "GET", "/linked/link%20AUTH_test").text == "secret"
            for method, target, headers in (("GET", "", {}), ("HEAD", "", {}), ("GET", "?acl", {}), ("GET", "", {"If-Match": "x"})):
                assert gateway.ask(user, method, f"/linked/link%20AUTH_test2{target}", headers=headers).status == 403
            assert gateway.ask(user, "PUT", "/linked/copy", headers={"x-amz-copy-source": "/linked/link%20AUTH_test2"}).code == "AccessDenied"
