"""Lifecycle rules of buckets as boto3 puts, reads and deletes them, and when an object says that it expires."""

import datetime
import email.utils

import pytest

from clients.test_boto3 import MIB, bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client

DAY = datetime.timedelta(days=1)


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no lifecycle rules")
    return client_of(store)


def put(s3, bucket, *rules):  # noqa: F811
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})


def rule(name="all", *, filter=None, **actions):
    return {"ID": name, "Status": "Enabled", "Filter": {} if filter is None else filter, **actions}


def days(number):
    return {"Days": number}


def midnight_after(moment, number):
    """AWS's count: so many days on, rounded up to a midnight."""
    moment += number * DAY
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return start if start == moment else start + DAY


def test_rules_are_read_as_they_were_put(s3, bucket):  # noqa: F811
    assert code_of(s3.get_bucket_lifecycle_configuration, Bucket=bucket) == "NoSuchLifecycleConfiguration"
    date = datetime.datetime(2031, 2, 1, tzinfo=datetime.timezone.utc)
    rules = [
        rule("logs/ü", filter={"Prefix": "logs/ & <more>"}, Expiration=days(30)),
        rule("date", filter={"Tag": {"Key": "k", "Value": "v"}}, Expiration={"Date": date}),
        rule("several", filter={"And": {"Prefix": "a", "Tags": [{"Key": "k", "Value": "v"}, {"Key": "l", "Value": ""}],
                                        "ObjectSizeGreaterThan": 0, "ObjectSizeLessThan": 10**12}}, Expiration=days(1),
             NoncurrentVersionExpiration={"NoncurrentDays": 3, "NewerNoncurrentVersions": 2}),
        rule("large", filter={"ObjectSizeGreaterThan": 5 << 30}, NoncurrentVersionExpiration={"NoncurrentDays": 1}),
        rule("clean", Expiration={"ExpiredObjectDeleteMarker": True}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7}),
        {"ID": "old form", "Status": "Disabled", "Prefix": "x/", "Expiration": days(5)},
    ]
    put(s3, bucket, *rules)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules
    put(s3, bucket, rules[0])
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules[:1]
    s3.delete_bucket_lifecycle(Bucket=bucket)
    s3.delete_bucket_lifecycle(Bucket=bucket)
    assert code_of(s3.get_bucket_lifecycle_configuration, Bucket=bucket) == "NoSuchLifecycleConfiguration"
    for call in (s3.get_bucket_lifecycle_configuration, s3.delete_bucket_lifecycle):
        assert code_of(call, Bucket="no-such-bucket") == "NoSuchBucket"


def test_a_thousand_rules(s3, bucket):  # noqa: F811
    rules = [rule(f"rule-{number:04}", filter={"Prefix": f"tenant-{number}/"}, Expiration=days(number + 1)) for number in range(1000)]
    put(s3, bucket, *rules)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules
    with pytest.raises(s3.exceptions.ClientError) as refused:
        put(s3, bucket, *rules, rule("one more", Expiration=days(1)))
    assert refused.value.response["Error"]["Code"] == "MalformedXML"
    assert len(s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]) == 1000


def test_a_rule_without_id_gets_one(s3, bucket):  # noqa: F811
    put(s3, bucket, {"Status": "Enabled", "Prefix": "", "Expiration": days(1)})
    assert len(s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"][0]["ID"]) == 32


@pytest.mark.parametrize("wrong, code", [
    (rule(), "InvalidRequest"),
    (rule(Transitions=[{"Days": 1, "StorageClass": "GLACIER"}]), "NotImplemented"),
    (rule(NoncurrentVersionTransitions=[{"NoncurrentDays": 1, "StorageClass": "GLACIER"}]), "NotImplemented"),
    (rule(Expiration=days(0)), "InvalidArgument"),
    (rule("x" * 256, Expiration=days(1)), "InvalidArgument"),
    (rule(Expiration={"Date": datetime.datetime(2031, 2, 1, 1)}), "InvalidArgument"),
    (rule(filter={"Tag": {"Key": "k", "Value": "v"}}, Expiration={"ExpiredObjectDeleteMarker": True}), "InvalidRequest"),
    (rule(filter={"Tag": {"Key": "k", "Value": "v"}}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1}), "InvalidRequest"),
    (rule(filter={"And": {"Prefix": "a"}}, Expiration=days(1)), "MalformedXML"),
    ({"ID": "a", "Status": "Enabled", "Expiration": days(1)}, "MalformedXML"),
    (rule("kept", Expiration=days(9)), "InvalidArgument"),
])
def test_what_is_wrong_changes_nothing(s3, bucket, wrong, code):  # noqa: F811
    kept = rule("kept", Expiration=days(1))
    put(s3, bucket, kept)
    with pytest.raises(s3.exceptions.ClientError) as refused:
        put(s3, bucket, rule("kept", Expiration=days(2)), wrong)
    assert refused.value.response["Error"]["Code"] == code
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [kept]


