"""Bucket policies and public access blocks: who may do what by them, beside what the account's own authorisation says."""

import json

import pytest

from clients.test_access_keys import Keys, s3_of
from clients.test_boto3 import bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness import filters
from harness.client import Client
from harness.systems import make

DENIED = "AccessDenied"


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no policies")
    return client_of(store)


@pytest.fixture
def plain(store):  # noqa: F811
    """A user of the account without a role."""
    return client_of(store, "test:tester3", "testing3")


def statement(bucket, actions, keys="/*", effect="Allow", principal="*", **condition):  # noqa: F811
    made = {"Effect": effect, "Principal": principal, "Action": actions, "Resource": f"arn:aws:s3:::{bucket}{keys}"}
    return {**made, "Condition": condition} if condition else made


def put(s3, bucket, *statements):  # noqa: F811
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements}))


def test_policies_are_kept(s3, bucket):  # noqa: F811
    assert code_of(s3.get_bucket_policy, Bucket=bucket) == "NoSuchBucketPolicy"
    assert code_of(s3.get_bucket_policy_status, Bucket=bucket) == "NoSuchBucketPolicy"
    long = [{**statement(bucket, "s3:GetObject", principal={"AWS": "test:tester3"}), "Sid": f"{number} \u00fc" + "x" * 400} for number in range(35)]
    put(s3, bucket, *long)
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"] == long
    assert s3.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"] == {"IsPublic": False}
    put(s3, bucket, statement(bucket, ["s3:GetObject"]))
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"] == [statement(bucket, ["s3:GetObject"])]
    assert s3.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"] == {"IsPublic": True}
    for wrong, named in [({**long[0], "NotResource": "*"}, "NotResource"), (statement("other", "s3:GetObject"), "arn:aws:s3:::other/*"),
                         (statement(bucket, "s3:Fly"), "s3:Fly"), (statement(bucket, "s3:*", NumericLessThan={"s3:max-keys": "1"}), "NumericLessThan")]:
        with pytest.raises(s3.exceptions.ClientError) as refused:
            put(s3, bucket, wrong)
        assert refused.value.response["Error"]["Code"] == "MalformedPolicy" and named in refused.value.response["Error"]["Message"]
    with pytest.raises(s3.exceptions.ClientError):
        put(s3, bucket, *long * 2)
    s3.delete_bucket_policy(Bucket=bucket)
    assert code_of(s3.get_bucket_policy, Bucket=bucket) == "NoSuchBucketPolicy"


def test_allowances(store, s3, plain, bucket):  # noqa: F811
    for key in ("open/a", "closed/a"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert code_of(plain.get_object, Bucket=bucket, Key="open/a") == DENIED
    who = {"AWS": "arn:aws:iam::test:user/tester3"}
    put(s3, bucket, statement(bucket, ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "/open/*", principal=who),
        statement(bucket, "s3:ListBucket", "", principal=who, StringLike={"s3:prefix": "open/*"}))
    assert plain.get_object(Bucket=bucket, Key="open/a")["Body"].read() == b"open/a"
    assert code_of(plain.get_object, Bucket=bucket, Key="closed/a") == DENIED
    assert [found["Key"] for found in plain.list_objects_v2(Bucket=bucket, Prefix="open/")["Contents"]] == ["open/a"]
    assert code_of(plain.list_objects_v2, Bucket=bucket) == DENIED
    plain.put_object(Bucket=bucket, Key="open/b", Body=b"x")
    assert code_of(plain.put_object, Bucket=bucket, Key="b", Body=b"") == DENIED
    # All of a request has to be allowed.
    assert code_of(plain.put_object, Bucket=bucket, Key="open/b", Body=b"", Tagging="a=b") == DENIED
    plain.copy_object(Bucket=bucket, Key="open/c", CopySource={"Bucket": bucket, "Key": "open/b"})
    assert code_of(plain.copy_object, Bucket=bucket, Key="open/d", CopySource={"Bucket": bucket, "Key": "closed/a"}) == DENIED
    upload = {"Bucket": bucket, "Key": "open/big", "UploadId": plain.create_multipart_upload(Bucket=bucket, Key="open/big")["UploadId"]}
    tags = [plain.upload_part(**upload, PartNumber=number, Body=b"x" * (5 << 20))["ETag"] for number in (1, 2)]
    plain.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": at, "ETag": tag} for at, tag in enumerate(tags, start=1)]})
    assert len(plain.get_object(Bucket=bucket, Key="open/big")["Body"].read()) == 10 << 20
    answer = plain.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "open/b"}, {"Key": "closed/a"}]})
    assert ([found["Key"] for found in answer["Deleted"]], [found["Code"] for found in answer["Errors"]]) == (["open/b"], [DENIED])
    for call, more in [(plain.get_bucket_policy, {}), (plain.delete_bucket_policy, {}), (plain.put_bucket_policy, {"Policy": "{}"}), (plain.delete_bucket, {})]:
        assert code_of(call, Bucket=bucket, **more) in (DENIED, "MalformedPolicy"), call
    # A manifest of Swift's that leads elsewhere opens nothing there.
    Client(store.auth_url).put(bucket, "open/manifest", headers={"X-Object-Manifest": f"{bucket}/closed/"})
    assert code_of(plain.get_object, Bucket=bucket, Key="open/manifest") == DENIED
    assert s3.get_object(Bucket=bucket, Key="open/manifest")["Body"].read() == b"closed/a"
    # Swift's API knows no policies.
    assert Client(store.auth_url, "test:tester3").do("GET", bucket, "open/a").status == 403


