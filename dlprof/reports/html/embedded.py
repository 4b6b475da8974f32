"""The session inside the page: every number can be traced to it, and it can be saved."""

from __future__ import annotations

import base64
import gzip
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from dlprof.session import ProcessSamples, Result, Session, TimeMeasure, chunks

Thin = Callable[[list[float]], list[float]]

MOST_PLAIN = 150_000
"""Characters of JSON that stand in the page as they are; more stand there compressed only."""
PACKED_PER_CASE = 280
LEAST_CASES = 1000
"""Bytes of gzip per case that a page may hold before samples are rounded or left out of it; a
session of few cases has as much room as one of so many."""
DIGITS = 5
FEW = 5
SAMPLES = ("host_time", "ready_time")


@dataclass(frozen=True)
class Embedded:
    """``packed`` is a link that saves the session also where scripts are blocked."""

    plain: Markup | None
    packed: str
    size_bytes: int
    left_out: str


def embed(session: Session) -> Embedded:
    """The whole session, or as much of its samples as there is room for; what is left out is said.

    The header, every result, verdict and estimate are always whole.
    """
    room = PACKED_PER_CASE * max(len(session.results), LEAST_CASES)
    text, packed, left_out = "", b"", ""
    for thin, left_out in THINNER:  # noqa: B007 - the last one tried is taken
        text = "".join(chunks(session, (_thinned(result, thin) for result in session.results)))
        packed = gzip.compress(text.encode("utf-8"), 6, mtime=0)
        if len(packed) <= room:
            break
    plain = Markup(in_script(text)) if len(text) <= MOST_PLAIN else None  # noqa: S704 - see in_script
    return Embedded(plain, base64.b64encode(packed).decode("ascii"), len(text), left_out)


def _whole(samples_ns: list[float]) -> list[float]:
    return samples_ns


def _rounded(samples_ns: list[float]) -> list[float]:
    return [float(f"{sample:.{DIGITS}g}") for sample in samples_ns]


def _five(samples_ns: list[float]) -> list[float]:
    """Those that the chart of the spread shows."""
    if len(samples_ns) <= FEW:
        return _rounded(samples_ns)
    cuts = statistics.quantiles(samples_ns, n=4, method="inclusive")
    return _rounded([min(samples_ns), *cuts, max(samples_ns)])


FIVE = (
    f"In this copy each process has {FEW} of its samples only, rounded to {DIGITS} digits:"
    " the smallest, the quartiles and the largest."
)
THINNER: tuple[tuple[Thin, str], ...] = (
    (_whole, ""),
    (_rounded, f"In this copy the samples are rounded to {DIGITS} digits."),
    (
        _five,
        FIVE,
    ),
)


def _thinned(result: Result, thin: Thin) -> Result:
    if thin is _whole:
        return result
    return result.model_copy(
        update={
            name: measure.model_copy(update={"processes": _processes(measure, thin)})
            for name in SAMPLES
            if (measure := getattr(result, name)) is not None
        }
    )


def _processes(measure: TimeMeasure, thin: Thin) -> list[ProcessSamples]:
    return [
        process.model_copy(update={"samples_ns": thin(process.samples_ns)})
        for process in measure.processes
    ]


def in_script(text: str) -> str:
    """JSON that cannot end the script element that holds it, nor open a comment in it.

    ``<`` stands in strings only, where an escape means the same.
    """
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
