"""Encryption of S3 with keys of clients (SSE-C): each object is read with its own key, by no other and not without; what upkeep and
older versions do with such objects needs no key; keys are in no log and on no device."""

import base64
import hashlib
import io
import json

import pytest
from boto3.s3.transfer import TransferConfig

from clients.test_boto3 import MIB, client_of, code_of
from clients.test_boto3_encryption import SECRET, Servers, made, refusal, said
from clients.test_boto3_post import send
from harness.disk import contents

BIG = bytes(range(256)) * 4 * 1024 * 11
IN_PARTS = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)


def key_of(letter):
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": letter * 32}


def spelled(letter):
    """The same where botocore neither encodes the key nor adds its MD5."""
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": base64.b64encode(letter.encode() * 32).decode(), "SSECustomerKeyMD5": md5_of(letter)}


def source_of(letter):
    return {f"CopySource{name}": value for name, value in key_of(letter).items()}


def md5_of(letter):
    return base64.b64encode(hashlib.md5(letter.encode() * 32).digest()).decode()


ONE, TWO = key_of("1"), key_of("2")


def status_of(call, **arguments):
    with pytest.raises(call.__self__.exceptions.ClientError) as refused:
        call(**arguments)
    return refused.value.response["ResponseMetadata"]["HTTPStatusCode"]


def shown(answer):
    return answer.get("SSECustomerAlgorithm"), answer.get("SSECustomerKeyMD5"), said(answer)


OF_ONE, OF_TWO = ("AES256", md5_of("1"), None), ("AES256", md5_of("2"), None)


def only_with(s3, key, body, **which):
    """The object is read with its key, refused with another or with none."""
    got = s3.get_object(**which, **key)
    assert got["Body"].read() == body
    assert shown(got) == shown(s3.head_object(**which, **key)) == ("AES256", md5_of(key["SSECustomerKey"][0]), None)
    assert code_of(s3.get_object, **which) == "InvalidRequest"
    other = TWO if key == ONE else ONE
    assert code_of(s3.get_object, **which, **other) == "AccessDenied"
    assert (status_of(s3.head_object, **which), status_of(s3.head_object, **which, **other)) == (400, 403)
    return got


@pytest.fixture(scope="module")
def servers(request, tmp_path_factory):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api takes no keys of clients")
    servers = Servers(tmp_path_factory.mktemp("customer-keys"))
    yield servers
    servers.cluster.stop()


