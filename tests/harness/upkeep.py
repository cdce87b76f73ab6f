"""Daemons of either make, run once over a cluster: `swift-object-expirer CONF once` and its like."""

import getpass

from harness.places import martlet, openstack_command
from harness.process import run

# The gateway that a daemon has for itself, without what needs options.
PIPELINE = """
[pipeline:main]
pipeline = catch_errors {cache}proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 5
node_timeout = 20

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:cache]
use = egg:swift#memcache
memcache_servers = {memcache}
"""


def write_conf(cluster, name, daemon, **options):
    """A configuration file with the section of `daemon` and a gateway; its path."""
    port = cluster.layout.memcached_port
    pipeline = PIPELINE.format(cache="cache " if port else "", memcache=f"127.0.0.1:{port or 11211}")
    section = {"recon_cache_path": cluster.root / "run", **options}
    lines = [f"[DEFAULT]\nswift_dir = {cluster.etc}\nuser = {getpass.getuser()}\n\n[{daemon}]", *(f"{key} = {value}" for key, value in section.items())]
    path = cluster.etc / name
    path.write_text("\n".join(lines) + "\n" + pipeline)
    return path


def once(cluster, kind, daemon, conf, *arguments):
    """One pass; what it said."""
    if kind == "openstack":
        command = openstack_command(cluster.etc, f"swift-{daemon}", conf, "once", "-v", *arguments)
    else:
        command = [martlet(), daemon, conf, "once", "-v", *arguments]
    done = run(command, timeout=120)
    output = done.stdout + done.stderr
    # OpenStack's expirer logs a traceback for a task it cannot read, and goes on.
    assert kind == "openstack" or "panicked" not in output, output
    return output
