"""What daemons of either make note for recon, pass by pass over the same ground: OpenStack's names are there, with values of their kinds.

What replicators count is compared in test_replication_figures.py: here what they find depends on which device they begin with.
"""

import json

import pytest

from interop.test_statsd_daemons import FAR, SITUATIONS, Side


class Noting(Side):
    """A side that keeps what its daemons noted in each of their passes."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.noted = []

    def once(self, daemon, conf=None, *arguments):
        for cache in self.layout.run.glob("*.recon"):
            cache.unlink()
        super().once(daemon, conf, *arguments)
        self.noted.append({cache.name: json.loads(cache.read_text()) for cache in sorted(self.layout.run.glob("*.recon"))})

    def again(self, daemon):
        self.noted.pop()  # so that both sides have noted as many
        super().again(daemon)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_daemon(tmp_path, ours, situation):
    noted = []
    method = situation.partition(", ")[2]
    sections = {"object-replicator": {"sync_method": method}} if method else dict.fromkeys(("account-replicator", "container-replicator"), FAR)
    for name, kind in (("theirs", "openstack"), ("ours", ours)):
        side = Noting(tmp_path / name, ours, kind, sections)
        try:
            SITUATIONS[situation](side)
        finally:
            side.stop()
        noted.append(side.noted)
    assert len(noted[0]) == len(noted[1])
    for theirs, mine in zip(*noted):
        missing = names(theirs) - names(mine)
        assert theirs.keys() == mine.keys() and not missing, (missing, theirs, mine)


def names(value, path=""):
    """Paths of all values in it, and the kind of each; a pass without failed nodes reports no failures."""
    if isinstance(value, dict):
        inner = [names(item, f"{path}/{name}") for name, item in value.items() if name != "failure_nodes"]
        return {(path, "dict")}.union(*inner)
    if isinstance(value, list):
        return {(path, "list")}.union(*(names(item, f"{path}/0") for item in value))
    # Times may be whole.
    return {(path, "number" if isinstance(value, (int, float)) else type(value).__name__)}
