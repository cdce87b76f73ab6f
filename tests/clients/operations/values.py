"""What each request sends: for an operation as such, and for one parameter of it."""

import base64
import hashlib
import json
from datetime import datetime, timedelta, timezone

from botocore import xform_name

from clients.operations.ground import BODY, MIB

NOW = datetime.now(timezone.utc).replace(microsecond=0)
PAST, FUTURE = NOW - timedelta(days=30), NOW + timedelta(days=30)
GROUP = "http://acs.amazonaws.com/groups/global/AllUsers"
OWNER = {"ID": "test:tester", "DisplayName": "test:tester"}
KEY = b"k" * 32
TARGET = "hook"  # which ours is configured to notify
# What belongs together is asked together, under the first name.
TOGETHER = {"SSECustomerAlgorithm": ("SSECustomerKey", "SSECustomerKeyMD5"),
            "CopySourceSSECustomerAlgorithm": ("CopySourceSSECustomerKey", "CopySourceSSECustomerKeyMD5")}
# Asked of no operation: the address, what the client counts by itself, what the rest of the page is about.
NOT_ASKED = {"Bucket", "Key", "ContentLength", "Body"} | {name for names in TOGETHER.values() for name in names}

STRUCTURES = {
    "LifecycleConfiguration": {"Rules": [{"ID": "rule", "Status": "Enabled", "Filter": {"Prefix": "x/"}, "Expiration": {"Days": 3}}]},
    "CORSConfiguration": {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["http://example.com"]}]},
    "ServerSideEncryptionConfiguration": {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]},
    "VersioningConfiguration": {"Status": "Enabled"},
    "WebsiteConfiguration": {"IndexDocument": {"Suffix": "index.html"}},
    "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]},
    "PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": False, "BlockPublicPolicy": True, "RestrictPublicBuckets": False},
    "ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}},
    "RequestPaymentConfiguration": {"Payer": "BucketOwner"},
    "AccelerateConfiguration": {"Status": "Suspended"},
    "Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": FUTURE},
    "LegalHold": {"Status": "ON"},
    "AccessControlPolicy": {"Owner": OWNER, "Grants": [{"Grantee": {"Type": "CanonicalUser", **OWNER}, "Permission": "FULL_CONTROL"},
                                                        {"Grantee": {"Type": "Group", "URI": GROUP}, "Permission": "READ"}]},
    "RestoreRequest": {"Days": 1},
    "CreateBucketConfiguration": {"LocationConstraint": "us-east-1"},
    "Metadata": {"colour": "red"},
    "ObjectAttributes": ["ETag", "ObjectSize"],
    "OptionalObjectAttributes": ["RestoreStatus"],
}
PLAIN = {
    "CacheControl": "max-age=7", "ContentDisposition": "attachment", "ContentEncoding": "gzip", "ContentLanguage": "rm", "ContentType": "text/x",
    "Expires": FUTURE, "WebsiteRedirectLocation": "/elsewhere", "ServerSideEncryption": "AES256", "StorageClass": "STANDARD", "ACL": "public-read",
    "ResponseCacheControl": "max-age=7", "ResponseContentDisposition": "attachment", "ResponseContentEncoding": "gzip",
    "ResponseContentLanguage": "rm", "ResponseContentType": "text/x", "ResponseExpires": FUTURE, "Range": "bytes=2-4", "ChecksumMode": "ENABLED",
    "PartNumber": 1, "Prefix": "a/", "Delimiter": "/", "EncodingType": "url", "MaxKeys": 1, "Marker": "a/1", "StartAfter": "a/1", "FetchOwner": True,
    "MaxUploads": 1, "MaxParts": 1, "PartNumberMarker": 1, "MaxBuckets": 1, "BucketRegion": "eu-nowhere-1", "ChecksumAlgorithm": "SHA256",
    "ChecksumType": "COMPOSITE", "MpuObjectSize": 99, "CopySourceRange": "bytes=0-4", "MetadataDirective": "REPLACE", "TaggingDirective": "REPLACE",
    "ExpectedBucketOwner": "000000000000", "ExpectedSourceBucketOwner": "000000000000", "RequestPayer": "requester", "MFA": "serial 123456",
    "ObjectLockLegalHoldStatus": "ON", "BypassGovernanceRetention": True, "ObjectOwnership": "BucketOwnerPreferred", "ObjectLockEnabledForBucket": True,
    "SSEKMSKeyId": "key", "SSEKMSEncryptionContext": base64.b64encode(b"{}").decode(), "BucketKeyEnabled": True,
    "IfModifiedSince": FUTURE, "IfUnmodifiedSince": PAST, "CopySourceIfModifiedSince": FUTURE, "CopySourceIfUnmodifiedSince": PAST,
    "CopySourceIfMatch": '"wrong"', "IfMatch": '"wrong"', "IfMatchLastModifiedTime": PAST, "IfMatchSize": 99, "IfMatchInitiatedTime": PAST,
    "WriteOffsetBytes": 10, "TransitionDefaultMinimumObjectSize": "varies_by_storage_class",
    "GrantRead": f'uri="{GROUP}"', "GrantReadACP": f'uri="{GROUP}"', "GrantWrite": f'uri="{GROUP}"', "GrantWriteACP": f'uri="{GROUP}"',
    "GrantFullControl": 'id="test:tester"',
}
WIDTHS = {"CRC32": 4, "CRC32C": 4, "CRC64NVME": 8, "SHA1": 20, "SHA256": 32, "SHA512": 64, "MD5": 16, "XXHASH64": 8, "XXHASH3": 8, "XXHASH128": 16}


