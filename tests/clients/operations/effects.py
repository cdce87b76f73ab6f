"""What has to be seen for a parameter to have worked. What is not named here is only known to be taken or refused."""

import json

from botocore import xform_name
from botocore.exceptions import ClientError

from clients.operations.ground import BODY

# Parameters whose value does not hold: they work when the request is refused for that.
FALSE = {"IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince", "CopySourceIfMatch", "CopySourceIfNoneMatch", "CopySourceIfModifiedSince",
         "CopySourceIfUnmodifiedSince", "IfMatchLastModifiedTime", "IfMatchSize", "IfMatchInitiatedTime", "ContentMD5", "ExpectedBucketOwner",
         "ExpectedSourceBucketOwner", "MpuObjectSize"}
REFUSALS = {"PreconditionFailed", "304", "412", "403", "NotModified", "BadDigest", "InvalidDigest", "AccessDenied", "ConditionalRequestConflict"}
SHOWN = {"CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata", "WebsiteRedirectLocation",
         "ServerSideEncryption", "ObjectLockMode", "ObjectLockLegalHoldStatus", "ObjectLockRetainUntilDate"}
WRITES = ("PutObject", "CopyObject", "CreateMultipartUpload")
KEYED = ("GetObject", "HeadObject", "GetObjectAttributes", "UploadPart", "UploadPartCopy")


def is_false(name):
    return name in FALSE or name.startswith("Checksum") and name not in ("ChecksumAlgorithm", "ChecksumType", "ChecksumMode")


def is_due_refusal(name, code):
    """Whether the code says that the value does not hold."""
    return is_false(name) and (code in REFUSALS or name == "MpuObjectSize" and code == "InvalidRequest")


def seen(ground, operation, name, arguments, answer):
    """Whether the effect of a parameter that was taken is there; None where that is not looked at."""
    if is_false(name):
        return False  # it does not hold, and nothing was refused
    if operation in WRITES and (name in SHOWN or name in ("Expires", "Tagging", "ChecksumAlgorithm")):
        return shown(ground, operation, name, arguments, answer)
    if operation in ("CreateBucket", "PutBucketAcl") and (name in ("ACL", "AccessControlPolicy") or name.startswith("Grant")):
        return granted(ground, name, arguments)
    if operation == "CreateBucket" and name == "ObjectLockEnabledForBucket":
        return "ObjectLockConfiguration" in (ground.quietly("get_object_lock_configuration", Bucket=arguments["Bucket"]) or {})
    if operation == "CreateBucket" and name == "ObjectOwnership":
        return ground.quietly("get_bucket_ownership_controls", Bucket=arguments["Bucket"]) is not None and b"<OwnershipControls" in ground.body
    if name == "CopySourceSSECustomerAlgorithm":
        return ground.quietly("head_object", **arguments["CopySource"]) is None
    if name == "SSECustomerAlgorithm" and operation in (*WRITES, *KEYED):
        return is_guarded(ground, operation, arguments, answer)
    if operation in ("GetObject", "HeadObject"):
        return read(name, arguments, answer)
    if operation.startswith("List"):
        return listed(ground, operation, name, arguments, answer)
    return None


