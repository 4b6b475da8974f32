"""Forms for continuous integration: checks of a session, JUnit XML, and GitHub's annotations.

JUnit has no standard; the elements are those of the Ant task that all readers know:
``testsuites``, ``testsuite``, ``testcase`` with at most one of ``failure``, ``error`` and
``skipped``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from dlprof.errors import Unmeasured
from dlprof.judge.case_view import CaseView
from dlprof.measuring.judged import MET, MISSED
from dlprof.report.document import Problem
from dlprof.report.paths import JudgedPath, session_arrays
from dlprof.report.survey import surveyed
from dlprof.runner.session import SIMULATED, FindingRecord, Header, Result, Session, grouped
from dlprof.text.clean import first_line

CheckOutcome = Literal["passed", "failed", "error", "skipped"]
"""An ``error`` has no answer and must not pass; ``skipped`` may pass."""
FAULT = "fault of a probe or of dlprof"
RUN, EXPECTATIONS = "the run", "expectations"
SURVEY = "survey of small arrays"
LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
COUNTS: dict[str, CheckOutcome] = {"failures": "failed", "errors": "error", "skipped": "skipped"}

Fails = Callable[[FindingRecord], bool]
"""Whether ``--fail-on`` refuses a finding."""


@dataclass(frozen=True)
class JUnitCase:
    """One test case of JUnit.

    ``kind`` is the word or the rule by which it did not pass, ``line`` one line, ``text`` more.
    """

    suite: str
    name: str
    outcome: CheckOutcome = "passed"
    kind: str = ""
    line: str = ""
    text: str = ""


def checks(session: Session, fails: Fails = lambda _: False) -> Iterator[JUnitCase]:
    """Yield the checks of the run and its scenario, and one for each case.

    A case fails by a finding that ``fails``. It is an error if it crashed or hung, or if its probe
    or dlprof itself failed, and skipped if the framework refuses it or it could not be tried.
    """
    yield from run_checks(session)
    yield from expectation_checks(session)
    found: dict[int, list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        for index in finding.results:
            found[index].append(finding)
    for array in session_arrays(session):
        for path in array.paths:
            yield _case_check(path, array.text, found[path.case.index], fails)
    for pair, cases in surveyed(session).items():
        findings = [finding for case in cases for finding in found[case.index]]
        yield _survey_check(pair, cases, findings, fails)


def run_checks(session: Session) -> Iterator[JUnitCase]:
    """Yield whether the run measured a case, whether it ended, and what it left out."""
    text = SIMULATED if session.simulated else ""
    outcomes: tuple[CheckOutcome, CheckOutcome] = ("error", "passed")
    outcome, line = outcomes[is_measured(session.results)], "Nothing was measured."
    yield JUnitCase(RUN, "something was measured", outcome, "nothing measured", line, text)
    line = "The run was stopped before its end."
    yield JUnitCase(RUN, "it came to its end", outcomes[session.complete], "stopped", line)
    for line in session.left_out:
        yield JUnitCase(RUN, line, "skipped", "left out", line, line)


def expectation_checks(header: Header, unchecked: CheckOutcome = "error") -> Iterator[JUnitCase]:
    """Yield one for each expectation; ``unchecked`` is the outcome if it could not be checked."""
    for record in header.expectations:
        if record.verdict == MET:
            yield JUnitCase(EXPECTATIONS, record.text)
            continue
        reason = f" ({record.reason})" if record.reason else ""
        line = f"expected {record.text}: {record.verdict}{reason}"
        outcome = "failed" if record.verdict == MISSED else unchecked
        yield JUnitCase(EXPECTATIONS, record.text, outcome, record.verdict, line, line)


def check_measured(results: Sequence[Result]) -> None:
    """Raise :class:`Unmeasured` if no case has a time, or an answer if no times are taken."""
    if is_measured(results):
        return
    reasons = [result.reason or "".join(map(str, result.notes[:1])) for result in results]
    first = first_line(next(filter(str.strip, reasons), ""))
    raise Unmeasured(f"nothing could be measured: {first}")


def is_measured(results: Sequence[Result]) -> bool:
    """Whether a case of a run's own arrays was measured; without such arrays, one of a survey."""
    cases = [result for result in results if not result.case.survey] or results
    # Some results never say when they are ready: then the host's time is all.
    return any(result.host_time is not None or CaseView(0, result).is_measured for result in cases)


