"""Checks and remarks of a comparison: each case, and whether the sides could be compared at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlprof.analysis.slower import SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, NEW, Compared, Comparison
from dlprof.compare.matching import Key
from dlprof.compare.outcome import NOT_KNOWN, REGRESSION, Outcome, is_unasked
from dlprof.compare.times import Time
from dlprof.compare.verdicts import LOST, MEASURED, Change
from dlprof.reports.checks import ERROR, FAILED, PASSED, SKIPPED, lines_of
from dlprof.reports.ci import of_expectations
from dlprof.reports.ci.remark import Remark, distinct, fingerprint
from dlprof.reports.comparison_text import (
    answers,
    array_of,
    code_of,
    floor_text,
    has_own_floor,
    key_text,
    left_out_texts,
    ratio_text,
    sought,
)
from dlprof.reports.document import Check, Verdict
from dlprof.text.clean import clean, first_line

WHOLE, LEFT_OUT = "BASE and HEAD", "LEFT OUT"
INCOMPARABLE, WORSE, NOTHING, BLIND = "INCOMPARABLE", "WORSE", "NOTHING", "BLIND"
AMBIGUOUS, UNTOLD = "AMBIGUOUS", "UNTOLD"
CRASHED = ("crashed", "timeout")


@dataclass(frozen=True)
class Doubts:
    """What becomes of a case that is UNSURE, and of one that is INVALID."""

    unsure: Verdict = ERROR
    invalid: Verdict = ERROR


def doubts(unsure: int | None) -> Doubts:
    """By the exit code of what is unsure; None for one who only wants to see.

    What is INVALID was not measured: only who sees, and does not judge, may pass over it.
    """
    if unsure is None:
        return Doubts(SKIPPED, SKIPPED)
    if unsure == REGRESSION:
        return Doubts(FAILED, FAILED)
    return Doubts(ERROR if unsure == NOT_KNOWN else SKIPPED, ERROR)


@dataclass(frozen=True)
class _Judged:
    """One case, with the word by which it did not pass, and why."""

    case: Compared
    outcome: Verdict
    kind: str = ""
    why: str = ""


def checks(comparison: Comparison, outcome: Outcome, doubt: Doubts) -> Iterator[Check]:
    """One check for whether the sides could be compared, and one for each case."""
    whole = _incomparable(comparison, outcome, doubt)
    kind, said = whole or ("", "")
    text = lines_of(answers(comparison, outcome))
    yield Check(WHOLE, "can be compared", ERROR if whole else PASSED, kind, said, text)
    for said in left_out_texts(comparison):
        yield Check(WHOLE, said, SKIPPED, LEFT_OUT, said, said)
    yield from of_expectations.checks(comparison.head, doubt.invalid)
    for word in outcome.blind:
        said = f"nothing looked for {word} on both sides"
        yield Check(WHOLE, f"--fail-on {word}", doubt.invalid, BLIND, said, said)
    for judged in _judged(comparison, outcome, doubt):
        yield _check(comparison, judged)
    for key in outcome.ambiguous:
        said = "not compared: a session has it twice"
        yield Check(WHOLE, key_text(key), doubt.invalid, AMBIGUOUS, said, said)


def remarks(comparison: Comparison, outcome: Outcome, doubt: Doubts) -> tuple[Remark, ...]:
    """Regressions as errors, doubts as errors where they fail, else as warnings."""
    whole = _incomparable(comparison, outcome, doubt)
    found = [
        _remark(judged)
        for judged in _judged(comparison, outcome, doubt)
        # That no time could be judged is one thing to be said, not one for each case.
        if _told(judged) and not (whole and judged.kind == INVALID and _has(judged.case, INVALID))
    ]
    severity = "error" if doubt.invalid in (FAILED, ERROR) else "warning"
    found += of_expectations.remarks(comparison.head, severity)
    found += [_blind(word, doubt) for word in outcome.blind]
    found += [_ambiguous(key, doubt) for key in outcome.ambiguous]
    if whole:
        kind, said = whole
        found.insert(0, Remark(kind.lower(), kind.lower(), "error", said, fingerprint(kind)))
    return distinct(sorted(found, key=lambda one: one.severity != "error"))


def _blind(word: str, doubt: Doubts) -> Remark:
    said = f"Nothing looked for {word} on both sides, which --fail-on names."
    return _not_compared(BLIND, said, word, doubt)


def _ambiguous(key: Key, doubt: Doubts) -> Remark:
    said = f"Not compared, since a session has it twice: {key_text(key)}"
    return _not_compared(AMBIGUOUS, said, key_text(key), doubt)


def _not_compared(word: str, said: str, what: str, doubt: Doubts) -> Remark:
    severity = "error" if doubt.invalid in (FAILED, ERROR) else "warning"
    return Remark(word.lower(), word.lower(), severity, said, fingerprint(word, what))


def _incomparable(
    comparison: Comparison, outcome: Outcome, doubt: Doubts
) -> tuple[str, str] | None:
    """Word and reason; None also where times cannot be compared and nobody asked for times."""
    if outcome.nothing:
        return NOTHING, clean(f"Nothing to compare: {outcome.nothing}.")
    judged = (outcome.times and bool(outcome.invalid)) or doubt.invalid == SKIPPED
    if comparison.invalid is not None and judged:
        return INCOMPARABLE, clean(f"The times cannot be compared: {comparison.invalid}.")
    if outcome.untold and doubt.invalid != SKIPPED:
        return UNTOLD, clean(f"Not known whether HEAD is {sought(outcome)}: {outcome.untold}.")
    return None


def _judged(comparison: Comparison, outcome: Outcome, doubt: Doubts) -> Iterator[_Judged]:
    """Each case with what it comes to: regressions first, then doubts."""
    slower, gone, unsure, invalid = (
        {id(case) for case in cases}
        for cases in (outcome.slower, outcome.gone, outcome.unsure, outcome.invalid)
    )
    worse: dict[int, list[Change]] = {}
    for case, change in outcome.worse:
        worse.setdefault(id(case), []).append(change)
    lost = {id(case): named for case, named in outcome.lost}
    for case in comparison.cases:
        place = id(case)
        if place in worse:
            found = [str(change) for change in worse[place]]
            found += [_slower(case)] if place in slower else []
            crashed = case.statuses[1] in CRASHED
            why = f"{'; '.join(found)}{_reason(case)}"
            yield _Judged(case, ERROR if crashed else FAILED, WORSE, why)
        elif place in gone:
            yield _Judged(case, FAILED, GONE, "BASE has it, and HEAD was asked for it")
        elif place in slower:
            yield _Judged(case, FAILED, SLOWER, _slower(case))
        elif place in invalid:
            kind = UNSURE if case.unconfirmed and not _has(case, INVALID) else INVALID
            yield _Judged(case, doubt.invalid, kind, _because(case, kind))
        elif place in lost:
            said = "; ".join(f"HEAD did not look at {what}" for what in lost[place])
            yield _Judged(case, doubt.invalid, INVALID, said)
        elif place in unsure:
            yield _Judged(case, doubt.unsure, UNSURE, _because(case, UNSURE))
        else:
            yield _innocent(case)


def _innocent(case: Compared) -> _Judged:
    base, head = case.statuses
    if base not in MEASURED and head in MEASURED:
        return _Judged(case, SKIPPED, NEW, "BASE has no time to compare with")
    if base in MEASURED and head in MEASURED:
        return _Judged(case, PASSED)
    return _Judged(case, SKIPPED, "UNMEASURED", f"neither side has it{_reason(case)}")


def _reason(case: Compared) -> str:
    reason = case.reasons[1] or case.reasons[0]
    return f": {first_line(reason)}" if reason else ""


def _slower(case: Compared) -> str:
    times = (time for time in case.times if time.word == SLOWER)
    return "takes " + ", ".join(f"{ratio_text(t)} times as long ({t.measure})" for t in times)


def _because(case: Compared, word: str) -> str:
    """Why a case is in doubt: its times with that word, or verdicts that are not known any more."""
    if is_unasked(case):
        return "BASE has it, and HEAD was not asked for it"
    found = [_phrase(time) for time in case.times if time.word in (word, GONE)]
    found += [str(change) for change in case.changes if change.direction == LOST]
    return "; ".join(dict.fromkeys(found)) or f"HEAD has no answer for it{_reason(case)}"


def _has(case: Compared, word: str) -> bool:
    return any(time.word == word for time in case.times)


def _phrase(time: Time) -> str:
    parts = (time.reason, f"HEAD/BASE {ratio_text(time)}" if time.ratio is not None else "")
    return f"{time.measure}: {', '.join(part for part in parts if part) or 'not known'}"


def _check(comparison: Comparison, judged: _Judged) -> Check:
    case = judged.case
    times = [_told_time(comparison, time) for time in case.times]
    changes = [str(change) for change in case.changes]
    said = clean(f"{judged.kind}: {judged.why}") if judged.kind else ""
    return Check(
        array_of(case),
        code_of(case),
        judged.outcome,
        judged.kind,
        said,
        lines_of([*([said] if said else []), *times, *changes]),
    )


def _told_time(comparison: Comparison, time: Time) -> str:
    floor = f", floor {floor_text(time.floor)}" if has_own_floor(comparison, time) else ""
    return f"{time.measure}: {time.word} {ratio_text(time)}{floor}"


def _told(judged: _Judged) -> bool:
    return judged.outcome in (FAILED, ERROR) or judged.kind in (UNSURE, INVALID)


def _remark(judged: _Judged) -> Remark:
    """One path at several shapes has one fingerprint."""
    rule, case = judged.kind.lower(), judged.case
    way = case.case
    pair = way.producer, way.consumer
    return Remark(
        rule,
        rule,
        "error" if judged.outcome in (FAILED, ERROR) else "warning",
        clean(judged.why),
        fingerprint(rule, *pair, way.form, way.dtype, way.layout, way.device),
        subject=code_of(case),
        array=array_of(case),
    )
