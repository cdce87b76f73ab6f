"""The clusters the suite is told to: one class per variant, each with start, stop and what its test.conf says."""

from harness.martlet_up import MartletUp


class Up:
    """`martlet up`, as its user starts it: the pipeline it wrote for itself, nothing added."""

    name = "default"
    about = "`martlet up` as it starts by itself"

    def __init__(self, root):
        self.root = root
        self.system = MartletUp(root / "up")

    def start(self):
        self.system.start(within=60)
        return self

    def stop(self):
        self.system.stop()

    @property
    def auth_uri(self):
        return self.system.auth_url

    def test_conf(self):
        """What its test.conf says on top of the usual."""
        return {}


VARIANTS = {kind.name: kind for kind in (Up,)}
