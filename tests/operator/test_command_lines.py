"""Every form in which OpenStack's tools take options, and what both makes say of lines that make no sense."""

import re

import pytest

from harness.layout import Layout
from harness.tools import both, many, run

# SWIFT_DIR is a directory with swift.conf and rings.
LINES = {
    "get-nodes": ["-p=x -P Policy-0 -dSWIFT_DIR", "--part=1 -P Policy-0 -d SWIFT_DIR", "-p 1 --policy-n Policy-0 --swift SWIFT_DIR", "-aP Policy-0 --part 3 -dSWIFT_DIR",
                  "-P Policy-0 a c o --all -d SWIFT_DIR", "-d SWIFT_DIR -P Policy-0 -- -a", "-P=Policy-0 a -dSWIFT_DIR", "--policy-name= a", "-Pnope -p 1 -dSWIFT_DIR", "-aQ -dSWIFT_DIR SWIFT_DIR/account.ring.gz a%2F",
                  "-vx", "-ap", "--nope", "-d", "--swift-dir", "--all=1", "-a=1", "--p x", "--po", "-p", "--version", "-?", "--partition 1 --partition", "-a --h --nope", "-ah", "--", ""],
    "object-info": ["-d=x nosuch", "--swift SWIFT_DIR nosuch", "-nd SWIFT_DIR nosuch", "--no nosuch", "nosuch -n", "--drop", "-zn", "--zz", "-d", "-n=1", "--no-check-etag=1", "-P", "--policy", "-nh", "-- -n", "", "a b"],
    "container-info": ["-d=x nosuch", "--swift SWIFT_DIR nosuch", "-vsd SWIFT_DIR nosuch", "--verb nosuch", "--sy nosuch -v", "-z", "--s nosuch", "--stale nosuch", "-svd", "--verbose=1", "-h", "-- -v", ""],
    "account-info": ["-s nosuch", "-v nosuch", "--stale nosuch", "--s nosuch", "-sd", "--sync=1", "--help", "nosuch -s", ""],
    "recon": ["--swiftdir SWIFT_DIR", "--swiftd=SWIFT_DIR --", "-t=5 --swiftdir=SWIFT_DIR", "--timeo=0x1 --swiftdir=SWIFT_DIR", "-tx", "--top=x", "--top", "--human=1", "--re", "--s", "--js", "-p", "--swiftdir",
              "--region=x", "--zone=", "--md5=1", "--lowest=1.5", "-Z", "--nope", "--jitter=x", "--jitter", "--swiftdir=SWIFT_DIR --jitter=1_0", "--swiftdir=SWIFT_DIR --jitter -inf", "bogus --swiftdir=SWIFT_DIR", "-p x --swiftdir=SWIFT_DIR", "-arh"],
    "dispersion-populate": ["--container-o nosuch", "--no nosuch", "-P=x nosuch", "-- -P", "--ins nosuch", "--insecure=1", "--nope", "-P", "--container-suffix-start=x", "--object-suffix-start", "--cont", "-h"],
    "dispersion-report": ["-jdp nosuch", "--dump nosuch", "nosuch -j", "-jz", "--p nosuch", "--d nosuch", "--dump=1", "-P", "--part nosuch", "-dh"],
    "oldies": ["-a=1", "--ag 99999999", "-pa99999999", "-a -5x", "--age=", "--age", "-p=1", "--pids=1", "-pz", "-a 9999999 -- -z", "-a 9999999 x -p", "--he"],
    "orphans": ["-a=1", "-wa99999999", "-r=/x -a 9999999", "--run=/x -a 9999999", "--run-dir= -a 9999999", "-k", "--wide=1", "-wz", "-a 9999999 -- -z", "-kh"],
    "config": ["-c=1", "-c x", "-c", "--config=1 nope", "-wc 1 nope", "--s x nope", "--sw x nope", "-w=1", "--wsgi=1", "--nope", "nope -s", "nope -w", "-wh", ""],
    "reconciler-enqueue": ["-X=PUT", "-X", "-fX", "--op=FOO 0 /a/c/o 1", "--o put 0 /a/c/o 1", "-f=1", "--force=1", "--fo 0 /a/c", "-fX PUT 0 /a/c", "-XFOO", "--sw", "-fh", "--"],
    "ring-composer": ["", "-h", "x", "x nope", "--config x", "-v", "x compose -o r.gz", "x compose --output", "x compose --out=/nosuch/r a b", "-- x show", "x -- show", "x show extra"],
    "ring-builder": ["", "nosuch", "nosuch nope", "nosuch create x 3 1", "-x", "--", "-- nosuch", "nosuch --", "nosuch rebalance --see", "nosuch -y"],
}
# OpenStack's look for options only behind what they print first.
TALKS_FIRST = {"recon"}


@pytest.fixture(scope="module")
def swift_dir(tmp_path_factory):
    return Layout(tmp_path_factory.mktemp("lines"), policies=("Policy-0",)).write().etc


def complaint(text):
    """What OpenStack's says of an option, unless it is about the value, of which ours says what it expects."""
    found = re.search(r"^\S*:? ?error: (.*)$", text, re.MULTILINE)
    return found[1] if found and not re.search(r"invalid (value|integer|floating|choice)", found[1]) else None


@pytest.mark.parametrize("tool", LINES)
def test_lines_are_read_alike(swift_dir, tmp_path, monkeypatch, tool):
    monkeypatch.chdir(tmp_path)
    lines = [line.replace("SWIFT_DIR", str(swift_dir)).split() for line in LINES[tool]]
    for words, theirs in zip(lines, many(tool, lines), strict=True):
        ours = run("martlet", tool, *words)
        assert ours.status == theirs.status, (words, ours, theirs)
        if "Traceback" in theirs.err:
            assert ours.out or ours.err, words
            continue
        if tool not in TALKS_FIRST:
            assert bool(ours.out) == bool(theirs.out), (words, ours, theirs)
        if theirs.status == 2 and tool != "ring-composer" and tool != "ring-builder":
            assert complaint(ours.err) == complaint(theirs.err), (words, ours.err, theirs.err)


@pytest.mark.parametrize("tool", ["drive-audit", "recon-cron", "form-signature"])
def test_without_options_words_are_words(tmp_path, tool):
    """These three have none: what looks like one is a file, or part of a form."""
    for line in ("", "-x", "--nope", "-- nosuch", "-v nosuch", "nosuch -h", "-h b", "-h 5 1 1 1 -k"):
        theirs, ours = both(tool, *line.split(), cwd=tmp_path)
        assert ours.status == theirs.status, (line, ours, theirs)
        assert "Traceback" in theirs.err or ours.out == theirs.out, (line, ours, theirs)
    helped = run("martlet", tool, "--help")
    assert helped.status == 0 and "Usage" in helped.out


@pytest.mark.parametrize("tool", [tool for tool in LINES if not tool.startswith("ring-")])
def test_help_names_every_option(tool):
    theirs, ours = both(tool, "--help")
    named = r"^ +(-\w)?[^-\n]*(--[a-z][\w-]*)"
    wanted = {name for pair in re.findall(named, theirs.out, re.MULTILINE) for name in pair if name}
    assert wanted and wanted <= {name for pair in re.findall(named, ours.out, re.MULTILINE) for name in pair}
