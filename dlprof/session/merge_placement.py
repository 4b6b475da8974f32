"""A conversion's place in a loop, over the processes of a case, and back again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from dlprof.session import merge_time, stats
from dlprof.session.model import Placement, Share, TimeMeasure

Found = Sequence[tuple[int, dict[str, Any]]]

FIELDS = {"in-loop": "in_loop", "hoisted": "hoisted", "implicit": "implicit"}
LEAST_ITERATIONS = 2
"""In a single iteration there is nothing to be saved."""


def merged(found: Found, convert: TimeMeasure | None) -> Placement | None:
    """One answer from those of several rounds; ``convert`` is the time of the conversion alone."""
    if not found:
        return None
    times = [(round_, one["times"]) for round_, one in found]
    measures = {field: merge_time.merged(times, name) for name, field in FIELDS.items()}
    in_loop, hoisted, share = measures["in_loop"], measures["hoisted"], _share(times)
    return Placement(
        use=found[-1][1]["use"],
        **measures,
        share=share,
        break_even_iterations=break_even(convert, in_loop, hoisted, share),
        refused={name: words for _, one in found for name, words in one["refused"].items()},
    )


def of_round(placement: Placement, round_: int) -> dict[str, Any] | None:
    """What the process of ``round_`` said; None where it said nothing."""
    times = {
        name: process.model_dump(exclude={"round"})
        for name, field in FIELDS.items()
        if (measure := getattr(placement, field)) is not None
        for process in measure.processes
        if process.round == round_
    }
    if not times and any(getattr(placement, field) for field in FIELDS.values()):
        return None
    return {"use": placement.use, "times": times, "refused": placement.refused}


def _share(times: Found) -> Share | None:
    """The conversion's part of an iteration: each process compares its own two loops."""
    left = [
        statistics.median(one["hoisted"]["samples_ns"])
        / statistics.median(one["in-loop"]["samples_ns"])
        for _, one in times
        if "hoisted" in one
        and "in-loop" in one
        and statistics.median(one["in-loop"]["samples_ns"]) > 0
    ]
    if not left:
        return None
    interval = stats.student_interval(left)
    return Share(
        median=1 - statistics.median(left),
        ci95=None if interval is None else (1 - interval[1], 1 - interval[0]),
    )


def break_even(
    convert: TimeMeasure | None,
    in_loop: TimeMeasure | None,
    hoisted: TimeMeasure | None,
    share: Share | None,
) -> int | None:
    """From how many iterations on converting before the loop is the shorter way.

    None where the two loops cannot be told apart: the interval of the conversion's ``share``
    reaches down to nothing, there is none, or it is so wide that the share is no number.
    """
    if convert is None or in_loop is None or hoisted is None:
        return None
    if share is None or share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return None
    saved = in_loop.median_ns - hoisted.median_ns
    if saved <= 0:
        return None
    return max(LEAST_ITERATIONS, math.floor(convert.median_ns / saved) + 1)
