"""Files an operator got wrong: one clear message naming the thing, no traceback or panic, and no half-started server."""

import gzip

import pytest

from harness.client import Client
from harness.cluster import Cluster, healthy
from harness.layout import Layout
from harness.waiting import Late, until

ROLES = ["proxy", "account", "container", "object"]


@pytest.fixture
def kind(request):
    return "openstack" if request.config.getoption("--sut") == "openstack" else "martlet"


@pytest.fixture
def broken(tmp_path, kind, memcached):
    """A layout to spoil, and how it ends when started: (status, what it said)."""
    cluster = Cluster(Layout(tmp_path / "c", memcached_port=memcached.port).write(), kind)

    def refuses(role):
        process = cluster.launch(role)
        until(lambda: not process.alive(), within=60 if cluster.strict else 5, what=f"{role} giving up")
        return process.child.returncode, process.text()

    cluster.refuses = refuses
    cluster.strict = kind == "martlet"
    yield cluster
    cluster.stop()


def replace(cluster, file_name, old, new):
    path = cluster.etc / file_name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refused(cluster, role, *named):
    """Assert that the server ends with an error that names all this, without a panic."""
    try:
        status, output = cluster.refuses(role)
    except Late:
        if cluster.strict:
            raise
        pytest.skip("OpenStack starts and complains in its log")
    assert status not in (0, -6, -11, 101), output
    if cluster.strict:
        assert "panicked" not in output and "RUST_BACKTRACE" not in output, output
        for name in named:
            assert name in output, f"{name!r} is not named in: {output}"
        assert len(output.splitlines()) <= 12, output


def test_authtoken_is_missed(broken):
    """Without it any client could say in a header that it is an administrator."""
    replace(broken, "proxy-server.conf", "s3api tempauth", "s3api s3token keystoneauth")
    replace(broken, "proxy-server.conf", "[filter:s3api]", "[filter:keystoneauth]\nuse = egg:swift#keystoneauth\n[filter:s3token]\n"
            "use = egg:swift#s3token\nauth_uri = http://127.0.0.1:1/v3\n[filter:s3api]")
    refused(broken, "proxy", "[filter:s3token]", "authtoken in front of s3token and keystoneauth")


def test_an_unknown_filter_is_named(broken):
    replace(broken, "proxy-server.conf", "tempauth read_only", "tempauth nosuchfilter read_only")
    refused(broken, "proxy", "nosuchfilter")


def test_a_filter_of_an_unknown_egg_is_named(broken):
    replace(broken, "proxy-server.conf", "egg:swift#listing_formats", "egg:swift#nosuchegg")
    refused(broken, "proxy", "nosuchegg")


@pytest.mark.parametrize("role", ROLES)
def test_an_unknown_filter_in_a_storage_pipeline_is_named(broken, role):
    if role == "proxy":
        pytest.skip("covered above")
    replace(broken, f"{role}-server.conf", "healthcheck recon", "healthcheck nosuchfilter recon")
    refused(broken, role, "nosuchfilter")


@pytest.mark.parametrize("role", ROLES)
def test_a_missing_configuration_file_is_named(broken, role):
    (broken.etc / f"{role}-server.conf").unlink()
    refused(broken, role, f"{role}-server.conf")


@pytest.mark.parametrize("role", ROLES)
def test_a_file_that_is_no_configuration_is_named(broken, role):
    (broken.etc / f"{role}-server.conf").write_bytes(b"\x00\xff not [a configuration\n= =\n")
    refused(broken, role, f"{role}-server.conf")


@pytest.mark.parametrize("role", ROLES)
def test_an_option_of_the_wrong_kind_is_named(broken, role):
    replace(broken, f"{role}-server.conf", "bind_port = ", "bind_port = x")
    refused(broken, role, "bind_port")


def test_swift_conf_without_hash_secrets_is_named(broken):
    (broken.etc / "swift.conf").write_text("[swift-hash]\n")
    refused(broken, "proxy", "swift_hash_path")
    refused(broken, "object", "swift_hash_path")


def test_a_missing_swift_conf_is_named(broken):
    (broken.etc / "swift.conf").unlink()
    refused(broken, "object", "swift.conf")


def test_policies_that_contradict_are_named(broken):
    with open(broken.etc / "swift.conf", "a") as file:
        file.write("\n[storage-policy:2]\nname = gold\n")
    refused(broken, "proxy", "gold")


def test_an_unsupported_option_is_a_named_warning(broken):
    replace(broken, "proxy-server.conf", "[DEFAULT]", "[DEFAULT]\nfrobnicate_level = 11")
    replace(broken, "object-server.conf", "[DEFAULT]", "[DEFAULT]\nfrobnicate_disks = yes")
    for role in ROLES:
        broken.start_service(role)
    if broken.strict:
        broken.services["proxy", 0].await_text("frobnicate_level")
        broken.services["object", 0].await_text("frobnicate_disks")
    client = Client(broken.auth_url)
    client.put("c")


RINGS = {"rubbish": b"no ring", "truncated": None, "empty": b"", "rubbish in gzip": gzip.compress(b"R1NG no more"),
         "endless in gzip": gzip.compress(b"R1NG\x00\x01\xff\xff\xff\xff" + b"x" * 100)}


@pytest.mark.parametrize("what", [*RINGS, "missing"])
@pytest.mark.parametrize("ring", ["account.ring.gz", "container.ring.gz"])
def test_a_bad_ring_is_named(broken, ring, what):
    path = broken.etc / ring
    if what == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:len(path.read_bytes()) // 2] if what == "truncated" else RINGS[what])
    refused(broken, "proxy", ring)


def test_a_missing_object_ring_fails_only_its_policy(broken):
    """The ring of a policy is read when it is needed: without it that policy is unavailable, the others serve."""
    (broken.etc / "object-1.ring.gz").unlink()
    for role in ("account", "container", "object"):
        broken.start_service(role)
    process = broken.launch("proxy")
    if not broken.strict:
        pytest.skip("OpenStack's workers die and are started again for ever")
    until(lambda: not process.alive() or healthy(broken.port), what="the proxy starting or refusing")
    if process.alive():
        client = Client(broken.auth_url)
        client.put("c")
        client.put("c", "o", body=b"x")
        assert client.get("c", "o") == b"x"
        client.do("PUT", "s", headers={"X-Storage-Policy": "silver"}, expect=(201, 503, 500))
        assert client.do("PUT", "s", "o", body=b"x").status in (503, 500, 404)
        assert client.get("c", "o") == b"x"
    else:
        assert "object-1.ring.gz" in process.text()
        assert "panicked" not in process.text()


def test_a_port_that_is_taken_is_named(broken):
    if not broken.strict:
        pytest.skip("OpenStack tries again for ever")
    broken.start_service("object")
    second = broken.services.pop(("object", 0))
    replace(broken, "object-server.conf", "[DEFAULT]", "[DEFAULT]\nbind_timeout = 1")
    status, output = broken.refuses("object")
    second.stop()
    assert status != 0
    assert str(broken.layout.ports["object", 0]) in output and "panicked" not in output