def test_versions(s3, plain, bucket):  # noqa: F811
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=bucket, Key="k", Body=b"1")["VersionId"]
    put(s3, bucket, statement(bucket, ["s3:GetObject", "s3:PutObject"]), statement(bucket, "s3:GetObjectVersion"))
    plain.put_object(Bucket=bucket, Key="k", Body=b"2")
    assert plain.get_object(Bucket=bucket, Key="k")["Body"].read() == b"2"
    assert plain.get_object(Bucket=bucket, Key="k", VersionId=first)["Body"].read() == b"1"
    assert code_of(plain.delete_object, Bucket=bucket, Key="k", VersionId=first) == DENIED
    s3.delete_bucket_policy(Bucket=bucket)
    for found in s3.list_object_versions(Bucket=bucket)["Versions"]:
        s3.delete_object(Bucket=bucket, Key="k", VersionId=found["VersionId"])


def test_denials(store, s3, plain, bucket):  # noqa: F811
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    in_key = {"Bucket": bucket, "Key": "k"}
    for condition, expected in [({}, DENIED), ({"NotIpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, None), ({"IpAddress": {"aws:SourceIp": "127.0.0.1"}}, DENIED),
                                ({"Bool": {"aws:SecureTransport": "false"}}, DENIED), ({"DateLessThan": {"aws:CurrentTime": "2000-01-01T00:00:00Z"}}, None)]:
        put(s3, bucket, statement(bucket, "s3:GetObject", effect="Deny", **condition), statement(bucket, "s3:*"))
        for client in (s3, plain):
            if expected:
                assert code_of(client.get_object, **in_key) == expected, condition
            else:
                assert client.get_object(**in_key)["Body"].read() == b"x", condition
        if expected:
            assert code_of(s3.copy_object, Bucket=bucket, Key="copy", CopySource=in_key) == DENIED
    # The owner is never locked out.
    everything = [statement(bucket, "s3:*", keys, effect="Deny") for keys in ("", "/*")]
    put(s3, bucket, *everything)
    assert code_of(s3.list_objects_v2, Bucket=bucket) == DENIED
    assert s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})["Errors"][0]["Code"] == DENIED
    for call in (plain.get_bucket_policy, plain.delete_bucket_policy):
        assert code_of(call, Bucket=bucket) == DENIED
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"] == everything
    put(s3, bucket, *everything)
    s3.delete_bucket_policy(Bucket=bucket)
    assert s3.get_object(**in_key)["Body"].read() == b"x"
    # A key's limits stay under what a policy allows.
    put(s3, bucket, statement(bucket, "s3:*"))
    key = Keys(store.auth_url).make("--for", "test:tester3", "--action", "read")
    assert s3_of(store, key).get_object(**in_key)["Body"].read() == b"x"
    assert code_of(s3_of(store, key).delete_object, **in_key) == DENIED


def test_public_access_block(store, s3, plain, bucket):  # noqa: F811
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    in_key = {"Bucket": bucket, "Key": "k"}
    assert code_of(s3.get_public_access_block, Bucket=bucket) == "NoSuchPublicAccessBlockConfiguration"

    def block(**flags):
        s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=flags)
        assert {name: flag for name, flag in s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].items() if flag} == flags

    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert plain.get_object(**in_key)["Body"].read() == b"x"
    block(IgnorePublicAcls=True)
    assert code_of(plain.get_object, **in_key) == DENIED
    assert Client(store.auth_url, "test:tester3").do("GET", bucket, "k").status == 200  # as X-Container-Read says
    block(BlockPublicAcls=True)
    assert plain.get_object(**in_key)["Body"].read() == b"x"
    assert code_of(s3.put_bucket_acl, Bucket=bucket, ACL="public-read") == DENIED
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    put(s3, bucket, statement(bucket, "s3:GetObject"))
    assert plain.get_object(**in_key)["Body"].read() == b"x"
    block(RestrictPublicBuckets=True)
    assert code_of(plain.get_object, **in_key) == DENIED
    block(BlockPublicPolicy=True)
    with pytest.raises(s3.exceptions.ClientError):
        put(s3, bucket, statement(bucket, "s3:GetObject"))
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": "test:tester3"}))
    s3.delete_public_access_block(Bucket=bucket)
    put(s3, bucket, statement(bucket, "s3:GetObject"))


