"""Serve one case: prepare it, run its instruments, send each answer as it comes.

What was measured before a crash has already been sent. The outermost boundary is here: a
framework may raise anything, and whatever it raises is recorded in its own words.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.device import gpu_state
from dlprof.probes.base import DTYPES, ArraySpec, Unsupported, shape_of
from dlprof.protocol.messages import DIAGNOSIS, unknown, words
from dlprof.worker import memory, timer, turns
from dlprof.worker.channel import Answer
from dlprof.worker.contract import FaultyProbe
from dlprof.worker.instruments import (
    alignment,
    copy_cost,
    device_time,
    early_write,
    first_call,
    fresh_source,
    handshake,
    lifetime,
    ordering,
    ownership,
    peak_memory,
    placement,
    recipe,
    round_trip,
    times,
    trace,
    values,
)
from dlprof.worker.loading import Path, WorkerState, path_of
from dlprof.worker.subject import SetupFailed, Subject, gpu_of, result_device

AT_ANY_SIZE = {*DIAGNOSIS, "trace"}
"""Their answers do not depend on the shape, so that a smaller array serves where one is large."""

PHASES_SHARE = 5
"""The phases get this share (one in so many) of a timer's budget."""

WITH_VERDICT = ("values", "ownership", "fresh_source", *DIAGNOSIS)

MANY_FILES = 64
"""More than the frameworks' own threads, pipes and files that are opened once."""

Outcome = tuple[str, str | None]
"""A status and a reason."""
Measure = Callable[[WorkerState, dict[str, Any], Answer], Outcome]


def serve(state: WorkerState, request: dict[str, Any], answer: Answer, measure: Measure) -> None:
    """Call ``measure``; whatever it raises is an outcome too.

    A process may have some thousand file descriptors. A conversion that leaves one open at each
    call takes them from all cases that the process would serve after it.
    """
    before = open_files()
    try:
        answer.outcome = measure(state, request, answer)
    except memory.TooLarge as reason:
        answer.outcome = ("skipped", str(reason))
    except FaultyProbe as fault:
        answer.outcome = ("crashed", f"the probe is faulty: {fault}")
    except SetupFailed as fault:
        answer.outcome = ("skipped", str(fault))
    except SyntaxError as fault:
        answer.outcome = ("crashed", f"the probe is faulty: {words(fault)}")
    except Unsupported as refusal:
        answer.outcome = ("unsupported", str(refusal) or words(refusal))
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        answer.outcome = ("unsupported", words(refusal))
    except BaseException as stop:  # noqa: BLE001 - a probe that calls sys.exit must not end us
        if answer.at == "ready_time":  # else the host's time would be taken for it
            answer.failed("ready_time", words(stop))
        answer.outcome = ("crashed", f"raised {words(stop)}")
    finally:
        state.channel.measuring = False
    gc.collect()
    left = open_files() - before
    if left >= MANY_FILES:
        answer.part("left_open", left)
        answer.failed("conversion", f"it left {left:,} file descriptors open")


def open_files() -> int:
    """Open descriptors; the limit where all are taken, so that not even this can be looked up."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone, and no object for each
    except OSError as refusal:
        if refusal.errno in (errno.EMFILE, errno.ENFILE):
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return 0


def load(state: WorkerState, requests: list[dict[str, Any]], answer: Answer) -> None:
    """Import what cases need, so that measuring them can begin at once.

    What cannot be imported says so when its case is asked for.
    """
    for request in requests:
        with contextlib.suppress(BaseException):
            path_of(state, request, answer)


def check_setup(state: WorkerState, request: dict[str, Any], answer: Answer) -> Outcome:
    """Import what a case needs and run the user's setup."""
    path_of(state, request, answer)
    return "ok", None


def measure(state: WorkerState, request: dict[str, Any], answer: Answer) -> Outcome:
    """Measure one conversion."""
    spec = _spec(request)
    before = state.cases_before
    state.cases_before += 1  # also one that is refused warms what the next one uses
    path = path_of(state, request, answer)
    if request.get("hold"):
        state.channel.hold(answer.identity)
    import_ = path.import_
    if import_.layouts and spec.layout not in import_.layouts:
        made_for = ", ".join(import_.layouts)
        raise Unsupported(f"{import_.name} is for arrays of layout {made_for}, not {spec.layout}")
    if request["instruments"] == ["alignment"]:
        return _alignment_alone(state, answer, path, spec)
    spec = _fitting(path, request, spec)
    answer.stage("create")
    if "recipe" in request["instruments"]:
        # Before anything is made or converted: a case that dies of it needs its recipe most.
        answer.part(
            "recipe",
            recipe.measure(path.producer, path.consumer, import_, spec, request.get("setup", "")),
        )
    if _forecast(path, spec):
        before += 1  # the first call is none any more
    subject = path.subject(spec)
    answer.part("source", {"ns": subject.create_ns})
    answer.stage("first call")
    state.channel.begin()
    found, first = first_call.measure(subject, before)
    answer.part("first_call", found)
    none = no_array(subject, first.result)
    declared, subject = subject, subject if none else subject.placed(first.result)
    once = None
    timed = "host_time" in request["instruments"] and not subject.is_one_array
    if timed and subject is declared:  # else the first call was not waited for as it must be
        # A user's own statement may do anything: it is timed as it always is.
        answer.stage("host_time")
        once = first_call.serves(first)
    del first
    instruments = Instruments(subject, request, answer, path, none)
    trouble = gpu_state.watch(lambda: instruments.run(once), instruments.gpu)
    if state.channel.forks:
        answer.failed("conversion", "it forks the process; each child was ended at once")
    if "host_time" in answer.refusals:
        return "unsupported", answer.refusals["host_time"]
    return ("invalid", trouble) if trouble else ("ok", None)