def test_an_object_is_read_with_its_key_only(servers):
    s3, swift = servers.gateway(), servers.swift()
    bucket = made(s3, "single")
    put = s3.put_object(Bucket=bucket, Key="k", Body=SECRET, Metadata={"said": "x"}, **ONE)
    assert (shown(put), put["ETag"].strip('"')) == (OF_ONE, hashlib.md5(SECRET).hexdigest())
    got = only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")
    assert (got["ETag"], got["Metadata"]) == (put["ETag"], {"said": "x"})
    assert s3.get_object(Bucket=bucket, Key="k", Range="bytes=17-40", **ONE)["Body"].read() == SECRET[17:41]
    assert not servers.stored(SECRET[:20]) and not servers.stored(b"1" * 32)
    # Nothing is there to encrypt, and the key is needed all the same.
    s3.put_object(Bucket=bucket, Key="empty", Body=b"", **TWO)
    only_with(s3, TWO, b"", Bucket=bucket, Key="empty")
    # Listings and conditions do without the key.
    assert [found["ETag"] for found in s3.list_objects_v2(Bucket=bucket, Prefix="k")["Contents"]] == [put["ETag"]]
    assert status_of(s3.get_object, Bucket=bucket, Key="k", IfMatch='"no"', **ONE) == 412
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=put["ETag"], **ONE)["Body"].read() == SECRET
    for call in (s3.get_object, s3.head_object):
        unchanged = [status_of(call, Bucket=bucket, Key="k", IfNoneMatch=put["ETag"], **key) for key in (ONE, TWO, {})]
        assert unchanged == [304, 403, 400]
    beyond = [status_of(s3.get_object, Bucket=bucket, Key=of, Range="bytes=999-", **key) for of, keys in (("k", (ONE, TWO)), ("empty", (TWO, ONE))) for key in (*keys, {})]
    assert beyond == [416, 403, 400] * 2
    asked = {"Bucket": bucket, "Key": "k", "ObjectAttributes": ["ETag", "ObjectSize"]}
    assert s3.get_object_attributes(**asked, **spelled("1"))["ObjectSize"] == len(SECRET)
    assert (code_of(s3.get_object_attributes, **asked), code_of(s3.get_object_attributes, **asked, **spelled("2"))) == ("InvalidRequest", "AccessDenied")
    # What has no key is not to be read with one.
    s3.put_object(Bucket=bucket, Key="other", Body=SECRET)
    for call in (s3.get_object, s3.head_object):
        assert status_of(call, Bucket=bucket, Key="other", **ONE) == 400
    # Swift's API knows no such keys.
    head = swift.do("HEAD", bucket, "k", expect=200)
    assert (head["Etag"], head["X-Object-Meta-Said"]) == (put["ETag"].strip('"'), "x")
    for headers in ({}, {"Range": "bytes=0-4"}):
        got = swift.do("GET", bucket, "k", headers=headers, expect=400)
        assert b"x-amz-server-side-encryption-customer-key" in got.body
    swift.do("COPY", bucket, "k", headers={"Destination": f"{bucket}/copy"}, expect=400)
    swift.do("PUT", bucket, "copy", headers={"X-Copy-From": f"{bucket}/k", "Content-Length": "0"}, expect=400)
    swift.do("HEAD", bucket, "copy", expect=404)
    swift.do("POST", bucket, "k", headers={"X-Object-Meta-Said": "y"}, expect=202)
    assert s3.get_object(Bucket=bucket, Key="k", **ONE)["Metadata"] == {"said": "y"}
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")
    s3.delete_object(Bucket=bucket, Key="k")
    assert code_of(s3.get_object, Bucket=bucket, Key="k", **ONE) == "NoSuchKey"


def sending(servers, **headers):
    """A client whose requests have these headers besides."""
    s3 = client_of(servers.cluster)

    def add(request, **_):
        for name, value in headers.items():
            del request.headers[name.replace("_", "-")]
            if value is not None:
                request.headers[name.replace("_", "-")] = value

    s3.meta.events.register("before-sign.s3", add)
    return s3


def test_wrong_keys_are_refused_before_anything_is_stored(servers):
    s3 = servers.gateway()
    bucket = made(s3, "wrong")
    name = "x_amz_server_side_encryption_customer_"
    for headers, code in (({f"{name}key": None}, "InvalidArgument"), ({f"{name}key_MD5": None}, "InvalidArgument"),
                          ({f"{name}algorithm": None}, "InvalidArgument"), ({f"{name}algorithm": "AES128"}, "InvalidEncryptionAlgorithmError"),
                          ({f"{name}key_MD5": md5_of("2")}, "InvalidArgument"), ({f"{name}key": "c2hvcnQ="}, "InvalidArgument"),
                          ({"x_amz_server_side_encryption": "AES256"}, "InvalidArgument"),
                          # Through a proxy to which the client spoke without TLS.
                          ({"x_forwarded_proto": "http"}, "InvalidRequest"), ({"x_forwarded_for": "192.0.2.1"}, "InvalidRequest")):
        client = sending(servers, **headers)
        for call, arguments in ((client.put_object, {"Body": SECRET}), (client.create_multipart_upload, {}),
                                (client.copy_object, {"CopySource": f"{bucket}/none"}), (client.get_object, {})):
            if call != client.get_object or "x_amz_server_side_encryption" not in headers:
                found, words = refusal(call, Bucket=bucket, Key="k", **ONE, **arguments)
                assert found == code, (headers, call)
                assert "1111" not in words and base64.b64encode(b"1" * 32).decode()[:20] not in words
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    sending(servers, x_forwarded_proto="https", x_forwarded_for="192.0.2.1").put_object(Bucket=bucket, Key="k", Body=SECRET, **ONE)
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")

    def in_the_url(request, **_):
        request.url += "?x-amz-server-side-encryption-customer-key=" + base64.b64encode(b"1" * 32).decode().replace("=", "%3D")

    client = client_of(servers.cluster)
    client.meta.events.register("before-sign.s3", in_the_url)
    for call, arguments in ((client.put_object, {"Body": SECRET}), (client.get_object, {})):
        assert code_of(call, Bucket=bucket, Key="k", **arguments) == "InvalidRequest"


