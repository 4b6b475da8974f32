"""Does it come back? The rule on crashes and hangs."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.analysis.cases import Cases, by
from dlprof.analysis.ending import ending
from dlprof.rules import observations, words
from dlprof.rules.rule import Claim, Rule


def crash(survey: Cases) -> Iterator[Claim]:
    """The process died, or gave no answer within the time limit."""
    ends = {case.index: end for case in survey.cases if (end := ending(case)) is not None}
    ended = [case for case in survey.cases if case.index in ends]
    causes = by(ended, lambda case: (case.pair, ends[case.index].is_sure, ends[case.index].how))
    for cases in causes.values():
        end = ends[cases[0].index]
        stages = list(dict.fromkeys(ends[case.index].stage for case in cases))
        during = " or ".join(filter(None, stages)) if all(stages) else ""
        other = survey.instead(cases[0])
        yield Claim(
            "error" if end.is_sure else "info",
            cases,
            f"{words.codes(cases)}: {end.how}" + (f" during {during}" if during else ""),
            {"stage": end.stage or None},
            "" if other is None else words.instead_of(cases[0], other, "works"),
        )


RULES = (Rule("DLP016", "crash", crash, seen=observations.end),)
