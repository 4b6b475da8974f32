"""Serve one case: prepare it, run its instruments, send each answer as it comes.

What was measured before a crash has already been sent. The outermost boundary is here: a
framework may raise anything, and whatever it raises is recorded in its own words.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dlprof.probes.base import DTYPES, ArraySpec, Import, Unsupported
from dlprof.worker import (
    alignment,
    copy_cost,
    early_write,
    first_call,
    forecast,
    fresh_source,
    gpu_state,
    handshake,
    host_time,
    lifetime,
    no_array,
    one_call,
    open_files,
    ordering,
    ownership,
    peak_memory,
    phases,
    placement,
    ready_time,
    recipe,
    room,
    timer,
    trace,
    values,
)
from dlprof.worker.declared import FaultyProbe
from dlprof.worker.subject import (
    SetupFailed,
    Subject,
    result_device,
)
from dlprof.worker.ways import Ways, ways_of
from dlprof.worker.words import words

if TYPE_CHECKING:
    from dlprof.worker.channel import Channel
    from dlprof.worker.serve import Desk

DIAGNOSIS = {"ordering", "alignment", "peak_memory", "early_write", "lifetime", "trace"}
"""Their answers do not depend on the shape, so that a smaller array serves where one is large."""
PHASES_SHARE = 5
"""The phases get this share (one in so many) of a timer's budget."""

WITH_VERDICT = (
    "values",
    "ownership",
    "fresh_source",
    "ordering",
    "alignment",
    "peak_memory",
    "early_write",
    "lifetime",
)


class Answer:
    """What is sent for one request."""

    def __init__(self, channel: Channel, identity: int) -> None:
        self.channel = channel
        self.identity = identity
        self.outcome: tuple[str, str | None] = ("ok", None)
        self.refusals: dict[str, str] = {}
        """Why an instrument failed, by its name."""

    def stage(self, name: str) -> None:
        """Tell the parent what comes next, so that a crash or a hang can be placed."""
        self.channel.send({"id": self.identity, "stage": name})

    def part(self, name: str, value: Any) -> None:
        self.channel.send({"id": self.identity, "part": name, "value": value})

    def failed(self, instrument: str, reason: str) -> None:
        self.refusals[instrument] = reason
        self.part("failed", {"instrument": instrument, "reason": reason})

    def done(self, status: str, reason: str | None) -> None:
        self.channel.send({"id": self.identity, "done": status, "reason": reason})


Measure = Callable[["Desk", dict[str, Any], Answer], tuple[str, str | None]]


def run_case(
    desk: Desk, request: dict[str, Any], answer: Answer, measure: Measure | None = None
) -> None:
    """Measure one case; sets ``answer.outcome`` to a status and a reason.

    ``measure`` is for what is no conversion.
    """
    before = open_files.count()
    guarded(desk, answer, lambda: (measure or _measure)(desk, request, answer))
    left = open_files.left_open(before)
    if left:
        answer.part("left_open", left)
        answer.failed("conversion", f"it left {left:,} file descriptors open")


def guarded(desk: Desk, answer: Answer, measure: Callable[[], tuple[str, str | None]]) -> None:
    """Call ``measure`` for an outcome; whatever is raised is an outcome too."""
    try:
        answer.outcome = measure()
    except room.TooLarge as reason:
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
        answer.outcome = ("crashed", f"raised {words(stop)}")
    finally:
        desk.channel.measuring = False
    gc.collect()


def _measure(desk: Desk, request: dict[str, Any], answer: Answer) -> tuple[str, str | None]:
    spec = ArraySpec(
        tuple(request["shape"]), request["dtype"], request["layout"], request["device"]
    )
    before = desk.cases_before
    desk.cases_before += 1  # also one that is refused warms what the next one uses
    ways = ways_of(desk, request, answer)
    _check_layout(ways.import_, spec)
    if request["instruments"] == ["alignment"]:
        return _alignment_alone(desk, answer, ways, spec)
    spec = _fitting(ways, request, spec)
    answer.stage("create")
    if "recipe" in request["instruments"]:
        # Before anything is made or converted: a case that dies of it needs its recipe most.
        answer.part("recipe", _recipe(ways, request, spec))
    _forecast(ways, spec)
    subject = ways.subject(spec)
    answer.part("source", {"ns": subject.create_ns})
    answer.stage("first call")
    desk.channel.forks = 0
    desk.channel.measuring = True
    found, first = first_call.measure(subject, before)
    answer.part("first_call", found)
    once = None
    if "host_time" in request["instruments"] and not subject.is_one_array:
        # A user's own statement may do anything: it is timed as it always is.
        answer.stage("host_time")
        once = one_call.serves(first)
    none = no_array.reason(subject, first.result)
    del first
    outcome = watched(Bench(subject, request, answer, ways, none, once))
    if desk.channel.forks:
        answer.failed("conversion", "it forks the process; each child was ended at once")
    if "host_time" in answer.refusals:
        return "unsupported", answer.refusals["host_time"]
    return outcome