def with_option(servers, name, option):
    """The gateway with one more option of a filter."""
    servers.gateway()
    servers.cluster.stop_service("proxy")
    servers.cluster.layout.overrides["proxy"].setdefault(f"filter:{name}", {}).update(option)
    servers.cluster.layout.write()
    servers.cluster.start_service("proxy")
    return client_of(servers.cluster)


def test_keys_without_tls_where_the_operator_allows_it(servers):
    s3 = with_option(servers, "s3api", {"customer_keys_require_tls": "false"})
    bucket = made(s3, "plain-http")
    sending(servers, x_forwarded_proto="http").put_object(Bucket=bucket, Key="k", Body=SECRET, **ONE)
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")


def test_keys_are_in_no_log(servers):
    s3 = with_option(servers, "proxy-logging", {"access_log_headers": "true"})
    bucket = made(s3, "logs")
    s3.put_object(Bucket=bucket, Key="k", Body=SECRET, **ONE)
    s3.copy_object(Bucket=bucket, Key="l", CopySource=f"{bucket}/k", **TWO, **source_of("1"))
    for version in ("s3v4", "s3"):
        unsigned, answers = client_of(servers.cluster, key="wrong", version=version), []
        unsigned.meta.events.register("after-call.s3", lambda http_response, answers=answers, **_: answers.append(http_response.content))
        assert code_of(unsigned.get_object, Bucket=bucket, Key="k", **ONE) == "SignatureDoesNotMatch"
        assert b"SignatureProvided" in answers[0] and b"MTEx" not in answers[0] and b"4d 54 45 78" not in answers[0], version
    logs = b"".join(log.read_bytes() for log in (servers.cluster.root / "log").iterdir())
    assert b"Customer-Key-Md5:" in logs.replace(b"%3A", b":"), "headers are logged"
    for letter in ("1", "2"):
        for secret in (letter * 32, base64.b64encode(letter.encode() * 32).decode()[:12]):
            assert secret.encode() not in logs
            assert not any(secret.encode() in stored for _, stored in contents(servers.cluster.srv))


def test_uploads_in_parts(servers):
    s3, swift = servers.gateway(), servers.swift()
    bucket = made(s3, "in-parts")
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", ExtraArgs=ONE, Config=IN_PARTS)
    only_with(s3, ONE, BIG, Bucket=bucket, Key="big")
    assert not servers.stored(BIG[:300])
    fetched = io.BytesIO()
    s3.download_fileobj(bucket, "big", fetched, ExtraArgs=ONE, Config=IN_PARTS)
    assert fetched.getvalue() == BIG
    middle = s3.get_object(Bucket=bucket, Key="big", Range=f"bytes={5 * MIB - 9}-{5 * MIB + 9}", **ONE)
    assert middle["Body"].read() == BIG[5 * MIB - 9:5 * MIB + 10]
    assert s3.get_object(Bucket=bucket, Key="big", PartNumber=2, **ONE)["Body"].read() == BIG[5 * MIB:10 * MIB]
    parts = s3.get_object_attributes(Bucket=bucket, Key="big", ObjectAttributes=["ObjectParts"], **spelled("1"))["ObjectParts"]
    assert parts["TotalPartsCount"] == 3
    assert b"customer-key" in swift.do("GET", bucket, "big", expect=400).body
    swift.do("HEAD", bucket, "big", expect=200)

    begun = s3.create_multipart_upload(Bucket=bucket, Key="k", **ONE)
    which = {"Bucket": bucket, "Key": "k", "UploadId": begun["UploadId"]}
    assert shown(begun) == OF_ONE
    for wrong in ({}, TWO):
        assert code_of(s3.upload_part, **which, PartNumber=1, Body=SECRET, **wrong) == "InvalidRequest"
    part = s3.upload_part(**which, PartNumber=1, Body=SECRET, **ONE)
    assert shown(part) == OF_ONE
    assert len(s3.list_parts(**which)["Parts"]) == 1
    assert code_of(s3.list_parts, **which, **spelled("2")) == "InvalidRequest"
    done = {**which, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}
    assert code_of(s3.complete_multipart_upload, **done, **TWO) == "InvalidRequest"
    assert said(s3.complete_multipart_upload(**done)) is None
    assert said(s3.complete_multipart_upload(**done, **ONE)) is None, "the same again"
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")
    plain = {"Bucket": bucket, "Key": "p", "UploadId": s3.create_multipart_upload(Bucket=bucket, Key="p")["UploadId"]}
    assert code_of(s3.upload_part, **plain, PartNumber=1, Body=SECRET, **ONE) == "InvalidRequest"
    s3.abort_multipart_upload(**plain)
    for key in ("big", "k"):
        s3.delete_object(Bucket=bucket, Key=key)
    assert swift.get(f"{bucket}+segments") == b""


