"""Answer the parent's requests until it closes the pipe.

A case is prepared, and its instruments run. Each answer is sent as it comes, so a crash loses none.
An error of a framework is recorded in its own words, and costs one instrument or one case.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import CudaUnavailable, Gpu, admit_jax, device_ordinal, open_gpu
from dlprof.probes.base import ArraySpec, Protocol, Unsupported
from dlprof.protocol.messages import AT_EXIT, DIAGNOSIS, FAILED_IN, FAULTY, MISUSE, REFUSED, words
from dlprof.worker import inspect, memory, simulated
from dlprof.worker.channel import Channel, Reply
from dlprof.worker.instruments import (
    alignment,
    copy_cost,
    device_time,
    early_write,
    fork,
    fresh_source,
    handshake,
    lifetime,
    ordering,
    ownership,
    peak_memory,
    placement,
    program,
    recipe,
    refusal,
    settings,
    step,
    times,
    trace,
    values,
    warned,
)
from dlprof.worker.loading import WorkerState, load_path, read_spec
from dlprof.worker.program import ProgramFailed, ProgramProbe, WrongAnswer
from dlprof.worker.queued_work import default_sides
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt, own_place
from dlprof.worker.simulated import OnSimulatedDevice, compare_contents
from dlprof.worker.subject import LoadedPath, SetupFailed, Subject
from dlprof.worker.supervisor import FORK_ENDED
from dlprof.worker.supervisor import fork as fork_process
from dlprof.worker.turns import Turns, has_spinning_thread, place_next_block

AT_ANY_SIZE = {*DIAGNOSIS, AT_EXIT, "trace"}
"""Instruments whose answers do not depend on the shape: a smaller array serves for a large one."""
LARGEST_ON_DEVICE = 16 << 20
"""A path through the host takes 50 ms for 64 MiB, and a wait shows in a hundred calls."""
TIMED = {"first_call", "host_time"}
"""If these are wanted, the first conversion has a time."""
PLAIN = (("float32", "aligned"), ("float32", "C"))
"""The array for the questions that do not depend on the array."""
AT_ANY_LOAD = {
    *("recipe", "settings", "warnings", "values", "ownership", "refusal", "handshake"),
    "alignment",
}
"""Instruments that measure neither time nor waiting: a busy or slow device changes no answer."""


Outcome = tuple[str, str | None]
"""A status and a reason."""
Measure = Callable[[WorkerState, dict[str, Any], Reply], Outcome]


def serve(requests_fd: int, replies_fd: int) -> None:
    """Send one reply ``{"done": ...}`` for each request, with stages and parts before it."""
    admit_jax()
    channel = Channel(requests_fd, replies_fd)
    state = WorkerState(channel)
    for request in channel.requests():
        reply = Reply(channel, request["id"], request.get("instruments", ()))
        if request["do"] == "exit":
            _hold(state, request, reply)
            return
        if request["do"] == "fork":
            _load(state, request["cases"], reply)
            if threading.active_count() > 1:  # a fork has no threads, and hangs if it waits for one
                channel.send({"id": reply.identity, "done": "failed", "reason": "has threads"})
                continue
            if not fork_process():
                continue  # the fork has answered
            channel.adopt()
        try:
            outcome = _served(state, request["do"], request, reply)
        except BaseException as fault:  # noqa: BLE001 - the outermost boundary of the worker
            outcome = "failed", Refusal(fault).reason
        channel.send({"id": reply.identity, "done": outcome[0], "reason": outcome[1]})
        if request["do"] == "end fork":
            os._exit(FORK_ENDED)


def _served(state: WorkerState, kind: str, request: dict[str, Any], reply: Reply) -> Outcome:
    if kind == "case":
        return measured(state, request, reply, measure_case)
    if kind == "step":
        return measured(state, request, reply, step.measure)
    if kind == "load":
        _load(state, request["cases"], reply)
    elif kind == "inspect":
        reply.part("inspect", inspect.inspect(request["sources"], request["skip"], reply.stage))
    elif kind == "recognize":
        inspect.recognize(request, reply)
    elif kind == "recognize object":
        inspect.recognize_object(request, reply)
    elif kind == "conformance":
        from dlprof.worker import conformance

        conformance.run(request, reply)
    elif kind == "verify":
        reply.part("verify", inspect.verify(request["source"], request["name"]))
    return "ok", None


def _hold(state: WorkerState, request: dict[str, Any], reply: Reply) -> None:
    """Hold all sources, and results if it ``converts``, in a cycle that the exit collects."""

    def arrays(case: dict[str, Any]) -> tuple[Any, ...]:
        path = load_path(state, case, reply)
        subject = path.subject(_fitting(path, case, read_spec(case)))
        if not request["converts"]:
            return (subject.source,)
        result = subject.convert()
        subject.wait_for(result)
        return subject.source, result

    found = [attempt(partial(arrays, case), BaseException) for case in request["cases"]]
    state.namespaces.clear()
    gc.unfreeze()
    gc.collect()
    held: list[Any] = [*found]  # the exit clears what is older first, such as a script's modules
    held.append(held)
    vars(sys.modules["__main__"])["held"] = held
    reply.stage(AT_EXIT)


def _load(state: WorkerState, cases: list[dict[str, Any]], reply: Reply) -> None:
    """Import for these cases. An import that fails is reported with its case."""
    for imports in cases:
        with contextlib.suppress(BaseException):
            if "statements" in imports:
                exec(imports["statements"], {})  # noqa: S102 - the imports that the user typed
            else:
                load_path(state, imports, reply)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages of all that the imports made


def measured(
    state: WorkerState, request: dict[str, Any], reply: Reply, measure: Measure
) -> Outcome:
    """Return the outcome of ``measure``; an error is an outcome, too."""
    found = attempt(partial(measure, state, request, reply), BaseException)
    outcome = _error_outcome(found, reply) if isinstance(found, Refusal) else found
    state.channel.measuring = False
    del found  # its traceback holds the case's arrays
    gc.collect()
    gc.freeze()  # frameworks' caches are alive now: the next collections pass them by
    return outcome


def _error_outcome(refusal: Refusal, reply: Reply) -> Outcome:
    error = refusal.error
    if isinstance(error, (memory.TooLarge, SetupFailed)):
        return "skipped", str(error)
    if isinstance(error, (FaultyProbe, SyntaxError, WrongAnswer)):
        why = words(error) if isinstance(error, SyntaxError) else str(error)
        return "faulty", f"{FAULTY}: {why}"
    if isinstance(error, ProgramFailed):
        return "crashed", str(error)
    if place := own_place(error):
        return "skipped", f"{FAILED_IN} {place}: {words(error)}"
    if isinstance(error, Exception):
        reply.part("refused_at", reply.last_stage)
        return "unsupported", refusal.reason
    if reply.last_stage == "ready_time":  # else the host's time would be taken for it
        reply.failed("ready_time", words(error))
    return "crashed", f"raised {words(error)}"


# One case


def measure_case(state: WorkerState, request: dict[str, Any], reply: Reply) -> Outcome:
    spec = read_spec(request)
    cases_before = state.cases_before
    state.cases_before += 1  # a refused case warms the next one, too
    path = load_path(state, request, reply)
    if isinstance(path.consumer, ProgramProbe):
        return program.measure(path.consumer, path.import_, spec, request, reply, cases_before)
    import_ = path.import_
    if import_.layouts and spec.layout not in import_.layouts:
        layouts = ", ".join(import_.layouts)
        raise Unsupported(f"{import_.name} is for arrays of layout {layouts}, not {spec.layout}")
    if request["instruments"] == ["alignment"]:  # it makes its own arrays
        reply.stage("alignment")
        state.channel.measuring = True
        found = alignment.measure(path, spec)
        if found is not None:
            reply.part("alignment", found)
        return "ok", None
    full_spec, spec = spec, _fitting(path, request, spec)
    reply.stage("create")
    if "recipe" in request["instruments"]:
        # Before anything is made or converted: a case that dies of it needs its recipe most.
        setup = request.get("setup", "")
        texts = recipe.measure(path.producer, path.consumer, import_, full_spec, setup)
        reply.part("recipe", texts)
    memory.check_room(spec)
    subject = path.subject(spec, at_boundary=request.get("at_boundary", False))
    reply.stage("first call")
    state.channel.measuring = True
    simulated.misuse(path.producer, path.consumer)  # of a case before
    watched = partial(settings.watched, subject, reply, timed="host_time" in reply.wanted)
    looks = watched() if "settings" in request["instruments"] else None
    listens = warned.recorded(subject, reply) if "warnings" in request["instruments"] else None
    try:
        with looks or nullcontext(), listens or nullcontext():
            result = _convert_first(subject, request, cases_before, reply)
    finally:
        misused = simulated.misuse(path.producer, path.consumer)
        if misused:
            reply.failed(MISUSE, misused)
    subject = subject.relocate(result)
    del result
    instruments = Instruments(subject, request, reply, is_smaller=spec != full_spec)
    trouble = None
    if AT_ANY_LOAD.issuperset(request["instruments"]):
        instruments.run()  # unwatched: NVML's answers take as long as a case of a survey
    else:
        trouble = gpu_state.watch(instruments.run, instruments.gpu)
    later = simulated.misuse(path.producer, path.consumer)
    if later and later != misused:
        reply.failed("device", later)
    if "host_time" in reply.failures:
        return "unsupported", reply.failures["host_time"]
    return ("invalid", trouble) if trouble else ("ok", None)


def _convert_first(subject: Subject, request: dict[str, Any], cases: int, reply: Reply) -> Any:
    """Return the first result; send its time if an instrument wants one."""
    instruments = request["instruments"]
    try:
        found, result = times.first_call(subject, cases)
    except Exception as error:
        if own_place(error):
            raise
        reply.part(REFUSED, Refusal(error).reason)
        reply.stage("handshake")
        events = attempt(lambda: handshake.measure_refusal(subject))
        if isinstance(events, Refusal):
            reply.failed("handshake", events.reason)
        elif events:
            reply.part("handshake", events)
        if ("refusal" in instruments or subject.is_one_array) and request.get("alone", True):
            reply.stage("refusal")
            reply.part("refusal", refusal.measure(subject, error))
        reply.stage("first call")  # where it was refused
        raise
    if not TIMED.isdisjoint(instruments):
        reply.part("first_call", found)
    return result


def _fitting(path: LoadedPath, request: dict[str, Any], spec: ArraySpec) -> ArraySpec:
    """Return the array to measure: a smaller one for a diagnosis if the producer can make one."""
    largest, at_any_size = request["largest_bytes"], AT_ANY_SIZE
    if isinstance(path.producer, OnSimulatedDevice):
        largest = min(largest, simulated.LARGEST_BYTES)
        at_any_size = AT_ANY_SIZE | AT_ANY_LOAD | {"first_call"}
    elif spec.device == "cuda" and "trace" not in request["instruments"]:  # it tells the bytes
        largest = min(largest, LARGEST_ON_DEVICE)
    diagnosed = set(request["instruments"]) <= at_any_size
    if not diagnosed or path.is_one_array or spec.size_bytes <= largest:
        return spec
    return path.producer.resized(spec, largest)


class Instruments:
    """The instruments of a case, in their order; a failure of one costs that one alone.

    ``is_smaller`` is whether the array serves for a larger one.
    """

    def __init__(
        self, subject: Subject, request: dict[str, Any], reply: Reply, *, is_smaller: bool
    ) -> None:
        self.subject, self.request, self.reply = subject, request, reply
        self.is_smaller = is_smaller
        self.gpu: Gpu | None = None
        self.no_gpu = ""
        if "cuda" in (subject.spec.device, subject.result_device):
            try:
                on_device = subject.spec.device == "cuda"
                source = subject.producer.pointer(subject.source) if on_device else None
                self.gpu = open_gpu(device_ordinal(source) if on_device else subject.result_ordinal)
            except CudaUnavailable as reason:
                self.no_gpu = str(reason)

    def run(self) -> None:
        """Run all wanted instruments."""
        subject, spec, gpu, take = self.subject, self.subject.spec, self.gpu, self.reply.take
        budget: int = self.request["budget_ns"]
        # Times come first: they do not use the address, which a faulty probe may get wrong.
        wanted = {*self.request["instruments"]}
        is_watched = {"settings", "host_time"} <= wanted and "turns" not in self.request
        watched = settings.watched(subject, self.reply, timed=True, later=True)
        with watched if is_watched else nullcontext():
            self._time(budget)
        if "cuda" in (spec.device, subject.result_device):
            take("device_time", lambda: self._device_time(budget))
        placements = self.request.get("placements", [])
        take("placement", lambda: placement.measure(subject, budget, placements))
        looked = partial(values.measure, subject)
        take("values", lambda: compare_contents("values", gpu, looked))
        owned = take("ownership", lambda: ownership.measure(subject, gpu))
        take("refusal", self._refusal)
        # No memcpy compares with a copy to another device.
        stays = owned and owned["evidence"].get("result_device") == spec.device
        if stays and owned["verdict"] == "copy" and (gpu is not None or spec.device == "cpu"):
            copies_on = gpu if spec.device == "cuda" else None
            take("copy_cost", lambda: copy_cost.measure(spec.size_bytes, budget, copies_on))
        take("handshake", lambda: handshake.measure(subject))
        take("fresh_source", lambda: fresh_source.measure(subject, budget))
        self._diagnose()

    def _time(self, budget: int) -> None:
        subject, spec, turns, take = self.subject, self.subject.spec, None, self.reply.take
        offset: AbstractContextManager[object] = nullcontext()
        if options := self.request.get("turns"):
            turns = Turns(self.reply.channel, self.reply.identity, **options)
            if spec.device == "cpu":  # copies of both sides begin at one offset
                offset = place_next_block(turns.offset_bytes, spec.size_bytes)
        with offset:
            found = {
                "host_time": take("host_time", lambda: times.host_time(subject, budget, turns)),
                "ready_time": take("ready_time", lambda: times.ready_time(subject, budget, turns)),
            }
        if not turns and has_spinning_thread():  # it takes a processor or the interpreter's lock
            for name, timing in found.items():
                self.reply.part(name, timing and {**timing, "disturbed": 1.0})

    def _device_time(self, budget: int) -> dict[str, Any]:
        if self.gpu is None:
            return {"verdict": "unknown", "reason": self.no_gpu}
        side = default_sides(self.subject, self.gpu)[1]
        return device_time.measure(self.subject, side.gpu or self.gpu, side.handle(), budget)

    def _refusal(self) -> dict[str, Any] | None:
        spec, export = self.subject.spec, self.subject.export
        if (spec.dtype, spec.layout) not in PLAIN or spec.elements == 0:
            return None
        is_dlpack = export.protocol is Protocol.DLPACK
        found = refusal.measure_export(self.subject) if is_dlpack else None
        refusal.note_working(self.subject)  # last: its conversion is the one before other refusals
        return found

    def _diagnose(self) -> None:
        take, largest = self.reply.take, self.request["largest_bytes"]
        sizes = [size for size in early_write.SIZES_BYTES if size <= largest]
        is_brief = self.request.get("brief", False)
        early = partial(self._at_any_address, partial(early_write.measure, sizes_bytes=sizes))
        lives = partial(lifetime.measure, gpu=self.gpu, reply=self.reply, is_brief=is_brief)
        take("ordering", self._ordering)
        take("alignment", lambda: alignment.measure(self.subject, self.subject.spec))
        take("peak_memory", partial(self._at_any_address, peak_memory.measure))
        take("early_write", lambda: compare_contents("early_write", self.gpu, early))
        take("lifetime", lambda: self._at_any_address(lives))
        take("fork", lambda: fork.measure(self.subject, self.reply.channel))
        take("trace", lambda: trace.measure(self.subject, self.gpu))

    def _ordering(self) -> dict[str, Any]:
        found = ordering.measure(self.subject, self.gpu)
        if self.is_smaller:
            found["evidence"]["size_bytes"] = self.subject.spec.size_bytes
        return found

    def _at_any_address(self, instrument: Callable[[Subject], Any]) -> Any:
        """Run an instrument that makes its own arrays; once more on aligned memory if it fails.

        Some paths refuse memory that is not aligned.
        """
        subject = self.subject
        found = attempt(partial(instrument, subject))
        if not isinstance(found, Refusal):
            return found
        if subject.is_one_array or (subject.spec.layout, subject.spec.device) != ("C", "cpu"):
            raise found.error
        found = instrument(subject.subject(replace(subject.spec, layout="aligned")))
        return {**found, "evidence": {**found["evidence"], "layout": "aligned"}}
