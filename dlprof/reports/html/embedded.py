"""The session inside the page: every number can be traced to it, and it can be saved."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dlprof.session.model import Session

Thin = Callable[[list[float]], list[float]]

MOST_PLAIN = 150_000
"""Characters of JSON that stand in the page as they are; more stand there compressed only."""
PACKED_PER_CASE = 280
LEAST_CASES = 1000
"""Bytes of gzip per case that a page may hold before samples are rounded or left out of it; a
session of few cases has as much room as one of so many."""
MANY, PICKED = 2000, 200
DIGITS = 5
FEW = 5
LEVEL = 6
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
    content = session.model_dump(by_alias=True)
    text, packed, left_out = "", b"", ""
    for thin, left_out in WAYS[_first_way(content["results"]) :]:  # noqa: B007 - the last one counts
        _thin(content["results"], thin)
        text, packed = _packed(content)
        if len(packed) <= room:
            break
    plain = Markup(in_script(text)) if len(text) <= MOST_PLAIN else None  # noqa: S704 - see in_script
    return Embedded(plain, base64.b64encode(packed).decode("ascii"), len(text), left_out)


def _first_way(results: list[dict[str, Any]]) -> int:
    """What to try first with many results, as seen on some of them: packing all takes long."""
    if len(results) < MANY:
        return 0
    few = copy.deepcopy(results[:: len(results) // PICKED])
    for way, (thin, _) in enumerate(WAYS):
        _thin(few, thin)
        _, packed = _packed({"results": few})
        if len(packed) <= PACKED_PER_CASE * len(few):
            return way
    return len(WAYS) - 1


def _packed(content: dict[str, Any]) -> tuple[str, bytes]:
    """The text of the session file, one line for each result, and the same compressed."""
    head = json.dumps({name: part for name, part in content.items() if name != "results"})
    lines = ",\n".join(json.dumps(result) for result in content["results"])
    text = f'{head[:-1]}, "results": [\n{lines}\n]}}\n'
    return text, gzip.compress(text.encode("utf-8"), LEVEL, mtime=0)


def _thin(results: list[dict[str, Any]], thin: Thin) -> None:
    for result in results:
        for name in SAMPLES:
            for process in (result[name] or {}).get("processes", ()):
                process["samples_ns"] = thin(process["samples_ns"])


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
WAYS: tuple[tuple[Thin, str], ...] = (
    (list, ""),
    (_rounded, f"In this copy the samples are rounded to {DIGITS} digits."),
    (_five, FIVE),
)


def in_script(text: str) -> str:
    """JSON that cannot end the script element that holds it, nor open a comment in it.

    ``<`` stands in strings only, where an escape means the same.
    """
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