def test_copies(servers):
    s3 = servers.gateway()
    bucket = made(s3, "copies")
    s3.put_object(Bucket=bucket, Key="one", Body=SECRET, Metadata={"said": "x"}, **ONE)
    s3.put_object(Bucket=bucket, Key="plain", Body=SECRET)
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", ExtraArgs=ONE, Config=IN_PARTS)
    for source, body in (("one", SECRET), ("big", BIG)):
        copied = s3.copy_object(Bucket=bucket, Key="two", CopySource=f"{bucket}/{source}", **TWO, **source_of("1"))
        assert shown(copied) == OF_TWO
        assert copied["CopyObjectResult"]["ETag"].strip('"') == hashlib.md5(body).hexdigest()
        only_with(s3, TWO, body, Bucket=bucket, Key="two")
        # Back to the keys of the cluster.
        copied = s3.copy_object(Bucket=bucket, Key="open", CopySource=f"{bucket}/{source}", **source_of("1"))
        assert (shown(copied), s3.get_object(Bucket=bucket, Key="open")["Body"].read()) == ((None, None, "AES256"), body)
        assert code_of(s3.copy_object, Bucket=bucket, Key="no", CopySource=f"{bucket}/{source}", **TWO) == "InvalidRequest"
        assert code_of(s3.copy_object, Bucket=bucket, Key="no", CopySource=f"{bucket}/{source}", **source_of("2")) == "AccessDenied"
    assert s3.get_object(Bucket=bucket, Key="one", **ONE)["Metadata"] == {"said": "x"}
    assert code_of(s3.copy_object, Bucket=bucket, Key="no", CopySource=f"{bucket}/plain", **source_of("1")) == "InvalidRequest"
    assert code_of(s3.get_object, Bucket=bucket, Key="no") == "NoSuchKey"
    s3.copy_object(Bucket=bucket, Key="closed", CopySource=f"{bucket}/plain", MetadataDirective="REPLACE", Metadata={"a": "b"}, **ONE)
    assert only_with(s3, ONE, SECRET, Bucket=bucket, Key="closed")["Metadata"] == {"a": "b"}
    # An object gets another key where it is.
    s3.copy_object(Bucket=bucket, Key="one", CopySource=f"{bucket}/one", **TWO, **source_of("1"))
    only_with(s3, TWO, SECRET, Bucket=bucket, Key="one")

    for checksum in ({}, {"ChecksumAlgorithm": "CRC32"}):
        begun = s3.create_multipart_upload(Bucket=bucket, Key="made", **ONE, **checksum)
        which = {"Bucket": bucket, "Key": "made", "UploadId": begun["UploadId"]}
        source = {"CopySource": f"{bucket}/big", "CopySourceRange": f"bytes=3-{5 * MIB + 2}", "PartNumber": 1}
        assert code_of(s3.upload_part_copy, **which, **source, **ONE) == "InvalidRequest"
        assert code_of(s3.upload_part_copy, **which, **source, **ONE, **source_of("2")) == "AccessDenied"
        assert code_of(s3.upload_part_copy, **which, **source, **source_of("1")) == "InvalidRequest"
        copied = s3.upload_part_copy(**which, **source, **ONE, **source_of("1"))
        assert shown(copied) == OF_ONE
        last = s3.upload_part_copy(**which, PartNumber=2, CopySource=f"{bucket}/plain", **ONE)
        parts = [{"PartNumber": number, **{name: value for name, value in part["CopyPartResult"].items() if name != "LastModified"}}
                 for number, part in ((1, copied), (2, last))]
        s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
        only_with(s3, ONE, BIG[3:5 * MIB + 3] + SECRET, Bucket=bucket, Key="made")


