"""The variants: what cluster the suite is told to, and what its test.conf then says.

`default` is `martlet up` as it starts by itself. The others give it (or separate Martlet servers) files as an operator
would write them; OpenStack Swift runs on the very same files, which shows what a failure or a skip means.
"""

from dataclasses import dataclass, field

from conformance import pipeline
from harness.cluster import Cluster
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached


@dataclass(frozen=True)
class Variant:
    """What makes a variant differ from the others."""

    name: str
    about: str
    own_files: bool = False  # `martlet up` writes its files itself
    separate: bool = False  # servers of their own, not `martlet up`
    policies: tuple = ("gold",)
    encryption: bool = False
    proxy: dict = field(default_factory=dict)  # options of [app:proxy-server]


VARIANTS = {variant.name: variant for variant in (
    Variant("default", "`martlet up` as it starts by itself, with the pipeline it writes", own_files=True),
    Variant("policies", "two storage policies; `allow_open_expired` on", policies=("gold", "silver"),
            proxy={"allow_open_expired": "true"}),
    Variant("encryption", "keymaster and encryption in the pipeline", encryption=True),
    Variant("separate", "the gateway a process of its own, as are the account, container and object servers; "
            "memcached beside them", separate=True),
)}


class Stand:
    """One cluster of a variant, and what it needs beside it. `make` is "martlet" or "openstack"."""

    def __init__(self, variant, make, root):
        self.root = root
        # OpenStack's TempAuth keeps its tokens nowhere else; `martlet up` has to do without
        self.memcached = Memcached() if variant.separate or make == "openstack" else None
        if variant.own_files and make == "martlet":
            self.system = MartletUp(root / "up")
            return
        overrides = {"proxy": {**pipeline.sections(encryption=variant.encryption), "app:proxy-server": variant.proxy}}
        layout = Layout(root / "cluster", policies=variant.policies, overrides=overrides,
                        memcached_port=self.memcached.port if self.memcached else None).write()
        if make == "martlet" and not variant.separate:
            self.system = MartletUp(layout.root, port=layout.proxy_port)
        else:
            self.system = Cluster(layout, make, verbose=False)

    def start(self):
        if self.memcached:
            self.memcached.start()
        if isinstance(self.system, MartletUp):
            self.system.start(within=60)
        else:
            self.system.start()

    def stop(self):
        self.system.stop()
        if self.memcached:
            self.memcached.stop()

    @property
    def auth_uri(self):
        return self.system.auth_url

    def test_conf(self):
        """What its test.conf says on top of the usual."""
        return {}
