"""Checks as JUnit XML, the form that Jenkins, GitLab and others read.

There is no standard; the elements are those of the Ant task that all readers know: ``testsuites``,
``testsuite``, ``testcase`` with at most one of ``failure``, ``error`` and ``skipped``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from dlprof.reports.document import Check, Verdict

ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
COUNTS: dict[str, Verdict] = {"failures": "failed", "errors": "error", "skipped": "skipped"}


def render(
    title: str, checks: Iterable[Check], created: str = "", seconds: float | None = None
) -> str:
    """One XML document with a suite for each pair, and a line end.

    What XML cannot hold was escaped when the session was read.
    ``seconds`` is how long the measurement took; single cases have no time attribute, since that is
    the time of a test and not of the call it measured.
    """
    suites: dict[str, list[Check]] = {}
    for check in checks:
        suites.setdefault(check.suite, []).append(check)
    everything = [check for found in suites.values() for check in found]
    root = ET.Element("testsuites", {"name": title, **_counts(everything)})
    if seconds is not None:
        root.set("time", f"{seconds:.3f}")
    for name, found in suites.items():
        suite = ET.Element("testsuite", {"name": name, **_counts(found)})
        if created:
            suite.set("timestamp", created)
        suite.extend(_case(check) for check in found)
        root.append(suite)
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(check: Check) -> ET.Element:
    case = ET.Element("testcase", name=check.name, classname=check.suite)
    tag = ELEMENTS.get(check.outcome)
    if tag is not None:
        reason = ET.Element(tag, message=check.said, type=check.kind)
        reason.text = check.text
        case.append(reason)
    elif check.text:
        ET.SubElement(case, "system-out").text = check.text
    return case


def _counts(checks: Sequence[Check]) -> dict[str, str]:
    found = Counter(check.outcome for check in checks)
    counts = {name: str(found[outcome]) for name, outcome in COUNTS.items()}
    return {"tests": str(len(checks)), **counts}
