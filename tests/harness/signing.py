"""Signatures of addresses and forms, as an application makes them, and the forms a browser sends."""

import base64
import hashlib
import hmac
import time

LATER = 4102444800  # 2100: what is signed stays good, and answers stay the same


def sign(key, *lines, digest="sha256", encoding="hex"):
    """The signature of these lines; `encoding` may be "base64", which goes behind the digest's name."""
    mac = hmac.new(key.encode(), "\n".join(map(str, lines)).encode(), getattr(hashlib, digest))
    return mac.hexdigest() if encoding == "hex" else f"{digest}:{base64.urlsafe_b64encode(mac.digest()).decode()}"


def form(fields, files, boundary="BOUNDARY"):
    """A multipart/form-data body: fields are pairs, files are (file name, bytes, further header lines)."""
    body = b""
    for name, value in fields:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    for name, data, *headers in files:
        lines = "".join(f"{line}\r\n" for line in headers)
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n{lines}\r\n'.encode()
        body += data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


def signed_fields(path, key, *, redirect=None, size=100, count=3, expires=LATER, signature=None, more=(), **options):
    """The fields of a form that may store files below `path`."""
    signature = signature or sign(key, path, redirect or "", size, count, expires, **options)
    first = [("redirect", redirect)] if redirect is not None else []
    return [*first, ("max_file_size", size), ("max_file_count", count), ("expires", expires), ("signature", signature), *more]


def signed_chunks(host, path, access_key, secret, data, *, forged=False, region="us-east-1"):
    """Headers and body of a PUT to S3 whose body is one signed chunk and the end; `forged` spoils the chunk's signature."""
    now = time.gmtime()
    stamp, day = time.strftime("%Y%m%dT%H%M%SZ", now), time.strftime("%Y%m%d", now)
    scope = f"{day}/{region}/s3/aws4_request"
    headers = {"host": host, "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x-amz-date": stamp,
               "x-amz-decoded-content-length": str(len(data))}
    names = ";".join(sorted(headers))
    canonical = ["PUT", path, "", *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names,
                 headers["x-amz-content-sha256"]]
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")

    def signature(*lines):
        return hmac.new(key, "\n".join(lines).encode(), "sha256").hexdigest()

    def digest(content):
        return hashlib.sha256(content).hexdigest()

    seed = last = signature("AWS4-HMAC-SHA256", stamp, scope, digest("\n".join(canonical).encode()))
    body = b""
    for chunk in (data, b""):
        last = signature("AWS4-HMAC-SHA256-PAYLOAD", stamp, scope, last, digest(b""), digest(chunk))
        shown = "0" * 64 if forged and chunk else last
        body += f"{len(chunk):x};chunk-signature={shown}\r\n".encode() + chunk + b"\r\n"
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},"
                                f"Signature={seed}")
    return {**headers, "content-length": str(len(body))}, body
