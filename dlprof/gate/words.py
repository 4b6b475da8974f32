"""What a gate says of how it measured."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.compare.record import Comparison
from dlprof.compare.speed import why_unknown
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
    elif speed.instructions == speed.copies == 1.0:
        yield f"Nothing was normalised: {speed}."
    else:
        yield (
            f"The speed of the machine changed: {speed}. HEAD's times were divided by "
            f"{speed.instructions:.2f}, those of copies from 64 KiB on by {speed.copies:.2f}."
        )
