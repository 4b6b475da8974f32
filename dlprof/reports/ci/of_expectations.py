"""Checks and remarks of what a scenario expects."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.reports.checks import ERROR, FAILED
from dlprof.reports.ci.remark import Remark, fingerprint
from dlprof.reports.document import Check, Verdict
from dlprof.scenario.expectation import MET, MISSED
from dlprof.session.model import ExpectationRecord, Header
from dlprof.text.clean import clean

SUITE, RULE = "expectations", "expectation"


def checks(header: Header, unchecked: Verdict = ERROR) -> Iterator[Check]:
    """One for each; ``unchecked`` is the outcome of what could not be checked."""
    for one in header.expectations:
        name = clean(one.text)
        if one.verdict == MET:
            yield Check(SUITE, name)
            continue
        said = _unmet(one).text
        outcome = FAILED if one.verdict == MISSED else unchecked
        yield Check(SUITE, name, outcome, clean(one.verdict), said, said)


def remarks(header: Header, unchecked: str = "error") -> Iterator[Remark]:
    """One for each that is not met; ``unchecked`` is the severity of what could not be checked."""
    yield from (_unmet(one, unchecked) for one in header.expectations if one.verdict != MET)


def _unmet(one: ExpectationRecord, unchecked: str = "warning") -> Remark:
    said = f"expected {one.text}: {one.verdict}" + (f" ({one.reason})" if one.reason else "")
    severity = "error" if one.verdict == MISSED else unchecked
    return Remark(RULE, RULE, severity, clean(said), fingerprint(RULE, one.text))
