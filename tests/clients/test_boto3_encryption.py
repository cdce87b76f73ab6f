"""Server-side encryption of S3 over Swift's `encryption`: who asks for it, which objects say that they have it, what lies on the devices;
where there is none, nothing that asks for it is stored. Where a bucket's access log is to go is stored, too."""

import io

import pytest
from boto3.s3.transfer import TransferConfig

from clients.test_boto3 import MIB, client_of, code_of
from clients.test_boto3_post import send
from harness import filters
from harness.client import Client
from harness.disk import contents
from harness.systems import make

AES = {"ServerSideEncryption": "AES256"}
SECRET = b"a text that must not be found on any device. " * 3
ROOT = {"encryption_root_secret": "cm9vdCBzZWNyZXQgb2Ygb25lIHRlc3QsIDMyIGJ5dGVz"}
BY_DEFAULT = {"SSEAlgorithm": "AES256"}
RULES = {"Rules": [{"ApplyServerSideEncryptionByDefault": BY_DEFAULT, "BucketKeyEnabled": False}]}


def overrides(encrypts, s3_acl=False, **encryption):
    added = "keymaster encryption proxy-logging proxy-server" if encrypts else "proxy-logging proxy-server"
    pipeline = filters.PIPELINE.replace("formpost ratelimit s3api", "s3api formpost ratelimit").replace("proxy-logging proxy-server", added)
    return filters.overrides(pipeline=pipeline, keymaster=ROOT, encryption=encryption, s3api={"s3_acl": str(s3_acl)})


class Servers:
    """One cluster, whose gateway is started anew with encryption or without."""

    def __init__(self, root):
        self.cluster = make("separate", root, overrides=overrides(True)).start()

    def gateway(self, encrypts=True, **options):
        self.cluster.stop_service("proxy")
        self.cluster.layout.overrides = overrides(encrypts, **options)
        self.cluster.layout.write()
        self.cluster.start_service("proxy")
        return client_of(self.cluster)

    def swift(self):
        return Client(self.cluster.auth_url)

    def stored(self, text):
        """Whether the text lies on a device in the clear."""
        return any(text in stored for _, stored in contents(self.cluster.srv))


@pytest.fixture(scope="module")
def servers(request, tmp_path_factory):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no encryption")
    servers = Servers(tmp_path_factory.mktemp("encryption"))
    yield servers
    servers.cluster.stop()


def made(s3, name):
    s3.create_bucket(Bucket=name)
    return name


def said(answer):
    return answer.get("ServerSideEncryption")


def refusal(call, **arguments):
    """Code and words of the refusal."""
    with pytest.raises(call.__self__.exceptions.ClientError) as refused:
        call(**arguments)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def ask_by_parameter(request, **_):
    request.url += "?x-amz-server-side-encryption=AES256"


def upload(s3, bucket, key, parts, **create):
    which = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key, **create)["UploadId"]}
    return which, [put_part(s3, which, number, part) for number, part in enumerate(parts, 1)]


def put_part(s3, which, number, body):
    return {"PartNumber": number, "ETag": s3.upload_part(**which, PartNumber=number, Body=body)["ETag"]}


def test_what_is_encrypted_says_so(servers):
    s3 = servers.gateway()
    bucket = made(s3, "encrypted")
    for key, asked in (("asked", AES), ("not-asked", {}), ("bucket-key", {**AES, "BucketKeyEnabled": True})):
        assert said(s3.put_object(Bucket=bucket, Key=key, Body=SECRET, **asked)) == "AES256"
        assert said(s3.head_object(Bucket=bucket, Key=key)) == "AES256"
        got = s3.get_object(Bucket=bucket, Key=key, Range="bytes=2-9")
        assert (got["Body"].read(), said(got)) == (SECRET[2:10], "AES256")
    assert not servers.stored(SECRET[:20])
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "asked"}, **AES)
    assert (said(copied), said(s3.head_object(Bucket=bucket, Key="copy"))) == ("AES256", "AES256")
    # Of nothing there is nothing to encrypt.
    assert said(s3.put_object(Bucket=bucket, Key="empty", Body=b"", **AES)) is None
    assert said(s3.head_object(Bucket=bucket, Key="empty")) is None
    servers.swift().put(bucket, "swift", body=SECRET)
    assert said(s3.head_object(Bucket=bucket, Key="swift")) == "AES256"
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket=bucket, Key="v", Body=SECRET, **AES)
    assert said(version) == said(s3.head_object(Bucket=bucket, Key="v", VersionId=version["VersionId"])) == "AES256"


