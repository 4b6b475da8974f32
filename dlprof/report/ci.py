"""What continuous integration reads: annotations of a GitHub workflow, and JUnit XML.

Of JUnit there is no standard; the elements are those of the Ant task that all readers know:
``testsuites``, ``testsuite``, ``testcase`` with at most one of ``failure``, ``error`` and
``skipped``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from dlprof.report.document import Check, Problem, Verdict

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
COUNTS: dict[str, Verdict] = {"failures": "failed", "errors": "error", "skipped": "skipped"}


def github(problems: Iterable[Problem], checks: Iterable[Check] = ()) -> str:
    """Return annotations, a line each: one for each failed check, and for each problem."""
    failed = [check for check in checks if check.outcome in ("failed", "error")]
    lines = [_command("error", one.kind, f"{one.name}: {one.said}") for one in failed]
    for problem in problems:
        message = "\n".join((problem.sentence, *problem.advice, *problem.codes[:3]))
        lines.append(_command(LEVELS[problem.severity], problem.rule, message))
    return "".join(lines)


def _command(level: str, title: str, message: str) -> str:
    """Escape as ``@actions/core`` does (https://github.com/actions/toolkit, command.ts)."""
    title = _escaped(f"dlprof: {title}").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escaped(message)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit(title: str, checks: Iterable[Check]) -> str:
    """Return one XML document with a suite for each pair, and a line end.

    What XML cannot hold was escaped when the session was read. Single cases have no time attribute,
    since that is the time of a test and not of the call it measured.
    """
    suites: dict[str, list[Check]] = {}
    for check in checks:
        suites.setdefault(check.suite, []).append(check)
    everything = [check for found in suites.values() for check in found]
    root = ET.Element("testsuites", {"name": title, **_counts(everything)})
    for name, found in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": name, **_counts(found)})
        suite.extend(_case(check) for check in found)
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(check: Check) -> ET.Element:
    case = ET.Element("testcase", name=check.name, classname=check.suite)
    tag = ELEMENTS.get(check.outcome)
    if tag is not None:
        ET.SubElement(case, tag, message=check.said, type=check.kind).text = check.text
    elif check.text:
        ET.SubElement(case, "system-out").text = check.text
    return case


def _counts(checks: Sequence[Check]) -> dict[str, str]:
    found = Counter(check.outcome for check in checks)
    counts = {name: str(found[outcome]) for name, outcome in COUNTS.items()}
    return {"tests": str(len(checks)), **counts}
