"""The whole pipeline of a proxy-server.conf: every filter that the suite asks for, in the order of Swift's sample."""

from conformance.test_conf import STORAGE_DOMAIN

FRONT = ("catch_errors", "gatekeeper", "healthcheck", "proxy-logging", "cache", "etag-quoter", "domain_remap",
         "listing_formats", "container_sync", "bulk", "tempurl", "formpost", "ratelimit", "read_only", "crossdomain",
         "list-endpoints")
TEMPAUTH = ("tempauth",)
FEATURES = ("staticweb", "copy", "container-quotas", "account-quotas", "slo", "dlo", "versioned_writes", "symlink")
ENCRYPTION = ("keymaster", "encryption")

OPTIONS = {
    "domain_remap": {"storage_domain": STORAGE_DOMAIN},
    "tempurl": {"allowed_digests": "sha1 sha256 sha512"},
    "formpost": {"allowed_digests": "sha1 sha256 sha512"},
    "versioned_writes": {"allow_versioned_writes": "true", "allow_object_versioning": "true"},
    "slo": {"allow_async_delete": "true"},
    "keymaster": {"encryption_root_secret": "Y29uZm9ybWFuY2UgY29uZm9ybWFuY2UgY29uZm9ybSE=", "meta_version_to_write": "3"},
}
LAYOUT_HAS = ("cache", "tempauth")  # harness/layout.py writes these sections


def sections(*, auth=TEMPAUTH, encryption=False):
    """The sections of proxy-server.conf that make the pipeline and its filters."""
    filters = [*FRONT, *auth, *FEATURES, *(ENCRYPTION if encryption else ())]
    pipeline = " ".join([*filters, "proxy-logging", "proxy-server"])
    made = {"pipeline:main": {"pipeline": pipeline}}
    for name in filters:
        if name not in LAYOUT_HAS:
            made[f"filter:{name}"] = {"use": f"egg:swift#{name.replace('-', '_')}", **OPTIONS.get(name, {})}
    return made
