"""docs/operating/production-cluster.md is typed into machines of its own, word by word: its files, its commands, their output."""

import os
import shutil
from pathlib import Path

import pytest

from harness import packages, page
from harness.places import REPOSITORY
from harness.reader import Reader
from harness.site import Site

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have other machines"),
    pytest.mark.skipif(not Path("/lib/systemd/systemd").exists(), reason="systemd is not installed"),
    pytest.mark.skipif(not shutil.which("haproxy") or not shutil.which("nginx"), reason="the balancers are not installed"),
]

PAGE = REPOSITORY / "docs/operating/production-cluster.md"
ADDRESSES = {"admin": "10.0.0.5", "balancer": "10.0.0.10", "proxy1": "10.0.0.21", "proxy2": "10.0.0.22",
             "storage1": "10.0.0.31", "storage2": "10.0.0.32", "storage3": "10.0.0.33", "storage4": "10.0.0.34"}
# The first heading that the short run leaves out.
SHORT_OF = "After some minutes"


def read(tmp_path, steps):
    names = {name for step in steps for name in step.machines}
    package = packages.released(tmp_path / "package")
    with Site(tmp_path, package, {name: address for name, address in ADDRESSES.items() if name in names}) as site, \
            open(tmp_path / "transcript", "w") as transcript:
        reader = Reader(PAGE.name, site, transcript)
        for step in steps:
            reader.do(step)
    assert not reader.wrong, "\n\n".join(reader.wrong)


def test_the_cluster_of_the_page_stores_its_first_object_and_is_well(tmp_path):
    steps = page.steps(PAGE)
    headings = [step.heading for step in steps]
    read(tmp_path, steps[:headings.index(SHORT_OF)])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_whole_page(tmp_path):
    read(tmp_path, page.steps(PAGE))


def test_the_page_names_the_machines_that_it_uses():
    text = PAGE.read_text()
    assert {name for step in page.steps(PAGE) for name in step.machines} == set(ADDRESSES)
    assert all(f"`{name}`" in text for name in ADDRESSES)
