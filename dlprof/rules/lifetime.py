"""Does it live long enough, and not too long? Rules on lifetime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.ending import is_dangling
from dlprof.analysis.quantity import size_text
from dlprof.rules import observations, words
from dlprof.rules.rule import Claim, Rule
from dlprof.rules.words import Advise, for_each_producer
from dlprof.session.evidence import Lifetime


def memory_retained(survey: Cases) -> Iterator[Claim]:
    """Every conversion leaves something behind after its result is gone."""
    leaking = [case for case in survey.cases if _verdict(case) == "retained"]
    for cases in groups(leaking, lambda case: case.way_in):
        ranked = sorted(cases, key=_kept_bytes, reverse=True)
        found = _evidence(ranked[0])
        yield Claim(
            "error" if _kept_bytes(ranked[0]) >= LEAST_BYTES else "warning",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'leaves', 'leave')} something behind"
            f" {_how_often(ranked)}, after the result was dropped"
            f"{words.shared(ranked, _kept_text)}",
            {name: getattr(found, name) for name in (*_KEPT, "conversions")},
            for_each_producer(
                ranked,
                lambda case: instead(case, survey.instead(case, survey.outlasts), "leaves nothing"),
            ),
        )


def instead(case: CaseView, other: CaseView | None, what: str) -> tuple[str, str]:
    """The code that is advised, and the advice; nothing where there is no other."""
    return ("", "") if other is None else (other.code, words.instead_of(case, other, what))


_KEPT = ("bytes_per_conversion", "references_per_conversion", "objects_per_conversion")
EACH = 0.9
"""So much for each conversion is one for each: a run counts a few more or less."""
LEAST, LEAST_REFERENCES = 0.1, 0.05
"""Fewer blocks or references for each conversion are nothing to tell: counting leaves some."""
LEAST_BYTES = 64
"""Fewer bytes for each conversion are an allocator's own."""
SIZE_BYTES = 65536.0
"""Of the array that was converted, where an older session does not say."""


def _how_often(cases: Sequence[CaseView]) -> str:
    each = all(_kept_arrays(case) >= EACH for case in cases)
    return "at every conversion" if each else "at some conversions"


def _kept_arrays(case: CaseView) -> float:
    """How many arrays, references or blocks stay for each conversion, whichever is most."""
    kept, references, objects = (getattr(_evidence(case), name) or 0.0 for name in _KEPT)
    size = _evidence(case).size_bytes or SIZE_BYTES
    return max(kept / size, references, objects)


def _kept_bytes(case: CaseView) -> float:
    return _evidence(case).bytes_per_conversion or 0.0


def _kept_text(case: CaseView) -> str:
    kept, references, objects = (getattr(_evidence(case), name) or 0.0 for name in _KEPT)
    texts = [size_text(round(kept))] if kept >= LEAST_BYTES else []
    texts += (
        [f"{_count(references)} references to the source"] if references >= LEAST_REFERENCES else []
    )
    texts += [f"{_count(objects)} blocks of Python's memory"] if objects >= LEAST else []
    return ", ".join(texts) + ("" if _kept_arrays(case) >= EACH else " for each on average")


def _count(number_: float) -> str:
    return f"{number_:.0f}" if number_ >= EACH else f"{number_:.2g}"


def dangling(survey: Cases) -> Iterator[Claim]:
    """The result's memory is gone with its source."""
    lost = [case for case in survey.cases if is_dangling(case)]
    for cases in groups(lost, lambda case: _loser(survey, case)):
        reason = _evidence(cases[0]).reason
        yield Claim(
            "error",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'does', 'do')} not keep the source alive:"
            f" when the source was dropped and the result read, {_how_lost(cases)}"
            f"{_all_lose(survey, cases[0])}",
            {"reason": reason},
            "Keep the source as long as the result."
            + or_else(
                cases, lambda case: instead(case, survey.instead(case, survey.outlasts), "keeps it")
            ),
        )


def or_else(cases: Sequence[CaseView], advise: Advise) -> str:
    """What is advised besides what always helps; empty where there is nothing."""
    other = for_each_producer(cases, advise)
    return f" Or: {other}" if other else ""


def _how_lost(cases: Sequence[CaseView]) -> str:
    changed = {_evidence(case).changed_after_drop is True for case in cases}
    if len(changed) > 1:
        return "its values changed or its process died of it"
    return "its values changed" if changed.pop() else "its process died of it"


def _loser(survey: Cases, case: CaseView) -> tuple[str, ...]:
    """Whose fault it is: the producer's where views by several ways in are all lost."""
    return case.pair[:1] if _all_lose(survey, case) else case.way_in


def _all_lose(survey: Cases, case: CaseView) -> str:
    views = [other for other in survey.arrays[case.array] if other.owner == "view"]
    alone = len({view.way_in for view in views}) == 1
    if alone or case not in views or not all(map(is_dangling, views)):
        return ""
    return f"; so it is with every measured view{survey.of_such(case)} from {case.pair_text}"


def _verdict(case: CaseView) -> str | None:
    return case.result.lifetime.verdict if case.result.lifetime else None


def _evidence(case: CaseView) -> Lifetime:
    return case.result.lifetime.evidence if case.result.lifetime else Lifetime()


RULES = (
    Rule(
        "DLP010", "memory-retained", memory_retained, needs="lifetime", seen=observations.retained
    ),
    Rule("DLP011", "dangling", dangling, needs="lifetime", seen=observations.lifetime),
)