def test_a_large_object_of_swifts_does_not_open_its_segments(servers):
    s3, swift = servers.gateway(), servers.swift()
    bucket = made(s3, "segments")
    s3.put_object(Bucket=bucket, Key="closed", Body=SECRET, **ONE)
    swift.do("PUT", bucket, "list", query="?multipart-manifest=put", body=json.dumps([{"path": f"/{bucket}/closed"}]), expect=201)
    assert b"customer-key" in swift.do("GET", bucket, "list", expect=400).body
    assert code_of(s3.get_object, Bucket=bucket, Key="list") == "InvalidRequest"
    assert code_of(s3.copy_object, Bucket=bucket, Key="copy", CopySource=f"{bucket}/list") == "InvalidRequest"
    begun = s3.create_multipart_upload(Bucket=bucket, Key="copy")["UploadId"]
    part = {"Bucket": bucket, "Key": "copy", "UploadId": begun, "PartNumber": 1, "CopySource": f"{bucket}/list"}
    assert code_of(s3.upload_part_copy, **part) == "InvalidRequest"


def test_older_versions_stay_closed(servers):
    s3 = servers.gateway()
    bucket = made(s3, "versions")
    s3.put_object(Bucket=bucket, Key="k", Body=SECRET, Metadata={"said": "x"}, **ONE)
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", ExtraArgs=ONE, Config=IN_PARTS)
    s3.put_object(Bucket=bucket, Key="gone", Body=SECRET, **ONE)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    second = s3.put_object(Bucket=bucket, Key="k", Body=b"second", **TWO)["VersionId"]
    third = s3.put_object(Bucket=bucket, Key="k", Body=b"third")["VersionId"]
    s3.put_object(Bucket=bucket, Key="big", Body=b"second")
    s3.delete_object(Bucket=bucket, Key="gone")
    first = {}
    for found in s3.list_object_versions(Bucket=bucket)["Versions"]:
        if found["Key"] != "k" or found["VersionId"] not in (second, third):
            first[found["Key"]] = (found["VersionId"], found["ETag"]) if found["Size"] > 6 else first.get(found["Key"])
    for key, body in (("k", SECRET), ("big", BIG), ("gone", SECRET)):
        version, etag = first[key]
        got = only_with(s3, ONE, body, Bucket=bucket, Key=key, VersionId=version)
        assert got["ETag"] == etag
        if key != "big":
            assert s3.get_object(Bucket=bucket, Key=key, VersionId=version, IfMatch=etag, **ONE)["ETag"] == etag
    only_with(s3, TWO, b"second", Bucket=bucket, Key="k", VersionId=second)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"third"
    s3.copy_object(Bucket=bucket, Key="k", CopySource={"Bucket": bucket, "Key": "k", "VersionId": first["k"][0]}, **TWO, **source_of("1"))
    assert only_with(s3, TWO, SECRET, Bucket=bucket, Key="k")["Metadata"] == {"said": "x"}
    # An older one becomes the current one again, as Swift has it.
    servers.swift().do("PUT", bucket, "k", query=f"?version-id={second}", headers={"Content-Length": "0"}, expect=201)
    only_with(s3, TWO, b"second", Bucket=bucket, Key="k")


