"""A server's configuration may be a directory of files, read in the order of their names."""

import shutil

from harness.client import Client
from harness.cluster import Cluster
from harness.layout import Layout
from harness.wire import exchange, message


def split(conf):
    """Makes of a file a directory: one file per section, whose names bring them in order; later ones win."""
    folder = conf.with_suffix(".conf.d")
    folder.mkdir()
    for number, section in enumerate(conf.read_text().split("\n[")):
        text = section if number == 0 else "[" + section
        (folder / f"{number:02}_{text[1:].partition(']')[0].replace(':', '-')}.conf").write_text(text + "\n")
    (folder / "99-later.conf").write_text("[filter:healthcheck]\ndisable_path = " + str(folder / "maintenance") + "\n")
    (folder / "98-earlier.conf").write_text("[filter:healthcheck]\ndisable_path = /nonsense\n")
    (folder / "README").write_text("this is not read: [nonsense\n")
    (folder / "97-broken.conf.bak").write_text("nor is [this\n")
    conf.unlink()
    return folder


def test_a_proxy_and_storage_from_directories(tmp_path):
    layout = Layout(tmp_path / "cluster").write()
    folders = {name: split(layout.etc / f"{name}-server.conf") for name in ("proxy", "object")}
    names = layout.conf_name
    layout.conf_name = lambda role, node=0: folders[role].name if role in folders else names(role, node)
    cluster = Cluster(layout, "martlet")
    try:
        cluster.start()
        client = Client(cluster.auth_url)
        client.put("c")
        client.put("c", "o", body=b"x")
        assert client.get("c", "o") == b"x"
        (folders["proxy"] / "maintenance").touch()
        assert exchange(cluster.port, message("GET", "/healthcheck")).status == 503
        assert exchange(layout.ports["object", 0], message("GET", "/healthcheck")).status == 200
    finally:
        cluster.stop()
    shutil.rmtree(folders["proxy"])