def test_ownership_controls(s3, bucket):  # noqa: F811
    assert code_of(s3.get_bucket_ownership_controls, Bucket=bucket) == "OwnershipControlsNotFoundError"
    controls = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=controls)
    assert s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"] == controls
    assert code_of(s3.put_bucket_ownership_controls, Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": "None"}]}) == "MalformedXML"
    s3.delete_bucket_ownership_controls(Bucket=bucket)
    assert code_of(s3.get_bucket_ownership_controls, Bucket=bucket) == "OwnershipControlsNotFoundError"


def test_public_lists_in_xml_are_blocked(request, make_system):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no public access blocks")
    s3 = client_of(make_system("separate", overrides=filters.overrides(s3api={"s3_acl": "true"})).start())
    s3.create_bucket(Bucket="blocked")
    s3.put_object(Bucket="blocked", Key="k", Body=b"x")
    owner = {"ID": "test:tester"}

    def grants(**grantee):
        return {"Owner": owner, "Grants": [{"Grantee": {"Type": "CanonicalUser", **owner}, "Permission": "FULL_CONTROL"},
                                           {"Grantee": grantee, "Permission": "READ"}]}

    everybody = [grants(Type="Group", URI=f"http://acs.amazonaws.com/groups/global/{group}") for group in ("AllUsers", "AuthenticatedUsers")]
    calls = ((s3.put_bucket_acl, {"Bucket": "blocked"}), (s3.put_object_acl, {"Bucket": "blocked", "Key": "k"}))
    for blocks in (False, True):
        s3.put_public_access_block(Bucket="blocked", PublicAccessBlockConfiguration={"BlockPublicAcls": blocks})
        for call, about in calls:
            call(**about, AccessControlPolicy=grants(Type="CanonicalUser", ID="test:tester3"))
            for public in everybody:
                if blocks:
                    assert code_of(call, **about, AccessControlPolicy=public) == DENIED
                    assert code_of(call, **about, ACL="public-read") == DENIED
                else:
                    call(**about, AccessControlPolicy=public)
            shown = (s3.get_object_acl if "Key" in about else s3.get_bucket_acl)(**about)["Grants"]
            assert any(grant["Grantee"]["Type"] == "Group" for grant in shown) is not blocks


@pytest.fixture(scope="module")
def listed(tmp_path_factory, request):
    """A cluster where S3's own lists decide."""
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api has no policies")
    system = make("separate", tmp_path_factory.mktemp("lists"), overrides=filters.overrides(s3api={"s3_acl": "true"}))
    try:
        yield system.start()
    finally:
        system.stop()


def test_policies_open_what_lists_do_not(listed):
    s3, plain, other = (client_of(listed, f"test:tester{number}", f"testing{number}") for number in ("", "3", "2"))
    bucket = "policy-and-lists"  # noqa: F811
    s3.create_bucket(Bucket=bucket)
    for key in ("open/a", "closed/a"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode(), Tagging="a=b")
    source = {"Bucket": bucket, "Key": "open/a"}
    refused = [(plain.get_object, {"Key": "open/a"}), (plain.head_object, {"Key": "open/a"}), (plain.list_objects_v2, {"Prefix": "open/"}),
               (plain.get_object_tagging, {"Key": "open/a"}), (plain.put_object, {"Key": "open/b", "Body": b"x"}),
               (plain.delete_object, {"Key": "open/b"}), (plain.get_bucket_location, {}), (plain.create_multipart_upload, {"Key": "open/c"}),
               (plain.copy_object, {"Key": "open/d", "CopySource": source})]

    def codes():
        return [code_of(call, Bucket=bucket, **about) for call, about in refused]

    assert {code for code in codes()} <= {DENIED, "403"}
    who = {"AWS": "test:tester3"}
    keys = statement(bucket, ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:GetObjectTagging"], "/open/*", principal=who)
    of_bucket = statement(bucket, ["s3:ListBucket", "s3:GetBucketLocation"], "", principal=who)
    put(s3, bucket, keys, of_bucket)
    assert plain.get_object(Bucket=bucket, Key="open/a")["Body"].read() == b"open/a"
    assert plain.head_object(Bucket=bucket, Key="open/a")["ContentLength"] == 6
    assert plain.get_object_tagging(Bucket=bucket, Key="open/a")["TagSet"] == [{"Key": "a", "Value": "b"}]
    assert [found["Key"] for found in plain.list_objects_v2(Bucket=bucket)["Contents"]] == ["closed/a", "open/a"]
    plain.get_bucket_location(Bucket=bucket)
    plain.put_object(Bucket=bucket, Key="open/b", Body=b"bb")
    plain.copy_object(Bucket=bucket, Key="open/d", CopySource=source)
    begun = plain.create_multipart_upload(Bucket=bucket, Key="open/c")["UploadId"]
    etag = plain.upload_part(Bucket=bucket, Key="open/c", UploadId=begun, PartNumber=1, Body=b"part")["ETag"]
    plain.complete_multipart_upload(Bucket=bucket, Key="open/c", UploadId=begun, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert plain.get_object(Bucket=bucket, Key="open/c")["Body"].read() == b"part"
    # What is put belongs to the user who puts it.
    for key in ("open/b", "open/c", "open/d"):
        assert plain.get_object_acl(Bucket=bucket, Key=key)["Owner"]["ID"] == "test:tester3", key
    # The rest stays as the lists have it, for this user and others; who names a source must be able to read it.
    for call, about in [(plain.get_object, {"Key": "closed/a"}), (plain.put_object, {"Key": "closed/b", "Body": b""}),
                        (plain.get_object_acl, {"Key": "open/a"}), (plain.put_object_acl, {"Key": "open/a", "ACL": "public-read"}),
                        (plain.copy_object, {"Key": "open/e", "CopySource": {"Bucket": bucket, "Key": "closed/a"}}),
                        (plain.get_bucket_tagging, {}), (other.get_object, {"Key": "open/a"}), (other.list_objects_v2, {})]:
        assert code_of(call, Bucket=bucket, **about) == DENIED, about
    # A source that its own list opens.
    s3.put_object_acl(Bucket=bucket, Key="closed/a", GrantRead='id="test:tester3"')
    plain.copy_object(Bucket=bucket, Key="open/e", CopySource={"Bucket": bucket, "Key": "closed/a"})
    assert plain.get_object(Bucket=bucket, Key="open/e")["Body"].read() == b"closed/a"
    deleted = plain.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "open/b"}, {"Key": "closed/a"}]})
    assert [done["Key"] for done in deleted["Deleted"]] == ["open/b"] and deleted["Errors"][0]["Code"] == DENIED
    # A denial wins, over lists and over ownership.
    put(s3, bucket, keys, of_bucket, statement(bucket, "s3:GetObject", "/open/*", effect="Deny"))
    for user, key in ((plain, "open/a"), (plain, "open/c"), (s3, "open/a")):
        assert code_of(user.get_object, Bucket=bucket, Key=key) == DENIED, key
    s3.delete_bucket_policy(Bucket=bucket)
    refused[5] = (plain.delete_object, {"Key": "open/d"})
    assert {code for code in codes()} <= {DENIED, "403"}


def test_public_lists_are_ignored(listed):
    s3, plain = client_of(listed), client_of(listed, "test:tester3", "testing3")
    bucket, block = "ignored-lists", {"IgnorePublicAcls": True}  # noqa: F811
    s3.create_bucket(Bucket=bucket, ACL="public-read-write")
    for key, acl in (("all", {"ACL": "public-read"}), ("signed", {"ACL": "authenticated-read"}), ("named", {"GrantRead": 'id="test:tester3"'})):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x", **acl)
    calls = [(plain.list_objects_v2, {}), (plain.put_object, {"Key": "n", "Body": b""}), (plain.get_object, {"Key": "all"}),
             (plain.get_object, {"Key": "signed"}), (plain.copy_object, {"Key": "m", "CopySource": {"Bucket": bucket, "Key": "all"}})]
    for call, about in calls:
        call(Bucket=bucket, **about)
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=block)
    for call, about in calls:
        assert code_of(call, Bucket=bucket, **about) == DENIED, about
    assert plain.get_object(Bucket=bucket, Key="named")["Body"].read() == b"x"
    assert s3.get_object(Bucket=bucket, Key="all")["Body"].read() == b"x"
    assert any(grant["Grantee"]["Type"] == "Group" for grant in s3.get_bucket_acl(Bucket=bucket)["Grants"])
    deleted = plain.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "all"}]})
    assert deleted["Errors"][0]["Code"] == DENIED
    s3.delete_public_access_block(Bucket=bucket)
    for call, about in calls:
        call(Bucket=bucket, **about)
