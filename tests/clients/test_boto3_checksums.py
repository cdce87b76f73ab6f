"""Checksums of multipart uploads, composite and of the whole object, and what is asked about an object without its bytes."""

import base64
import hashlib
import io
import zlib

import pytest
from boto3.s3.transfer import TransferConfig

from clients.test_boto3 import MIB, bucket, client_of, code_of, store  # noqa: F401 (fixtures)
from harness.client import Client

BODIES = [b"a" * 5 * MIB, b"bc"]
WHOLE = b"".join(BODIES)


@pytest.fixture
def s3(store, request):  # noqa: F811
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("OpenStack's s3api keeps no checksums of uploads")
    return client_of(store)


def crc32(body):
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def sha256(body):
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def composite(digest, sums):
    return f"{digest(b''.join(base64.b64decode(value) for value in sums))}-{len(sums)}"


def upload(s3, bucket, key, algorithm, bodies=BODIES, **more):  # noqa: F811
    begun = s3.create_multipart_upload(Bucket=bucket, Key=key, ChecksumAlgorithm=algorithm, **more)
    which = {"Bucket": bucket, "Key": key, "UploadId": begun["UploadId"]}
    done = [s3.upload_part(**which, PartNumber=number, Body=body, ChecksumAlgorithm=algorithm) for number, body in enumerate(bodies, 1)]
    name = f"Checksum{algorithm}"
    return begun, which, [{"PartNumber": number, "ETag": part["ETag"], name: part[name]} for number, part in enumerate(done, 1)]


@pytest.mark.parametrize("algorithm, kind, digest", [("CRC32", "COMPOSITE", crc32), ("SHA256", "COMPOSITE", sha256), ("CRC32", "FULL_OBJECT", crc32)])
def test_an_object_of_parts_has_a_checksum(s3, bucket, algorithm, kind, digest):  # noqa: F811
    name, more = f"Checksum{algorithm}", {"ChecksumType": kind}
    begun, which, parts = upload(s3, bucket, "k", algorithm, **more)
    assert (begun["ChecksumAlgorithm"], begun["ChecksumType"]) == (algorithm, kind)
    sums = [digest(body) for body in BODIES]
    assert [part[name] for part in parts] == sums
    listed = s3.list_parts(**which)
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"], [part[name] for part in listed["Parts"]]) == (algorithm, kind, sums)
    wrong = [parts[0], parts[1] | {name: parts[0][name]}]
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": wrong}) == "InvalidPart"
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": parts}, MpuObjectSize=1) == "InvalidRequest"
    assert code_of(s3.complete_multipart_upload, **which, MultipartUpload={"Parts": parts}, **{name: sums[0]}) == "BadDigest"
    expected = composite(digest, sums) if kind == "COMPOSITE" else digest(WHOLE)
    claim = {name: expected} if kind == "FULL_OBJECT" else {}
    done = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts}, ChecksumType=kind, MpuObjectSize=len(WHOLE), **claim)
    again = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    got = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    for answer in (done, again, head, got):
        assert (answer[name], answer["ChecksumType"]) == (expected, kind)
    assert name not in s3.head_object(Bucket=bucket, Key="k") and got["Body"].read() == WHOLE

    asked = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"])
    assert (asked["ETag"], asked["ObjectSize"], asked["StorageClass"]) == (head["ETag"].strip('"'), len(WHOLE), "STANDARD")
    assert (asked["Checksum"][name], asked["Checksum"]["ChecksumType"]) == (expected, kind)
    assert [(part["PartNumber"], part["Size"], part[name]) for part in asked["ObjectParts"]["Parts"]] == [
        (number, len(body), value) for number, (body, value) in enumerate(zip(BODIES, sums), 1)]
    page = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"], MaxParts=1)["ObjectParts"]
    assert (page["TotalPartsCount"], page["IsTruncated"], page["NextPartNumberMarker"], len(page["Parts"])) == (2, True, 1, 1)
    page = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"], PartNumberMarker=1)["ObjectParts"]
    assert not page["IsTruncated"] and [part["PartNumber"] for part in page["Parts"]] == [2]


