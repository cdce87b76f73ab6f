"""The pipeline with every optional filter that needs nothing from elsewhere, for clusters that read configuration files.

`martlet up` writes such a pipeline by itself.
"""

# In the order of Swift's sample: what stands before those that ask who the client is, and what stands behind them.
FRONT = ("catch_errors", "gatekeeper", "healthcheck", "proxy-logging", "cache", "etag-quoter", "name_check", "domain_remap",
         "listing_formats", "crossdomain", "container_sync", "bulk", "tempurl", "formpost", "ratelimit")
TEMPAUTH = ("s3api", "tempauth")
FEATURES = ("read_only", "staticweb", "copy", "container-quotas", "account-quotas", "slo", "dlo", "versioned_writes", "symlink")
PIPELINE = " ".join([*FRONT, *TEMPAUTH, *FEATURES, "proxy-logging", "proxy-server"])
# What every proxy has, for measuring it.
LEAN = "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats tempauth proxy-logging proxy-server"
OPTIONS = {"name_check": {"forbidden_chars": "^", "maximum_length": "4096", "forbidden_regexp": "/no-such-name/"},
           "domain_remap": {"storage_domain": "example.com"},
           "s3api": {"cors_preflight_allow_origin": "*", "access_keys": "true"},
           "versioned_writes": {"allow_versioned_writes": "true", "allow_object_versioning": "true"}}


def overrides(pipeline=PIPELINE, **options):
    """What a Layout's `overrides` sets for it; `options` maps filters (with _ for -) to their options."""
    sections = {"pipeline:main": {"pipeline": pipeline}}
    for name in set(pipeline.split()) - {"proxy-server", "authtoken"}:  # which is no filter of Swift's own
        configured = {**OPTIONS.get(name, {}), **options.get(name.replace("-", "_"), {})}
        sections[f"filter:{name}"] = {"use": f"egg:swift#{'memcache' if name == 'cache' else name.replace('-', '_')}", **configured}
    return {"proxy": sections}