def shown(ground, operation, name, arguments, answer):
    which = {"Bucket": arguments["Bucket"], "Key": arguments["Key"]}
    if operation == "CreateMultipartUpload":
        algorithm = {"ChecksumAlgorithm": "SHA256"} if name == "ChecksumAlgorithm" else {}
        part = ground.s3.upload_part(**which, UploadId=answer["UploadId"], PartNumber=1, Body=BODY, **algorithm)
        sums = {"ChecksumSHA256": part["ChecksumSHA256"]} if "ChecksumSHA256" in part and algorithm else {}
        ground.s3.complete_multipart_upload(**which, UploadId=answer["UploadId"],
                                            MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"], **sums}]})
    if name == "Tagging":
        tags = ground.quietly("get_object_tagging", **which)
        return bool(tags) and tags["TagSet"] == [{"Key": "a", "Value": "b"}]
    head = ground.s3.head_object(**which, ChecksumMode="ENABLED")
    if name == "ChecksumAlgorithm":
        return "ChecksumSHA256" in head
    if name == "Expires":
        return head.get("ExpiresString") is not None
    return head.get(name) == arguments[name]


def is_guarded(ground, operation, arguments, answer):
    """Whether the client's key is needed to read what was written; of an upload, whether the answer names it."""
    if operation in ("CreateMultipartUpload", "UploadPart", "UploadPartCopy"):
        return "SSECustomerAlgorithm" in answer
    return ground.quietly("head_object", Bucket=arguments["Bucket"], Key=arguments["Key"]) is None


def granted(ground, name, arguments):
    """Whether the bucket's ACL, which is Swift's, has changed."""
    bucket = ground.swift.do("HEAD", arguments["Bucket"], expect=204)
    if name == "GrantFullControl":
        return None
    acl = bucket["X-Container-Write" if name == "GrantWrite" else "X-Container-Read"]
    return bool((acl or "").strip("."))


def read(name, arguments, answer):
    if name.startswith("Response"):
        field = name.removeprefix("Response")
        return answer.get("ExpiresString") is not None if field == "Expires" else answer.get(field) == arguments[name]
    if name == "Range":
        return answer.get("ContentRange") == "bytes 2-4/10"
    if name == "VersionId":
        return answer.get("VersionId") == arguments[name]
    if name == "ChecksumMode":
        return any(field.startswith("Checksum") for field in answer)
    if name == "PartNumber":
        return answer["ResponseMetadata"]["HTTPStatusCode"] == 206 or None
    return None


def listed(ground, operation, name, arguments, answer):
    if operation == "ListBuckets":
        names = [found["Name"] for found in answer["Buckets"]]
        return {"MaxBuckets": lambda: len(names) == 1, "Prefix": lambda: all(found.startswith("a/") for found in names),
                "BucketRegion": lambda: not names, "ContinuationToken": lambda: ground.plain not in names}.get(name, lambda: None)()
    entries = [entry for field in ("Contents", "Versions", "Uploads", "Parts") for entry in answer.get(field, [])]
    keys = [entry.get("Key", entry.get("PartNumber")) for entry in entries]
    if name in ("MaxKeys", "MaxUploads", "MaxParts"):
        return len(entries) == 1 and answer["IsTruncated"]
    if name == "Prefix":
        return bool(keys) and all(key.startswith("a/") for key in keys)
    if name == "Delimiter":
        return {"Prefix": "a/"} in answer.get("CommonPrefixes", [])
    if name == "EncodingType":
        return answer.get("EncodingType") == "url"
    if name == "FetchOwner":
        return all("Owner" in entry for entry in entries)
    if name in ("Marker", "StartAfter", "ContinuationToken"):
        return bool(keys) and keys[0] == "a/2"
    if name == "PartNumberMarker":
        return bool(keys) and keys[0] == 2
    if name == "KeyMarker" and operation == "ListObjectVersions":
        return all(key > "object" for key in keys)
    if name in ("KeyMarker", "UploadIdMarker") and operation == "ListMultipartUploads":
        return keys == ["b/up"]
    if name == "VersionIdMarker":
        return bool(entries) and entries[0]["VersionId"] == ground.old
    return None


def is_another(ground, operation, arguments, answer):
    """Whether it was another operation that was carried out, as if there were no sub-resource: a listing or the object itself was the answer,
    the bucket or the object was deleted, the object was overwritten."""
    if b"<ListBucketResult" in ground.body and not operation.startswith("ListObjects"):
        return True
    if operation.startswith("DeleteBucket") and operation != "DeleteBucket":
        return ground.quietly("head_bucket", Bucket=arguments["Bucket"]) is None
    if operation in ("DeleteObjectTagging", "DeleteObjectAnnotation"):
        return ground.quietly("head_object", Bucket=arguments["Bucket"], Key=arguments["Key"]) is None
    if operation.startswith(("PutObject", "UpdateObject")) and operation != "PutObject" and "Key" in arguments:
        return ground.s3.get_object(Bucket=arguments["Bucket"], Key=arguments["Key"])["Body"].read() != BODY
    return operation == "GetObjectAnnotation" and answer["AnnotationPayload"].read() == BODY or is_body(ground)


def is_body(ground):
    """Whether the answer to what is no GetObject was an object."""
    return ground.body == BODY


def is_kept(ground, operation, arguments):
    """Whether what a Put… has stored is what the Get… of the same name gives; None where there is no such pair."""
    get = operation.replace("Put", "Get", 1)
    model = ground.s3.meta.service_model
    if not operation.startswith("Put") or get not in model.operation_names or operation in ("PutObject", "PutBucketAcl", "PutObjectAcl"):
        return None
    asked = model.operation_model(get).input_shape.members
    if "Policy" in arguments:
        return json.loads(ground.s3.get_bucket_policy(Bucket=arguments["Bucket"])["Policy"]) == json.loads(arguments["Policy"])
    given = [leaf for name, value in arguments.items() if name not in ("Bucket", "Key", "VersionId", "Id") for leaf in leaves(value)]
    try:
        answer = getattr(ground.s3, xform_name(get))(**{name: value for name, value in arguments.items() if name in asked})
    except ClientError:
        return False
    found = list(leaves({name: value for name, value in answer.items() if name != "ResponseMetadata"}))
    return all(leaf in found or any(isinstance(other, str) and str(leaf) in other for other in found) for leaf in given)


def leaves(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
