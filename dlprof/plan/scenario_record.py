"""What a session tells of the scenario that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlprof.plan.floors import FloorRule


@dataclass(frozen=True)
class ScenarioRecord:
    """``origins`` says of each value that was measured with where it came from.

    ``pairs``, ``expect`` and ``thresholds`` are as in the file, with the catalog's names;
    ``left_out`` says in words which pairs of the file were not measured, and why.
    """

    file: str
    title: str
    question: str = ""
    sources: tuple[str, ...] = ()
    report: str = "paths"
    expect: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    origins: tuple[tuple[str, str, str], ...] = ()
    """Key, value as text, and ``default``, ``file`` or ``command line``."""
    left_out: tuple[str, ...] = ()
    floors: tuple[FloorRule, ...] = ()
    pairs: tuple[str, ...] = ()