def _case_check(
    path: JudgedPath, array: str, findings: Sequence[FindingRecord], fails: Fails
) -> JUnitCase:
    suite, name = path.array[0], f"{path.code}  {array}"
    result = path.case.result
    if bad := [finding for finding in findings if fails(finding)]:
        return _failed(suite, name, bad)
    if result.fault:
        return JUnitCase(suite, name, "error", FAULT, result.fault, result.fault)
    if result.status != "ok":
        line = f"{result.status}: {path.reason}"
        outcome: CheckOutcome = "error" if result.status in ("crashed", "timeout") else "skipped"
        return JUnitCase(suite, name, outcome, result.status, line, line)
    first = f"{path.result} {path.brief_time}".strip()
    return JUnitCase(suite, name, text="\n".join((first, *(finding.line for finding in findings))))


def _survey_check(
    pair: str, cases: Sequence[CaseView], findings: Sequence[FindingRecord], fails: Fails
) -> JUnitCase:
    """Return one check for all small arrays of a pair: one for each would hide the cases."""
    unique = {id(finding): finding for finding in findings}.values()
    if bad := [finding for finding in unique if fails(finding)]:
        return _failed(pair, SURVEY, bad)
    if faults := [case.result.fault for case in cases if case.result.fault]:
        return JUnitCase(pair, SURVEY, "error", FAULT, first_line(faults[0]), "\n".join(faults))
    if untried := sum(case.result.status == "skipped" for case in cases):
        line = f"{untried:,} of {len(cases):,} arrays were not tried"
        return JUnitCase(pair, SURVEY, "error", "skipped", line, line)
    if all(case.result.refused_at == "create" for case in cases):
        line = "no array could be made"
        return JUnitCase(pair, SURVEY, "error", "unmade", line, cases[0].result.reason or line)
    return JUnitCase(pair, SURVEY, text="\n".join(finding.line for finding in unique))


def _failed(suite: str, name: str, bad: Sequence[FindingRecord]) -> JUnitCase:
    texts = [text for finding in bad for text in (finding.line, finding.advice) if text]
    return JUnitCase(suite, name, "failed", bad[0].rule, bad[0].line, "\n".join(texts))


def github(problems: Iterable[Problem], checks: Iterable[JUnitCase] = ()) -> str:
    """Return annotations, a line each: one for each failed check, and for each problem."""
    failed = [check for check in checks if check.outcome in ("failed", "error")]
    lines = [_command("error", check.kind, f"{check.name}: {check.line}") for check in failed]
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


def junit(title: str, checks: Iterable[JUnitCase]) -> str:
    """Return one XML document with a suite for each pair.

    Characters that XML cannot hold were escaped when the session was read.
    """
    from xml.etree import ElementTree as ET

    suites = grouped(checks, lambda check: check.suite)
    root = ET.Element("testsuites", _counts(title, chain.from_iterable(suites.values())))
    for name, members in suites.items():
        suite = ET.SubElement(root, "testsuite", _counts(name, members))
        for check in members:
            case = ET.SubElement(suite, "testcase", name=check.name, classname=check.suite)
            if tag := ELEMENTS.get(check.outcome):
                ET.SubElement(case, tag, message=check.line, type=check.kind).text = check.text
            elif check.text:
                ET.SubElement(case, "system-out").text = check.text
    ET.indent(root, " ")
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _counts(name: str, checks: Iterable[JUnitCase]) -> dict[str, str]:
    outcomes = Counter(check.outcome for check in checks)
    counts = {attribute: str(outcomes[outcome]) for attribute, outcome in COUNTS.items()}
    return {"name": name, "tests": str(outcomes.total()), **counts}
