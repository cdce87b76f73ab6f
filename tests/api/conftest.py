"""The pair the API table runs against: OpenStack Swift and the system under test, with the same things stored.

The system is not the one that other tests share, and each has an OpenStack cluster of its own: the stories look at a
whole account, and leave things behind.
"""

import json

import pytest

from harness.compare import Pair


@pytest.fixture(scope="session")
def pairs(request):
    """The pairs by the system under test."""
    pairs = {}
    yield pairs
    if request.config.getoption("--record"):
        record = {name: answers for pair in pairs.values() for name, answers in pair.record.items()}
        with open(request.config.getoption("--record"), "w") as sink:
            json.dump(record, sink, indent=1, ensure_ascii=False)


@pytest.fixture(scope="session")
def system(request, shared):
    return shared.get(f"{request.param}-of-the-table", request.param)


@pytest.fixture(scope="session")
def pair(system, pairs, shared):
    if system not in pairs:
        pairs[system] = Pair(shared.get(f"openstack-beside-{len(pairs)}", "openstack"), system)
    return pairs[system]


@pytest.fixture(scope="session")
def full_pair(pair):
    """`pair` has the optional filters in both pipelines."""
    return pair
