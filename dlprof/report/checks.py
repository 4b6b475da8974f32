"""A session as checks, one for each question that continuous integration asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from dlprof.errors import Unmeasured
from dlprof.judge.case_view import CaseView
from dlprof.measuring.expectation import MET, MISSED
from dlprof.report.document import Check, Verdict
from dlprof.report.method import simulated_notice
from dlprof.report.paths import Path, arrays_of
from dlprof.report.survey import surveyed
from dlprof.runner.session import FindingRecord, Header, Result, Session
from dlprof.text.clean import first_line

PASSED: Verdict = "passed"
FAILED: Verdict = "failed"
ERROR: Verdict = "error"
SKIPPED: Verdict = "skipped"
NEEDS_CUDA_BUILDS = (
    "a simulated device needs CUDA builds of the frameworks: name their environment by --python"
)
LOST = ("crashed", "timeout")
FAULT = "fault of a probe or of dlprof"
RUN, EXPECTATIONS = "the run", "expectations"
SURVEY = "survey of small arrays"

Fails = Callable[[FindingRecord], bool]
"""Whether ``--fail-on`` refuses a finding."""


def lines_of(texts: Iterable[str]) -> str:
    """The lines of all texts."""
    return "\n".join(line for text in texts for line in text.strip().splitlines())


def checks(session: Session, fails: Fails = lambda _: False) -> Iterator[Check]:
    """Those of the run, of what the scenario expects, and one for each case.

    A case fails by a finding that ``fails``. It is an error if it crashed or hung, or if its probe
    or dlprof itself failed, and skipped if the framework refuses it or it could not be tried.
    """
    yield from run_checks(session)
    yield from expectation_checks(session)
    found: dict[int, list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        for index in finding.results:
            found[index].append(finding)
    for array in arrays_of(session):
        for path in array.paths:
            yield _of_case(path, array.text, found[path.case.index], fails)
    for pair, cases in surveyed(session).items():
        yield _of_survey(pair, cases, [one for case in cases for one in found[case.index]], fails)


def run_checks(session: Session) -> Iterator[Check]:
    """Whether something was measured, to the end."""
    is_measured = _is_measured(session.results)
    yield Check(
        *(RUN, "something was measured", PASSED if is_measured else ERROR, "nothing measured"),
        *("Nothing was measured.", simulated_notice(session)),
    )
    said = "The run was stopped before its end."
    outcome = PASSED if session.complete else ERROR
    yield Check(RUN, "it came to its end", outcome, "stopped", said)
    for line in session.left_out:
        yield Check(RUN, line, SKIPPED, "left out", line, line)


def expectation_checks(header: Header, unchecked: Verdict = ERROR) -> Iterator[Check]:
    """One for each expectation; ``unchecked`` is the outcome of one that could not be checked."""
    for one in header.expectations:
        if one.verdict == MET:
            yield Check(EXPECTATIONS, one.text)
            continue
        said = f"expected {one.text}: {one.verdict}{f' ({one.reason})' if one.reason else ''}"
        outcome = FAILED if one.verdict == MISSED else unchecked
        yield Check(EXPECTATIONS, one.text, outcome, one.verdict, said, said)


def check_measured(results: Sequence[Result], simulated: int = 0) -> None:
    """Raise :class:`Unmeasured` where no case has a time, or an answer where none is taken."""
    if _is_measured(results):
        return
    reasons = [one.reason or "".join(map(str, one.notes[:1])) for one in results]
    first = first_line(next(filter(str.strip, reasons), ""))
    hint = f"; {NEEDS_CUDA_BUILDS}" if simulated else ""
    raise Unmeasured(f"nothing could be measured: {first}{hint}")


def _is_measured(results: Sequence[Result]) -> bool:
    """Of a run's own arrays, if it has some; what was only surveyed says nothing of these."""
    own = [one for one in results if not one.case.survey] or results
    # Where nothing says when a result is ready, the host's time is all.
    return any(one.host_time is not None or CaseView(0, one).is_measured for one in own)


def _of_case(path: Path, array: str, findings: Sequence[FindingRecord], fails: Fails) -> Check:
    suite, name = path.pair_text, f"{path.code}  {array}"
    if bad := [finding for finding in findings if fails(finding)]:
        return _failed(suite, name, bad)
    status = path.case.result.status
    if fault := path.case.result.fault:
        return Check(suite, name, ERROR, FAULT, fault, fault)
    if status != "ok":
        said = f"{status}: {path.reason}"
        return Check(suite, name, ERROR if status in LOST else SKIPPED, status, said, said)
    first = f"{path.result} {path.brief_time}".strip()
    return Check(suite, name, text=lines_of((first, *(one.line for one in findings))))


def _of_survey(
    pair: str, cases: Sequence[CaseView], findings: Sequence[FindingRecord], fails: Fails
) -> Check:
    """All small arrays of a pair together: a line for each would hide the cases."""
    told = {id(one): one for one in findings}.values()
    if bad := [finding for finding in told if fails(finding)]:
        return _failed(pair, SURVEY, bad)
    if faults := [case.result.fault for case in cases if case.result.fault]:
        return Check(pair, SURVEY, ERROR, FAULT, first_line(faults[0]), lines_of(faults))
    if untried := sum(case.result.status == "skipped" for case in cases):
        said = f"{untried:,} of {len(cases):,} arrays were not tried"
        return Check(pair, SURVEY, ERROR, "skipped", said, said)
    if all(case.result.refused_at == "create" for case in cases):
        said = "no array could be made"
        return Check(pair, SURVEY, ERROR, "unmade", said, cases[0].result.reason or said)
    return Check(pair, SURVEY, text=lines_of(one.line for one in told))


def _failed(suite: str, name: str, bad: Sequence[FindingRecord]) -> Check:
    texts = [text for one in bad for text in (one.line, one.advice) if text]
    return Check(suite, name, FAILED, bad[0].rule, bad[0].line, lines_of(texts))
