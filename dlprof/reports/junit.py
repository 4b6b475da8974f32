"""Checks as JUnit XML, the form that Jenkins, GitLab and others read.

There is no standard; the elements are those of the Ant task that all readers know: ``testsuites``,
``testsuite``, ``testcase`` with at most one of ``failure``, ``error`` and ``skipped``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from dlprof.reports.document import Check, Verdict

ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
COUNTS: dict[str, Verdict] = {"failures": "failed", "errors": "error", "skipped": "skipped"}

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, section 2.2: not even as a character reference."""


def render(
    title: str, checks: Iterable[Check], created: str = "", seconds: float | None = None
) -> str:
    """One XML document with a suite for each pair, and a line end.

    ``seconds`` is how long the measurement took; single cases have no time attribute, since that is
    the time of a test and not of the call it measured.
    """
    suites: dict[str, list[Check]] = {}
    for check in checks:
        suites.setdefault(check.suite, []).append(check)
    everything = [check for found in suites.values() for check in found]
    root = _element("testsuites", name=title, **_counts(everything))
    if seconds is not None:
        root.set("time", f"{seconds:.3f}")
    for name, found in suites.items():
        suite = _element("testsuite", name=name, **_counts(found))
        if created:
            suite.set("timestamp", _xml_text(created))
        suite.extend(_case(check) for check in found)
        root.append(suite)
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _xml_text(text: str) -> str:
    """``text`` with what XML cannot hold written as an escape."""
    return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _case(check: Check) -> ET.Element:
    case = _element("testcase", name=check.name, classname=check.suite)
    tag = ELEMENTS.get(check.outcome)
    if tag is not None:
        reason = _element(tag, message=check.said, type=check.kind)
        reason.text = _xml_text(check.text)
        case.append(reason)
    elif check.text:
        ET.SubElement(case, "system-out").text = _xml_text(check.text)
    return case


def _element(tag: str, /, **attributes: str) -> ET.Element:
    return ET.Element(tag, {name: _xml_text(value) for name, value in attributes.items()})


def _counts(checks: Sequence[Check]) -> dict[str, str]:
    found = Counter(check.outcome for check in checks)
    counts = {name: str(found[outcome]) for name, outcome in COUNTS.items()}
    return {"tests": str(len(checks)), **counts}