def measure_trip(state: WorkerState, request: dict[str, Any], answer: Answer) -> Outcome:
    """Measure a round trip: a path there and a path back, on one array.

    The stage ``there`` or ``back`` is the last where that way is what does not work.
    """
    spec = _spec(request)
    path = path_of(state, request, answer)
    path_back = path_of(state, request["back"], answer)
    answer.stage("create")
    memory.check_room(spec)
    there = path.subject(spec)
    back = path_back.subject(ArraySpec(spec.shape, spec.dtype, "C", there.result_device))
    round_trip.go_once(there, back, answer.stage)
    answer.stage("round trip")
    gpu, _ = gpu_of(there)
    found = round_trip.measure(there, back, request["iterations"], request["budget_ns"], gpu)
    answer.part("round_trip", found)
    return "ok", None


def _spec(request: dict[str, Any]) -> ArraySpec:
    shape, dtype, layout, device = (request[n] for n in ("shape", "dtype", "layout", "device"))
    return ArraySpec(tuple(shape), dtype, layout, device)


def _alignment_alone(state: WorkerState, answer: Answer, path: Path, spec: ArraySpec) -> Outcome:
    """The instrument that makes its own arrays, without one of the case."""
    where = result_device(path.consumer, path.import_, spec)
    if not path.is_one_array and alignment.applies(path.import_, where, spec):
        answer.stage("alignment")
        state.channel.begin()
        answer.part("alignment", alignment.look(spec, path.subject))
    return "ok", None


def _fitting(path: Path, request: dict[str, Any], spec: ArraySpec) -> ArraySpec:
    """The array to be measured: a smaller one for a diagnosis, if another can be made."""
    diagnosed = set(request["instruments"]) <= AT_ANY_SIZE
    if not diagnosed or path.is_one_array or spec.size_bytes <= request["largest_bytes"]:
        return spec
    return _of_bytes(spec, request["largest_bytes"])


