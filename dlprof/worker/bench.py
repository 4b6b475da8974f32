"""The instruments of one case, in their order: a failure of one costs that one alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dlprof.device import gpu_state
from dlprof.probes.base import Unsupported
from dlprof.worker import timer
from dlprof.worker.channel import Answer
from dlprof.worker.instruments import (
    alignment,
    copy_cost,
    early_write,
    first_call,
    fresh_source,
    handshake,
    lifetime,
    ordering,
    ownership,
    peak_memory,
    placement,
    times,
    trace,
    values,
)
from dlprof.worker.subject import (
    Subject,
)
from dlprof.worker.turns import turns_of
from dlprof.worker.ways import Ways
from dlprof.worker.words import words

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
        once: first_call.OneCall | None = None,
    ) -> None:
        self.subject = subject
        self.ways = ways
        self.once = once
        self.answer = answer
        self.wanted: list[str] = request["instruments"]
        self.budget_ns: int = request["budget_ns"]
        self.largest_bytes: int = request["largest_bytes"]
        self.placements: list[str] = request.get("placements", [])
        self.turns = turns_of(request, answer)
        self.gpu, self.no_gpu = gpu_of(subject)
        self.no_array = none
        """Why nothing can be looked at: what the conversion gives is no array."""

    def run(self) -> None:
        # Times first: they look at nothing, and so survive a probe that points to a wrong address.
        once, self.once = self.once, None
        owned = self._run_often() if once is None else self._run_once(once)
        if owned is not None and owned["verdict"] == "copy" and not self.crosses(owned):
            self.take("copy_cost", self._copy_cost)
        self.take("handshake", lambda: handshake.measure(self.subject))
        self.take("fresh_source", lambda: fresh_source.measure(self.subject, self.budget_ns))
        self._diagnose()

    def _copy_cost(self) -> dict[str, Any]:
        on_device = self.subject.spec.device == "cuda"
        if on_device and self.gpu is None:
            raise Unsupported(self.no_gpu)
        gpu = self.gpu if on_device else None
        return copy_cost.measure(self.subject.spec.size_bytes, self.budget_ns, gpu)

    def _run_often(self) -> Any:
        self._take_times()
        return self._look(self.subject)

    def _run_once(self, once: first_call.OneCall) -> Any:
        """One conversion for everything; its result is gone when the next one is made."""
        self.take("host_time", once.host_time)
        self.take("ready_time", once.ready_time)
        owned = self._look(once.converted(), again=not self.subject.is_one_array)
        once.result = None
        self._take_rest()
        return owned

    def _look(self, subject: Subject, again: bool = True) -> Any:
        if self.no_array:
            self.answer.failed("result", self.no_array)
        self.take("values", lambda: values.measure(subject, again))
        return self.take("ownership", lambda: ownership.measure(subject, self.gpu))

    def _take_times(self) -> None:
        subject, budget, turns = self.subject, self.budget_ns, self.turns
        host = self.take("host_time", lambda: times.host_time(subject, budget, turns))
        self.take("ready_time", lambda: times.ready_time(subject, budget, turns))
        if host is not None:
            per_call = sum(host["samples_ns"]) / len(host["samples_ns"])
            if per_call < timer.LONG_NS:  # beside which no phase but the copying is anything
                share = budget // PHASES_SHARE
                self.take("phases", lambda: times.phases(subject, per_call, share))
        self._take_rest()

    def _take_rest(self) -> None:
        subject, budget = self.subject, self.budget_ns
        self.take("device_time", self.device_time)
        self.take("placement", lambda: placement.measure(subject, budget, self.placements))

    def _diagnose(self) -> None:
        sizes = [size for size in early_write.SIZES_BYTES if size <= self.largest_bytes]
        self.take("ordering", lambda: ordering.measure(self.subject, self.gpu))
        self.take("alignment", lambda: alignment.measure(self.subject, self.ways.subject))
        self.take("peak_memory", lambda: self._where_it_works(peak_memory.measure))
        self.take(
            "early_write",
            lambda: self._where_it_works(lambda subject: early_write.measure(subject, sizes)),
        )
        self.take(
            "lifetime",
            lambda: self._where_it_works(
                lambda subject: lifetime.measure(subject, self.gpu, self.answer)
            ),
        )
        self.take("trace", lambda: trace.measure(self.subject, self.gpu))

    def _where_it_works(self, measure: Callable[[Subject], Any]) -> Any:
        """What ``measure`` finds; of aligned memory if other memory of the same array is refused.

        Arrays that an instrument makes for itself begin where they happen to.
        """
        try:
            return measure(self.subject)
        except Exception:
            if not self._refuses_unaligned():
                raise
        aligned = self.ways.subject(replace(self.subject.spec, layout="aligned"))
        found = measure(aligned)
        return {**found, "evidence": {**found["evidence"], "layout": "aligned"}}

    def _refuses_unaligned(self) -> bool:
        spec = self.subject.spec
        if self.subject.is_one_array or (spec.layout, spec.device) != ("C", "cpu"):
            return False
        looks = alignment.look(spec, self.ways.subject)["evidence"]
        seen = [looks.get(place, {}).get("verdict") for place in alignment.PLACES]
        return seen[0] in ("view", "copy") and seen[1] == "refused"

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
        from dlprof.worker.instruments import device_time

        stream = self.subject.consumer.current_stream("cuda")
        return device_time.measure(self.subject, self.gpu, stream, self.budget_ns / 1e9)


def gpu_of(subject: Subject) -> tuple[Any, str | None]:
    """The device that a case needs; None with the reason where it needs none or has none."""
    if "cuda" not in (subject.spec.device, subject.result_device):
        return None, None
    from dlprof.device.cuda import CudaUnavailable, driver_devices, open_gpu

    if not isinstance(driver_devices(), int):
        return None, "no CUDA driver"
    try:
        return open_gpu(), None
    except CudaUnavailable as reason:
        return None, str(reason)
