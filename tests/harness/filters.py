"""The pipeline with every optional filter that needs nothing from elsewhere, for clusters that read configuration files.

`martlet up` writes such a pipeline by itself.
"""

PIPELINE = ("catch_errors gatekeeper healthcheck proxy-logging cache etag-quoter domain_remap listing_formats container_sync "
            "tempurl ratelimit read_only tempauth staticweb copy container-quotas account-quotas slo dlo versioned_writes "
            "symlink proxy-logging proxy-server")
OPTIONS = {"domain_remap": {"storage_domain": "example.com"},
           "versioned_writes": {"allow_versioned_writes": "true", "allow_object_versioning": "true"}}


def overrides(pipeline=PIPELINE, **options):
    """What a Layout's `overrides` sets for it; `options` names filters (with _ for -) and what they are told."""
    sections = {"pipeline:main": {"pipeline": pipeline}}
    for name in set(pipeline.split()) - {"proxy-server"}:
        told = {**OPTIONS.get(name, {}), **options.get(name.replace("-", "_"), {})}
        sections[f"filter:{name}"] = {"use": f"egg:swift#{'memcache' if name == 'cache' else name.replace('-', '_')}", **told}
    return {"proxy": sections}
