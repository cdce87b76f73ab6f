"""What a race writes: its text between two markers of a page, and where it was run."""

import os
import platform
import re
from pathlib import Path


def machine():
    """Processors and kernel of this machine, in a line."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} × {model.group(1) if model else platform.machine()}, Linux {platform.release()}"


def write(path, name, text):
    """Puts the text between the markers `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a page."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    head, found, rest = path.read_text().partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{path} has no lines {begin} and {end}: write them where the table is to stand")
    path.write_text(f"{head}{begin}\n{text}\n{end}{tail}")


def table(head, rows):
    """Markdown; the first column is text, numbers stand to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
