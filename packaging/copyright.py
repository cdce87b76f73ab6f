#!/usr/bin/env python3
"""Prints debian/copyright: Martlet's own licence, and those of all that is linked into the program.

The crates come from `cargo metadata`: what `martlet` reaches on this platform through ordinary dependencies. Of a
choice of licences that has Apache-2.0 in it, Apache-2.0 is taken, whose text every Debian system has; of all others the
texts stand here, as their licences ask, with those of C libraries inside the crates (SQLite, mimalloc, BoringSSL) and
of Rust's standard library. With --musl, musl's stands there too. A crate whose licence text cannot be found is an error.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APACHE = "Apache-2.0"
TEXT_NAME = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
# Of a crate under several licences at choice, texts of those that were not chosen.
NOT_CHOSEN = re.compile(r"mit|unlicen|isc|zlib|lgpl|bsd|boost|bsl", re.IGNORECASE)

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""

SQLITE = """The author disclaims copyright to this source code. In place of a legal notice, here is a blessing:

May you do good and not evil.
May you find forgiveness for yourself and forgive others.
May you share freely, never taking more than you give.
"""

HEADER = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: martlet
Comment: The program is linked statically with the crates below, each by its name and version.

Files: *
Copyright: 2026 the authors of Martlet
License: Apache-2.0
"""

APACHE_PARAGRAPH = """License: Apache-2.0
 Licensed under the Apache License, Version 2.0. On Debian systems its text is in
 /usr/share/common-licenses/Apache-2.0.
"""


def linked_crates():
    """The packages that the program is made of, from crates.io, by name."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    host = re.search(r"host: (\S+)", version).group(1)
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [found["id"] for found in packages.values() if found["name"] == "martlet" and found["source"] is None]
    reached = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if is_linked and not is_macro and dependency["pkg"] not in reached:
                reached.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    linked = [packages[one] for one in reached if packages[one]["source"]]
    return sorted(linked, key=lambda package: (package["name"], package["version"]))


def expression(package):
    """Its licence as SPDX has it now: old crates separate alternatives by a slash."""
    return re.sub(r"\s*/\s*", " OR ", package["license"] or package["license_file"] or "")


def texts(package, chosen):
    """The licence texts and notices of a crate, and of what lies inside it."""
    folder = Path(package["manifest_path"]).parent
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        is_text = TEXT_NAME.match(path.name) and path.suffix.lower() not in (".rs", ".py", ".spdx", ".c", ".h")
        if not path.is_file() or not is_text or len(place.parts) > 4 or "tests" in place.parts:
            continue
        text = path.read_text("utf-8", errors="replace").strip() + "\n"
        is_apache = "apache.org/licenses" in text.lower() and len(text) > 8000
        is_other_choice = len(place.parts) == 1 and NOT_CHOSEN.search(path.name)
        if chosen == APACHE and (is_apache or is_other_choice or len(place.parts) == 1 and is_choice(text)):
            continue
        found[str(place)] = text
    return found


def is_choice(text):
    """Whether a file only says that the user may choose."""
    return len(text) < 3000 and "NOTICE" not in text and bool(re.search(r"at your option|either|dual", text, re.IGNORECASE))


def holders(package):
    """The lines that say who has the copyright, from all texts of the crate; its authors when there are none."""
    folder = Path(package["manifest_path"]).parent
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and TEXT_NAME.match(path.name):
            for line in path.read_text("utf-8", errors="replace").splitlines():
                line = line.strip(" \t*#/")
                if re.match(r"(copyright|©)\s.*(\d{4}|\(c\))", line, re.IGNORECASE) and "{" not in line and "[" not in line:
                    lines.append(re.sub(r"^copyright[:\s]*", "", line, flags=re.IGNORECASE))
    return list(dict.fromkeys(lines)) or package["authors"] or [f"the authors of {package['name']}"]


def indented(text):
    """A text as a field of the file has it."""
    return "".join(f" {line.rstrip()}\n" if line.strip() else " .\n" for line in text.strip().splitlines())


def stanza(package):
    """The paragraph of a crate, with the texts that its licence asks for."""
    name = f"{package['name']}-{package['version']}"
    spdx = expression(package)
    alternatives = [part.strip() for part in spdx.split(" OR ")]
    chosen = APACHE if APACHE in alternatives and " AND " not in spdx else spdx
    found = texts(package, chosen)
    if chosen != APACHE and not found:
        if "MIT" not in alternatives:
            sys.exit(f"{name}: no text of its licence, {spdx}, is in {package['manifest_path']}")
        found = {"LICENSE": MIT}
    copyright_lines = "\n           ".join(holders(package))
    licence = chosen.replace(" AND ", " and ").replace(" OR ", " or ").replace(" WITH ", " with ")
    comment = f"Comment: offered as {spdx}\n" if chosen != spdx else ""
    included = "".join(f" [{place}]\n .\n{indented(text)} .\n" for place, text in found.items()).removesuffix(" .\n")
    return f"Files: {name}/*\nCopyright: {copyright_lines}\nLicense: {licence}\n{included}{comment}"


def main():
    """Prints the file."""
    paragraphs = [HEADER]
    for package in linked_crates():
        paragraphs.append(stanza(package))
        if package["name"] == "libsqlite3-sys":
            files = f"{package['name']}-{package['version']}/sqlite3/*"
            paragraphs.append(f"Files: {files}\nCopyright: none\nLicense: public-domain\n{indented(SQLITE)}")
    standard = "Copyright: The Rust Project contributors\nLicense: Apache-2.0\nComment: offered as MIT OR Apache-2.0\n"
    paragraphs.append(f"Files: rust-standard-library/*\n{standard}")
    if "--musl" in sys.argv[1:]:
        paragraphs.append(f"Files: musl/*\nCopyright: 2005-2020 Rich Felker, et al.\nLicense: MIT\n{indented(MIT)}")
    paragraphs.append(APACHE_PARAGRAPH)
    print("\n".join(paragraphs), end="")


if __name__ == "__main__":
    main()
