"""The variants: which cluster the suite runs against, and what its test.conf then contains.

`default` is `martlet up` as it starts by itself. The others give it (or separate Martlet servers) files as an operator
would write them; OpenStack Swift runs on the very same files, which shows what a failure or a skip means.
"""

from dataclasses import dataclass, field

from conformance import pipeline, sdist
from harness.cluster import Cluster
from harness.keystone import Keystone
from harness.keystone import with_keystone as keystone_filters
from harness.layout import Layout
from harness.martlet_up import MartletUp
from harness.memcached import Memcached
from harness.process import run


@dataclass(frozen=True)
class Variant:
    """What makes a variant differ from the others."""

    name: str
    about: str
    own_files: bool = False  # `martlet up` writes its files itself
    separate: bool = False  # servers of their own, not `martlet up`
    policies: tuple = ("gold",)
    encryption: bool = False
    keystone: bool = False
    tls: bool = False
    s3: bool = False  # the tests of S3 are asked too
    s3_acl: bool = False  # the tests of S3 alone are asked, with S3's own ACLs
    proxy: dict = field(default_factory=dict)  # options of [app:proxy-server]
    expirer: dict = field(default_factory=dict)  # options of [object-expirer]

    def tests(self):
        """The tests that its cluster is asked."""
        return self.s3_tests() if self.s3_acl else [*sdist.functional_tests(), *self.s3_tests()]

    def s3_tests(self):
        """The tests of S3 that its cluster is asked."""
        if self.tls:
            return ["s3api/test_request_target_style.py"]  # the one that no other cluster can be asked
        return sdist.s3_tests() if self.s3 else []


VARIANTS = {variant.name: variant for variant in (
    Variant("default", "`martlet up` as it starts by itself, with the pipeline it writes", own_files=True, s3=True),
    # what has expired is opened a moment later: the expirer, which `martlet up` runs every few seconds, must not come first
    Variant("policies", "two storage policies; `allow_open_expired` on", policies=("gold", "silver"),
            proxy={"allow_open_expired": "true"}, expirer={"delay_reaping_AUTH_test": "3600"}),
    Variant("encryption", "keymaster and encryption in the pipeline", encryption=True, s3=True),
    Variant("keystone", "authtoken and keystoneauth in the pipeline, a real Keystone beside it; signatures of S3 verified by `s3token`",
            keystone=True, s3=True),
    Variant("tls", "every request through TLS", tls=True),
    Variant("separate", "the gateway a process of its own, as are the account, container and object servers; "
            "memcached beside them", separate=True, s3=True),
    Variant("s3_acl", "the tests of S3 with its own ACLs (`s3_acl`)", s3=True, s3_acl=True),
)}


class Stand:
    """One cluster of a variant, and what it needs beside it. `make` is "martlet" or "openstack"."""

    def __init__(self, variant, make, root):
        self.variant, self.make, self.root = variant, make, root
        # `martlet up` without configuration files does without
        self.memcached = Memcached() if make == "openstack" or not variant.own_files else None
        self.keystone = None
        self.system = MartletUp(root / "up") if variant.own_files and make == "martlet" else self._on_our_files()

    def _on_our_files(self):
        layout = Layout(self.root / "cluster", policies=self.variant.policies,
                        memcached_port=self.memcached.port if self.memcached else None)
        # the suite announces bodies of the largest size and sends a few bytes: no disk is asked to make room for them
        layout.overrides = {"proxy": self._proxy_sections(layout),
                            "object": {"DEFAULT": {"disable_fallocate": "true"}, "object-expirer": dict(self.variant.expirer)}}
        layout.write()
        if self.make == "martlet" and not self.variant.separate:
            return MartletUp(layout.root, port=layout.proxy_port, scheme="https" if self.variant.tls else "http")
        return Cluster(layout, self.make)

    def _proxy_sections(self, layout):
        auth = pipeline.TEMPAUTH
        sections = {"app:proxy-server": dict(self.variant.proxy), "DEFAULT": {}}
        if self.variant.keystone:
            auth = keystone_filters(" ".join(pipeline.TEMPAUTH)).split()
            self.keystone = Keystone(self.root / "keystone", layout.proxy_port)
            sections |= self.keystone.filters()
            sections["app:proxy-server"] |= {"allow_account_management": "false"}  # as Swift's sample.conf asks
        if self.variant.tls:
            certificate, key = self_signed(self.root)
            sections["DEFAULT"] = {"cert_file": certificate, "key_file": key}
        made = pipeline.sections(auth=auth, encryption=self.variant.encryption)
        if self.variant.s3_acl:
            made["filter:s3api"] |= {"s3_acl": "true", "check_bucket_owner": "true"}
        return {**made, **sections}

    def start(self):
        for helper in (self.memcached, self.keystone):
            if helper:
                helper.start()
        if isinstance(self.system, MartletUp):
            self.system.start(within=60)
        else:
            self.system.start()

    def stop(self):
        for part in (self.system, self.keystone, self.memcached):
            if part:
                part.stop()

    def test_conf(self):
        """What its test.conf says on top of the usual."""
        if self.keystone:
            return {**self.keystone.func_test(), "endpoint": f"http://127.0.0.1:{self.system.port}", "s3_acl_tests_enabled": "no",
                    "s3_keys": [self.keystone.access_key(user) for user in ("tester", "operator", "tester3")]}
        certificate = {"ca_cert": self.root / "cert.pem"} if self.variant.tls else {}
        return {"auth_uri": self.system.auth_url, "insecure": "yes" if self.variant.tls else "no", **certificate,
                "s3_acl_tests_enabled": "yes" if self.variant.s3_acl else "no"}


def self_signed(folder):
    """A certificate for the loopback address and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate])
    return certificate, key
