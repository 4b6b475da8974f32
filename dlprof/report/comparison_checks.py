"""A comparison as checks for continuous integration: one for each case, and for the whole."""

from __future__ import annotations

from dlprof.compare.comparison import (
    BROKEN,
    INVALID,
    NOT_KNOWN,
    REGRESSION,
    REGRESSIONS,
    Compared,
    Comparison,
)
from dlprof.judge.slower import FASTER, SAME, SLOWER, UNSURE, WIDE
from dlprof.report.checks import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    expectation_checks,
    lines_of,
)
from dlprof.report.comparison_answers import answers_of, array_text, ratio_text, sentence
from dlprof.report.document import Check, Verdict
from dlprof.report.method import simulated_notice

WHOLE, COMPARABLE = "BASE and HEAD", "can be compared"


def checks_of(comparison: Comparison, unsure: int | None = None) -> tuple[Check, ...]:
    """One check for whether the sides could be compared, one for each case and expectation.

    ``unsure`` is the exit code of what is unsure; None for one who only wants to see. What could
    not be measured at all passes only for the latter.
    """
    strict = FAILED if unsure == REGRESSION else SKIPPED if unsure is None else ERROR
    lenient = SKIPPED if unsure == 0 else strict
    whole = _whole(comparison, unsure is None)
    too_wide = [case for case, _ in comparison.too_wide]
    return (
        whole,
        *expectation_checks(comparison.head, strict),
        *(_of_case(case, lenient, strict, whole, case in too_wide) for case in comparison.cases),
    )


def refusal_check(reason: str, exit_code: int) -> Check:
    """The one check of a gate that measured nothing: its sides differ, or there was nothing."""
    kind = "INCOMPARABLE" if exit_code == NOT_KNOWN else "NOTHING"
    return Check(WHOLE, COMPARABLE, ERROR, kind, reason, reason)


def _whole(comparison: Comparison, only_tell: bool) -> Check:
    """Times that cannot be compared are no fault if nobody asked for times."""
    kind = said = ""
    if comparison.nothing:
        kind, said = "NOTHING", f"nothing to compare: {comparison.nothing}"
    elif comparison.incomparable and comparison.times:
        kind, said = "INCOMPARABLE", f"the times cannot be compared: {comparison.incomparable}"
    elif comparison.inconclusive and not only_tell:
        kind, said = (
            "INCONCLUSIVE",
            f"a regression could not have been seen: {comparison.inconclusive}",
        )
    told = simulated_notice(comparison.base) or simulated_notice(comparison.head)
    text = lines_of([*map(sentence, answers_of(comparison)), *filter(None, [told])])
    return Check(WHOLE, COMPARABLE, ERROR if kind else PASSED, kind, said, text)


def _of_case(
    case: Compared, lenient: Verdict, strict: Verdict, whole: Check, too_wide: bool
) -> Check:
    if case.word in (SAME, FASTER) or (case.word == WIDE and not too_wide):
        found = PASSED
    elif case.word in REGRESSIONS:
        found = ERROR if case.statuses[1] in BROKEN else FAILED
    elif case.word == INVALID:
        # What keeps all times from being compared is one error.
        found = SKIPPED if whole.kind == "INCOMPARABLE" and case.times else strict
    else:
        found = lenient if case.word in (UNSURE, WIDE) else SKIPPED
    times = [f"{time.measure}: {time.word} {ratio_text(time)}" for time in case.times]
    reason = ", ".join(times) if case.word == SLOWER else case.reason
    kind, said = ("", "") if found == PASSED else (case.word, f"{case.word}: {reason}")
    text = lines_of([said, *times, *map(str, case.changes)])
    return Check(array_text(case.case), case.case.code, found, kind, said, text, reason)
