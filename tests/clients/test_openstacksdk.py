"""openstacksdk: containers, objects, large objects, signed addresses and forms as its users know them."""

import hashlib
import random
from urllib.parse import quote

import openstack
import pytest
import requests

from harness.waiting import until


@pytest.fixture(scope="module")
def cloud(system):
    """A connection with TempAuth, by the plugin that python-swiftclient brings."""
    cloud = openstack.connect(auth_type="v1password", auth={"auth_url": system.auth_url, "username": "test:tester", "password": "testing"},
                              load_yaml_config=False, load_envvars=False)
    yield cloud
    cloud.close()


@pytest.fixture(scope="module")
def store(cloud):
    """Its object store with a container `sdk`."""
    cloud.object_store.create_container("sdk")
    return cloud.object_store


def test_containers_and_metadata(store):
    store.set_container_metadata("sdk", colour="blue", read_ACL=".r:*")
    found = store.get_container_metadata("sdk")
    assert found.metadata["colour"] == "blue" and found.read_ACL == ".r:*"
    until(lambda: "sdk" in [container.name for container in store.containers()], what="the account's listing")
    store.delete_container_metadata("sdk", ["colour"])
    assert "colour" not in store.get_container_metadata("sdk").metadata


def test_objects(store):
    names = ["größe/ä b", "plain", "a/b/c", "100%"]  # the library takes %20 for a space
    for name in names:
        store.upload_object("sdk", name, data=name.encode(), colour="rot")
    until(lambda: sorted(found.name for found in store.objects("sdk")) == sorted(names), what="the listing")
    for name in names:
        assert store.download_object(name, container="sdk") == name.encode()
    assert store.get_object_metadata("plain", container="sdk").etag.strip('"') == hashlib.md5(b"plain").hexdigest()
    for name in names:
        store.delete_object(name, container="sdk")
    until(lambda: not list(store.objects("sdk")), what="the listing of nothing")


@pytest.mark.parametrize("slo", [True, False], ids=["static", "dynamic"])
def test_files_in_segments(cloud, store, tmp_path, slo):
    body = random.Random(7).randbytes(5_000_001)
    path = tmp_path / "large"
    path.write_bytes(body)
    cloud.create_object("sdk", "large", filename=str(path), segment_size=1_000_000, use_slo=slo)
    assert cloud.get_object_raw("sdk", "large").headers["content-length"] == str(len(body))
    copy = tmp_path / "copy"
    cloud.get_object("sdk", "large", outfile=str(copy))
    assert copy.read_bytes() == body
    cloud.delete_object("sdk", "large")
    assert cloud.get_object_raw("sdk", "large").status_code == 404


def test_signed_addresses(store, system):
    store.set_account_temp_url_key("key of the account")
    store.upload_object("sdk", "signed ü", data=b"for everybody")
    signed = store.generate_temp_url("/v1/AUTH_test/sdk/signed ü", 60, "GET", temp_url_key="key of the account")
    path, query = signed.split("?")
    address = quote(path) + "?" + query
    reply = requests.get(f"http://127.0.0.1:{system.port}{address}", timeout=60)
    assert (reply.status_code, reply.content) == (200, b"for everybody")
    assert requests.put(f"http://127.0.0.1:{system.port}{address}", data=b"x", timeout=60).status_code == 401


def test_signed_forms(store, system):
    store.set_account_temp_url_key("key of the account")
    expires, signature = store.generate_form_signature("sdk", "form-", "", 1000, 1, 60)
    fields = {"redirect": "", "max_file_size": "1000", "max_file_count": "1", "expires": str(expires), "signature": signature}
    url = f"http://127.0.0.1:{system.port}/v1/AUTH_test/sdk/form-"
    reply = requests.post(url, data=fields, files={"file1": ("hello.txt", b"hello")}, timeout=60)
    assert reply.status_code == 201, reply.text
    assert store.download_object("form-hello.txt", container="sdk") == b"hello"
