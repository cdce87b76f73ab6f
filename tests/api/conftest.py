"""The pair the API table is told to: OpenStack Swift and the system under test, with the same things stored."""

import json

import pytest

from harness.compare import Pair


@pytest.fixture(scope="session")
def pair(openstack, system, request):
    pair = Pair(openstack, system)
    yield pair
    if request.config.getoption("--record"):
        with open(request.config.getoption("--record"), "w") as sink:
            json.dump(pair.record, sink, indent=1, ensure_ascii=False)
