"""The pair the API table is told to: OpenStack Swift and the system under test, with the same things stored.

Each system gets an OpenStack cluster of its own, because the stories leave things behind.
"""

import json

import pytest

from harness.compare import Pair
from harness.systems import running


@pytest.fixture(scope="session")
def pair(system, request, tmp_path_factory):
    openstack = running("openstack", tmp_path_factory.mktemp("openstack"))
    pair = Pair(next(openstack), system)
    yield pair
    openstack.close()
    if request.config.getoption("--record"):
        with open(request.config.getoption("--record"), "w") as sink:
            json.dump(pair.record, sink, indent=1, ensure_ascii=False)


@pytest.fixture(scope="session")
def full_pair(pair):
    """`pair` has the optional filters in both pipelines."""
    return pair
