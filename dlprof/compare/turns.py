"""What a gate that measures in rounds asks after each few of them."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.compare.sequential import Course, look
from dlprof.compare.statistic import tested
from dlprof.compare.times import Work, proofs, shared


def after(course: Course, works: Sequence[Work]) -> Course:
    """What is decided after the rounds of ``course.next_look``.

    ``works`` is the whole suite, always in the same order; each sample holds all rounds so far and
    says whether they were measured in turns (where BASE is a finished session they were not, and
    what all cases share counts as uncertain). A case that is decided need not be measured
    on. :func:`~dlprof.compare.times.judge` gives the ratios and intervals to show at the end.
    """
    level = course.plan.level / max(len(works), 1)
    tests = [tested(work.sample, level) for work in works]
    in_turns = all(work.sample.in_turns for work in works)
    return look(course, proofs(works, tests, 0.0 if in_turns else shared(tests)))
