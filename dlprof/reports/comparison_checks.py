"""A comparison as checks for continuous integration: one for each case, and for the whole."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.analysis.slower import SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, NEW, Compared, Comparison
from dlprof.compare.outcome import BROKEN, NOT_KNOWN, REGRESSION, Outcome, is_measured, is_unasked
from dlprof.compare.times import Time
from dlprof.compare.verdicts import LOST, MEASURED
from dlprof.reports.checks import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    expectation_checks,
    lines_of,
)
from dlprof.reports.comparison_answers import (
    answers_of,
    array_text,
    floor_text,
    has_own_floor,
    left_out_texts,
    ratio_text,
    sentence,
)
from dlprof.reports.document import Check, Verdict
from dlprof.text.clean import first_line

WHOLE, COMPARABLE = "BASE and HEAD", "can be compared"
Judged = tuple[Verdict, str, str]
"""The outcome of a check, with the word by which it did not pass, and why."""


def checks_of(
    comparison: Comparison, outcome: Outcome, unsure: int | None = None
) -> tuple[Check, ...]:
    """One check for whether the sides could be compared, one for each case and expectation.

    ``unsure`` is the exit code of what is unsure; None for one who only wants to see. What could
    not be measured at all passes only for the latter.
    """
    lenient = FAILED if unsure == REGRESSION else ERROR if unsure == NOT_KNOWN else SKIPPED
    strict = FAILED if unsure == REGRESSION else SKIPPED if unsure is None else ERROR
    return (
        *_of_the_whole(comparison, outcome, strict),
        *expectation_checks(comparison.head, strict),
        *_of_cases(comparison, outcome, lenient, strict),
    )


def refusal_check(reason: str, exit_code: int) -> Check:
    """The one check of a gate that measured nothing: its sides differ, or there was nothing."""
    kind = "INCOMPARABLE" if exit_code == NOT_KNOWN else "NOTHING"
    return Check(WHOLE, COMPARABLE, ERROR, kind, reason, reason)


def _of_the_whole(comparison: Comparison, outcome: Outcome, strict: Verdict) -> Iterator[Check]:
    told = map(sentence, answers_of(comparison, outcome))
    yield Check(WHOLE, COMPARABLE, *_whole(comparison, outcome, strict), lines_of(told))
    others: list[tuple[str, Verdict, str, str]] = [
        *((line, SKIPPED, "LEFT OUT", line) for line in left_out_texts(comparison)),
        *(
            (f"--fail-on {word}", strict, "BLIND", f"nothing looked for {word} on both sides")
            for word in outcome.blind
        ),
        *(
            (" ".join(map(str, key)), strict, "AMBIGUOUS", "a session has it twice")
            for key in outcome.ambiguous
        ),
    ]
    yield from (Check(WHOLE, name, found, kind, said, said) for name, found, kind, said in others)


def _of_cases(
    comparison: Comparison, outcome: Outcome, lenient: Verdict, strict: Verdict
) -> Iterator[Check]:
    judged = _judged(outcome, lenient, strict)
    all_invalid = _whole(comparison, outcome, strict)[0] == ERROR
    for case in comparison.cases:
        found, word, why = judged.get(id(case)) or _without_word(case)
        if all_invalid and word == INVALID and _has(case, INVALID):  # which is told once
            found = SKIPPED
        said = f"{word}: {why}" if word else ""
        times = [_time_text(comparison, time) for time in case.times]
        text = lines_of([said, *times, *map(str, case.changes)])
        yield Check(array_text(case.case), case.case.code, found, word, said, text)


def _whole(comparison: Comparison, outcome: Outcome, invalid: Verdict) -> Judged:
    """Times that cannot be compared are no fault if nobody asked for times."""
    if outcome.nothing:
        return ERROR, "NOTHING", f"nothing to compare: {outcome.nothing}"
    wanted = (outcome.times and outcome.invalid) or invalid == SKIPPED
    if comparison.invalid is not None and wanted:
        return ERROR, "INCOMPARABLE", f"the times cannot be compared: {comparison.invalid}"
    if outcome.untold and invalid != SKIPPED:
        return ERROR, "UNTOLD", f"a regression could not have been seen: {outcome.untold}"
    return PASSED, "", ""


def _judged(outcome: Outcome, unsure: Verdict, invalid: Verdict) -> dict[int, Judged]:
    """What cases come to, by the ``id`` of the case; a later word replaces an earlier one."""
    found: dict[int, Judged] = {}
    for case in outcome.unsure:
        found[id(case)] = unsure, UNSURE, _because(case, UNSURE)
    for case, names in outcome.lost:
        found[id(case)] = invalid, INVALID, f"HEAD did not look at {', '.join(names)}"
    for case in outcome.invalid:
        word = UNSURE if case.unconfirmed and not _has(case, INVALID) else INVALID
        found[id(case)] = invalid, word, _because(case, word)
    for case in outcome.slower:
        found[id(case)] = FAILED, SLOWER, _slower(case)
    for case in outcome.gone:
        found[id(case)] = FAILED, GONE, "BASE has it, and HEAD was asked for it"
    worse: dict[int, list[str]] = {}
    for case, change in outcome.worse:
        told = worse.setdefault(id(case), [_slower(case)] if _has(case, SLOWER) else [])
        told.append(str(change))
        crashed = case.statuses[1] in BROKEN
        why = "; ".join(told) + _reason(case)
        found[id(case)] = ERROR if crashed else FAILED, "WORSE", why
    return found


def _without_word(case: Compared) -> Judged:
    if is_measured(case):
        return PASSED, "", ""
    if case.statuses[1] in MEASURED:
        return SKIPPED, NEW, "BASE has no time to compare with"
    return SKIPPED, "UNMEASURED", f"neither side has it{_reason(case)}"


def _slower(case: Compared) -> str:
    times = (time for time in case.times if time.word == SLOWER)
    return "takes " + ", ".join(f"{ratio_text(t)} times as long ({t.measure})" for t in times)


def _reason(case: Compared) -> str:
    reason = case.reasons[1] or case.reasons[0]
    return f": {first_line(reason)}" if reason else ""


def _because(case: Compared, word: str) -> str:
    """Why a case is in doubt: its times with that word, or verdicts that are not known any more."""
    if is_unasked(case):
        return "BASE has it, and HEAD was not asked for it"
    found = [f"{time.measure}: {_why(time)}" for time in case.times if time.word in (word, GONE)]
    found += [str(change) for change in case.changes if change.direction == LOST]
    return "; ".join(dict.fromkeys(found)) or f"HEAD has no answer for it{_reason(case)}"


def _why(time: Time) -> str:
    parts = (time.reason, f"HEAD/BASE {ratio_text(time)}" if time.ratio is not None else "")
    return ", ".join(part for part in parts if part) or "not known"


def _has(case: Compared, word: str) -> bool:
    return any(time.word == word for time in case.times)


def _time_text(comparison: Comparison, time: Time) -> str:
    floor = f", floor {floor_text(time.floor)}" if has_own_floor(comparison, time) else ""
    return f"{time.measure}: {time.word} {ratio_text(time)}{floor}"
