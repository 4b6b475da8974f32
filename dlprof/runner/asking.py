"""What a worker is asked for a case, and how long it may take."""

from __future__ import annotations

from typing import Any

from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings

TOGETHER_LIMIT_S = 15.0
LEAST_BYTES_PER_S = 50e6
"""A case has a second more for each so many bytes: they are made, converted and compared."""


def request_of(case: Case, settings: Settings, instruments: tuple[str, ...]) -> dict[str, Any]:
    return {
        "do": "step" if case.is_step else "case",
        **way(case),
        "shape": case.shape,
        "dtype": case.dtype,
        "layout": case.layout,
        "device": case.device,
        "instruments": instruments,
        "setup": settings.setup,
        "placements": settings.placements,
        "budget_ns": settings.sample_ns,
        "largest_bytes": settings.largest_bytes,
    }


def way(case: Case) -> dict[str, Any]:
    """What a worker must know to import what a case needs."""
    return {
        "producer": case.producer.reference,
        "consumer": case.consumer.reference,
        "export": case.path.export.name,
        "import": case.path.import_.name,
    }


def limit_of(case: Case, settings: Settings, alone: bool) -> float:
    """In seconds, once its frameworks are imported."""
    limit_s = settings.limit_s
    # Who hangs among others is tried again alone, with the whole of its time.
    if settings.together and not alone:
        limit_s = min(limit_s, TOGETHER_LIMIT_S)
    return limit_s + case.size_bytes / LEAST_BYTES_PER_S