def base(ground, operation, shape):
    """The arguments of a request for the operation itself; what it needs is stored before."""
    made = SPECIAL[operation](ground) if operation in SPECIAL else {}
    if "Bucket" in shape.members and "Bucket" not in made and "Key" not in shape.members:
        made["Bucket"] = ground.bucket() if operation.startswith(("Put", "Delete")) or configures(operation) else ground.plain
    if "Key" in shape.members and "Key" not in made:
        own = operation.startswith(("Put", "Delete", "Update")) or configures(operation)
        made |= ground.object() if own else {"Bucket": ground.plain, "Key": "object"}
    for name in shape.required_members:
        if name not in made:
            made[name] = value(operation, name, shape.members[name], made)
    if operation.startswith("PutBucketLifecycle"):
        made["LifecycleConfiguration"] = value(operation, "LifecycleConfiguration", shape.members["LifecycleConfiguration"], made)
    if configures(operation):  # what is to be read or removed is set before
        put = f"Put{operation.removeprefix('Get').removeprefix('Delete')}"
        put = {"PutBucketLifecycle": "PutBucketLifecycleConfiguration", "PutBucketNotification": "PutBucketNotificationConfiguration",
               "PutBucketPolicyStatus": "PutBucketPolicy"}.get(put, put)
        model = ground.s3.meta.service_model
        if put in model.operation_names:
            asked = model.operation_model(put).input_shape
            kept = {name: made[name] for name in ("Bucket", "Key", "VersionId", "Id") if name in made and name in asked.members}
            needed = [name for name in asked.members if name in asked.required_members or name in STRUCTURES and name != "AccessControlPolicy"]
            ground.quietly(xform_name(put), **{name: value(put, name, asked.members[name], made) for name in needed} | kept)
    return made


def configures(operation):
    """Whether it reads or removes a sub-resource that another operation sets."""
    return operation.startswith(("GetBucket", "DeleteBucket", "GetObjectTagging", "DeleteObjectTagging", "GetObjectLegalHold", "GetObjectRetention",
                                 "GetPublicAccess", "DeletePublicAccess", "GetObjectLock")) and operation not in ("DeleteBucket", "GetBucketLocation")


def completing(ground):
    which, parts = ground.upload()
    return which | {"MultipartUpload": parts}


def copying(ground):
    return {"Bucket": ground.plain, "Key": ground.new("copy"), "CopySource": {"Bucket": ground.plain, "Key": "object"}}


def part(ground):
    return {"Bucket": ground.uploads, "Key": "a/up", "UploadId": ground.upload_ids["a/up"], "PartNumber": 3}