@pytest.mark.parametrize("header", ["X-Versions-Location", "X-History-Location"])
def test_swifts_older_way_of_keeping_versions(servers, header):
    s3, swift = servers.gateway(), servers.swift()
    bucket, kept = made(s3, f"kept-{header[2:9].lower()}"), f"archive-{header[2:9].lower()}"
    swift.do("PUT", kept, expect=201)
    swift.do("POST", bucket, headers={header: kept}, expect=204)
    s3.put_object(Bucket=bucket, Key="k", Body=SECRET, **ONE)
    s3.put_object(Bucket=bucket, Key="k", Body=b"second")
    [name] = swift.get(kept).decode().split()
    only_with(s3, ONE, SECRET, Bucket=kept, Key=name)
    s3.delete_object(Bucket=bucket, Key="k")
    if header == "X-Versions-Location":
        only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")


def test_a_new_list_of_s3s_own(servers):
    s3 = servers.gateway(s3_acl=True)
    bucket, other = made(s3, "own-list"), client_of(servers.cluster, "test:tester3", "testing3")
    s3.put_object(Bucket=bucket, Key="k", Body=SECRET, Metadata={"said": "x"}, **ONE)
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", ExtraArgs=ONE, Config=IN_PARTS)
    for key, body in (("k", SECRET), ("big", BIG)):
        assert code_of(other.get_object, Bucket=bucket, Key=key, **ONE) == "AccessDenied"
        s3.put_object_acl(Bucket=bucket, Key=key, ACL="public-read")
        only_with(other, ONE, body, Bucket=bucket, Key=key)
    assert s3.head_object(Bucket=bucket, Key="k", **ONE)["Metadata"] == {"said": "x"}


def test_forms(servers):
    s3 = servers.gateway()
    bucket, prefix = made(s3, "forms"), "x-amz-server-side-encryption-customer-"
    fields = {f"{prefix}algorithm": "AES256", f"{prefix}key": base64.b64encode(b"1" * 32).decode(), f"{prefix}key-MD5": md5_of("1")}
    form = s3.generate_presigned_post(bucket, "k", Fields=fields, Conditions=[{name: value} for name, value in fields.items()])
    status, headers, _ = send(form, SECRET)
    assert (status, headers[f"{prefix}key-MD5"]) == (204, md5_of("1"))
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="k")
    form["fields"][f"{prefix}key"] = base64.b64encode(b"2" * 32).decode()
    status, _, answer = send(form, SECRET)
    assert status == 403 and b"MTEx" not in answer


@pytest.mark.parametrize("how", [{"encrypts": False}, {"disable_encryption": "true"}], ids=["no filter", "disabled"])
def test_without_encryption(servers, how):
    s3 = servers.gateway()
    bucket = made(s3, f"without-{how.get('encrypts', True)}".lower())
    s3.put_object(Bucket=bucket, Key="there", Body=SECRET, **ONE)
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", ExtraArgs=ONE, Config=IN_PARTS)
    s3 = servers.gateway(**how)
    for call, arguments in ((s3.put_object, {"Body": SECRET}), (s3.create_multipart_upload, {})):
        code, words = refusal(call, Bucket=bucket, Key="k", **ONE, **arguments)
        assert code == "NotImplemented" and "keymaster" in words
    if "encrypts" in how:
        code, words = refusal(s3.get_object, Bucket=bucket, Key="there", **ONE)
        assert code == "NotImplemented" and "keymaster" in words
        assert code_of(s3.get_object, Bucket=bucket, Key="there") == "InvalidRequest"
        # The list of its parts is encrypted, too.
        assert code_of(s3.get_object, Bucket=bucket, Key="big", **ONE) == "InternalError"
        return
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="there")
    only_with(s3, ONE, BIG, Bucket=bucket, Key="big")
    # What is kept as an older version stays closed though new objects are stored in the clear.
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="there", Body=b"new")
    versions = s3.list_object_versions(Bucket=bucket, Prefix="there")["Versions"]
    [old] = [found["VersionId"] for found in versions if not found["IsLatest"]]
    only_with(s3, ONE, SECRET, Bucket=bucket, Key="there", VersionId=old)
