"""What a gate says of how it measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dlprof.compare.record import Comparison, Time
from dlprof.compare.speed import Speed, why_unknown
from dlprof.gate.loop import Ran
from dlprof.scenario.estimate import duration_text


def measured_text(
    first: Ran, second: Ran | None, wall_s: float, baseline: bool, judged: bool = True
) -> str:
    """How many rounds, how long, and why it stopped; ``judged`` is whether times were."""
    how = "HEAD alone" if baseline else "in turns"
    ended = f": {first.stopped}" if judged or first.interrupted else ", for the verdicts"
    text = f"Measured {how}, {_rounds(first)}{ended}."
    if second is not None:
        ended = f": {second.stopped}" if judged or second.interrupted else ""
        text += f" What was flagged was measured again, {_rounds(second)}{ended}."
    return f"{text} {duration_text(wall_s)} in all."


FAR_COLUMNS = 1.1
"""A ratio that differs so much from that of the columns beside it looks like an error."""


def columns_text(found: Comparison) -> Iterator[str]:
    """Why a ratio of samples taken in turns is not that of the medians beside it."""
    far = sum(_is_far(time) for case in found.cases for time in case.times)
    if far:
        yield (
            "HEAD/BASE compares samples that were taken side by side. BASE and HEAD are medians of "
            f"whole processes, whose ratio is another one by more than 10 % for {far:,} of the "
            "times."
        )


def _is_far(time: Time) -> bool:
    if not (time.ratio and time.base_ns and time.head_ns):
        return False
    apart = time.head_ns / time.base_ns / time.ratio
    return not 1 / FAR_COLUMNS <= apart <= FAR_COLUMNS


FAR_IMPORTS, FEW_IMPORTS = 1.4, 3
"""Importing TensorFlow, PyTorch, JAX and ONNX Runtime took 6.4 to 9.0 s by the clock in four
environments with the same versions, and 15.2 to 18.4 s in two that had no bytecode cached."""


def imports_text(importing: Sequence[tuple[float | None, float | None]]) -> Iterator[str]:
    """Whether the imports of one side are another thing than those of the other.

    ``importing`` are processor seconds of BASE and HEAD, round by round; of the first, which may
    write bytecode and start caches, nothing is taken.
    """
    known = [(base, head) for base, head in importing[1:] if base and head]
    if len(known) < FEW_IMPORTS:
        return
    base_s, head_s = (statistics.median(side) for side in zip(*known, strict=True))
    if max(base_s, head_s) < FAR_IMPORTS * min(base_s, head_s):
        return
    slow, fast = ("HEAD", "BASE") if head_s > base_s else ("BASE", "HEAD")
    yield (
        f"The imports of {slow} took {max(base_s, head_s):.1f} s of processor time, those of "
        f"{fast} {min(base_s, head_s):.1f} s. If that is not what you changed, bytecode may not be "
        f"cached in {slow}: run python -m compileall there. Where imports differ, "
        "conversions of equal code were seen to take another time."
    )


def _rounds(ran: Ran) -> str:
    return f"{ran.rounds} round{'' if ran.rounds == 1 else 's'}"


def speed_text(found: Comparison) -> Iterator[str]:
    """What HEAD was normalised by where BASE was measured at another time, or why it was not."""
    speed = found.speed
    if found.invalid is not None:
        return
    if speed is None:
        why = why_unknown(found.base, found.head)
        yield f"{why}, so nothing was normalised: a slower machine is not told apart."
    elif all(speed.open(copies) == (1.0, 1.0) for copies in (False, True)):
        yield f"Nothing was normalised: {speed}."
    else:
        beside = ", beside other programs, which conversions may not have met" * speed.loaded
        yield (
            f"The reference costs changed: {speed}{beside}. HEAD's times were divided by "
            f"{_divided(speed, False)}, those of copies from 64 KiB on by {_divided(speed, True)}."
        )


def _divided(speed: Speed, copies: bool) -> str:
    """``1.10 (1.05 to 1.12 is open)``."""
    ratio = speed.copies if copies else speed.instructions
    low, high = (f"{end:.2f}" for end in speed.open(copies))
    return f"{ratio:.2f}" + (f" ({low} to {high} is open)" if low != high else "")
