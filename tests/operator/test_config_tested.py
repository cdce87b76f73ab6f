"""`--test-config` of every server and daemon finds what a start finds, in the same words."""

import shutil

import pytest

from harness import upkeep
from harness.cluster import Cluster
from harness.layout import Layout
from harness.places import martlet
from harness.process import run

COMMANDS = {"proxy": ["proxy-server"], "account": ["account-server", "account-replicator", "account-auditor", "account-reaper"],
            "container": ["container-server", "container-replicator", "container-auditor", "container-updater"],
            "object": ["object-server", "object-replicator", "object-auditor", "object-updater"]}
CASES = [(role, command) for role, commands in COMMANDS.items() for command in commands]
WITH_GATEWAY = ["object-expirer", "container-sync", "container-lifecycle", "container-notifier", "container-reconciler"]


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path).write()


def tried(command, conf):
    done = run([martlet(), command, conf, "--test-config"], check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def add(layout, role, command, option):
    """The file with another option, where this server or daemon looks for it; its section."""
    conf = layout.etc / layout.conf_name(role)
    section = "DEFAULT" if command.endswith("-server") else command
    text = conf.read_text()
    conf.write_text(text.replace(f"[{section}]", f"[{section}]\n{option}") if f"[{section}]" in text else f"{text}\n[{section}]\n{option}\n")
    return conf, section


def gateway_conf(layout, command, **options):
    own = {} if command == "container-reconciler" else {"internal_client_conf_path": layout.etc / f"{command}.conf"}
    return upkeep.write_conf(Cluster(layout), f"{command}.conf", command, **own, **options)


@pytest.mark.parametrize("role, command", CASES)
def test_a_misspelt_option_is_refused(layout, role, command):
    conf = layout.etc / layout.conf_name(role)
    assert tried(command, conf) == (0, "")
    conf, section = add(layout, role, command, "mount_chek = false")
    status, said = tried(command, conf)
    assert status == 1 and f"option mount_chek in [{section}] of {conf} is ignored" in said, said


@pytest.mark.parametrize("role, command", [case for case in CASES if not case[1].endswith("-server")])
def test_a_misspelt_option_that_all_in_the_file_share_is_refused(layout, role, command):
    """And what the server of the file reads there, or another daemon, is none."""
    conf = layout.etc / layout.conf_name(role)
    theirs = {"account": "auto_create_account_prefix = .x", "container": "allow_versions = true", "object": "keep_cache_size = 7"}[role]
    text = conf.read_text().replace("[DEFAULT]", f"[DEFAULT]\n{theirs}\nconcurrency = 3\nreclaim_age = 604800\nlog_custom_handlers = x", 1)
    conf.write_text(text)
    status, said = tried(command, conf)
    assert status == 0, said
    conf.write_text(text.replace("[DEFAULT]", "[DEFAULT]\nmount_chek = false", 1))
    status, said = tried(command, conf)
    assert status == 1 and f"option mount_chek in [DEFAULT] of {conf} is ignored" in said, said


@pytest.mark.parametrize("command", WITH_GATEWAY)
def test_a_misspelt_option_of_a_daemon_with_a_gateway_is_refused(layout, command):
    assert tried(command, gateway_conf(layout, command)) == (0, "")
    status, said = tried(command, gateway_conf(layout, command, intervall=3))
    assert status == 1 and f"option intervall in [{command}]" in said, said
    conf = gateway_conf(layout, command)
    conf.write_text(conf.read_text().replace("[DEFAULT]", "[DEFAULT]\nuserr = swift", 1))
    status, said = tried(command, conf)
    assert status == 1 and "option userr in [DEFAULT]" in said and "did you mean user?" in said, said


@pytest.mark.parametrize("role, command", CASES)
def test_what_is_not_served_is_named_and_not_refused(layout, role, command):
    conf, section = add(layout, role, command, "log_custom_handlers = x")
    status, said = tried(command, conf)
    assert status == 0 and f"option log_custom_handlers in [{section}]" in said and "not supported by Martlet" in said, said


@pytest.mark.parametrize("role, command", [case for case in CASES if case[1] not in ("account-server", "container-server", "object-server", "account-auditor",
                                                                                   "container-auditor", "object-auditor")])
def test_a_ring_that_is_not_there_is_refused_as_at_a_start(layout, role, command):
    shutil.move(layout.etc / "container.ring.gz", layout.root)
    conf = layout.etc / layout.conf_name(role)
    status, said = tried(command, conf)
    started = run([martlet(), command, conf, *(["once"] if role != "proxy" else [])], check=False, timeout=60)
    assert status == 1 and said.startswith("martlet: ") and said.splitlines()[0] in started.stderr and "container.ring.gz" in said, (said, started.stderr)


@pytest.mark.parametrize("role, command", CASES)
def test_a_user_that_is_not_there_is_refused_and_nothing_is_bound(layout, role, command):
    conf = layout.etc / layout.conf_name(role)
    text = conf.read_text()
    conf.write_text("\n".join("user = nobody-of-that-name" if line.startswith("user =") else line for line in text.splitlines()))
    status, said = tried(command, conf)
    assert status == 1 and "nobody-of-that-name" in said, said
