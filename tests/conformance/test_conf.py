"""The test.conf that OpenStack's functional tests read: where the cluster is and who its users are."""

import warnings

from harness.layout import ini
from swiftclient.client import Connection

STORAGE_DOMAIN = "example.com"

USERS = {
    "account": "test", "username": "tester", "password": "testing",
    "account2": "test2", "username2": "tester2", "password2": "testing2",
    "username3": "tester3", "password3": "testing3",
    "account5": "test5", "username5": "tester5", "password5": "testing5",
    "account6": "test", "username6": "tester6", "password6": "testing6",
}


def write(path, more):
    """Write it, `more` on top, and make the two accounts: the suite takes them for granted, and OpenStack answers for
    an account that was never written to a little differently."""
    options = {**USERS, "service_prefix": "SERVICE", "storage_domain": STORAGE_DOMAIN,
               "collate": "C", **more}
    keys = options.pop("s3_keys", None) or keys_of_tempauth(options)
    sections = {"func_test": {**options, **s3_keys(options, keys)}, "s3api_test": s3_conf(options, keys)}
    path.write_text(ini(sections))
    for number in ("", "2"):
        make_account(options, number)
    return path


def keys_of_tempauth(options):
    """Access key and secret of three users of one account, as the tests of S3 want them: two of its administrators, and one of its users."""
    return [{"access": f"{options['account']}:{user}", "secret": secret}
            for user, secret in (("tester", "testing"), ("tester2", "testing2"), ("tester3", "testing3"))]


def s3_keys(options, keys):
    """What the functional suite wants for S3."""
    named = {}
    for suffix, key in zip(("", "2", "3"), keys):
        named[f"s3_access_key{suffix}"], named[f"s3_secret_key{suffix}"] = key["access"], key["secret"]
    return {"s3_storage_url": endpoint(options), **named}


def s3_conf(options, keys):
    """The section of the suite that speaks nothing but S3."""
    named = {"endpoint": endpoint(options), "s3_acl_tests_enabled": options["s3_acl_tests_enabled"]}
    if "ca_cert" in options:
        named["ca_cert"] = options["ca_cert"]
    for number, key in enumerate(keys, 1):
        named[f"access_key{number}"], named[f"secret_key{number}"] = key["access"], key["secret"]
    return named


def endpoint(options):
    return options.get("endpoint") or options["auth_uri"].partition("/auth/")[0]


def make_account(options, number):
    account, user, key = (options[name + number] for name in ("account", "username", "password"))
    if options.get("auth_version"):
        domain = options["domain" + number]
        login = {"user": user, "tenant_name": account, "auth_version": str(options["auth_version"]),
                 "os_options": {"user_domain_name": domain, "project_domain_name": domain}}
    else:
        login = {"user": f"{account}:{user}", "auth_version": "1"}
    connection = Connection(options["auth_uri"], key=key, insecure=options.get("insecure") == "yes", **login)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the certificate is our own
        connection.post_account({})
    connection.close()
