"""Signed forms are taken and refused as OpenStack does, and store the same."""

import pytest

from harness.compare import Ask, Story
from harness.signing import LATER, form, sign, signed_fields

FILE = ("a.txt", b"hello", "Content-Type: text/plain")


def post(path, fields, files, body=None, content_type="multipart/form-data; boundary=BOUNDARY", **options):
    return Ask(options.pop("method", "POST"), path, {"Content-Type": content_type}, form(fields, files) if body is None else body,
               user=None, **options)


def story(name, *asks):
    return Story(name, [Ask("POST", "{a}", {"X-Account-Meta-Temp-URL-Key": "akey"}),
                        Ask("PUT", "{c}", {"X-Container-Meta-Temp-URL-Key-2": "ckey"}), *asks,
                        Ask("GET", "{c}?format=json", level="status")], container=False)


def one(container, *files, path=None, **options):
    path = path or f"/v1/AUTH_test/{container}/pre-"
    return post(path, signed_fields(path, options.pop("key", "akey"), **options), files)


def fields(**options):
    return signed_fields("/v1/AUTH_test/formpost-refused/pre-", "akey", **options)


def refused(*changes, files=(FILE,)):
    return post("/v1/AUTH_test/formpost-refused/pre-", *changes, files)


def without(name):
    return [pair for pair in fields() if pair[0] != name]


STORED, SHAPE = "formpost-stored", "/v1/AUTH_test/formpost-shape/pre-"
WHOLE = form(signed_fields(SHAPE, "akey"), [FILE])
STORIES = [
    story("formpost stored", one(STORED, FILE), Ask("GET", "{c}/pre-a.txt"), one(STORED, FILE, key="ckey"), one(STORED, FILE, key="other"),
          *[one(STORED, FILE, digest=digest, encoding=encoding) for digest in ("sha1", "sha256", "sha512", "md5")
            for encoding in ("hex", "base64")],
          one(STORED, FILE, ("b", b"", "Content-Type: a/b"), ("c", b"1")), Ask("HEAD", "{c}/pre-b"), Ask("HEAD", "{c}/pre-c"),
          one(STORED, FILE, more=[("x_delete_at", LATER)]), Ask("HEAD", "{c}/pre-a.txt"), one(STORED, FILE, more=[("x_delete_at", 5)]),
          one(STORED, ("ct", b"1", "Content-Type: x/y"), more=[("content-type", "text/html"), ("content-encoding", "gzip")]),
          Ask("HEAD", "{c}/pre-ct"), one(STORED, ("m", b"1", "X-Object-Meta-A: 1", "X-Object-Manifest: c/o"), more=[("x-object-meta-a", 1)]),
          Ask("HEAD", "{c}/pre-m"), *[one(STORED, (name, b"1")) for name in ("d/../e", "ü %41 ", "C:\\d\\f", 'q\\"x', "n" * 1100, 'a"b', 'a"b"c', 'a"; x="b', '"q"',
                                                        '"', "a=b;c", 'a" x="b')],
          *[one(STORED, FILE, path=path) for path in ("/v1/AUTH_test/formpost-stored", "/v1/AUTH_test/formpost-stored/",
                                                      "/v1/AUTH_test/no-such/x", "/v1/AUTH_test", "/v9/AUTH_test/c/x", "/x/y",
                                                      "/v1/AUTH_test2/c/x")],
          Ask("GET", "{c}?prefix=", level="all")),
    story("formpost refused", refused(fields(size=4)), refused(fields(size=5)), refused(fields(size=0)), refused(fields(size=-1)),
          refused(fields(size="x")), refused(fields(size=" 100 ")), refused(fields(size="1_00")), refused(fields(count=0)),
          refused(fields(count=1), files=(FILE, FILE)), refused(fields(count="x")), refused(fields(expires=5)), refused(fields(expires="x")),
          refused(fields(signature="0" * 64)), refused(fields(signature="x")), *[refused(without(name)) for name in
                                                                                 ("max_file_size", "max_file_count", "expires", "signature")],
          refused(fields(), files=()), refused(fields(), files=(("", b"x"),)), refused(fields(more=[("x_delete_at", "x")])),
          refused(fields(more=[("x_delete_after", "x")])), refused([*fields(), ("max_file_size", 1)]), refused(fields(expires="x", size="x")),
          *[refused(fields(redirect=redirect, **options), files=files) for redirect in ("http://x.y/z", "http://x.y/z?a=b")
            for options, files in (({}, (FILE,)), ({}, ()), ({"count": 1}, (FILE, FILE)), ({"more": [("x_delete_at", 5)]}, (FILE,)))],
          *[refused(fields(**{name: ""}, **more)) for name in ("size", "count", "expires") for more in ({}, {"signature": "0" * 64})],
          refused(fields(size="", signature=sign("akey", "/v1/AUTH_test/formpost-refused/pre-", "", 0, 3, LATER))),
          refused(fields(size=" ")), refused(fields(expires=" ")), refused(fields(more=[("x_delete_at", "")])),
          refused(fields(redirect="http://x", signature="0" * 64)), refused(fields(redirect="http://" + "y" * 5000))),
    story("formpost shape", *[post(SHAPE, [], [], body=body) for body in
                              (b"", b"junk\r\n" + WHOLE, b"\r\n" + WHOLE, b"--BOUNDARY--\r\n", b"--BOUNDARY\r\n", WHOLE + b"junk",
                               WHOLE.replace(b"form-data", b"attachment"),
                               form(signed_fields(SHAPE, "akey", more=[("x", "y" * 9000)]), [FILE]),
                               form(signed_fields(SHAPE, "akey", more=[(f"x{n}", n) for n in range(500)]), [FILE]),
                               form(signed_fields(SHAPE, "akey"), [("h", b"1", "X-A: " + "y" * 30000)]),
                               form(signed_fields(SHAPE, "akey"), [("h", b"1", "no colon")]))],
          *[post(SHAPE, [], [], body=WHOLE, content_type=kind) for kind in
            ("multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="BOUNDARY"', "text/plain",
             "Multipart/Form-Data; boundary=BOUNDARY")],
          post(SHAPE, [], [], body=WHOLE, method="PUT"), post(SHAPE + "?x=y", [], [], body=WHOLE),
          Ask("GET", "{c}/pre-a.txt"), *[post(SHAPE, [], [], body=WHOLE[:-cut], also=(400,)) for cut in (3, 12, 20)],  # never half a file
          Ask("GET", "{c}/pre-h", level="status")),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_same_answers(full_pair, story):
    full_pair.check(story)
