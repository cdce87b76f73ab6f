"""The whole pipeline of a proxy-server.conf: every filter that the suite asks for, in the order of Swift's sample."""

from conformance.test_conf import STORAGE_DOMAIN
from harness import filters
from harness.filters import TEMPAUTH

# Without what would refuse names that the suite uses, and with what asks for more than the others.
FRONT = (*(name for name in filters.FRONT if name != "name_check"), "list-endpoints")
ENCRYPTION = ("keymaster", "encryption")

OPTIONS = {
    "domain_remap": {"storage_domain": STORAGE_DOMAIN},
    "tempurl": {"allowed_digests": "sha1 sha256 sha512"},
    "formpost": {"allowed_digests": "sha1 sha256 sha512"},
    "slo": {"allow_async_delete": "true"},
    "keymaster": {"encryption_root_secret": "Y29uZm9ybWFuY2UgY29uZm9ybWFuY2UgY29uZm9ybSE=", "meta_version_to_write": "3"},
}
LAYOUT_HAS = ("cache", "tempauth")  # harness/layout.py writes these sections


def sections(*, auth=TEMPAUTH, encryption=False):
    """The sections of proxy-server.conf that make the pipeline and its filters."""
    names = [*FRONT, *auth, *filters.FEATURES, *(ENCRYPTION if encryption else ())]
    pipeline = " ".join([*names, "proxy-logging", "proxy-server"])
    made = {"pipeline:main": {"pipeline": pipeline}}
    for name in names:
        if name not in LAYOUT_HAS:
            made[f"filter:{name}"] = {"use": f"egg:swift#{name.replace('-', '_')}", **filters.OPTIONS.get(name, {}), **OPTIONS.get(name, {})}
    return made
