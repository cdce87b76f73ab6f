"""What the object-replicator of either make tells of each disk when it has workers."""

import json

import pytest

from harness.layout import Layout
from harness.places import martlet, openstack_command
from harness.process import run


def figures(root, kind, workers):
    """The object figures after one pass over an empty node, numbers left out."""
    layout = Layout(root)
    layout.overrides = {"object": {"object-replicator": {"replicator_workers": workers, "recon_cache_path": layout.run}}}
    layout.write()
    layout.run.mkdir(exist_ok=True)
    conf = layout.etc / layout.conf_name("object")
    once = openstack_command(layout.etc, "swift-object-replicator", conf, "once") if kind == "openstack" else [martlet(), "object-replicator", conf, "once"]
    run(once)
    return names(json.loads((layout.run / "object.recon").read_text()))


def names(figure):
    return {name: names(part) for name, part in figure.items()} if isinstance(figure, dict) else None


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_disks_have_figures_of_their_own_where_there_are_workers(tmp_path, ours, workers):
    theirs, here = (figures(tmp_path / kind, kind, workers) for kind in ("openstack", ours))
    # Beyond OpenStack's: when the daemon ended its last pass.
    assert here.pop("martlet_passes").keys() == {"object-replicator"}
    assert here == theirs
    assert set(here.get("object_replication_per_disk", {})) == ({"sdb1", "sdb2", "sdb3", "sdb4"} if workers else set())
