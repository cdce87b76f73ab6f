"""Both makes audit the same damaged devices and come to the same verdicts."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from harness import disk
from harness.layout import AUDIT_FAST, Layout
from harness.places import martlet, openstack_command
from harness.process import run

# Where OpenStack's auditor fails with a traceback in every pass and leaves an object that no server can read, ours
# takes it out of replication's way. What a symbolic link leads to, OpenStack's reads as if it were the object's own.
ONLY_HERE = {"no name", "no etag", "dangling", "directory for file", "link"}


def audit(kind, layout, daemon, *arguments):
    conf = layout.etc / f"{daemon.split('-')[0]}-server.conf"
    if kind == "openstack":
        return run(openstack_command(layout.etc, f"swift-{daemon}", conf, "once", "-v", *arguments))
    return run([martlet(), daemon, conf, "once", *arguments])


def twins(tmp_path, fill):
    """Two layouts with the same devices; `fill` is given the first before it is copied."""
    layouts = [Layout(tmp_path / name, devices=1, replicas=1, overrides={"object": {"object-auditor": AUDIT_FAST}})
               for name in ("theirs", "ours")]
    for layout in layouts:
        layout.write()
    written = fill(layouts[0])
    shutil.rmtree(layouts[1].srv)
    run(["cp", "-a", layouts[0].srv, layouts[1].srv])
    return layouts, written


def verdicts(layout, names):
    """Every path with hashes by name and times masked, and the suffixes announced as changed."""
    paths, announced = set(), {}
    for path in disk.files(layout.srv) + [Path(folder) / name for folder, names_, _ in os.walk(layout.srv) for name in names_
                                          if (Path(folder) / name).is_symlink()]:
        place = str(path.relative_to(layout.srv))
        if path.name == "hashes.invalid":
            announced.update({(place, suffix): 1 for suffix in path.read_text().split()})
        elif path.name not in (".lock", "auditor_status_boot.json"):  # the second only from ours
            place = re.sub(r"[0-9a-f]{32}", lambda found: names.get(found[0], "RANDOM"), place)
            paths.add(re.sub(r"\d{10}\.\d{5}", "TIME", place))
    return paths, announced


@pytest.mark.parametrize("arguments", [(), ("-z", "10000")], ids=["full", "zero-byte"])
def test_objects(tmp_path, ours, arguments):
    def fill(layout):
        script = Path(__file__).with_name("damaged.py")
        command = openstack_command(layout.etc, "swift-object-auditor")
        command[-1] = script
        return json.loads(run([*command, layout.srv, layout.part_power]).stdout)

    layouts, names = twins(tmp_path, fill)
    before, _ = verdicts(layouts[0], names)
    for kind, layout in zip(("openstack", ours), layouts):
        audit(kind, layout, "object-auditor", *arguments)
    theirs, here = (verdicts(layout, names)[0] for layout in layouts)
    assert theirs != before
    differing = {name for name in names.values() for path in theirs ^ here if f"/{name}" in path}
    expected = set() if ours == "openstack" else ONLY_HERE
    assert differing == expected, "\n".join(sorted(theirs ^ here))
    theirs, here = (verdicts(layout, names)[1] for layout in layouts)
    moved = {suffix for _, suffix in theirs}
    assert moved <= {suffix for _, suffix in here}
    hashes = {name: hashed for hashed, name in names.items()}
    assert {suffix for _, suffix in here} - moved == {hashes[name][-3:] for name in expected} - moved
    again = audit(ours, layouts[1], "object-auditor", *arguments)
    assert "failed audit" not in again.stdout + again.stderr
