"""Fixtures for mixing the two makes: which is "ours", and single storage servers of each on equal layouts."""

import pytest

from harness.backend import answer, call, compare_trees, tree
from harness.cluster import Cluster
from harness.layout import Layout
from harness.memcached import Memcached


@pytest.fixture(scope="session")
def ours(request):
    """What plays Martlet: "martlet", or "openstack" when the tests run against OpenStack itself."""
    return "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"


@pytest.fixture
def cluster(tmp_path):
    """A factory of started clusters of mixed makes; each has a memcached of its own."""
    started = []

    def factory(kinds="openstack", root=None, **options):
        memcached = Memcached().start()
        layout = Layout(root or tmp_path / f"cluster{len(started)}", memcached_port=memcached.port, **options).write()
        cluster = Cluster(layout, kinds)
        cluster.memcached = memcached
        started.append(cluster)
        return cluster.start()

    yield factory
    for cluster in started:
        cluster.stop()
        cluster.memcached.stop()


class Twins:
    """The same storage server in both makes, each on devices of its own."""

    def __init__(self, root, role, ours):
        self.role, self.clusters, self.before_seen = role, [], set()
        for name, kind in (("theirs", "openstack"), ("ours", ours)):
            cluster = Cluster(Layout(root / name).write(), kind)
            cluster.start_service(role)
            self.clusters.append(cluster)

    def stop(self):
        for cluster in self.clusters:
            cluster.stop()

    def check(self, calls):
        """Make the calls on both; fails with every difference in answers, and in what lies on disk at the end."""
        wrong = []
        for request in calls:
            replies = [call(cluster.layout.ports[self.role, 0], request) for cluster in self.clusters]
            theirs, ours = (answer(reply, request) for reply in replies)
            if self.role != "object" and "x-backend-timestamp" not in theirs:
                ours.pop("x-backend-timestamp", None)  # gateways of ours ask for it: what was written later and stays
            if theirs != ours and ours["status"] not in request.also:
                differing = {key: (theirs.get(key), ours.get(key)) for key in theirs.keys() | ours.keys()
                             if theirs.get(key) != ours.get(key)}
                wrong.append(f"{request}\n    (OpenStack, here): {differing!r:.1500}")
        on_disk = compare_trees(*(tree(cluster.srv) for cluster in self.clusters))
        wrong += [line for line in on_disk if line not in self.before_seen]  # an earlier story has reported the others
        self.before_seen.update(on_disk)
        assert not wrong, "\n".join(wrong)


def twins(role):
    @pytest.fixture(scope="module", name=f"{role}_servers")
    def fixture(tmp_path_factory, ours):
        pair = Twins(tmp_path_factory.mktemp(role), role, ours)
        yield pair
        pair.stop()
    return fixture


object_servers, container_servers, account_servers = twins("object"), twins("container"), twins("account")
