"""What the requests need to be there: buckets with objects, versions, locks, an upload that is under way."""

import itertools

from botocore.exceptions import ClientError

from clients.test_boto3 import client_of
from harness.client import Client

MIB = 2**20
BODY = b"0123456789"


class Ground:
    """One system, and what has been stored there."""

    def __init__(self, system):
        self.s3, self.swift, self.numbers = client_of(system), Client(system.auth_url), itertools.count()
        self.body = b""
        self.s3.meta.events.register("before-parse.s3", self.keep)
        self.plain = self.bucket()
        for key in ("a/1", "a/2", "b", "object"):
            self.s3.put_object(Bucket=self.plain, Key=key, Body=BODY, ContentType="text/plain")
        self.etag = self.s3.head_object(Bucket=self.plain, Key="object")["ETag"]
        self.versions = self.bucket()
        self.s3.put_bucket_versioning(Bucket=self.versions, VersioningConfiguration={"Status": "Enabled"})
        self.old = [self.s3.put_object(Bucket=self.versions, Key="object", Body=BODY)["VersionId"] for _ in range(2)][0]
        self.locked = self.new("locked")
        try:
            self.s3.create_bucket(Bucket=self.locked, ObjectLockEnabledForBucket=True)
        except ClientError:
            self.locked = self.plain  # there is none: the operations on it are refused
        self.uploads = self.bucket()
        self.upload_ids = {key: self.s3.create_multipart_upload(Bucket=self.uploads, Key=key)["UploadId"] for key in ("a/up", "b/up")}
        for number in (1, 2):
            self.s3.upload_part(Bucket=self.uploads, Key="a/up", UploadId=self.upload_ids["a/up"], PartNumber=number, Body=BODY)

    def keep(self, response_dict, **_):
        """The body of the last answer, as it came; of an object that is read, nothing."""
        self.body = response_dict["body"] if isinstance(response_dict["body"], bytes) else b""

    def new(self, prefix="new"):
        return f"{prefix}-{next(self.numbers):04}"

    def bucket(self):
        name = self.new("bucket")
        self.s3.create_bucket(Bucket=name)
        return name

    def object(self, bucket=None, **more):
        """A bucket and the key of a new object there."""
        bucket, key = bucket or self.plain, self.new("object")
        self.s3.put_object(Bucket=bucket, Key=key, Body=BODY, **more)
        return {"Bucket": bucket, "Key": key}

    def upload(self, **more):
        """An upload with one part: what names it, and the parts as CompleteMultipartUpload wants them."""
        which = {"Bucket": self.plain, "Key": self.new("upload")}
        which["UploadId"] = self.s3.create_multipart_upload(**which, **more)["UploadId"]
        key = {name: value for name, value in more.items() if name.startswith("SSECustomer")}
        tag = self.s3.upload_part(**which, PartNumber=1, Body=BODY, **key)["ETag"]
        return which, {"Parts": [{"PartNumber": 1, "ETag": tag}]}

    def quietly(self, operation, **arguments):
        """What need not be served where the operation after it is asked."""
        try:
            return getattr(self.s3, operation)(**arguments)
        except ClientError:
            return None
