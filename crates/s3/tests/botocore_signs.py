"""Random requests that botocore signs, one JSON object for each: `python botocore_signs.py SEED COUNT`."""

import json
import random
import sys
import time
from urllib.parse import quote

from botocore.auth import HmacV1Auth, HmacV1QueryAuth, S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SECRET = "se/cr+et"
CHARACTERS = "abcXYZ019-_.~ +%&=?#:;,@!$'()*[]{}|\\^`\"<>\u00fc\u20ac\U0001f600"
# What is signed by version 2, and what is not.
PARAMETERS = ("acl", "location", "tagging", "uploads", "versioning", "versions", "delete", "partNumber", "uploadId", "versionId",
              "response-content-type", "prefix", "delimiter", "marker", "max-keys", "list-type")
SIGNERS = {
    "v4 header": lambda credentials: S3SigV4Auth(credentials, "s3", "us-east-1"),
    "v4 query": lambda credentials: S3SigV4QueryAuth(credentials, "s3", "us-east-1", expires=600),
    "v2 header": HmacV1Auth,
    "v2 query": lambda credentials: HmacV1QueryAuth(credentials, expires=600),
}


def text(numbers, least, most):
    return "".join(numbers.choices(CHARACTERS, k=numbers.randint(least, most)))


def path(numbers):
    """A bucket alone, or a key in it; slashes may stand anywhere in a key."""
    bucket = f"/{numbers.choice(('bucket', 'b.c-d', 'Upper'))}"
    if numbers.random() < 0.2:
        return bucket + numbers.choice(("", "/"))
    parts = [text(numbers, 0 if at else 1, 6) for at in range(numbers.randint(1, 3))]
    return f"{bucket}/{quote('/'.join(parts), safe='/~')}"


def query(numbers):
    names = numbers.sample(PARAMETERS, numbers.choice((0, 0, 1, 2, 3)))
    valueless = ("acl", "location", "tagging", "uploads", "versioning", "versions", "delete")
    return "&".join(name if name in valueless else f"{name}={quote(text(numbers, 1, 5), safe='-_.~')}" for name in names)


def headers(numbers):
    """Some of those that are signed; white space in values is folded by version 4."""
    found = {}
    if numbers.random() < 0.5:
        found["Content-Type"] = numbers.choice(("text/plain", "text/html; charset=utf-8", "application/x  y"))
    if numbers.random() < 0.3:
        found["Content-MD5"] = "XUFAKrxLKna5cZ2REBfFkg=="
    for name in numbers.sample(("x-amz-meta-a", "X-Amz-Meta-B-c", "x-amz-acl", "x-amz-meta-a-b", "x-amz-copy-source"), numbers.randint(0, 3)):
        found[name] = numbers.choice(("plain", "two  spaces", "a,b", "q=\"1\"", "Mixed Case"))
    return found


def request(numbers, kind):
    host, method = "127.0.0.1:8080", numbers.choice(("GET", "PUT", "POST", "DELETE", "HEAD"))
    sent, parameters, given = path(numbers), query(numbers), headers(numbers)
    if kind.endswith("query"):
        given = {}
    url = f"http://{host}{sent}" + (f"?{parameters}" if parameters else "")
    made = AWSRequest(method, url, headers=given, data=b"")
    SIGNERS[kind](Credentials("test:tester", SECRET)).add_auth(made)
    sent, _, parameters = made.url.removeprefix(f"http://{host}").partition("?")
    return {"kind": kind, "method": method, "path": sent, "query": parameters, "headers": [["host", host], *made.headers.items()],
            "now": int(time.time()), "secret": SECRET}


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    numbers = random.Random(seed)
    json.dump([request(numbers, numbers.choice(list(SIGNERS))) for _ in range(count)], sys.stdout)


main()