def test_the_transfer_manager_s_own_checksums(s3, bucket):  # noqa: F811
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    s3.upload_fileobj(io.BytesIO(WHOLE), bucket, "k", Config=config)
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert head["ChecksumCRC32"] == composite(crc32, [crc32(body) for body in BODIES])
    into = io.BytesIO()
    s3.download_fileobj(bucket, "k", into, Config=config)
    assert into.getvalue() == WHOLE


def test_refusals(s3, bucket):  # noqa: F811
    which = {"Bucket": bucket, "Key": "k"}
    assert code_of(s3.create_multipart_upload, **which, ChecksumAlgorithm="SHA256", ChecksumType="FULL_OBJECT") == "InvalidRequest"
    which["UploadId"] = s3.create_multipart_upload(**which, ChecksumAlgorithm="SHA256")["UploadId"]
    assert code_of(s3.upload_part, **which, PartNumber=1, Body=b"x", ChecksumAlgorithm="CRC32") == "InvalidRequest"
    assert code_of(s3.get_object_attributes, Bucket=bucket, Key="none", ObjectAttributes=["ETag"]) == "NoSuchKey"


def test_a_plain_object_has_the_checksum_it_was_sent_with(s3, bucket):  # noqa: F811
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello", ChecksumAlgorithm="SHA256")
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert (head["ChecksumSHA256"], head["ChecksumType"]) == (sha256(b"hello"), "FULL_OBJECT")
    asked = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["Checksum", "ObjectParts"])
    assert asked["Checksum"]["ChecksumSHA256"] == sha256(b"hello") and "ObjectParts" not in asked


@pytest.mark.parametrize("algorithm, digest", [("CRC32", crc32), ("SHA256", sha256)])
def test_copied_parts_have_the_checksum_of_their_upload(s3, bucket, algorithm, digest):  # noqa: F811
    name, body = f"Checksum{algorithm}", bytes(range(256)) * (6 * MIB // 256)
    s3.put_object(Bucket=bucket, Key="source", Body=body, ChecksumAlgorithm="SHA1")
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    which = {"Bucket": bucket, "Key": "k"}
    which["UploadId"] = s3.create_multipart_upload(**which, ChecksumAlgorithm=algorithm)["UploadId"]
    source, pieces = {"Bucket": bucket, "Key": "source"}, [body, body[5:5 * MIB + 5], b"z", b""]
    made = [s3.upload_part_copy(**which, PartNumber=1, CopySource=source)["CopyPartResult"],
            s3.upload_part_copy(**which, PartNumber=2, CopySource=source, CopySourceRange=f"bytes=5-{5 * MIB + 4}")["CopyPartResult"],
            s3.upload_part(**which, PartNumber=3, Body=b"z", ChecksumAlgorithm=algorithm),
            s3.upload_part_copy(**which, PartNumber=4, CopySource=source | {"Key": "empty"})["CopyPartResult"]]
    sums = [digest(piece) for piece in pieces]
    assert [part[name] for part in made] == [part[name] for part in s3.list_parts(**which)["Parts"]] == sums
    assert [part["ETag"] for part in made] == [f'"{hashlib.md5(piece).hexdigest()}"' for piece in pieces]
    parts = [{"PartNumber": number, "ETag": part["ETag"], name: part[name]} for number, part in enumerate(made, 1)]
    done = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts[:3]})
    assert done[name] == composite(digest, sums[:3])
    assert s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")["Body"].read() == b"".join(pieces)
    which["UploadId"] = s3.create_multipart_upload(Bucket=bucket, Key="k", ChecksumAlgorithm=algorithm)["UploadId"]
    assert code_of(s3.upload_part_copy, **which, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=0-{6 * MIB}") == "InvalidRange"


def test_a_part_that_swift_copies_has_no_checksum_of_the_whole(store, s3, bucket):  # noqa: F811
    """boto3 refuses to read what does not have the checksum that it is given."""
    s3.put_object(Bucket=bucket, Key="whole", Body=b"0123456789", ChecksumAlgorithm="CRC32")
    Client(store.auth_url).put(bucket, "part", headers={"X-Copy-From": f"{bucket}/whole", "Range": "bytes=0-3"})
    assert s3.get_object(Bucket=bucket, Key="part", ChecksumMode="ENABLED")["Body"].read() == b"0123"
    Client(store.auth_url).put(bucket, "copy", headers={"X-Copy-From": f"{bucket}/whole"})
    assert s3.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")["ChecksumCRC32"] == crc32(b"0123456789")
