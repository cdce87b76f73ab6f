"""The pair the API table is told to: OpenStack Swift and the system under test, with the same things stored.

Each system gets an OpenStack cluster of its own, because the stories leave things behind.
"""

import json

import pytest

from harness import filters
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


def pytest_generate_tests(metafunc):
    if "full_pair" in metafunc.fixturenames:
        kinds = metafunc.config.getoption("--sut").split(",")
        metafunc.parametrize("full_pair", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def full_pair(request, tmp_path_factory):
    """As `pair`, with the optional filters in both pipelines."""
    overrides = filters.overrides()
    openstack = running("openstack", tmp_path_factory.mktemp("full-openstack"), overrides=overrides)
    system = running(request.param, tmp_path_factory.mktemp(f"full-{request.param}"), overrides=overrides)
    yield Pair(next(openstack), next(system))
    system.close()
    openstack.close()
