"""The `swift` command carries a tree of 500 files up and down, and lists, describes, changes and deletes."""

import pytest

from harness.places import openstack
from harness.process import run
from harness.waiting import until


@pytest.fixture
def swift(system):
    def command(*arguments, **options):
        return run([openstack("swift"), "-A", system.auth_url, "-U", "test:tester", "-K", "testing", *arguments], **options)
    return command


def test_a_tree_goes_up_and_comes_down(swift, tree, same_tree, tmp_path):
    root, files = tree
    swift("upload", "--object-threads", "8", "swift tree", ".", cwd=root)
    def report():
        stat = swift("stat", "swift tree").stdout
        assert sorted(swift("list", "swift tree").stdout.splitlines()) == sorted(files)
        return "Objects: 500" in stat and f"Bytes: {sum(files.values())}" in stat

    until(report, what="the listing and its figures")

    down = tmp_path / "down"
    swift("download", "--object-threads", "8", "-D", down, "swift tree")
    same_tree(down)

    before = swift("list", "--long", "swift tree").stdout
    swift("upload", "--skip-identical", "swift tree", ".", cwd=root)  # compares ETags: nothing is sent again
    assert swift("list", "--long", "swift tree").stdout == before

    swift("delete", "swift tree")
    until(lambda: "swift tree" not in swift("list").stdout.splitlines(), what="the container being gone")


def test_describing_and_changing(swift, tmp_path):
    (tmp_path / "one file").write_text("hello")
    swift("post", "-r", ".r:*,.rlistings", "-m", "Colour:blue", "swift-post")
    swift("upload", "swift-post", "one file", "--header", "X-Object-Meta-Size: L", cwd=tmp_path)
    stat = swift("stat", "swift-post").stdout
    assert "Read ACL: .r:*,.rlistings" in stat and "Meta Colour: blue" in stat
    stat = swift("stat", "swift-post", "one file").stdout
    assert "Meta Size: L" in stat and "Content Length: 5" in stat and "ETag: 5d41402abc4b2a76b9719d911017c592" in stat
    swift("post", "swift-post", "one file", "-m", "Size:XL", "-H", "Content-Type: text/new")
    stat = swift("stat", "swift-post", "one file").stdout
    assert "Meta Size: XL" in stat and "Content Type: text/new" in stat
    assert swift("list", "--lh", "swift-post").stdout.splitlines()[-1].split()[0] == "5"
    assert "Containers:" in swift("stat").stdout
    assert "Core: swift" in swift("capabilities").stdout
    assert swift("download", "swift-post", "one file", "-o", "-").stdout == "hello"
    missing = swift("stat", "swift-post", "none", check=False)
    assert missing.returncode == 1 and "404" in missing.stderr
    swift("delete", "swift-post")


def test_a_prefix_and_a_delimiter(swift, tmp_path):
    for name in ("a/1", "a/2", "b/1", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    swift("upload", "swift-list", ".", cwd=tmp_path)
    assert swift("list", "swift-list", "--delimiter", "/").stdout.split() == ["a/", "b/", "c"]
    assert swift("list", "swift-list", "--prefix", "a/").stdout.split() == ["a/1", "a/2"]
    swift("delete", "swift-list", "--prefix", "a/")
    assert swift("list", "swift-list").stdout.split() == ["b/1", "c"]
    swift("delete", "swift-list")
