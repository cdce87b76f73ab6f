"""The test.conf that OpenStack's functional tests read: where the cluster is and who its users are."""

import warnings

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
    path.write_text("\n".join(["[func_test]", *(f"{name} = {value}" for name, value in options.items()), ""]))
    for number in ("", "2"):
        make_account(options, number)
    return path


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
