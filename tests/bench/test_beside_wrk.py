"""What `martlet bench` costs and says beside wrk, with bounds that hold on a busy machine. `beside_wrk.py` makes the figures themselves."""

import csv
import gzip
import json
from collections import Counter

import pytest

from bench.beside_wrk import SIZE, WORKLOAD, in_turns, measured, median, responder
from harness.places import martlet

# Of processor time for each request, beside wrk's: 1.1 in a release. A build for debugging is many times slower.
IS_DEBUG = "debug" in martlet().parts
MOST = 40 if IS_DEBUG else 2


@pytest.fixture(scope="module")
def at_once():
    """All loaders on a server that answers at once."""
    return in_turns(martlet(), delay=0, connections=32, seconds=1, rounds=3)


@pytest.mark.parametrize("loader", ["bench", "bench --record"])
def test_a_request_costs_at_most_twice_what_it_costs_wrk(at_once, loader):
    ours, wrks = median(at_once[loader], "micros"), median(at_once["wrk"], "micros")
    assert ours < wrks * MOST, (ours, wrks)


@pytest.mark.extra
def test_figures_are_those_of_wrk():
    """The server takes 100 ms for each answer: rates and medians are its own, whatever else the machine does."""
    runs = in_turns(martlet(), delay=100_000, connections=16, seconds=3, rounds=4, loaders=("wrk", "bench"))
    # The best of their rounds: in others the machine may have stood still.
    for figure, best in (("rate", max), ("p50", min)):
        ours, wrks = (best(getattr(run, figure) for run in runs[loader]) for loader in ("bench", "wrk"))
        assert ours == pytest.approx(wrks, rel=0.1), (figure, ours, wrks)


def test_two_thousand_connections_share_the_load_and_little_memory(tmp_path):
    """Each has its turn: nobody is served over and over again while others wait."""
    workload, record = tmp_path / "w.toml", tmp_path / "ops.csv.gz"
    with responder() as url:
        workload.write_text(WORKLOAD.format(url=url, connections=2000, seconds=3))
        _, _, mebibytes = measured([martlet(), "bench", "run", workload, "--threads", 1, "--record", record])
    assert mebibytes < 100
    with gzip.open(record, "rt") as rows:
        served = Counter(row["worker"] for row in csv.DictReader(rows) if row["status"] == "ok" and row["size"] == str(SIZE))
    fair = sum(served.values()) / 2000
    assert len(served) == 2000 and min(served.values()) > fair / 2, (fair, min(served.values()))


def test_a_million_objects_are_prepared_in_little_memory(tmp_path):
    """A release makes a million in two seconds, and ten millions in no more memory; a build for debugging has a tenth to make."""
    containers, objects = 100, 1_000 if IS_DEBUG else 10_000
    _, _, mebibytes = measured([martlet(), "bench", "run", "pebbles", "--containers", containers, "--objects", objects, "--stages", "init,prepare",
                                "--storage", "mock:delay=0", "--json", tmp_path / "r.json"])
    prepared = json.loads((tmp_path / "r.json").read_text())["stages"][1]["works"][0]["total"]
    assert (prepared["succeeded"], prepared["failed"]) == (containers * objects, 0) and mebibytes < 64
