"""The directory tree real clients carry: 500 files, 0 B to 20 MB, names that hurt."""

import random

import pytest

ODD_NAMES = ["with space", "ünïcødé", "100% sure", "%41%zz", "plus+and&amp;", "quote'\"s", "日本語/ファイル", "🐦/martlet",
             "semi;colon", "hash#tag", "question?mark", "(paren)[bracket]{brace}", "comma,dot.", "back\\slash", "tilde~", "-dash first",
             "trailing dot.", "equals=sign", "at@home", "a/deep/er/and/deeper/path", " leading space", "UPPER and lower"]


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The tree's root and its files: relative name to size."""
    root, dice, files = tmp_path_factory.mktemp("tree"), random.Random(500), {}
    sizes = [0, 0, 1, 65535, 65536, 65537, 2**20, 5 * 2**20 + 3, 20 * 10**6]
    for index in range(500):
        odd = ODD_NAMES[index % len(ODD_NAMES)]
        name = f"{odd}/file {index}.bin" if index % 3 else f"plain-{index % 7}/{odd.replace('/', '_')} {index}"
        files[name] = sizes[index] if index < len(sizes) else int(dice.paretovariate(0.5)) * 97 % 60000
    for name, size in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(size))
    assert len(files) == 500
    return root, files


@pytest.fixture(scope="session")
def few(tree, tmp_path_factory):
    """A part of the tree, for clients that take their time: each odd name, and sizes up to 5 MiB."""
    root, files = tree
    numbered = sorted(files, key=lambda name: int(name.removesuffix(".bin").rsplit(" ", 1)[1]))
    chosen = {name: files[name] for name in numbered[:3 * len(ODD_NAMES)] if files[name] < 10 * 2**20}
    folder = tmp_path_factory.mktemp("few")
    for name in chosen:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((root / name).read_bytes())
    return folder, chosen


@pytest.fixture
def same_tree(tree):
    """Asserts that a directory holds the tree (or the one that is named), byte for byte, and nothing more."""
    def check(other, of=tree):
        root, files = of
        found = {str(path.relative_to(other)) for path in other.rglob("*") if path.is_file()}
        assert found == set(files)
        for name in files:
            assert (root / name).read_bytes() == (other / name).read_bytes(), name

    return check
