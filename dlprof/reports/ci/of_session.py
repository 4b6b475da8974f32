"""Checks and remarks of a session: each case, what the scenario expects, and the run as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from dlprof.reports import command
from dlprof.reports.cell_text import told_time
from dlprof.reports.ci import of_expectations
from dlprof.reports.ci.check import ERROR, FAILED, SKIPPED, Check, lines_of
from dlprof.reports.ci.remark import Remark, distinct, fingerprint
from dlprof.reports.result_row import row_of, rows_of
from dlprof.reports.row import Row
from dlprof.session.model import FindingRecord, Header, Result
from dlprof.text.clean import clean, first_line

Fails = Callable[[FindingRecord], bool]
"""Whether ``--fail-on`` allows a finding."""

LOST = ("crashed", "timeout")
RUN, LEFT_OUT = "the run", "left out"
UNMEASURED, STOPPED, BLIND = "nothing-measured", "stopped", "blind"
NOTHING_UNSEEN: Mapping[str, str] = MappingProxyType({})


def fails_nothing(_: FindingRecord) -> bool:
    """What a run without ``--fail-on`` makes of a finding."""
    return False


def checks(
    header: Header,
    results: Iterable[Result],
    fails: Fails = fails_nothing,
    unseen: Mapping[str, str] = NOTHING_UNSEEN,
) -> Iterator[Check]:
    """One check for the run, one for each expectation, one for each case.

    A case fails by a finding that ``fails``; it is an error if it crashed or hung, and skipped if
    the framework refuses it or it could not be tried. ``unseen`` are rules that ``--fail-on`` names
    and that could look at nothing, with what they would need.
    """
    rows = rows_of(results)
    yield from _of_run(header, rows)
    yield from of_expectations.checks(header)
    for rule, lack in unseen.items():
        text = _blind(rule, lack).text
        yield Check(RUN, f"--fail-on {rule}", ERROR, BLIND, text, text)
    findings = _by_case(header.findings, len(rows))
    for index, row in enumerate(rows):
        yield _of_case(row, findings[index], fails)
    for finding in findings[-1]:
        if fails(finding):
            yield Check(RUN, _title(finding), FAILED, clean(finding.rule), *_told([finding]))


def remarks(
    header: Header, results: Iterable[Result], unseen: Mapping[str, str] = NOTHING_UNSEEN
) -> tuple[Remark, ...]:
    """What there is to be said, worst first: once for each rule and way, whatever the shape.

    ``unseen`` as in :func:`checks`.
    """
    wanted = {index for finding in header.findings for index in finding.results}
    measured, rows = False, dict[int, Row]()
    for index, result in enumerate(results):
        measured = measured or result.ready_time is not None or result.host_time is not None
        if index in wanted:
            rows[index] = row_of(result)
    return distinct(
        (
            *_of_the_whole(header, measured),
            *of_expectations.remarks(header),
            *(_blind(rule, lack) for rule, lack in unseen.items()),
            *(remark for finding in header.findings for remark in _of_finding(finding, rows)),
        )
    )


def title(header: Header) -> str:
    """What was run."""
    return command.short(header)


def _of_run(header: Header, rows: Sequence[Row]) -> Iterator[Check]:
    measured = any(row.ready is not None or row.host_ns is not None for row in rows)
    said = {remark.rule: remark.text for remark in _of_the_whole(header, measured)}
    for rule, name in ((UNMEASURED, "something was measured"), (STOPPED, "it came to its end")):
        text = said.get(rule, "")
        yield Check(RUN, name, ERROR, rule, text, text) if text else Check(RUN, name)
    for line in map(clean, header.left_out):
        yield Check(RUN, line, SKIPPED, LEFT_OUT, line, line)


def _of_the_whole(header: Header, measured: bool) -> Iterator[Remark]:
    if not measured:
        text = "Nothing could be measured."
        yield Remark(UNMEASURED, UNMEASURED, "error", text, fingerprint(UNMEASURED))
    if not header.complete:
        text = "The run was stopped before its end."
        yield Remark(STOPPED, STOPPED, "warning", text, fingerprint(STOPPED))


def _blind(rule: str, lack: str) -> Remark:
    text = clean(f"Nothing looked for {rule}, which --fail-on names: not measured: {lack}")
    return Remark(BLIND, BLIND, "error", text, fingerprint(BLIND, rule))


def _by_case(findings: Iterable[FindingRecord], count: int) -> Mapping[int, list[FindingRecord]]:
    """The findings of each case; under -1 those of no case that there is."""
    found: dict[int, list[FindingRecord]] = defaultdict(list)
    for finding in findings:
        for index in {i for i in finding.results if 0 <= i < count} or {-1}:
            found[index].append(finding)
    return found


def _of_case(row: Row, findings: Sequence[FindingRecord], fails: Fails) -> Check:
    suite, name = row.pair, name_of(row)
    bad = [finding for finding in findings if fails(finding)]
    if bad:
        return Check(suite, name, FAILED, clean(bad[0].rule), *_told(bad))
    if row.status != "ok":
        outcome = ERROR if row.status in LOST else SKIPPED
        said = f"{row.status}: {first_line(row.why_not)}"
        return Check(suite, name, outcome, row.status, said, said)
    others = [_title(finding) for finding in findings]
    return Check(suite, name, text=lines_of([f"ready {told_time(row)}, {row.owner}", *others]))


def name_of(row: Row) -> str:
    return f"{row.code}  {array_of(row)}"


def array_of(row: Row) -> str:
    return f"{row.shape} {row.dtype} {row.layout} {row.device}"


def _title(finding: FindingRecord) -> str:
    return clean(f"{finding.severity} {finding.rule} {finding.name}: {finding.summary}")


def _told(findings: Sequence[FindingRecord]) -> tuple[str, str]:
    """The first of the findings in a line, and all of them with their advice."""
    texts = [text for finding in findings for text in (_title(finding), finding.advice) if text]
    return _title(findings[0]), lines_of(texts)


def _of_finding(finding: FindingRecord, rows: Mapping[int, Row]) -> Iterator[Remark]:
    rule, name, severity = (clean(text) for text in (finding.rule, finding.name, finding.severity))
    text, advice = clean(finding.summary), clean(finding.advice)
    about = [rows[index] for index in finding.results if index in rows]
    for row in about:
        yield Remark(
            rule,
            name,
            severity,
            text,
            fingerprint(rule, row.pair, row.form or row.code, row.dtype, row.layout, row.device),
            subject=row.code,
            array=f"{row.pair}  {array_of(row)}",
            advice=advice,
        )
    if not about:
        yield Remark(rule, name, severity, text, fingerprint(rule, text), advice=advice)
