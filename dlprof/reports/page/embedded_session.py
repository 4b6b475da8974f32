"""The session inside the page, as a link that saves it. The link needs no script."""

from __future__ import annotations

import base64
import gzip
import json
import statistics
from dataclasses import dataclass
from typing import Any

from dlprof.session.model import Session

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
    content = session.model_dump(mode="json", by_alias=True)
    packed = _pack(content)
    is_whole = len(packed) <= ROOM
    if not is_whole:
        _thin(content)
        packed = _pack(content)
    href = f"data:application/gzip;base64,{base64.b64encode(packed).decode('ascii')}"
    return Embedded(href, len(packed), is_whole)


def _pack(content: dict[str, Any]) -> bytes:
    # The same session gives the same page: gzip would write the time of day.
    return gzip.compress(json.dumps(content).encode("utf-8"), LEVEL, mtime=0)


def _thin(content: Any) -> None:
    """Leave a few of the samples, wherever there are samples."""
    if isinstance(content, list):
        for part in content:
            _thin(part)
    elif isinstance(content, dict):
        for key, part in content.items():
            if key == "samples_ns" and isinstance(part, list) and len(part) > FEW:
                cuts = statistics.quantiles(part, n=4, method="inclusive")
                content[key] = [float(f"{one:.{DIGITS}g}") for one in (min(part), *cuts, max(part))]
            else:
                _thin(part)
