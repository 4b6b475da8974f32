"""The session inside the page, as a link that saves it. The link needs no script."""

from __future__ import annotations

import base64
import gzip
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from dlprof.session.model import Result, Session, TimeMeasure, chunks

ROOM = 300_000
"""Bytes of gzip that a page has for a session with all of its samples."""
FEW = 5
DIGITS = 5
LEVEL = 6


@dataclass(frozen=True)
class Embedded:
    href: str
    size_bytes: int
    is_whole: bool
    """False if each process has only :data:`FEW` samples: smallest, quartiles and largest."""


def embed(session: Session) -> Embedded:
    """The session as a ``data:`` URL of the gzipped file.

    Every result, verdict and estimate is whole. A large session has fewer samples.
    """
    packed = _pack(session, session.results)
    is_whole = len(packed) <= ROOM
    if not is_whole:
        packed = _pack(session, map(_with_few_samples, session.results))
    href = f"data:application/gzip;base64,{base64.b64encode(packed).decode('ascii')}"
    return Embedded(href, len(packed), is_whole)


def _pack(session: Session, results: Iterable[Result]) -> bytes:
    # The same session gives the same page: gzip would write the time of day.
    return gzip.compress("".join(chunks(session, results)).encode("utf-8"), LEVEL, mtime=0)


def _with_few_samples(result: Result) -> Result:
    times = {"host_time": result.host_time, "ready_time": result.ready_time}
    return result.model_copy(update={name: time and _thinned(time) for name, time in times.items()})


def _thinned(time: TimeMeasure) -> TimeMeasure:
    processes = [
        process.model_copy(update={"samples_ns": _few(process.samples_ns)})
        for process in time.processes
    ]
    return time.model_copy(update={"processes": processes})


def _few(samples_ns: list[float]) -> list[float]:
    if len(samples_ns) > FEW:
        cuts = statistics.quantiles(samples_ns, n=4, method="inclusive")
        samples_ns = [min(samples_ns), *cuts, max(samples_ns)]
    return [float(f"{sample:.{DIGITS}g}") for sample in samples_ns]
