"""boto3 in virtual-host style, below two domains: what `test_boto3.py` does with the bucket in the path."""

import socket
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from clients.test_boto3 import (bucket, test_a_key_that_is_there_is_not_created_again, test_acls_are_swifts,  # noqa: F401 (fixture, tests)
                                test_listings_come_in_pages, test_objects_are_the_same_on_both_sides, test_refusals_have_codes_of_s3,
                                test_uploads_in_parts, test_versions)
from harness import filters
from harness.systems import running

DOMAINS = ("s3.example", "s3.other.example")


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """All names below the domains are this machine's."""
    ask = socket.getaddrinfo

    def answer(host, *arguments, **options):
        return ask("127.0.0.1" if str(host).endswith(DOMAINS) else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.fixture(scope="module")
def store(request, tmp_path_factory):
    kind = "openstack" if request.config.getoption("--sut") == "openstack" else "separate"
    options = filters.overrides(s3api={**filters.OPTIONS["s3api"], "storage_domain": ", ".join(DOMAINS)})
    yield from running(kind, tmp_path_factory.mktemp("store"), overrides=options)


@pytest.fixture(params=["s3v4", "s3"])
def signature(request):
    return request.param


@pytest.fixture(params=DOMAINS)
def s3(store, signature, request):
    config = Config(signature_version=signature, s3={"addressing_style": "virtual"}, retries={"max_attempts": 0})
    client = boto3.client("s3", endpoint_url=f"http://{request.param}:{urlsplit(store.auth_url).port}", aws_access_key_id="test:tester",
                          aws_secret_access_key="testing", region_name="us-east-1", config=config)
    hosts = set()
    client.meta.events.register("before-send.s3", lambda request, **_: hosts.add(urlsplit(request.url).hostname))
    yield client
    assert {host for host in hosts if host.startswith("b-") and host.endswith(f".{request.param}")}, "the bucket was in the path"
