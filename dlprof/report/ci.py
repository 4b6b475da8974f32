"""What continuous integration reads: annotations of a GitHub workflow, and JUnit XML.

Of JUnit there is no standard; the elements are those of the Ant task that all readers know:
``testsuites``, ``testsuite``, ``testcase`` with at most one of ``failure``, ``error`` and
``skipped``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree as ET

from dlprof.report.document import Check, Problem, Verdict, first_of

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
MOST = 10
"""GitHub shows no more of a level in one step, and drops the others without a word."""
MOST_CODES = 3
SUMMARY_BYTES = 1 << 20
"""GitHub drops the summary of a step that is longer (1 MiB)."""


def github(
    problems: Iterable[Problem], checks: Iterable[Check] = (), file: str | None = None
) -> str:
    """Annotations, a line each: one for each check that did not pass, and for each problem.

    Escaped as ``@actions/core`` does it (https://github.com/actions/toolkit, command.ts): ``%`` and
    line ends in the message, ``:`` and ``,`` in properties too.

    ``file`` is the path in the repository that they point to; without one they stand at the run.
    """
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for check in checks:
        if check.outcome in ("failed", "error"):
            # The kind is the title; the name says more.
            said = f"{check.name}: {check.reason}" if check.reason else check.said
            found["error"].append((check.kind, said))
    for problem in problems:
        found[LEVELS[problem.severity]].append((problem.rule, _message(problem)))
    return "".join(line for level in LEVELS.values() for line in _level(level, found[level], file))


def room(text: str, taken_bytes: int) -> str:
    """As many whole lines of a summary as there is room for behind ``taken_bytes``."""
    whole, left = text.encode(), SUMMARY_BYTES - taken_bytes
    if len(whole) <= left:
        return text
    note = "\n… and more that a summary of GitHub has no room for\n"
    kept = whole[: max(left - len(note.encode()), 0)].rpartition(b"\n")[0]
    return f"{kept.decode()}{note}" if kept else ""


def _level(level: str, found: list[tuple[str, str]], file: str | None) -> Iterator[str]:
    shown = MOST if len(found) <= MOST else MOST - 1
    for title, message in found[:shown]:
        yield _command(level, f"dlprof: {title}", message, file)
    if len(found) > shown:
        more = f"{len(found) - shown:,} more of this severity are in the report"
        yield _command(level, "dlprof", more, None)


def _message(problem: Problem) -> str:
    lines = (problem.sentence, *problem.advice, *first_of(problem.codes, MOST_CODES))
    return "\n".join(line for line in lines if line)


def _command(level: str, title: str, message: str, file: str | None) -> str:
    properties = {"file": file, "line": "1", "title": title} if file else {"title": title}
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level} {said}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
COUNTS: dict[str, Verdict] = {"failures": "failed", "errors": "error", "skipped": "skipped"}


def junit(
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
