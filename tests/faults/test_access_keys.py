"""Access keys of the cluster when gateways remember what others have changed, and when the store cannot be read."""

import pytest
from botocore.exceptions import ClientError

from clients.test_access_keys import KNOWN, Keys, s3_of
from harness import filters
from harness.gateways import Gateways
from harness.waiting import until

PIPELINE = filters.LEAN.replace("tempauth", "s3api tempauth copy slo")


class Side:
    """A gateway, as the fixtures of clients see a store."""

    def __init__(self, port):
        self.auth_url = f"http://127.0.0.1:{port}/auth/v1.0"


@pytest.fixture
def gateways(tmp_path):
    overrides = {"proxy": {"DEFAULT": {}, **filters.overrides(PIPELINE, s3api={"access_keys": "true", "access_key_cache_duration": "2"})["proxy"]}}
    system = Gateways(tmp_path / "system", 2, overrides).start()
    yield system
    system.stop()


def code(s3):
    try:
        s3.head_bucket(Bucket="faults")
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    return 200


def test_two_gateways_and_a_store_that_is_away(gateways):
    first, second = (Side(port) for port in gateways.gateway_ports)
    key = Keys(first.auth_url).make()
    s3_of(first, key).create_bucket(Bucket="faults")
    assert code(s3_of(second, key)) == 200
    # What one gateway has changed the other learns when a signature does not fit, or when it forgets.
    rotated = Keys(second.auth_url).json("rotate", key["access_key_id"])
    assert (code(s3_of(first, rotated)), code(s3_of(second, rotated))) == (200, 200)
    for side in (first, second):
        until(lambda side=side: code(s3_of(side, key)) == 403, within=KNOWN, what="the end of the old secret")
    Keys(first.auth_url).run("delete", key["access_key_id"])
    until(lambda: code(s3_of(second, rotated)) == 403, within=KNOWN, what="the end of the key")
    # Without object servers no key is known to be none: clients are told to come again.
    key = Keys(first.auth_url).make()
    gateways.stop_service("object")
    assert code(s3_of(second, key)) == 503
    assert "503" in Keys(first.auth_url).run("list", check=False).stderr
    gateways.start_service("object")
    until(lambda: code(s3_of(second, key)) == 200, within=KNOWN, what="the store's return")
    gateways.stop_service("container")
    until(lambda: code(s3_of(second, key)) == 503, within=KNOWN, what="the refusal of a store without its containers")
    gateways.start_service("container")
    until(lambda: code(s3_of(second, key)) == 200, within=KNOWN, what="the store's return")
