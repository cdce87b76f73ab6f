"""Opens the rings and builders of a folder with OpenStack Swift and compares NAME.json with them.

Called by tests/openstack.rs.
"""

import glob
import gzip
import json
import os
import subprocess
import sys

from swift.common import utils
from swift.common.exceptions import DevIdBytesTooSmall
from swift.common.ring import Ring, RingBuilder

utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b"", b"x"
folder = sys.argv[1]
tool = os.path.join(os.path.dirname(sys.executable), "swift-ring-builder")

for path in sorted(glob.glob(folder + "/*.json")):
    name = path[:-len(".json")]
    said = json.load(open(path))
    narrow = os.path.exists(name + ".ring.gz")
    for suffix in ("", "-2") if narrow else ("-2",):
        ring = Ring(name + suffix + ".ring.gz")
        assert len(said) == ring.partition_count
        for part, (primaries, handoffs) in enumerate(said):
            assert [node["id"] for node in ring.get_part_nodes(part)] == primaries, (name, part)
            assert [node["id"] for node in ring.get_more_nodes(part)] == handoffs, (name, part)
    builder = RingBuilder.load(name + ".builder")
    builder.validate()
    builder.save(name + "-theirs.builder")
    builder.get_ring().save(name + "-theirs-2.ring.gz", format_version=2)
    if narrow:
        builder.get_ring().save(name + "-theirs.ring.gz", format_version=1)
        theirs = gzip.open(name + "-theirs.ring.gz").read()
        assert gzip.open(name + ".ring.gz").read() == theirs, name
    else:
        try:
            builder.get_ring().save(name + "-theirs.ring.gz", format_version=1)
        except DevIdBytesTooSmall:
            pass
        else:
            raise AssertionError(name + " has room in format 1 for OpenStack")
    graph = {tier: counts for tier, counts in builder._dispersion_graph.items()}
    if builder.replicas == int(builder.replicas):
        builder._build_dispersion_graph()
        assert builder._dispersion_graph == graph, (name, builder._dispersion_graph, graph)
        own = RingBuilder(builder.part_power, builder.replicas, 1)
        for dev in filter(None, builder.devs):
            own.add_dev({key: dev[key] for key in dev if not key.startswith("parts")})
        own.rebalance(seed=1)
        assert builder.dispersion <= own.dispersion + 0.01, (name, builder.dispersion, own.dispersion)
        assert builder.get_balance() <= own.get_balance() + 0.01, (name, own.get_balance())
    assert builder.get_balance() < 5 or builder.parts < 64, (name, builder.get_balance())
    for command in ("", "validate", "dispersion"):
        done = subprocess.run([tool, name + ".builder"] + command.split(), capture_output=True, text=True)
        # 1 is a warning: small rings cannot be balanced to the percent.
        assert done.returncode < 2 and "Traceback" not in done.stderr, (name, command, done.stdout, done.stderr)
        print(done.stdout)
    builder.pretend_min_part_hours_passed()
    moved, balance, removed = builder.rebalance(seed=1)
    print(name, "rebalance moves", moved, "balance", balance)
    assert builder.dev_id_bytes == (4 if name.endswith("beyond") else 2), name
    assert moved <= max(4, builder.parts * 0.1), (name, moved)
