"""The python-swiftclient library: streaming, listing, metadata and errors as its users know them."""

import hashlib
import io

import pytest
import swiftclient
from harness.waiting import until
from swiftclient.utils import generate_temp_url  # noqa: F401  (the package is whole)


@pytest.fixture
def connection(system):
    connection = swiftclient.Connection(authurl=system.auth_url, user="test:tester", key="testing", retries=0)
    yield connection
    connection.close()


def test_objects_stream_both_ways(connection):
    connection.put_container("lib")
    body = hashlib.sha256(b"seed").digest() * 100_000  # 3.2 MB
    etag = connection.put_object("lib", "größe/ä b%20", io.BytesIO(body), content_length=len(body), content_type="x/y",
                                 headers={"X-Object-Meta-Farbe": "blau"})
    assert etag == hashlib.md5(body).hexdigest()
    assert connection.put_object("lib", "chunked", io.BytesIO(body), chunk_size=65536) == etag
    headers, stream = connection.get_object("lib", "größe/ä b%20", resp_chunk_size=65536)
    assert b"".join(stream) == body
    assert headers["x-object-meta-farbe"] == "blau" and headers["content-type"] == "x/y"
    headers, part = connection.get_object("lib", "chunked", headers={"Range": "bytes=-10"})
    assert part == body[-10:] and headers["content-range"] == f"bytes {len(body) - 10}-{len(body) - 1}/{len(body)}"
    connection.delete_object("lib", "größe/ä b%20")
    connection.delete_object("lib", "chunked")
    connection.delete_container("lib")


def test_listings_page(connection):
    connection.put_container("pages")
    names = [f"{n:03} ü" for n in range(25)]
    for name in names:
        connection.put_object("pages", name, name)
    def all_listed():
        headers, rows = connection.get_container("pages", limit=7, full_listing=True)
        return [row["name"] for row in rows] == names and headers["x-container-object-count"] == "25"

    until(all_listed, what="the listing")
    _, rows = connection.get_container("pages", marker="010 ü", limit=3)
    assert [row["name"] for row in rows] == ["011 ü", "012 ü", "013 ü"]
    until(lambda: [row["name"] for row in connection.get_account(prefix="pages")[1]] == ["pages"], what="the account's listing")
    for name in names:
        connection.delete_object("pages", name)
    connection.delete_container("pages")


def test_metadata_and_capabilities(connection):
    connection.put_container("meta", headers={"X-Container-Meta-A": "1"})
    connection.post_container("meta", {"X-Container-Meta-B": "2"})
    head = connection.head_container("meta")
    assert head["x-container-meta-a"] == "1" and head["x-container-meta-b"] == "2"
    connection.put_object("meta", "o", "x")
    connection.post_object("meta", "o", {"X-Object-Meta-C": "3"})
    assert connection.head_object("meta", "o")["x-object-meta-c"] == "3"
    connection.post_account({"X-Account-Meta-Lib": "yes"})
    assert connection.head_account()["x-account-meta-lib"] == "yes"
    connection.post_account({"X-Account-Meta-Lib": ""})
    assert connection.get_capabilities()["swift"]["max_file_size"] == 5368709122
    connection.delete_object("meta", "o")
    connection.delete_container("meta")


def test_errors_are_what_the_library_expects(connection, system):
    for ask in (lambda: connection.get_object("none", "o"), lambda: connection.head_container("none"),
                lambda: connection.delete_object("none", "o")):
        with pytest.raises(swiftclient.ClientException) as caught:
            ask()
        assert caught.value.http_status == 404
    with pytest.raises(swiftclient.ClientException) as caught:
        connection.put_container("etag")
        connection.put_object("etag", "o", "body", etag="0" * 32)
    assert caught.value.http_status == 422
    connection.delete_container("etag")
    wrong = swiftclient.Connection(authurl=system.auth_url, user="test:tester", key="wrong", retries=0)
    with pytest.raises(swiftclient.ClientException) as caught:
        wrong.get_account()
    assert caught.value.http_status == 401
