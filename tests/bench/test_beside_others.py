"""What `martlet bench` costs beside COSBench and swift-bench, with bounds that hold on a busy machine. `beside_others.py` makes the figures themselves."""

import os

import pytest

from bench.beside_others import COSBENCH, OURS, PREFIX, SWIFT_BENCH, Loaders, Store, costs, medians
from harness.client import Client
from harness.places import martlet

# How many times as much a request costs them: of a release some 60 and 12, of a build for debugging a quarter of that.
AT_LEAST = {SWIFT_BENCH: 3, COSBENCH: 1} if "debug" in martlet().parts else {SWIFT_BENCH: 10, COSBENCH: 5}


@pytest.fixture
def store(shared):
    """A running system with objects to read, which are gone afterwards."""
    system = shared.get("up", "up")
    yield Store.of(system)
    client = Client(system.auth_url)
    for container in client.send("GET", f"{client.root}?prefix={PREFIX}").body.decode().split():
        for name in client.send("GET", client.path(container)).body.decode().split():
            client.delete(container, name)
        client.delete(container)
    client.close()


@pytest.mark.extra
def test_a_request_costs_far_less_than_with_the_benchmarks_that_are_replaced(store):
    """COSBench takes part where COSBENCH_HOME names one."""
    with Loaders(store, martlet(), 32, os.environ.get("COSBENCH_HOME")) as loaders:
        of_one = {loader: micros for loader, (micros, _) in medians(costs(loaders, "GET", scale=0.2)).items()}
    ours = of_one.pop(OURS)
    assert ours > 0 and SWIFT_BENCH in of_one
    for loader, theirs in of_one.items():
        assert theirs > ours * AT_LEAST[loader], (loader, theirs, ours)