def test_uploads_in_parts(servers):
    s3 = servers.gateway()
    bucket = made(s3, "in-parts")
    body = SECRET * (11 * MIB // len(SECRET))
    s3.upload_fileobj(io.BytesIO(body), bucket, "big", ExtraArgs=AES, Config=TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB))
    got = s3.get_object(Bucket=bucket, Key="big")
    assert (got["Body"].read() == body, said(got), said(s3.head_object(Bucket=bucket, Key="big", PartNumber=2))) == (True, "AES256", "AES256")
    assert not servers.stored(SECRET[:20])
    assert said(s3.create_multipart_upload(Bucket=bucket, Key="begun", **AES)) == "AES256"
    which, parts = upload(s3, bucket, "k", [SECRET])
    copied = s3.upload_part_copy(**{**which, "PartNumber": 1}, CopySource={"Bucket": bucket, "Key": "big"}, CopySourceRange="bytes=0-9")
    parts = [{"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"]}]
    assert said(copied) == "AES256"
    done = {**which, "MultipartUpload": {"Parts": parts}}
    assert said(s3.complete_multipart_upload(**done)) == said(s3.complete_multipart_upload(**done)) == "AES256"


def test_forms(servers):
    s3 = servers.gateway()
    bucket, field = made(s3, "forms"), {"x-amz-server-side-encryption": "AES256"}
    form = s3.generate_presigned_post(bucket, "k", Fields=field, Conditions=[field])
    status, headers, _ = send(form, SECRET)
    assert (status, headers["x-amz-server-side-encryption"], said(s3.head_object(Bucket=bucket, Key="k"))) == (204, "AES256", "AES256")
    s3 = servers.gateway(encrypts=False)
    status, _, answer = send(s3.generate_presigned_post(bucket, "other", Fields=field, Conditions=[field]), b"x")
    assert status == 501 and b"<Code>NotImplemented" in answer
    assert code_of(s3.head_object, Bucket=bucket, Key="other") == "404"


def test_keys_of_a_key_service_are_refused(servers):
    s3 = servers.gateway()
    bucket = made(s3, "others")
    for asked, code in (({"ServerSideEncryption": "aws:kms"}, "InvalidEncryptionAlgorithmError"),
                        ({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}, ("InvalidEncryptionAlgorithmError", "NotImplemented"))):
        for call, arguments in ((s3.put_object, {"Body": SECRET}), (s3.create_multipart_upload, {}),
                                (s3.copy_object, {"CopySource": f"{bucket}/none"})):
            assert code_of(call, Bucket=bucket, Key="k", **asked, **arguments) in code
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    kms = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}]}
    assert code_of(s3.put_bucket_encryption, Bucket=bucket, ServerSideEncryptionConfiguration=kms) == "InvalidEncryptionAlgorithmError"


def test_configurations_of_buckets(servers):
    s3 = servers.gateway()
    bucket, missing = made(s3, "configured"), "ServerSideEncryptionConfigurationNotFoundError"
    assert code_of(s3.get_bucket_encryption, Bucket=bucket) == missing
    for key in (True, False):
        rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": BY_DEFAULT, "BucketKeyEnabled": key}]}
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)
        assert s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"] == rules
    s3.delete_bucket_encryption(Bucket=bucket)
    assert code_of(s3.get_bucket_encryption, Bucket=bucket) == missing
    for call, more in ((s3.get_bucket_encryption, {}), (s3.delete_bucket_encryption, {}),
                       (s3.put_bucket_encryption, {"ServerSideEncryptionConfiguration": RULES})):
        assert code_of(call, Bucket="no-such-bucket", **more) == "NoSuchBucket"