def _of_bytes(spec: ArraySpec, size_bytes: int) -> ArraySpec:
    return replace(spec, shape=shape_of(size_bytes // DTYPES[spec.dtype], spec.layout))


def _forecast(path: Path, spec: ArraySpec) -> bool:
    """Whether a small array had to be converted to know whether the large case fits.

    Raises :class:`~dlprof.worker.memory.TooLarge` where it does not.
    """
    if memory.fits(memory.COPIES * spec.size_bytes):
        return False
    small = _of_bytes(spec, peak_memory.SIZE_BYTES)
    if (
        path.is_one_array
        or spec.device != "cpu"
        or not memory.fits(memory.COPIES * small.size_bytes)
    ):
        memory.check_room(spec)
        return False
    peak_memory.check_forecast(path.subject(small), spec)
    gc.collect()
    return True


def no_array(subject: Subject, result: Any) -> str:
    """Why a result of the conversion is nothing to look at, in words; empty for an array.

    Objects of Python itself are arrays only of a probe that says so of them.
    """
    if not subject.import_.returns_array:
        return ""
    if getattr(type(result), "__module__", None) != "builtins":
        return ""
    try:
        subject.consumer.dtype(result)
        subject.consumer.pointer(result)
    except Exception:  # noqa: BLE001 - a foreign probe: that it cannot tell is the answer
        kind = type(result).__name__
        given = "None" if result is None else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        return f"the conversion gives {given}, which is no array of {subject.consumer.name}"
    return ""


class Instruments:
    """The instruments of a case, in their order: a failure of one costs that one alone.

    ``none`` is why nothing can be looked at, where the conversion gives no array.
    """

    def __init__(
        self, subject: Subject, request: dict[str, Any], answer: Answer, path: Path, none: str = ""
    ) -> None:
        self.subject = subject
        self.path = path
        self.answer = answer
        self.wanted: list[str] = request["instruments"]
        self.budget_ns: int = request["budget_ns"]
        self.largest_bytes: int = request["largest_bytes"]
        self.placements: list[str] = request.get("placements", [])
        self.turns = turns.turns_of(request, answer)
        self.gpu, self.no_gpu = gpu_of(subject)
        self.none = none

    def run(self, once: first_call.OneCall | None) -> None:
        """Run all that are wanted; ``once`` is the only conversion of one that takes seconds."""
        # Times first: they look at nothing, and so survive a probe that points to a wrong address.
        if once is None:
            self._time()
            self._take_rest()
            owned = self._look(self.subject)
        else:
            self._take("host_time", once.host_time)
            self._take("ready_time", once.ready_time)
            owned = self._look(once.converted(), again=not self.subject.is_one_array)
            once.result = None  # gone when the next one is made
            self._take_rest()
        # Of a copy to another device there is no memcpy to compare with.
        on = self.subject.spec.device
        if owned and owned["verdict"] == "copy" and owned["evidence"]["result_device"] == on:
            self._take("copy_cost", self._copy_cost)
        self._take("handshake", lambda: handshake.measure(self.subject))
        self._take("fresh_source", lambda: fresh_source.measure(self.subject, self.budget_ns))
        self._diagnose()

    def _time(self) -> None:
        subject, budget = self.subject, self.budget_ns
        host = self._take("host_time", lambda: times.host_time(subject, budget, self.turns))
        self._take("ready_time", lambda: times.ready_time(subject, budget, self.turns))
        if host is not None:
            per_call = sum(host["samples_ns"]) / len(host["samples_ns"])
            if per_call < timer.LONG_NS:  # beside which no phase but the copying is anything
                share = budget // PHASES_SHARE
                self._take("phases", lambda: times.phases(subject, per_call, share))

    def _take_rest(self) -> None:
        self._take("device_time", self._device_time)
        self._take(
            "placement", lambda: placement.measure(self.subject, self.budget_ns, self.placements)
        )

    def _device_time(self) -> dict[str, Any] | None:
        """Device time where there is a device; None on the CPU."""
        if "cuda" not in (self.subject.spec.device, self.subject.result_device):
            return None
        if self.gpu is None:
            return {"verdict": "unknown", "reason": self.no_gpu}
        stream = self.subject.consumer.current_stream("cuda")
        return device_time.measure(self.subject, self.gpu, stream, self.budget_ns / 1e9)

    def _look(self, subject: Subject, again: bool = True) -> Any:
        if self.none:
            self.answer.failed("result", self.none)
        self._take("values", lambda: values.measure(subject, again))
        return self._take("ownership", lambda: ownership.measure(subject, self.gpu))

    def _copy_cost(self) -> dict[str, Any]:
        on_device = self.subject.spec.device == "cuda"
        if on_device and self.gpu is None:
            raise Unsupported(self.no_gpu)
        gpu = self.gpu if on_device else None
        return copy_cost.measure(self.subject.spec.size_bytes, self.budget_ns, gpu)

    def _diagnose(self) -> None:
        sizes = [size for size in early_write.SIZES_BYTES if size <= self.largest_bytes]
        of_own_arrays: dict[str, Callable[[Subject], Any]] = {
            "peak_memory": peak_memory.measure,
            "early_write": lambda subject: early_write.measure(subject, sizes),
            "lifetime": lambda subject: lifetime.measure(subject, self.gpu, self.answer),
        }
        self._take("ordering", lambda: ordering.measure(self.subject, self.gpu))
        self._take("alignment", lambda: alignment.measure(self.subject, self.path.subject))
        for name, instrument in of_own_arrays.items():
            self._take(name, partial(self.where_it_works, instrument))
        self._take("trace", lambda: trace.measure(self.subject, self.gpu))

    def where_it_works(self, instrument: Callable[[Subject], Any]) -> Any:
        """What it finds; of aligned memory if other memory of the same array is refused.

        Arrays that an instrument makes for itself begin where they happen to.
        """
        try:
            return instrument(self.subject)
        except Exception:
            if not self._refuses_unaligned():
                raise
        aligned = self.path.subject(replace(self.subject.spec, layout="aligned"))
        found = instrument(aligned)
        return {**found, "evidence": {**found["evidence"], "layout": "aligned"}}

    def _refuses_unaligned(self) -> bool:
        spec = self.subject.spec
        if self.subject.is_one_array or (spec.layout, spec.device) != ("C", "cpu"):
            return False
        looks = alignment.look(spec, self.path.subject)["evidence"]
        aligned, sliced = (looks.get(place, {}).get("verdict") for place in alignment.PLACES)
        return aligned in ("view", "copy") and sliced == "refused"

    def _take(self, name: str, instrument: Callable[[], Any]) -> Any:
        """Run one instrument and send what it finds."""
        if name not in self.wanted:
            return None
        self.answer.stage(name)
        if self.none and name in WITH_VERDICT:
            self.answer.part(name, unknown(self.none))
            return None
        try:
            found = instrument()
            if found is not None:
                self.answer.part(name, found)
        except Unsupported as reason:
            if name in WITH_VERDICT:
                self.answer.part(name, unknown(str(reason)))
            else:
                self.answer.failed(name, str(reason))
            return None
        except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
            self.answer.failed(name, words(refusal))
            return None
        return found