SPECIAL = {
    "AbortMultipartUpload": lambda ground: ground.upload()[0],
    "CompleteMultipartUpload": completing,
    "CopyObject": copying,
    "CreateBucket": lambda ground: {"Bucket": ground.new("made")},
    "CreateMultipartUpload": lambda ground: {"Bucket": ground.plain, "Key": ground.new("upload")},
    "DeleteObjects": lambda ground: {"Bucket": ground.plain, "Delete": {"Objects": [{"Key": ground.object()["Key"]}]}},
    "DeleteObject": lambda ground: ground.object(),
    "GetObjectLegalHold": lambda ground: ground.object(ground.locked),
    "GetObjectRetention": lambda ground: ground.object(ground.locked),
    "GetObjectLockConfiguration": lambda ground: {"Bucket": ground.locked},
    "ListMultipartUploads": lambda ground: {"Bucket": ground.uploads},
    "ListObjectVersions": lambda ground: {"Bucket": ground.plain},
    "ListParts": lambda ground: {"Bucket": ground.uploads, "Key": "a/up", "UploadId": ground.upload_ids["a/up"]},
    "PutBucketAcl": lambda ground: {"Bucket": ground.bucket(), "ACL": "private"},
    "PutObject": lambda ground: {"Bucket": ground.plain, "Key": ground.new("put"), "Body": BODY},
    "PutObjectAcl": lambda ground: ground.object() | {"ACL": "private"},
    "PutObjectLegalHold": lambda ground: ground.object(ground.locked) | {"LegalHold": STRUCTURES["LegalHold"]},
    "PutObjectLockConfiguration": lambda ground: {"Bucket": ground.locked, "ObjectLockConfiguration": STRUCTURES["ObjectLockConfiguration"]},
    "PutObjectRetention": lambda ground: ground.object(ground.locked) | {"Retention": STRUCTURES["Retention"]},
    "RestoreObject": lambda ground: ground.object() | {"RestoreRequest": STRUCTURES["RestoreRequest"]},
    "UploadPart": lambda ground: part(ground) | {"Body": BODY},
    "UploadPartCopy": lambda ground: part(ground) | {"CopySource": {"Bucket": ground.plain, "Key": "object"}},
}


