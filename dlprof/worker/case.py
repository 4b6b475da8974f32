"""One case: prepare it, run its instruments, send each answer as it comes.

What was measured before a crash has been sent by then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import CudaUnavailable, Gpu, open_gpu
from dlprof.probes.base import ArraySpec, Protocol, Unsupported
from dlprof.protocol.messages import DIAGNOSIS, REFUSED
from dlprof.worker import memory, simulated
from dlprof.worker.channel import Answer
from dlprof.worker.instruments import (
    alignment,
    copy_cost,
    device_time,
    early_write,
    fresh_source,
    handshake,
    lifetime,
    ordering,
    ownership,
    peak_memory,
    placement,
    recipe,
    refusal,
    settings,
    times,
    trace,
    values,
)
from dlprof.worker.loading import WorkerState, path_of, spec_of
from dlprof.worker.refusal import Refusal, attempt, own_place
from dlprof.worker.simulated import OnSimulatedDevice, as_far_as_computed
from dlprof.worker.subject import Path, Subject
from dlprof.worker.turns import Turns, next_block_at

AT_ANY_SIZE = {*DIAGNOSIS, "trace"}
"""Instruments whose answers do not depend on the shape: a smaller array serves for a large one."""
LARGEST_ON_DEVICE = 16 << 20
"""A path through the host takes 50 ms for 64 MiB, and waits are seen by a hundred calls."""
TIMED = {"first_call", "host_time"}
"""If these are wanted, the first conversion has a time."""
PLAIN = (("float32", "aligned"), ("float32", "C"))
"""The array for which a path is asked what does not depend on the array."""
AT_ANY_LOAD = {"recipe", "settings", "values", "ownership", "refusal", "handshake", "alignment"}
"""Instruments that measure neither time nor waiting: a busy or slow device changes no answer."""
WITH_VERDICT = ("values", "ownership", "fresh_source", *DIAGNOSIS)

Outcome = tuple[str, str | None]
"""A status and a reason."""


def measure(state: WorkerState, request: dict[str, Any], answer: Answer) -> Outcome:
    spec = spec_of(request)
    before = state.cases_before
    state.cases_before += 1  # a refused case warms the next one, too
    path = path_of(state, request, answer)
    import_ = path.import_
    if import_.layouts and spec.layout not in import_.layouts:
        made_for = ", ".join(import_.layouts)
        raise Unsupported(f"{import_.name} is for arrays of layout {made_for}, not {spec.layout}")
    if request["instruments"] == ["alignment"]:
        return _alignment_alone(state, answer, path, spec)
    asked, spec = spec, _fitting(path, request, spec)
    answer.stage("create")
    if "recipe" in request["instruments"]:
        # Before anything is made or converted: a case that dies of it needs its recipe most.
        setup = request.get("setup", "")
        texts = recipe.measure(path.producer, path.consumer, import_, spec, setup)
        answer.part("recipe", texts)
    memory.check_room(spec)
    subject = path.subject(spec, at_boundary=request.get("at_boundary", False))
    answer.stage("first call")
    state.channel.measuring = True
    simulated.misuse(path.producer, path.consumer)  # of a case before
    looks = settings.watched(subject, answer) if "settings" in request["instruments"] else None
    with looks or nullcontext():
        result = _convert_first(subject, request, before, answer)
    subject = subject.relocate(result)
    del result
    instruments = Instruments(subject, request, answer, is_smaller=spec != asked)
    trouble = None
    if AT_ANY_LOAD.issuperset(request["instruments"]):
        instruments.run()  # unwatched: NVML's answers take as long as a case of a survey
    else:
        trouble = gpu_state.watch(instruments.run, instruments.gpu)
    if misused := simulated.misuse(path.producer, path.consumer):
        answer.failed("device", misused)
    if "host_time" in answer.failures:
        return "unsupported", answer.failures["host_time"]
    return ("invalid", trouble) if trouble else ("ok", None)


def _convert_first(subject: Subject, request: dict[str, Any], before: int, answer: Answer) -> Any:
    """Return the first result; send its time if an instrument wants one."""
    instruments = request["instruments"]
    try:
        if TIMED.isdisjoint(instruments):
            result = subject.convert()
            subject.wait_for(result)
            return result
        found, result = times.first_call(subject, before)
    except Exception as error:
        if own_place(error):
            raise
        answer.part(REFUSED, Refusal(error).reason)
        answer.stage("handshake")
        asked = attempt(lambda: handshake.measure_refusal(subject))
        if isinstance(asked, Refusal):
            answer.failed("handshake", asked.reason)
        elif asked:
            answer.part("handshake", asked)
        if "refusal" in instruments and request.get("alone", True):
            answer.stage("refusal")
            answer.part("refusal", refusal.measure(subject, error))
        answer.stage("first call")  # where it was refused
        raise
    answer.part("first_call", found)
    return result


def _alignment_alone(state: WorkerState, answer: Answer, path: Path, spec: ArraySpec) -> Outcome:
    """Run the instrument that makes its own arrays, without an array of the case."""
    answer.stage("alignment")
    state.channel.measuring = True
    found = alignment.measure(path, spec)
    if found is not None:
        answer.part("alignment", found)
    return "ok", None


def _fitting(path: Path, request: dict[str, Any], spec: ArraySpec) -> ArraySpec:
    """Return the array to measure: a smaller one for a diagnosis if the producer can make one."""
    diagnosed = set(request["instruments"]) <= AT_ANY_SIZE
    largest = request["largest_bytes"]
    if isinstance(path.producer, OnSimulatedDevice):
        largest = min(largest, simulated.LARGEST_BYTES)
    elif spec.device == "cuda" and "trace" not in request["instruments"]:  # it tells the bytes
        largest = min(largest, LARGEST_ON_DEVICE)
    if not diagnosed or path.is_one_array or spec.size_bytes <= largest:
        return spec
    return spec.of_bytes(largest)


class Instruments:
    """The instruments of a case, in their order; a failure of one costs that one alone.

    ``is_smaller`` is whether the array serves for a larger one.
    """

    def __init__(
        self,
        subject: Subject,
        request: dict[str, Any],
        answer: Answer,
        *,
        is_smaller: bool,
    ) -> None:
        self.subject = subject
        self.answer = answer
        self.wanted: list[str] = request["instruments"]
        self.budget_ns: int = request["budget_ns"]
        self.largest_bytes: int = request["largest_bytes"]
        self.placements: list[str] = request.get("placements", [])
        self.turns = None
        if asked := request.get("turns"):
            self.turns = Turns(answer.channel, answer.identity, **asked)
        self.gpu: Gpu | None = None
        self.no_gpu = ""
        if "cuda" in (subject.spec.device, subject.result_device):
            try:
                self.gpu = open_gpu()
            except CudaUnavailable as reason:
                self.no_gpu = str(reason)
        self.is_smaller = is_smaller

    def run(self) -> None:
        """Run all wanted instruments."""
        subject, spec = self.subject, self.subject.spec
        # Times come first: they do not use the address, which a faulty probe may get wrong.
        with self._placed():
            self._time()
        self._take("device_time", self._device_time)
        self._take("placement", lambda: placement.measure(subject, self.budget_ns, self.placements))
        looked = partial(values.measure, subject)
        self._take("values", lambda: as_far_as_computed("values", self.gpu, looked))
        owned = self._take("ownership", lambda: ownership.measure(subject, self.gpu))
        self._take("refusal", self._refusal)
        # No memcpy compares with a copy to another device.
        is_copy = owned and owned["verdict"] == "copy"
        gpu = self.gpu if spec.device == "cuda" else None
        can_copy = gpu is not None or spec.device == "cpu"
        if is_copy and can_copy and owned["evidence"]["result_device"] == spec.device:
            costs = partial(copy_cost.measure, spec.size_bytes, self.budget_ns, gpu)
            self._take("copy_cost", costs)
        self._take("handshake", lambda: handshake.measure(subject))
        self._take("fresh_source", lambda: fresh_source.measure(subject, self.budget_ns))
        self._diagnose()

    def _placed(self) -> AbstractContextManager[object]:
        """In turns, copies of both sides begin at one offset."""
        spec = self.subject.spec
        if self.turns is None or spec.device != "cpu":
            return nullcontext()
        return next_block_at(self.turns.offset_bytes, spec.size_bytes)

    def _time(self) -> None:
        subject, budget = self.subject, self.budget_ns
        self._take("host_time", lambda: times.host_time(subject, budget, self.turns))
        self._take("ready_time", lambda: times.ready_time(subject, budget, self.turns))

    def _device_time(self) -> dict[str, Any] | None:
        if "cuda" not in (self.subject.spec.device, self.subject.result_device):
            return None
        if self.gpu is None:
            return {"verdict": "unknown", "reason": self.no_gpu}
        stream = self.subject.consumer.current_stream("cuda")
        return device_time.measure(self.subject, self.gpu, stream, self.budget_ns / 1e9)

    def _refusal(self) -> dict[str, Any] | None:
        spec, export = self.subject.spec, self.subject.export
        if (spec.dtype, spec.layout) not in PLAIN or spec.elements == 0:
            return None
        is_dlpack = export.protocol is Protocol.DLPACK
        found = refusal.measure_export(self.subject) if is_dlpack else None
        refusal.note_working(self.subject)  # last: its conversion is the one before other refusals
        return found

    def _diagnose(self) -> None:
        sizes = [size for size in early_write.SIZES_BYTES if size <= self.largest_bytes]
        of_contents: dict[str, Callable[[Subject], Any]] = {
            "early_write": lambda subject: early_write.measure(subject, sizes),
            "lifetime": lambda subject: lifetime.measure(subject, self.gpu, self.answer),
        }
        self._take("ordering", self._ordering)
        self._take("alignment", lambda: alignment.measure(self.subject, self.subject.spec))
        self._take("peak_memory", partial(self._where_it_works, peak_memory.measure))
        for name, instrument in of_contents.items():
            answer = partial(self._where_it_works, instrument)
            self._take(name, partial(as_far_as_computed, name, self.gpu, answer))
        self._take("trace", lambda: trace.measure(self.subject, self.gpu))

    def _ordering(self) -> dict[str, Any]:
        found = ordering.measure(self.subject, self.gpu)
        if self.is_smaller:
            found["evidence"]["size_bytes"] = self.subject.spec.size_bytes
        return found

    def _where_it_works(self, instrument: Callable[[Subject], Any]) -> Any:
        """Run an instrument that makes its own arrays, which may begin anywhere.

        If the path refuses unaligned memory, it runs once more on aligned memory.
        """
        subject = self.subject
        found = attempt(partial(instrument, subject))
        if not isinstance(found, Refusal):
            return found
        looks = (alignment.measure(subject, subject.spec) or {"evidence": {}})["evidence"]
        aligned, sliced = (looks.get(place, {}).get("verdict") for place in alignment.PLACES)
        if aligned not in ("view", "copy") or sliced != "refused":
            raise found.error
        found = instrument(subject.subject(replace(subject.spec, layout="aligned")))
        return {**found, "evidence": {**found["evidence"], "layout": "aligned"}}

    def _take(self, name: str, instrument: Callable[[], Any]) -> Any:
        if name not in self.wanted:
            return None
        return self.answer.take(name, instrument, name in WITH_VERDICT)
