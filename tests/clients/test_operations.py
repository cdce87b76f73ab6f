"""Every operation of S3 with every parameter, asked of both makes: ours serves whatever OpenStack's s3api serves, and the page says so.

`make s3-operations` writes docs/reference/s3-operations.md.
"""

import difflib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.operations import ask, page
from clients.operations.values import TARGET
from harness import filters
from harness.systems import running

WRITE = "MARTLET_WRITE_S3_OPERATIONS"
SECRET = {"keymaster": {"encryption_root_secret": "cm9vdCBzZWNyZXQgb2Ygb25lIHRlc3QsIDMyIGJ5dGVz"}}
# What OpenStack's takes and ours refuses, with the reason.
REFUSED_HERE = {}


@pytest.fixture(scope="module")
def answers(request, tmp_path_factory):
    """What ours and OpenStack's answered."""
    ours = "openstack" if request.config.getoption("--sut") == "openstack" else "separate"
    pipeline = filters.PIPELINE.replace("proxy-logging proxy-server", "keymaster encryption proxy-logging proxy-server")
    roots = [(kind, tmp_path_factory.mktemp(kind)) for kind in (ours, "openstack")]
    for _, root in roots:
        (root / "etc").mkdir()
        (root / "etc/notification-targets.conf").write_text(f"[{TARGET}]\nurl = http://127.0.0.1:1/\nsecret = of the target\n")
    started = [running(kind, root, overrides=filters.overrides(pipeline=pipeline, **SECRET)) for kind, root in roots]
    try:
        systems = [next(system) for system in started]
        with ThreadPoolExecutor(2) as both:
            yield list(both.map(ask.ask_all, systems))
    finally:
        for system in started:
            system.close()


def test_what_openstack_serves_is_served(answers):
    ours, theirs = answers
    assert "\n".join(line for line in page.missing(ours, theirs) if line.partition(":")[0] not in REFUSED_HERE) == ""


def test_the_page_is_what_the_systems_answered(request, answers):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("the page is about ours")
    text = page.text(*answers)
    if os.environ.get(WRITE):
        page.PAGE.write_text(text)
    committed = page.PAGE.read_text().splitlines() if page.PAGE.exists() else []
    changed = "\n".join(difflib.unified_diff(committed, text.splitlines(), "the page", "the answers", lineterm="", n=0))
    assert changed == "", "`make s3-operations` writes it anew"