@pytest.mark.parametrize("how", [{"encrypts": False}, {"disable_encryption": "true"}], ids=["no filter", "disabled"])
def test_without_encryption_nothing_that_asks_for_it_is_stored(servers, how):
    s3 = servers.gateway()
    bucket, open_bucket = made(s3, f"asks-{how.get('encrypts', True)}".lower()), made(s3, f"open-{how.get('encrypts', True)}".lower())
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=RULES)
    begun, _ = upload(s3, open_bucket, "begun", [b"x"], **AES)
    s3 = servers.gateway(**how)
    s3.put_object(Bucket=open_bucket, Key="plain", Body=SECRET)
    for name, asked in ((open_bucket, AES), (bucket, {})):
        for call, arguments in ((s3.put_object, {"Body": SECRET}), (s3.create_multipart_upload, {}),
                                (s3.copy_object, {"CopySource": f"{open_bucket}/plain"})):
            code, words = refusal(call, Bucket=name, Key="k", **asked, **arguments)
            assert code == "NotImplemented" and "encryption" in words and "keymaster" in words
        assert "k" not in [found["Key"] for found in s3.list_objects_v2(Bucket=name).get("Contents", [])]
    # Some clients have it among the parameters of URLs.
    asking = client_of(servers.cluster)
    asking.meta.events.register("before-sign.s3.PutObject", ask_by_parameter)
    assert code_of(asking.put_object, Bucket=open_bucket, Key="k", Body=SECRET) == "NotImplemented"
    assert code_of(s3.upload_part, **begun, PartNumber=2, Body=b"x") == "NotImplemented"
    assert refusal(s3.put_bucket_encryption, Bucket=open_bucket, ServerSideEncryptionConfiguration=RULES)[0] == "NotImplemented"
    assert code_of(s3.get_bucket_encryption, Bucket=open_bucket) == "ServerSideEncryptionConfigurationNotFoundError"
    s3.delete_bucket_encryption(Bucket=bucket)
    assert said(s3.put_object(Bucket=bucket, Key="k", Body=SECRET)) is None
    assert said(s3.head_object(Bucket=bucket, Key="k")) is None


def test_what_was_there_before_does_not_say_that_it_is_encrypted(servers):
    s3 = servers.gateway(encrypts=False)
    bucket, plain = made(s3, "before"), b"in the clear, and known to be so " * 3
    s3.put_object(Bucket=bucket, Key="old", Body=plain)
    which, parts = upload(s3, bucket, "mixed", [plain * 60000])
    s3 = servers.gateway()
    assert servers.stored(plain[:20])
    for call in (s3.head_object, s3.get_object):
        assert said(call(Bucket=bucket, Key="old")) is None
    parts.append(put_part(s3, which, 2, SECRET))
    assert said(s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})) is None
    for call in (s3.head_object, s3.get_object):
        assert said(call(Bucket=bucket, Key="mixed")) is None
    # A copy to itself encrypts it, as AWS's does.
    assert code_of(s3.copy_object, Bucket=bucket, Key="old", CopySource=f"{bucket}/old") == "InvalidRequest"
    assert said(s3.copy_object(Bucket=bucket, Key="old", CopySource=f"{bucket}/old", **AES)) == "AES256"
    got = s3.get_object(Bucket=bucket, Key="old")
    assert (got["Body"].read(), said(got)) == (plain, "AES256")
    s3.copy_object(Bucket=bucket, Key="mixed", CopySource=f"{bucket}/mixed", **AES)
    got = s3.get_object(Bucket=bucket, Key="mixed")
    assert (got["Body"].read() == plain * 60000 + SECRET, said(got)) == (True, "AES256")


