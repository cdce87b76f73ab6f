"""The kinds of system the tests can run against: up, separate, openstack (see tests/conftest.py)."""

from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached


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
