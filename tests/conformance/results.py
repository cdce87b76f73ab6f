"""What a run of the suite gave: read from pytest's JUnit files, written as a table."""

import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass

OUTCOMES = ("passed", "failed", "error", "skipped")


@dataclass
class Case:
    """One test and its outcome."""

    file: str
    name: str
    outcome: str
    reason: str
    seconds: float


def read(path, file):
    """The cases of one JUnit file, which is that of the suite's file `file`."""
    cases = {}
    module_of_file = file.removesuffix(".py").rpartition("/")[2]
    for element in ElementTree.parse(path).iter("testcase"):
        module, _, class_name = element.get("classname").rpartition(".")
        name = "::".join([*([class_name] if module.endswith(module_of_file) else []), element.get("name")])
        outcome, reason = "passed", ""
        for child in element:
            if child.tag in ("failure", "error", "skipped"):
                outcome = {"failure": "failed"}.get(child.tag, child.tag)
                reason = child.get("message") or (child.text or "").strip().splitlines()[-1:] or ""
        previous = cases.get(name)
        if previous is None or previous.outcome == "passed":  # an error at teardown comes as a second element
            cases[name] = Case(file, name, outcome, str(reason), float(element.get("time", 0)))
    return list(cases.values())


def line(label, cases):
    """One line of the table."""
    counts = Counter(case.outcome for case in cases)
    seconds = sum(case.seconds for case in cases)
    return f"{label:40}{''.join(f'{counts[outcome]:9}' for outcome in OUTCOMES)}{seconds:9.0f}"


def summary(cases):
    """A line per file and one for all."""
    files = sorted({case.file for case in cases})
    return "\n".join([f"{'file':40}{''.join(f'{outcome:>9}' for outcome in OUTCOMES)}{'seconds':>9}",
                      *(line(file, [case for case in cases if case.file == file]) for file in files),
                      line("all", cases)])
