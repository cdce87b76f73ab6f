"""The test.conf that OpenStack's functional tests read: where the cluster is and who its users are."""

STORAGE_DOMAIN = "example.com"

USERS = {
    "account": "test", "username": "tester", "password": "testing",
    "account2": "test2", "username2": "tester2", "password2": "testing2",
    "username3": "tester3", "password3": "testing3",
    "account5": "test5", "username5": "tester5", "password5": "testing5",
    "account6": "test", "username6": "tester6", "password6": "testing6",
}


def write(path, auth_uri, **more):
    """Write it; `more` goes on top."""
    options = {"auth_uri": auth_uri, **USERS, "service_prefix": "SERVICE", "storage_domain": STORAGE_DOMAIN,
               "collate": "C", "insecure": "no", **more}
    path.write_text("\n".join(["[func_test]", *(f"{name} = {value}" for name, value in options.items()), ""]))
    return path
