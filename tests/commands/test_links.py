"""Called through a link named swift-<command>, the program is that command; an unknown one is refused by name."""

import pytest

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import ROLES, Layout
from harness.places import martlet
from harness.process import Process, run


def test_servers_start_through_links(tmp_path, memcached):
    cluster = Cluster(Layout(tmp_path / "c", memcached_port=memcached.port).write(), "martlet")
    try:
        for role in (*ROLES, "proxy"):
            link = tmp_path / f"swift-{role}-server"
            link.symlink_to(martlet())
            cluster.services[role, 0] = Process([link, cluster.etc / f"{role}-server.conf"], tmp_path / f"{role}.log")
        for role in (*ROLES, "proxy"):
            cluster.await_service(role)
        client = Client(cluster.auth_url)
        client.put("c")
        client.put("c", "o", body=b"x")
        assert client.get("c", "o") == b"x"
        for process in cluster.services.values():
            assert process.alive()
    finally:
        statuses = cluster.stop()
    assert statuses == [0, 0, 0, 0]


@pytest.mark.parametrize("arguments", [["nonsense"], ["object-server"], ["object-server", "/none/such.conf"], ["up", "--devices", "many"],
                                       ["up", "--nonsense"], ["up", "--replicas", "0"], ["up", "--part-power", "99"]])
def test_a_wrong_command_line_says_so(arguments, tmp_path):
    done = run([martlet(), *arguments], check=False, timeout=60, cwd=tmp_path)
    assert done.returncode not in (0, 101)
    assert done.stderr and "panicked" not in done.stderr


def test_help_and_version():
    assert "up" in run([martlet(), "--help"]).stdout
    assert "--part-power" in run([martlet(), "up", "--help"]).stdout
    assert run([martlet(), "--version"]).stdout.startswith("martlet ")
