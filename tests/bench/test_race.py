"""What `make race` writes of degraded mode and of several gateways: small runs of both scripts, of Martlet alone."""

import json
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from harness.limits import hierarchies
from harness.places import REPOSITORY
from harness.process import run
from race import page, picture

PAGE = "# A page\n\n<!-- race-{name}: begin -->\nold\n<!-- race-{name}: end -->\n\nWhat follows.\n"


def written(tmp_path, name, *arguments):
    """Rows of the table on the page (by cells), and the texts and lines of the picture beside it."""
    place = tmp_path / "docs/performance.md"
    place.parent.mkdir()
    place.write_text(PAGE.format(name=name))
    run([sys.executable, REPOSITORY / f"tests/race/{name}.py", "--only", "martlet", "--write", place, "--reports", tmp_path / "reports", "--dir", tmp_path / "cluster",
         *arguments], timeout=280)
    text = place.read_text()
    assert text.startswith("# A page\n\n<!--") and text.endswith("What follows.\n") and "old" not in text and f"pictures/{name}.svg" in text
    drawn = ElementTree.parse(place.parent / f"pictures/{name}.svg").getroot()
    texts, lines = ([one for one in drawn.iter() if one.tag.endswith(tag)] for tag in ("text", "polyline"))
    rows = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    assert not (tmp_path / "cluster/martlet").exists()
    return rows, [one.text for one in texts], lines


@pytest.mark.extra
def test_a_hung_node_is_in_the_table_and_on_the_picture(tmp_path):
    number = lambda cell: float(cell.replace(",", ""))
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        rows, texts, lines = written(folder, "degraded", "--seconds", "3", "--faults", "hung", "flushed", "--workers", "4")
        hung, flushed = rows[2:]
        # It hangs for less than the ten seconds after which a gateway gives it up; what waits for it stands still.
        is_seen = number(hung[3]) < number(hung[2]) / 2 and number(flushed[3]) > number(flushed[2]) / 4
        if is_seen:  # the machine may be busy with something else in one of the phases
            break
    assert is_seen, rows
    names = ["", "", "ops/s before", "ops/s during", "ops/s after", "left", "p99 ms before", "p99 ms during", "p99 ms after", "failed"]
    assert rows[0] == names and [row[:2] for row in rows[2:]] == [["node hung", "Martlet"], ["memcached flushed", "Martlet"]]
    report = json.loads((folder / "reports/Martlet-node-hung.json").read_text())
    assert [phase["name"] for phase in report["stages"][0]["phases"]] == ["before", "node hung", "after"] and "seed" in report["manifest"]
    assert (folder / "reports/Martlet-node-hung.html").read_text().count("<svg") > 2
    assert "node hung: rate" in texts and "memcached flushed: p99" in texts and len(lines) >= 4


@pytest.mark.extra
@pytest.mark.skipif(not hierarchies(), reason="processors cannot be limited here")
def test_gateways_are_kept_to_their_shares(tmp_path):
    rows, texts, lines = written(tmp_path, "scalability", "--seconds", "3", "--gateways", "2", "--share", "0.05")
    assert [row[:3] for row in rows[2:]] == [["Martlet", count, share] for share in ("0.05", "no limit") for count in "12"]
    shares = {(row[1], row[2]): float(row[6]) for row in rows[2:]}
    assert shares["1", "0.05"] < 0.06 and shares["2", "0.05"] < 0.12 and shares["1", "no limit"] > 0.06, rows
    assert {path.name for path in (tmp_path / "reports").glob("Martlet-?-*.json")} == {f"Martlet-{count}-{share}.json" for count in "12" for share in ("0.05", "unlimited")}
    assert "without limits, on one machine" in texts and len(lines) == 4


def test_a_page_without_its_markers_and_gaps_in_a_line(tmp_path):
    place = tmp_path / "page.md"
    place.write_text("nothing\n<!-- race: begin -->\n")
    with pytest.raises(SystemExit, match="race: end"):
        page.write(place, "race", "text")
    assert place.read_text() == "nothing\n<!-- race: begin -->\n"
    line = [(0, 1), (1, None), (2, 3), (3, 4)]
    assert picture.pieces(line) == [[(0, 1), (0, 1)], [(2, 3), (3, 4)]]
    axis = picture.decades([0.3, 250])
    assert (axis.low, axis.high, axis.share(0.05), round(axis.share(10), 6), axis.share(1e9)) == (0.1, 1000.0, 0.0, 0.5, 1.0)