def with_member(ground, operation, name, shape, arguments):
    """The arguments with one more parameter, and with what gives it a meaning."""
    made = dict(arguments)
    if name in ("IfNoneMatch", "CopySourceIfNoneMatch"):
        reads = operation in ("GetObject", "HeadObject")
        made[name] = ground.etag if reads or name == "CopySourceIfNoneMatch" else "*"
    elif name == "VersionId" and operation in ("GetObjectLegalHold", "GetObjectRetention"):
        made[name] = ground.s3.head_object(Bucket=made["Bucket"], Key=made["Key"]).get("VersionId", "null")
    elif name == "VersionId":
        made |= {"Bucket": ground.versions, "Key": "object", name: ground.old} if operation.startswith(("Get", "Head")) else versioned(ground, operation)
    elif name in ("ContinuationToken", "KeyMarker", "VersionIdMarker", "UploadIdMarker", "Token"):
        made |= marker(ground, operation, name)
    elif name.startswith("Checksum") and name.removeprefix("Checksum") in WIDTHS:
        made[name] = base64.b64encode(b"\1" * WIDTHS[name.removeprefix("Checksum")]).decode()
    elif name == "ContentMD5":
        made[name] = base64.b64encode(hashlib.md5(b"something else").digest()).decode()
    elif name in TOGETHER:
        made |= keyed(name) | opened_by_key(ground, operation, name)
    elif name in ("ObjectLockMode", "ObjectLockRetainUntilDate"):
        made |= {"Bucket": ground.locked, "ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FUTURE}
    elif name == "ObjectLockLegalHoldStatus":
        made |= {"Bucket": ground.locked, name: "ON"}
    else:
        made[name] = value(operation, name, shape.members[name], made)
    if name in ("AccessControlPolicy",) or name.startswith("Grant"):
        made.pop("ACL", None)
    if name.startswith("SSEKMS"):
        made["ServerSideEncryption"] = "aws:kms"
    if name == "ChecksumType" and "ChecksumAlgorithm" in shape.members:
        made["ChecksumAlgorithm"] = "SHA256"
    if name == "MetadataDirective":
        made["Metadata"] = STRUCTURES["Metadata"]
    if operation == "CopyObject" and name in ("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Expires", "Metadata"):
        made["MetadataDirective"] = "REPLACE"
    if operation == "CopyObject" and name in ("Tagging", "TaggingDirective"):
        made |= {"TaggingDirective": "REPLACE", "Tagging": "a=b"}
    if name in ("IfMatch", "IfNoneMatch") and operation in ("PutObject", "CopyObject", "CompleteMultipartUpload"):
        ground.s3.put_object(Bucket=made["Bucket"], Key=made["Key"], Body=b"there before")
    if name == "CopySourceRange":
        ground.s3.put_object(Bucket=ground.plain, Key="large", Body=b"l" * 6 * MIB)
        made["CopySource"] = {"Bucket": ground.plain, "Key": "large"}
    return made


def keyed(name):
    """The key of a client, as it is sent where botocore does not spell it out."""
    key, digest = TOGETHER[name]
    return {name: "AES256", key: base64.b64encode(KEY).decode(), digest: base64.b64encode(hashlib.md5(KEY).digest()).decode()}


def opened_by_key(ground, operation, name):
    """What has been stored with that key, and needs it."""
    key = keyed("SSECustomerAlgorithm")
    if name != "SSECustomerAlgorithm":
        return {"CopySource": ground.object(**key)}
    if operation in ("GetObject", "HeadObject", "GetObjectAttributes"):
        return ground.object(**key)
    if operation in ("UploadPart", "UploadPartCopy", "ListParts"):
        return ground.upload(**key)[0]
    if operation == "CompleteMultipartUpload":
        which, parts = ground.upload(**key)
        return which | {"MultipartUpload": parts}
    return {}


def versioned(ground, operation):
    """A version that a writing operation may touch."""
    bucket = ground.locked if "Retention" in operation or "LegalHold" in operation else ground.versions
    made = ground.object(bucket)
    ground.s3.put_object(**made, Body=BODY)
    found = ground.s3.list_object_versions(Bucket=bucket, Prefix=made["Key"]).get("Versions", [])
    return made | {"VersionId": found[-1]["VersionId"] if found else "null"}


def marker(ground, operation, name):
    """A marker that a first page has given."""
    if operation == "ListObjectsV2":
        return {name: ground.s3.list_objects_v2(Bucket=ground.plain, MaxKeys=1)["NextContinuationToken"]}
    if operation == "ListBuckets":
        return {name: ground.s3.list_buckets(MaxBuckets=1).get("ContinuationToken", "token")}
    if operation == "ListObjectVersions":
        first = ground.s3.list_object_versions(Bucket=ground.versions, MaxKeys=1)
        return {"Bucket": ground.versions, "KeyMarker": first["NextKeyMarker"], **({name: first["NextVersionIdMarker"]} if name != "KeyMarker" else {})}
    if operation == "ListMultipartUploads":
        return {"KeyMarker": "a/up", **({name: ground.upload_ids["a/up"]} if name != "KeyMarker" else {})}
    return {name: "token"}


def value(operation, name, shape, made):
    """A realistic value of a parameter, else the smallest that its shape allows."""
    if name == "Policy":
        return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "test:tester3"}, "Action": "s3:GetObject",
                                                                   "Resource": f"arn:aws:s3:::{made['Bucket']}/*"}]})
    if name == "Tagging":
        return "a=b" if shape.type_name == "string" else {"TagSet": [{"Key": "a", "Value": "b"}]}
    if operation == "PutBucketLifecycle" and name == "LifecycleConfiguration":  # as it was before filters
        return {"Rules": [{"ID": "rule", "Prefix": "x/", "Status": "Enabled", "Expiration": {"Days": 3}}]}
    if name == "BucketLoggingStatus":
        return {"LoggingEnabled": {"TargetBucket": made["Bucket"], "TargetPrefix": "log/"}}
    if name == "NotificationConfiguration":
        arn, events = f"arn:martlet:sqs::{TARGET}:webhook", {"Events": ["s3:ObjectCreated:*"]}
        return {"QueueConfigurations": [{"QueueArn": arn, **events}]} if operation.endswith("Configuration") else {"QueueConfiguration": {"Queue": arn, **events}}
    return STRUCTURES.get(name) or PLAIN.get(name) or least(shape)


def least(shape, depth=0):
    """The smallest value of a shape."""
    if shape.type_name == "structure":
        names = shape.required_members or list(shape.members)[:1]
        return {name: least(shape.members[name], depth + 1) for name in names} if depth < 8 else {}
    if shape.type_name == "list":
        return [least(shape.member, depth + 1)]
    if shape.type_name == "map":
        return {"key": "value"}
    shortest = "x" * max(1, shape.metadata.get("min", 1))
    return {"string": (getattr(shape, "enum", None) or [shortest])[0], "boolean": True, "integer": 1, "long": 1, "timestamp": FUTURE, "blob": b"x"}[shape.type_name]
