"""Does a conversion change anything besides making its result?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import changed
from dlprof.analysis.known import Known
from dlprof.rules import words
from dlprof.rules.advice import for_each_producer, none_instead
from dlprof.rules.rule import Claim
from dlprof.rules.survey import Survey, groups


def aftermath(survey: Survey) -> Iterator[Claim]:
    """It changes its source or an earlier result, or gives a kept one."""
    cases = [case for case in survey.cases if changed.first(case.changed)]
    for alike in groups(cases, lambda case: (case.way_in, _kind(case))):
        change = changed.CHANGES[_kind(alike[0])]
        yield Claim(
            "error",
            alike,
            f"{words.codes(alike)} {words.several(alike, change.does, change.do)}"
            + (words.shared(alike, _extent) if _extent(alike[0]) else ""),
            {"changed": ", ".join(sorted(map(str, alike[0].changed)))},
            _instead(survey, alike),
        )


def _kind(case: Known) -> str:
    return changed.first(case.changed) or ""


def _extent(case: Known) -> str:
    return changed.extent(_kind(case), case.changed[_kind(case)])


def _instead(survey: Survey, cases: Sequence[Known]) -> str:
    def advise(case: Known) -> tuple[str, str]:
        other = survey.instead(case)
        if other is None:
            return "", none_instead(survey, case, "does otherwise")
        return other.code, words.instead_of(case, other, "does not")

    return for_each_producer(cases, advise)
