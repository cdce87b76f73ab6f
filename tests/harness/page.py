"""A page for operators read as a script: which files it has written, which commands it has typed, and on which machines.

The page's convention, which a reader needs as well: a line before an indented block names the machines in bold, and the
file where the block is one.

    On **storage1**, **storage2**, file `/etc/swift/swift.conf`:     the block is the whole file
    On **admin**, at the end of `/etc/hosts`:                        the block is appended
    On **admin**:                                                    a terminal: `$ ` before commands, then their output
    On **storage1**, then **storage2**:                              the terminal of one, and when it is done, of the next

Blocks without such a line are for the reader alone. A `…` in an output stands for anything, on a line of its own for any
lines. What is different each time (dates, tokens, figures with a fraction) is compared by its form.
"""

import re
from dataclasses import dataclass, field

WHERE = re.compile(r"On (?P<machines>\*\*\w+\*\*(?:(?:, then|,| and) \*\*\w+\*\*)*)(?:, (?P<how>file|at the end of) `(?P<path>/[^`]+)`)?:$")
# Each time another: its form is compared.
FORMS = [
    (re.compile(r"AUTH_tk[0-9a-f]{32}"), "TOKEN"),
    (re.compile(r"\btx[0-9a-f]{21}-[0-9a-f]{10}"), "TRANSACTION"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"), "DATE"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "DATE"),
    (re.compile(r"\b\d+(\.\d+)?s\b"), "SECONDS"),
    (re.compile(r"[0-9a-f]{32,64}"), "HASH"),
    (re.compile(r"\b\d{10}\b"), "STAMP"),
    (re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])"), "FRACTION"),
]


@dataclass
class Step:
    """One block: a file (`path`), or commands with what they print."""

    heading: str
    line: int
    machines: list
    in_turn: bool = False
    path: str = ""
    appended: bool = False
    text: str = ""
    commands: list = field(default_factory=list)


def steps(page):
    """What the page has done, in order."""
    found, heading, where = [], "", None
    lines = page.read_text().split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("## "):
            heading = line[3:]
        if match := WHERE.match(line):
            where = match
        elif line.startswith("    "):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            if where:
                block = "\n".join(text[4:] for text in lines[at:end]).rstrip("\n")
                found.append(step(heading, at + 1, where, block))
            where, at = None, end - 1
        elif line.strip():
            assert not where, f"line {at + 1}: a block belongs after {where.group()!r}"
        at += 1
    return found


def step(heading, line, where, block):
    machines = re.findall(r"\*\*(\w+)\*\*", where["machines"])
    in_turn = ", then " in where["machines"]
    if where["path"]:
        return Step(heading, line, machines, in_turn, where["path"], where["how"] != "file", block + "\n")
    assert block.startswith("$ "), f"line {line}: a terminal begins with a command"
    commands = []
    for text in block.split("\n"):
        if text.startswith("$ "):
            commands.append(([text[2:]], []))
        elif text.startswith("> "):
            commands[-1][0].append(text[2:])
        else:
            commands[-1][1].append(text)
    return Step(heading, line, machines, in_turn, commands=[("\n".join(typed), output) for typed, output in commands])


def form(line):
    """The line with its form in the place of what is different each time."""
    for pattern, name in FORMS:
        line = pattern.sub(name, line)
    return re.sub(r"\s+|-{3,}|={3,}|\x1b\[K", " ", line).strip()


def differs(promised, seen):
    """The first line of the page that the output does not have, or the first of the output that is not on the page; None."""
    promised = [form(line) for line in promised if line.strip()]
    seen = [form(line) for line in seen if line.strip()]
    pattern = ""
    for number, line in enumerate(promised):
        if line == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("…")) + r"\n"
        if not re.match(pattern, "\n".join([*seen, ""])):
            return promised[number]
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in seen)):
        return None
    return next((line for line in seen if line not in promised), "more lines than the page has")
