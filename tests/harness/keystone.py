"""A real Keystone on a loopback port, with the users Swift's functional tests expect.

    keystone = Keystone(root, swift_port=8080).start()      # SQLite and fernet keys under `root`
    keystone.authtoken()      # options of [filter:authtoken] in proxy-server.conf
    keystone.keystoneauth()   # options of [filter:keystoneauth]
    keystone.func_test()      # options of [func_test] in test.conf: the v3 variant, every user filled in
    keystone.token("tester")  # a token of one of USERS; keystone.account("tester") is its account
    keystone.call("POST", "/v3/users", {...})               # anything else, as the cloud's administrator
    keystone.stop()

The pipeline wants `authtoken keystoneauth` where `tempauth` stands (`PIPELINE` of harness/layout.py with
`with_keystone`). Keystone and what needs its packages live in a virtual environment of their own, made once from
tests/requirements-keystone.txt: $MARTLET_KEYSTONE_VENV, else .venv-keystone in the repository. `python()` is its
interpreter: the functional tests' v3 variant and an OpenStack proxy with authtoken must be run by it. The bootstrapped
database is kept there too, so that a start takes two seconds.

From a shell: `python -m harness.keystone DIRECTORY SWIFT_PORT` (in tests/) serves until interrupted and prints the
three sections; `python -m harness.keystone --prepare` makes only the environment and the database (`make keystone`).
"""

import fcntl
import getpass
import grp
import hashlib
import http.client
import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from pathlib import Path

from harness import environment as environments
from harness.process import Process, run
from harness.waiting import free_port, listening

ADMIN_PASSWORD = "secretadmin"
SERVICE_PASSWORD = "swiftpassword"

# user: (domain, project, password, roles). As the table in test/functional/test_access_control.py of Swift asks.
USERS = {
    "tester": ("default", "test", "testing", ["admin"]),
    "tester2": ("default", "test2", "testing2", ["admin"]),
    "tester3": ("default", "test", "testing3", ["member"]),
    "tester4": ("test-domain", "test4", "testing4", ["admin"]),
    "tester5": ("default", "test5", "testing5", ["service"]),
    "tester6": ("default", "test", "testing6", ["ResellerAdmin"]),
    # Ours: an operator without the administrator's role, and the two readers.
    "operator": ("default", "test", "operating", ["swiftoperator"]),
    "auditor": ("default", "test5", "auditing", ["swiftauditor"]),
    "reader": ("default", "test", "reading", ["projectreader"]),
    "swift": ("default", "service", SERVICE_PASSWORD, ["service", "admin"]),
}

CONFIGURATION = """\
[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///{root}/keystone.db
[token]
provider = fernet
expiration = {token_life}
[fernet_tokens]
key_repository = {root}/fernet-keys
[fernet_receipts]
key_repository = {root}/fernet-keys
[credential]
key_repository = {root}/credential-keys
[identity]
password_hash_algorithm = bcrypt
password_hash_rounds = 4
max_password_length = 64
[cache]
enabled = false
"""

# Keystone reads the command line as its own: the port is taken off before it is imported.
SERVE = """\
import sys
port = sys.argv.pop()
import waitress
from keystone.wsgi.api import application
waitress.serve(application, listen="127.0.0.1:" + port, threads=4)
"""


def with_keystone(pipeline):
    """This pipeline with Keystone's filters where TempAuth stood; `s3token` verifies the signatures of `s3api`."""
    has_s3 = "s3api" in pipeline.split()
    filters = "authtoken s3api s3token keystoneauth" if has_s3 else "authtoken keystoneauth"
    words = (word for word in pipeline.split() if word != "s3api")
    return " ".join(filters if word == "tempauth" else word for word in words)


def environment():
    """The virtual environment with Keystone, made by the first call."""
    def anew(folder):
        for stale in folder.glob("bootstrapped-*"):
            shutil.rmtree(stale)
    return environments.environment(".venv-keystone", "tests/requirements-keystone.txt", "MARTLET_KEYSTONE_VENV", anew=anew)


def python():
    """The interpreter that has Keystone, its client and middleware, and OpenStack Swift."""
    return environment() / "bin/python"