def _alignment_alone(
    desk: Desk, answer: Answer, ways: Ways, spec: ArraySpec
) -> tuple[str, str | None]:
    """The instrument that makes its own arrays, without one of the case."""
    where = result_device(ways.consumer, ways.import_, spec)
    if ways.is_one_array or not alignment.applies(ways.import_, where, spec):
        return "ok", None
    answer.stage("alignment")
    desk.channel.forks = 0
    desk.channel.measuring = True
    answer.part("alignment", alignment.look(spec, ways.subject))
    return "ok", None


def _check_layout(import_: Import, spec: ArraySpec) -> None:
    if import_.layouts and spec.layout not in import_.layouts:
        made_for = ", ".join(import_.layouts)
        raise Unsupported(f"{import_.name} is for arrays of layout {made_for}, not {spec.layout}")


def _recipe(ways: Ways, request: dict[str, Any], spec: ArraySpec) -> dict[str, Any]:
    found = recipe.measure(ways.producer, ways.consumer, ways.import_, spec)
    setup = request.get("setup")
    return {**found, "setup": [*found["setup"], setup]} if setup else found


def _of_bytes(spec: ArraySpec, size_bytes: int) -> ArraySpec:
    return replace(spec, shape=(size_bytes // DTYPES[spec.dtype],))


def _fitting(ways: Ways, request: dict[str, Any], spec: ArraySpec) -> ArraySpec:
    """The array to be measured: a smaller one for a diagnosis, if another can be made."""
    diagnosed = set(request["instruments"]) <= DIAGNOSIS
    if not diagnosed or ways.is_one_array or spec.size_bytes <= request["largest_bytes"]:
        return spec
    return _of_bytes(spec, request["largest_bytes"])


def _forecast(ways: Ways, spec: ArraySpec) -> None:
    """Raises :class:`room.TooLarge` where the large case would not fit."""
    if room.fits(room.COPIES * spec.size_bytes):
        return
    if ways.is_one_array or spec.device != "cpu":
        room.check(spec)
    small = _of_bytes(spec, peak_memory.SIZE_BYTES)
    if not room.fits(room.COPIES * small.size_bytes):
        room.check(spec)
    forecast.check(ways.subject(small), spec)
    gc.collect()


def load(desk: Desk, requests: list[dict[str, Any]], answer: Answer) -> None:
    """Import what cases need, so that measuring them can begin at once.

    What cannot be imported says so when its case is asked for.
    """
    for request in requests:
        with contextlib.suppress(BaseException):
            ways_of(desk, request, answer)


def check_setup(desk: Desk, request: dict[str, Any], answer: Answer) -> None:
    """Import what a case needs and run the user's setup; sets ``answer.outcome``."""

    def run() -> tuple[str, str | None]:
        ways_of(desk, request, answer)
        return "ok", None

    guarded(desk, answer, run)


def watched(bench: Bench) -> tuple[str, str | None]:
    """Run the instruments; ``invalid`` where the GPU was throttled or used by somebody else."""
    if bench.gpu is None:
        bench.run()
        return "ok", None
    before = gpu_state.read()
    bench.run()
    trouble = gpu_state.trouble(before, gpu_state.read(), bench.gpu.properties.uuid)
    return ("invalid", trouble) if trouble else ("ok", None)


class Bench:
    """The instruments, in their order, on one subject."""

    def __init__(
        self,
        subject: Subject,
        request: dict[str, Any],
        answer: Answer,
        ways: Ways,
        none: str = "",
        once: one_call.OneCall | None = None,
    ) -> None:
        self.subject = subject
        self.ways = ways
        self.once = once
        self.answer = answer
        self.wanted: list[str] = request["instruments"]
        self.budget_ns: int = request["budget_ns"]
        self.largest_bytes: int = request["largest_bytes"]
        self.placements: list[str] = request.get("placements", [])
        self.gpu, self.no_gpu = gpu_of(subject)
        self.no_array = none
        """Why nothing can be looked at: what the conversion gives is no array."""

    def run(self) -> None:
        # Times first: they look at nothing, and so survive a probe that points to a wrong address.
        once, self.once = self.once, None
        owned = self._run_often() if once is None else self._run_once(once)
        if owned is not None and owned["verdict"] == "copy" and not self.crosses(owned):
            size = self.subject.spec.size_bytes
            gpu = self.gpu if self.subject.spec.device == "cuda" else None
            self.take("copy_cost", lambda: copy_cost.measure(size, self.budget_ns, gpu))
        self.take("handshake", lambda: handshake.measure(self.subject))
        self.take("fresh_source", lambda: fresh_source.measure(self.subject, self.budget_ns))
        self._diagnose()

    def _run_often(self) -> Any:
        self._take_times()
        return self._look(self.subject)

    def _run_once(self, once: one_call.OneCall) -> Any:
        """One conversion for everything; its result is gone when the next one is made."""
        self.take("host_time", once.host_time)
        self.take("ready_time", once.ready_time)
        owned = self._look(once.converted())
        once.result = None
        self._take_rest()
        return owned

    def _look(self, subject: Subject) -> Any:
        if self.no_array:
            self.answer.failed("result", self.no_array)
        self.take("values", lambda: values.measure(subject))
        return self.take("ownership", lambda: ownership.measure(subject, self.gpu))

    def _take_times(self) -> None:
        subject, budget = self.subject, self.budget_ns
        host = self.take("host_time", lambda: host_time.measure(subject, budget))
        self.take("ready_time", lambda: ready_time.measure(subject, budget))
        if host is not None:
            per_call = sum(host["samples_ns"]) / len(host["samples_ns"])
            if per_call < timer.LONG_NS:  # beside which no phase but the copying is anything
                share = budget // PHASES_SHARE
                self.take("phases", lambda: phases.measure(subject, per_call, share))
        self._take_rest()

    def _take_rest(self) -> None:
        subject, budget = self.subject, self.budget_ns
        self.take("device_time", self.device_time)
        self.take("placement", lambda: placement.measure(subject, budget, self.placements))

    def _diagnose(self) -> None:
        sizes = [size for size in early_write.SIZES_BYTES if size <= self.largest_bytes]
        self.take("ordering", lambda: ordering.measure(self.subject, self.gpu))
        self.take("alignment", lambda: alignment.measure(self.subject, self.ways.subject))
        self.take("peak_memory", lambda: peak_memory.measure(self.subject))
        self.take("early_write", lambda: early_write.measure(self.subject, sizes))
        self.take("lifetime", lambda: lifetime.measure(self.subject, self.gpu, self.answer))
        self.take("trace", lambda: trace.measure(self.subject, self.gpu))

    def crosses(self, owned: dict[str, Any]) -> bool:
        """Whether the copy goes from one device to another: then no memcpy compares with it."""
        return bool(owned["evidence"]["result_device"] != self.subject.spec.device)

    def take(self, name: str, measure: Callable[[], Any]) -> Any:
        """Run one instrument; a failure of one costs that one alone."""
        if name not in self.wanted:
            return None
        self.answer.stage(name)
        if self.no_array and name in WITH_VERDICT:
            self._refused(name, self.no_array)
            return None
        try:
            found = measure()
            if found is not None:
                self.answer.part(name, found)
        except Unsupported as reason:
            self._refused(name, str(reason))
            return None
        except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
            self.answer.failed(name, words(refusal))
            return None
        return found

    def _refused(self, name: str, reason: str) -> None:
        """An instrument that does not apply: a verdict of its own, or a note."""
        if name in WITH_VERDICT:
            self.answer.part(name, {"verdict": "unknown", "evidence": {"reason": reason}})
        else:
            self.answer.failed(name, reason)

    def device_time(self) -> dict[str, Any] | None:
        """Device time where there is a device; None on the CPU."""
        if "cuda" not in (self.subject.spec.device, self.subject.result_device):
            return None
        if self.gpu is None:
            return {"verdict": "unknown", "reason": self.no_gpu}
        from dlprof.worker import device_time

        stream = self.subject.consumer.current_stream("cuda")
        return device_time.measure(self.subject, self.gpu, stream, self.budget_ns / 1e9)


def gpu_of(subject: Subject) -> tuple[Any, str | None]:
    """The device that a case needs; None with the reason where it needs none or has none."""
    if "cuda" not in (subject.spec.device, subject.result_device):
        return None, None
    from dlprof.worker.cuda import CudaUnavailable, driver_devices, open_gpu

    if not isinstance(driver_devices(), int):
        return None, "no CUDA driver"
    try:
        return open_gpu(), None
    except CudaUnavailable as reason:
        return None, str(reason)