def test_swifts_clients_do_not_see_them(store, s3, bucket):  # noqa: F811
    put(s3, bucket, rule(Expiration=days(1)))
    head = Client(store.auth_url).do("HEAD", bucket)
    assert "lifecycle" not in str(head.headers).lower()
    Client(store.auth_url).do("POST", bucket, headers={"X-Container-Sysmeta-S3api-Lifecycle-0": "[]"})
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [rule(Expiration=days(1))]


def test_objects_say_when_they_expire(s3, bucket):  # noqa: F811
    put(s3, bucket, rule("late one", filter={"Prefix": "a/"}, Expiration=days(9)),
        rule("tagged", filter={"And": {"Prefix": "a/", "Tags": [{"Key": "k", "Value": "v"}]}}, Expiration=days(3)),
        rule("small", filter={"ObjectSizeLessThan": 3}, Expiration=days(1)),
        rule("old", NoncurrentVersionExpiration={"NoncurrentDays": 1}))
    for key, body, tags, expected in [("a/1", b"12345", "", ("late%20one", 9)), ("a/2", b"12345", "k=v", ("tagged", 3)),
                                      ("a/3", b"12", "k=v", ("small", 1)), ("b/1", b"12345", "k=v", None)]:
        answers = [s3.put_object(Bucket=bucket, Key=key, Body=body, Tagging=tags), s3.get_object(Bucket=bucket, Key=key),
                   s3.head_object(Bucket=bucket, Key=key), s3.get_object(Bucket=bucket, Key=key, Range="bytes=0-0")]
        written = answers[2]["LastModified"]
        for answer in answers:
            shown = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-expiration")
            if expected is None:
                assert shown is None
            else:
                date = email.utils.format_datetime(midnight_after(written, expected[1]).astimezone(datetime.timezone.utc), usegmt=True)
                assert shown == f'expiry-date="{date}", rule-id="{expected[0]}"', key
    s3.delete_bucket_lifecycle(Bucket=bucket)
    assert "Expiration" not in s3.head_object(Bucket=bucket, Key="a/1")


def test_copies_and_completed_uploads_say_when_they_expire(s3, bucket):  # noqa: F811
    put(s3, bucket, rule("copies", filter={"And": {"Prefix": "copy/", "Tags": [{"Key": "k", "Value": "v"}]}}, Expiration=days(3)),
        rule("large", filter={"ObjectSizeGreaterThan": 5 * MIB + 6}, Expiration=days(1)))
    s3.put_object(Bucket=bucket, Key="source", Body=b"12345", Tagging="k=v", Metadata={"a": "b"})
    source = {"Bucket": bucket, "Key": "source"}
    for key, options in [("copy/1", {}), ("copy/2", {"MetadataDirective": "REPLACE"}), ("copy/3", {"TaggingDirective": "REPLACE"}), ("other", {})]:
        copied = s3.copy_object(Bucket=bucket, Key=key, CopySource=source, **options)
        assert copied.get("Expiration") == s3.head_object(Bucket=bucket, Key=key).get("Expiration"), key
        assert ("copies" in copied.get("Expiration", "")) == (key in ("copy/1", "copy/2")), key
    for key, last, is_due in [("upload/1", b"1234567", True), ("upload/2", b"123456", False)]:
        begun = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        parts = [{"PartNumber": number, "ETag": s3.upload_part(Bucket=bucket, Key=key, UploadId=begun, PartNumber=number, Body=body)["ETag"]}
                 for number, body in [(1, b"x" * 5 * MIB), (2, last)]]
        for _ in range(2):  # the second time it is complete already
            done = s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=begun, MultipartUpload={"Parts": parts})
            assert ("large" in done.get("Expiration", "")) == is_due, key
            assert done.get("Expiration") == s3.head_object(Bucket=bucket, Key=key).get("Expiration")
    # No rule is named where Swift deletes before, which goes with the copy.
    s3.put_object(Bucket=bucket, Key="source", Body=b"12345", Tagging="k=v")
    soon = Client(s3.meta.endpoint_url.rstrip("/") + "/auth/v1.0")
    assert soon.do("POST", f"{bucket}/source", headers={"X-Delete-After": "3600"}).status == 202
    assert "Expiration" not in s3.copy_object(Bucket=bucket, Key="copy/4", CopySource=source)
    assert "swift-object-expiration" in s3.head_object(Bucket=bucket, Key="copy/4")["Expiration"]