class Keystone:
    """One Keystone; `swift_port` is where the object-store endpoint of its catalogue points."""

    def __init__(self, root, swift_port, *, token_life=3600, port=None, swift_scheme="http"):
        self.root, self.swift_port, self.swift_scheme = Path(root), swift_port, swift_scheme
        self.token_life, self.port = token_life, port or free_port()
        self.process = None
        self.domains, self.projects, self.users, self.roles = {"default": "default"}, {}, {}, {}
        self._admin = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Serve what is in USERS, or what a former start on this directory left."""
        self._files()
        try:
            self.serve()
        except BaseException:
            self.stop()
            raise
        return self

    def serve(self):
        """Start the server alone, on files that are there: after `stop`, to let it be away for a while."""
        self.process = Process(
            [self.environment / "bin/python", "-W", "ignore", "-c", SERVE, str(self.port)],
            self.root / "keystone.log", env={"OS_KEYSTONE_CONFIG_FILES": str(self.root / "keystone.conf")})
        self.process.wait_for(lambda: listening(self.port), within=60)

    @property
    def python(self):
        """The interpreter of its virtual environment."""
        return self.environment / "bin/python"

    def stop(self):
        if self.process:
            self.process.stop(within=3)
            self.process = None

    # What to write into configuration files

    def authtoken(self, **more):
        """Options of [filter:authtoken], as Swift's sample configuration has them.

        The functional tests send tokens of users without the service role as service tokens and expect them to count
        for nothing; by default such a one would spoil the whole request.
        """
        return {
            "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
            "www_authenticate_uri": self.url, "auth_url": self.url, "auth_plugin": "password",
            "project_domain_id": "default", "user_domain_id": "default", "project_name": "service",
            "username": "swift", "password": SERVICE_PASSWORD, "delay_auth_decision": "True",
            "cache": "swift.cache", "include_service_catalog": "False",
            "service_token_roles_required": "False", **more}

    def keystoneauth(self, **more):
        """Options of [filter:keystoneauth] with both reseller prefixes and both kinds of reader."""
        return {
            "use": "egg:swift#keystoneauth", "reseller_prefix": "AUTH, SERVICE",
            "operator_roles": "admin, swiftoperator", "SERVICE_service_roles": "service",
            "system_reader_roles": "swiftauditor", "project_reader_roles": "projectreader", **more}

    def s3token(self, **more):
        """Options of [filter:s3token], as Swift's sample configuration has them."""
        return {"use": "egg:swift#s3token", "auth_uri": f"{self.url}/v3", "auth_url": self.url, "auth_type": "password",
                "project_domain_id": "default", "project_name": "service", "user_domain_id": "default",
                "username": "swift", "password": SERVICE_PASSWORD, **more}

    def filters(self, **authtoken):
        """The sections of the filters that `with_keystone` puts into a pipeline."""
        return {"filter:authtoken": self.authtoken(**authtoken), "filter:keystoneauth": self.keystoneauth(),
                "filter:s3token": self.s3token()}

    def func_test(self, **more):
        """Options of [func_test] in the functional tests' test.conf."""
        options = {"auth_version": 3, "auth_uri": f"{self.url}/v3/", "service_prefix": "SERVICE", "collate": "C"}
        for number in range(1, 7):
            domain, project, password, _roles = USERS[f"tester{number if number > 1 else ''}"]
            suffix = number if number > 1 else ""
            options |= {f"account{suffix}": project, f"username{suffix}": f"tester{suffix}",
                        f"password{suffix}": password, f"domain{suffix}": "Default" if domain == "default" else domain}
        return {**options, **more}

    # Asking it

    def token(self, user, *, password=None, project=None):
        """A new token of one of USERS, for its own project unless `project` names another of its domain."""
        domain, own, key, _roles = USERS[user]
        domain = {"id": self.domains[domain]}
        return self._token({"name": user, "domain": domain, "password": password or key},
                           {"project": {"name": project or own, "domain": domain}})

    def account(self, user, prefix="AUTH_"):
        """The account of this user's own project."""
        return prefix + self.projects[USERS[user][1]]

    def call(self, method, path, body=None, *, headers=None):
        """One request as the administrator; the decoded answer. Anything but 2xx fails."""
        self._admin = self._admin or self._token(
            {"name": "admin", "domain": {"id": "default"}, "password": ADMIN_PASSWORD},
            {"project": {"name": "admin", "domain": {"id": "default"}}})
        status, _headers, answer = self.ask(method, path, body, {"X-Auth-Token": self._admin, **(headers or {})})
        assert status // 100 == 2, f"{method} {path}: {status} {answer!r}"
        return json.loads(answer) if answer else None

    def ask(self, method, path, body=None, headers=None):
        """One raw request: status, headers, bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def access_key(self, user):
        """A new access key of `user` in its own project: `access` and `secret`."""
        project = self.projects[USERS[user][1]]
        return self.call("POST", f"/v3/users/{self.users[user]}/credentials/OS-EC2", {"tenant_id": project})["credential"]

    def revoke(self, token):
        self.call("DELETE", "/v3/auth/tokens", headers={"X-Subject-Token": token})

    def _token(self, user, scope):
        status, headers, answer = self.ask("POST", "/v3/auth/tokens", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
        assert status == 201, f"no token for {user['name']}: {status} {answer!r}"
        return headers["X-Subject-Token"]

    def grant(self, user, project, role):
        """Give `user` this role on `project`, creating the role when it is new."""
        if role not in self.roles:
            self.roles[role] = self._make("role", name=role)
        self.call("PUT", f"/v3/projects/{self.projects[project]}/users/{self.users[user]}/roles/{self.roles[role]}")

    def withdraw(self, user, project, role):
        self.call("DELETE", f"/v3/projects/{self.projects[project]}/users/{self.users[user]}/roles/{self.roles[role]}")

    # Making it

    def template(self):
        """The directory whose files every start begins with."""
        self.environment = environment()
        made_by = hashlib.sha256(repr((USERS, CONFIGURATION)).encode()).hexdigest()[:12]
        template = self.environment / f"bootstrapped-{made_by}"
        with open(self.environment / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (template / "made.json").exists():
                self._bootstrap(template)
        return template

    def _files(self):
        self.environment = environment()
        if not (self.root / "keystone.db").exists():
            shutil.copytree(self.template(), self.root, dirs_exist_ok=True)
        self._configure()
        self.domains, self.projects, self.users, self.roles = json.loads((self.root / "made.json").read_text())
        with sqlite3.connect(self.root / "keystone.db") as database:
            storage = f"{self.swift_scheme}://127.0.0.1:{self.swift_port}/v1/AUTH_$(tenant_id)s"
            for kind, url in (("object-store", storage), ("identity", f"{self.url}/v3")):
                database.execute("UPDATE endpoint SET url = ? WHERE service_id IN "
                                 "(SELECT id FROM service WHERE type = ?)", (url, kind))
        database.close()

    def _configure(self):
        (self.root / "keystone.conf").write_text(CONFIGURATION.format(root=self.root, token_life=self.token_life))

    def _bootstrap(self, root):
        """The database every start begins with. Asking for each thing takes Keystone 20 seconds in all."""
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        maker = Keystone(root, swift_port=0)
        maker.environment = self.environment
        maker._configure()
        manage = [self.environment / "bin/keystone-manage", "--config-file", root / "keystone.conf"]
        owner = ["--keystone-user", getpass.getuser(), "--keystone-group", grp.getgrgid(os.getgid()).gr_name]
        run([*manage, "db_sync"])
        run([*manage, "fernet_setup", *owner])
        run([*manage, "credential_setup", *owner])
        run([*manage, "bootstrap", "--bootstrap-password", ADMIN_PASSWORD, "--bootstrap-region-id", "RegionOne"])
        try:
            maker.serve()
            maker._populate()
        finally:
            maker.stop()
        (root / "keystone.log").unlink()
        (root / "made.json").write_text(json.dumps([maker.domains, maker.projects, maker.users, maker.roles]))

    def _populate(self):
        """Domains, projects, roles, users and a catalogue whose addresses the start fills in."""
        for kind, found in (("domains", self.domains), ("projects", self.projects), ("users", self.users),
                            ("roles", self.roles)):
            found.update({entry["name"]: entry["id"] for entry in self.call("GET", f"/v3/{kind}")[kind]})
        self.domains["test-domain"] = self._make("domain", name="test-domain")
        for name, (domain, project, password, roles) in USERS.items():
            domain = self.domains[domain]
            if project not in self.projects:
                self.projects[project] = self._make("project", name=project, domain_id=domain)
            self.users[name] = self._make("user", name=name, domain_id=domain, password=password)
            for role in roles:
                self.grant(name, project, role)
        for kind, name in (("object-store", "swift"), ("identity", "keystone")):
            service = self._make("service", type=kind, name=name)
            for interface in ("public", "internal", "admin"):
                self._make("endpoint", interface=interface, service_id=service, region_id="RegionOne",
                           url="http://unset")

    def _make(self, kind, **fields):
        return self.call("POST", f"/v3/{kind}s", {kind: fields})[kind]["id"]


def main():
    if sys.argv[1:] == ["--prepare"]:
        Keystone("unused", swift_port=0).template()
        return
    root, port = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    root.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    keystone = Keystone(root, swift_port=port).start()
    try:
        for section, options in (("filter:authtoken", keystone.authtoken()),
                                 ("filter:keystoneauth", keystone.keystoneauth()),
                                 ("func_test", keystone.func_test())):
            print(f"[{section}]", *(f"{name} = {value}" for name, value in options.items()), "", sep="\n", flush=True)
        while keystone.process.alive():
            time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        keystone.stop()


if __name__ == "__main__":
    main()
