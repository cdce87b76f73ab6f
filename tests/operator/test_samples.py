"""The samples in etc/: both programs read them, as they are and with every option written out."""

import json
import re

import pytest

from harness.layout import Layout
from harness.places import REPOSITORY, martlet, openstack_command
from harness.process import run

ETC = REPOSITORY / "etc"
SAMPLES = sorted(ETC.glob("*-sample"))


def spelled_out(text):
    """With every `# option = default` as a line that counts, but for those that the section has already."""
    lines, seen = [], set()
    for line in text.splitlines():
        line = re.sub(r"^# (\[.*\])$", r"\1", line)  # an example of a section
        if line.startswith("["):
            seen = set()
        found = re.match(r"(# )?([a-z][\w-]*) =(.*)", line)
        if found and found.group(2) in seen:
            continue
        if found:
            seen.add(found.group(2))
            line = f"{found.group(2)} ={found.group(3)}"
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def etc(tmp_path_factory):
    """A directory with rings and a swift.conf for the samples to be read beside."""
    return Layout(tmp_path_factory.mktemp("samples"), policies=("Policy-0",)).write().etc


def test_there_is_one_of_each():
    names = {path.name.removesuffix("-sample") for path in SAMPLES}
    assert names == {"swift.conf", "proxy-server.conf", "account-server.conf", "container-server.conf", "object-server.conf",
                     "container-reconciler.conf", "dispersion.conf", "drive-audit.conf",
                     "object-expirer.conf", "internal-client.conf", "memcache.conf", "container-sync-realms.conf",
                     "notification-targets.conf"}


@pytest.mark.parametrize("written", [str, spelled_out], ids=["as-it-is", "spelled-out"])
@pytest.mark.parametrize("role", ["proxy", "account", "container", "object"])
def test_our_servers_find_nothing_wrong(etc, tmp_path, role, written):
    conf = tmp_path / f"{role}-server.conf"
    text = written((ETC / f"{role}-server.conf-sample").read_text())
    conf.write_text(text.replace("/etc/swift", str(etc)).replace("[DEFAULT]", f"[DEFAULT]\nswift_dir = {etc}", 1 if written is str else 0))
    done = run([martlet(), f"{role}-server", "--test-config", conf], check=False)
    assert done.returncode == 0 and "WARN" not in done.stderr, done.stderr


@pytest.mark.parametrize("written", [str, spelled_out], ids=["as-it-is", "spelled-out"])
@pytest.mark.parametrize("daemon", ["object-expirer", "container-reconciler"])
def test_our_daemons_pass_with_the_samples_of_their_gateways(etc, tmp_path, daemon, written):
    """No server answers, so that a pass finds nothing; an option that is never read would be a warning."""
    for sample in SAMPLES:
        if sample.name not in ("swift.conf-sample", "dispersion.conf-sample", "drive-audit.conf-sample"):
            text = written(sample.read_text()).replace("/etc/swift", str(etc)).replace("/var/cache/swift", str(tmp_path))
            text = text.replace("[DEFAULT]", f"[DEFAULT]\nswift_dir = {etc}\nrecon_cache_path = {tmp_path}", 1 if written is str else 0)
            (etc / sample.name.removesuffix("-sample")).write_text(text)
    done = run([martlet(), daemon, etc / f"{daemon}.conf", "--once"], check=False)
    assert done.returncode == 0 and "ignored" not in done.stderr, done.stderr


READ = """
import json, sys
from swift.common.utils import readconf
print(json.dumps({path: readconf(path) for path in sys.argv[1:]}))
"""


def test_openstack_reads_the_same_values(etc, tmp_path):
    """OpenStack's own reader understands every line, and the defaults are texts that it has, too."""
    paths = []
    for sample in SAMPLES:
        paths.append(tmp_path / sample.name)
        paths[-1].write_text(spelled_out(sample.read_text()))
    python = openstack_command(etc, "swift-recon")[0]
    output = json.loads(run([python, "-W", "ignore", "-c", READ, *paths]).stdout)
    for path in paths:
        sections = output[str(path)]
        assert sections, path
        for section in re.findall(r"^\[(.*)\]$", path.read_text(), re.M):
            assert section == "DEFAULT" or section in sections, (path, section)
