"""Fixtures every black-box test may use.

`system` is what is being tested, `openstack` is OpenStack Swift beside it. --sut says what stands in as `system`:
up        `martlet up` on a prepared directory: gateway and storage in one process
separate  four Martlet servers on the configuration files OpenStack reads
openstack OpenStack Swift itself: proves the tests, so that a failure of the others means something
"""

import pytest

pytest.register_assert_rewrite("harness")

from harness.client import Client  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.layout import Layout  # noqa: E402
from harness.martlet_up import MartletUp  # noqa: E402
from harness.memcached import Memcached  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--sut", default="up,separate", help="systems to test: up, separate, openstack")
    parser.addoption("--record", help="write what OpenStack answered to the API table to this JSON file")


def pytest_generate_tests(metafunc):
    if "system" in metafunc.fixturenames:
        metafunc.parametrize("system", metafunc.config.getoption("--sut").split(","), indirect=True, scope="session")


def make(kind, root, **options):
    """A system of this kind on a new layout, not started."""
    layout = Layout(root, **options).write()
    if kind == "up":
        return MartletUp(root, port=layout.proxy_port)
    return Cluster(layout, "martlet" if kind == "separate" else "openstack")


def running(kind, root, **options):
    """Generator for fixtures: a started system with a memcached of its own, stopped at the end."""
    memcached = Memcached().start()
    system = make(kind, root, memcached_port=memcached.port, **options)
    system.memcached = memcached
    try:
        yield system.start()
    finally:
        system.stop()
        memcached.stop()


@pytest.fixture(scope="session")
def system(request, tmp_path_factory):
    """The system under test, shared by the whole run: a test cleans up or uses names of its own."""
    yield from running(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def openstack(tmp_path_factory):
    """An OpenStack cluster, shared by the whole run."""
    yield from running("openstack", tmp_path_factory.mktemp("openstack"))


@pytest.fixture
def client(system):
    """test:tester on the system under test."""
    client = Client(system.auth_url)
    yield client
    client.close()


@pytest.fixture
def make_system(request, tmp_path_factory):
    """A factory of private systems, for tests that break what they touch. Kind is "up" unless told."""
    made = []

    def factory(kind=None, **options):
        kind = kind or request.config.getoption("--sut").split(",")[0]
        if kind == "openstack":  # its TempAuth keeps tokens nowhere else
            options["memcached_port"] = request.getfixturevalue("memcached").port
        system = make(kind, tmp_path_factory.mktemp("private"), **options)
        made.append(system)
        return system

    yield factory
    for system in made:
        system.stop()


@pytest.fixture
def memcached():
    """A memcached of the test's own."""
    memcached = Memcached().start()
    yield memcached
    memcached.stop()
