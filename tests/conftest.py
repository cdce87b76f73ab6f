"""Fixtures every black-box test may use.

`system` is what is being tested; --sut says what stands in:
up        `martlet up` on a prepared directory: gateway and storage in one process
separate  four Martlet servers on the configuration files OpenStack reads
openstack OpenStack Swift itself: proves the tests, so that a failure of the others means something
"""

import os
import shutil
import signal
from zlib import crc32

import pytest

pytest.register_assert_rewrite("harness")

from harness import forks, schedule  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.memcached import Memcached  # noqa: E402
from harness.systems import make, running  # noqa: E402

FAILED = pytest.StashKey[bool]()


def pytest_configure():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends everything that was started
    # OpenStack's programs start in half of the time without eventlet's resolver, which no test needs.
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    forks.use()


def pytest_addoption(parser):
    parser.addoption("--sut", default="up,separate", help="systems to test: up, separate, openstack")
    parser.addoption("--short", action="store_true",
                     help="each test on one of the systems, chosen by its name, and none marked `extra`: what `make test` has the time for")
    parser.addoption("--shuffle", metavar="SEED", help="files in an order that SEED decides: finds tests that depend on which share a system")
    parser.addoption("--record", help="write what OpenStack answered to the API table to this JSON file")


def pytest_generate_tests(metafunc):
    if "system" in metafunc.fixturenames:
        metafunc.parametrize("system", metafunc.config.getoption("--sut").split(","), indirect=True, scope="session")


def is_short(item):
    """Whether a test is in the short run: it is not `extra`, and of its systems this is the one that the rest of its name decides."""
    systems = item.config.getoption("--sut").split(",")
    system = getattr(item, "callspec", None) and item.callspec.params.get("system")
    chosen = systems[crc32(item.nodeid.replace(f"[{system}", "[", 1).encode()) % len(systems)]
    return not item.get_closest_marker("extra") and (system is None or system == chosen)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--short"):
        parts = {True: [], False: []}
        for item in items:
            parts[is_short(item)].append(item)
        items[:] = parts[True]
        config.hook.pytest_deselected(items=parts[False])
    items.sort(key=lambda item: -schedule.weight(item.nodeid, config.getoption("--shuffle")))  # stable: a file's tests keep their order


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return schedule.LongestFirst(config, log) if config.getvalue("dist") == "loadfile" else None


class Shared:
    """Running systems by name, started at first use and stopped at the end of the run."""

    def __init__(self, tmp_path_factory):
        self.tmp_path_factory, self.started = tmp_path_factory, {}

    def get(self, name, kind):
        if name not in self.started:
            generator = running(kind, self.tmp_path_factory.mktemp(name))
            self.started[name] = next(generator), generator
        return self.started[name][0]

    def stop(self):
        for _, generator in self.started.values():
            generator.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    shared = Shared(tmp_path_factory)
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def system(request, shared):
    """The system under test, shared by the whole run: a test cleans up or uses names of its own.

    pytest ends a parametrized fixture whenever the parameter changes; the system itself goes on running."""
    return shared.get(request.param, request.param)


@pytest.fixture
def client(system):
    """test:tester on the system under test."""
    client = Client(system.auth_url)
    yield client
    client.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Marks a test that failed, so that its fixtures keep what it made for inspection."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def make_system(request, tmp_path_factory):
    """A factory of private systems, for tests that break what they touch. The default kind is the first of --sut. What a test that
    passed has made is removed at its end: the disk need not hold the systems of a whole run."""
    made, folders = [], []

    def factory(kind=None, **options):
        kind = kind or request.config.getoption("--sut").split(",")[0]
        if kind == "openstack":  # its TempAuth keeps tokens nowhere else
            options["memcached_port"] = request.getfixturevalue("memcached").port
        folders.append(tmp_path_factory.mktemp("private"))
        system = make(kind, folders[-1], **options)
        made.append(system)
        return system

    yield factory
    for system in made:
        system.stop()
    if not request.node.stash.get(FAILED, False):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def memcached():
    """A memcached of the test's own."""
    memcached = Memcached().start()
    yield memcached
    memcached.stop()
