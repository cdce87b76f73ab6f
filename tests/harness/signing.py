"""Signatures of addresses and forms, as an application makes them, and the forms a browser sends."""

import base64
import hashlib
import hmac

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
