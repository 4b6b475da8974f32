"""Serve one round trip: a path there and a path back, on one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlprof.probes.base import ArraySpec
from dlprof.worker import memory
from dlprof.worker.bench import gpu_of
from dlprof.worker.case import guarded
from dlprof.worker.channel import Answer
from dlprof.worker.instruments import round_trip
from dlprof.worker.ways import ways_of

if TYPE_CHECKING:
    from dlprof.worker.state import WorkerState


def run_trip(state: WorkerState, request: dict[str, Any], answer: Answer) -> None:
    """Measure one round trip; sets ``answer.outcome`` to a status and a reason.

    The stage ``there`` or ``back`` is the last where that way is what does not work.
    """
    guarded(state, answer, lambda: _measure(state, request, answer))


def _measure(state: WorkerState, request: dict[str, Any], answer: Answer) -> tuple[str, str | None]:
    spec = ArraySpec(
        tuple(request["shape"]), request["dtype"], request["layout"], request["device"]
    )
    ways = ways_of(state, request, answer)
    ways_back = ways_of(state, request["back"], answer)
    answer.stage("create")
    memory.check_room(spec)
    there = ways.subject(spec)
    back = ways_back.subject(ArraySpec(spec.shape, spec.dtype, "C", there.result_device))
    round_trip.go_once(there, back, answer.stage)
    answer.stage("round trip")
    gpu, _ = gpu_of(there)
    found = round_trip.measure(there, back, request["iterations"], request["budget_ns"], gpu)
    answer.part("round_trip", found)
    return "ok", None