def test_where_logs_are_to_go(servers):
    s3 = servers.gateway()
    bucket, logs = made(s3, "logged"), made(s3, "logs")

    def put(**target):
        s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={"LoggingEnabled": target} if target else {})

    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=bucket)
    for target in ({"TargetBucket": logs, "TargetPrefix": " a&b/ü "}, {"TargetBucket": logs, "TargetPrefix": "",
                   "TargetObjectKeyFormat": {"PartitionedPrefix": {"PartitionDateSource": "EventTime"}}}):
        put(**target)
        assert s3.get_bucket_logging(Bucket=bucket)["LoggingEnabled"] == target
    grant = {"Grantee": {"Type": "CanonicalUser", "ID": "test:tester3"}, "Permission": "READ"}
    for wrong, code in (({"TargetBucket": "no-such-bucket", "TargetPrefix": ""}, "InvalidTargetBucketForLogging"),
                        ({"TargetBucket": "in-parts+segments", "TargetPrefix": ""}, "InvalidTargetBucketForLogging"),
                        ({"TargetBucket": logs, "TargetPrefix": "", "TargetGrants": [grant]}, "NotImplemented")):
        assert code_of(put, **wrong) == code
    assert s3.get_bucket_logging(Bucket=bucket)["LoggingEnabled"] == target
    put()
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=bucket)
    target = {"LoggingEnabled": {"TargetBucket": logs, "TargetPrefix": ""}}
    assert code_of(s3.put_bucket_logging, Bucket="no-such-bucket", BucketLoggingStatus=target) == "NoSuchBucket"
    plain = client_of(servers.cluster, "test:tester3", "testing3")
    assert code_of(plain.put_bucket_logging, Bucket=bucket, BucketLoggingStatus={}) == "AccessDenied"
    assert code_of(plain.put_bucket_encryption, Bucket=bucket, ServerSideEncryptionConfiguration=RULES) == "AccessDenied"


def test_with_s3s_own_lists(servers):
    s3 = servers.gateway(s3_acl=True)
    bucket, logs = made(s3, "own-list"), made(s3, "own-logs")
    s3.put_object(Bucket=bucket, Key="k", Body=SECRET, **AES)
    which, parts = upload(s3, bucket, "parts", [SECRET], **AES)
    s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
    plain = client_of(servers.cluster, "test:tester3", "testing3")
    for key in ("k", "parts"):  # which writes the object anew
        s3.put_object_acl(Bucket=bucket, Key=key, ACL="public-read")
        got = plain.get_object(Bucket=bucket, Key=key)
        assert (got["Body"].read(), said(got)) == (SECRET, "AES256")
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    enabled = {"LoggingEnabled": {"TargetBucket": logs, "TargetPrefix": ""}}
    for call, arguments in ((plain.get_bucket_encryption, {}), (plain.delete_bucket_encryption, {}), (plain.get_bucket_logging, {}),
                            (plain.put_bucket_encryption, {"ServerSideEncryptionConfiguration": RULES}),
                            (plain.put_bucket_logging, {"BucketLoggingStatus": enabled})):
        assert code_of(call, Bucket=bucket, **arguments) == "AccessDenied"
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=RULES)
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=enabled)
    assert s3.get_bucket_logging(Bucket=bucket)["LoggingEnabled"] == enabled["LoggingEnabled"]
    servers.swift().do("PUT", "nobodys", expect=201)
    for target in ("nobodys", "no-such-bucket"):
        wrong = {"LoggingEnabled": {"TargetBucket": target, "TargetPrefix": ""}}
        assert code_of(s3.put_bucket_logging, Bucket=bucket, BucketLoggingStatus=wrong) == "InvalidTargetBucketForLogging"
