"""What a gate that measures both sides in turns asks after each few rounds."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.compare.sequential import Course, look
from dlprof.compare.statistic import tested
from dlprof.compare.times import Work, proofs


def after(course: Course, works: Sequence[Work]) -> Course:
    """What is decided after the rounds of ``course.next_look``.

    ``works`` is the whole suite, always in the same order; each sample holds all rounds so far and
    says its ``block`` (``sequential.BLOCK`` rounds). A case that is decided need not be measured
    on. :func:`~dlprof.compare.times.judge` gives the ratios and intervals to show at the end.
    """
    level = course.plan.level / max(len(works), 1)
    return look(course, proofs(works, [tested(work.sample, level) for work in works], 0.0))
