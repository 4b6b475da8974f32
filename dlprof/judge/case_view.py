"""One case of a session, as rules, reports and comparisons read it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from dlprof.judge import thresholds
from dlprof.probes.base import ANY_DEVICE, DTYPES
from dlprof.protocol.messages import DIAGNOSIS, MISUSE, SAME
from dlprof.runner.axes import shape_text
from dlprof.runner.evidence import (
    Alignment,
    Changed,
    E,
    Lost,
    Ownership,
    Verdict,
    Writable,
)
from dlprof.runner.quantity import is_wide
from dlprof.runner.session import Result, TimeMeasure

WORDS = ("copy", "view")
WAITS = ("host-sync", "device-sync")
NOT_THE_CONVERSION = ("start", "import", "create")
"""Stages before the conversion: a lost worker or a refusal is not its fault."""
FAILURES = {"unsupported": "refused", "crashed": "crash", "timeout": "hangs"}
"""The outcome of a conversion without a result, by its status."""
ORDERS = {"F": "column-major", "C": "row-major"}
ALL = 0.95
"""From this share of a queue on, a call waits for all of it."""


def all_looks(verdict: Verdict[E] | None) -> tuple[tuple[str, E], ...]:
    """Return each verdict with its evidence: several if processes disagreed."""
    return verdict.looks if verdict is not None else ()


def is_known(measure: TimeMeasure | None) -> bool:
    """Whether a time is known and undisturbed by other programs."""
    return measure is not None and not measure.is_disturbed


def is_certain(measure: TimeMeasure | None) -> bool:
    """Whether a time is known, and from several processes: copies of one array took 110 us in
    one process and 3.3 ms in another.
    """
    return measure is not None and measure.ci95_ns is not None and is_known(measure)


@dataclass(frozen=True)
class CaseView:
    """One case of the session, at position ``index``."""

    index: int
    result: Result
    by_address: Verdict[Alignment] | None = None
    """The verdict of the instrument *alignment* on the path, at any shape."""

    @cached_property
    def pair(self) -> tuple[str, str]:
        return self.result.case.producer, self.result.case.consumer

    @cached_property
    def promise(self) -> str | None:
        return self.result.case.promise

    @cached_property
    def kind(self) -> str | None:
        return self.result.ownership.verdict if self.result.ownership is not None else None

    @cached_property
    def array(self) -> tuple[Any, ...]:
        """The array and its pair. Cases with equal values can be compared."""
        case = self.result.case
        return (*self.pair, case.arrays, case.shape, *case.conversion[4:])

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The conversion at all its shapes; for a surveyed array at its own."""
        case = self.result.case
        return (*case.conversion, str(case.shape)) if case.survey else case.conversion

    @cached_property
    def kinds(self) -> tuple[tuple[str, Ownership], ...]:
        return all_looks(self.result.ownership)

    @cached_property
    def result_device(self) -> str | None:
        """The device of the result in every process; None if that is not known."""
        devices = {str(evidence.result_device) for _, evidence in self.kinds}
        device = devices.pop() if len(devices) == 1 else ""
        return device if device in ANY_DEVICE else None

    @cached_property
    def alignments(self) -> tuple[float, ...]:
        """Alignments of the source in bytes, sorted; empty if a process does not know its own."""
        known = [evidence.alignments for _, evidence in self.kinds]
        return tuple(sorted({size for sizes in known for size in sizes})) if all(known) else ()

    @cached_property
    def ready(self) -> TimeMeasure | None:
        """The time per call until the result is ready, if the case is ok."""
        return self.result.ready_time if self.result.status == "ok" else None

    @property
    def code(self) -> str:
        return self.result.case.code

    @property
    def entry(self) -> tuple[str, str]:
        """The consumer and its import, where most faults lie."""
        return self.result.case.consumer, self.result.case.import_

    @property
    def surveyed(self) -> bool:
        """Whether it was converted once and checked, without a time."""
        return self.result.case.survey

    @property
    def spec(self) -> tuple[Any, ...]:
        """The array that was converted."""
        return self.array[3:]

    @property
    def size_bytes(self) -> int:
        """Size of the array; 0 if the dtype is not known."""
        case = self.result.case
        return math.prod(case.shape) * DTYPES.get(case.dtype, 0)

    @property
    def is_measured(self) -> bool:
        """Whether it has a time, or is ok in a run without times."""
        is_timed = not self.result.untimed and not self.surveyed
        return self.ready is not None or (not is_timed and self.result.status == "ok")

    @property
    def cost_ns(self) -> float:
        return self.ready.median_ns if self.ready is not None else math.inf

    @property
    def failure(self) -> str:
        """``refused``, ``crash`` or ``hangs``; empty if nothing called the path, as without its
        framework or its array, or if the probe is faulty.
        """
        status, stage = self.result.status, self.result.refused_at
        is_asked = status != "unsupported" or stage not in NOT_THE_CONVERSION
        is_asked &= not self.result.is_of_faulty_probe
        if self.misuse and status == "unsupported":  # the driver's error, and no refusal
            return "crash"
        return FAILURES.get(status, "") if is_asked else ""

    @property
    def outcome(self) -> str:
        """The outcome in one word; ``?`` if it is not known."""
        status, alignment = self.result.status, self.by_address
        if status != "ok":
            return self.failure or ("?" if status in FAILURES else status)
        if self.is_wrong:
            return "wrong"
        if self.kind == "varies" and alignment is not None and alignment.says("dependent"):
            # It is a view of aligned memory only.
            aligned = alignment.evidence.aligned
            return "view" if aligned is not None and aligned.verdict == "view" else "varies"
        return "?" if self.kind in (None, "unknown") else str(self.kind)

    @property
    def is_cached_copy(self) -> bool:
        """Whether a copy of a new array takes longer than the same array again."""
        return self.kind == "copy" and self.is_cached

    @property
    def new_ns(self) -> float | None:
        """The time of a copy of a new array, if the same array again takes less."""
        fresh = self.result.fresh_source
        return fresh.evidence.new_ns if self.is_cached_copy and fresh is not None else None

    @cached_property
    def lost(self) -> Lost | None:
        """The end of its worker, in the conversion or in an instrument; None if it came back."""
        if self.result.lost is not None:
            return None if self.result.lost.stage in NOT_THE_CONVERSION else self.result.lost
        for name in (*DIAGNOSIS, "exit"):
            for _, evidence in all_looks(getattr(self.result, name)):
                loss = evidence.lost
                if loss is not None and not (name == "lifetime" and self.is_dangling):
                    return cast("Lost", loss)
        return None

    @property
    def is_lost_for_sure(self) -> bool:
        """Whether the lost worker proves a fault. An instrument converts hundreds of times: one
        that gives no answer in time proves no hang.
        """
        return self.lost is not None and (self.result.lost is not None or not self.lost.limit_s)

    @property
    def misuse(self) -> str:
        """The report of a simulated driver on the conversion: a GPU may end the process there."""
        notes = self.result.notes
        return next((note.reason for note in notes if note.instrument == MISUSE), "")

    @property
    def is_dangling(self) -> bool:
        """Whether a process saw a result that does not outlive its source, or the reverse."""
        lifetime = self.result.lifetime
        evidence = lifetime.first("dangling") if lifetime is not None else None
        if evidence is None:
            return False
        died_otherwise = evidence.lost is not None and not evidence.lost.is_of_bad_memory
        states = evidence.source_after_drop, evidence.other_after_drop
        changed = not {*states} <= {None, SAME}
        return changed or evidence.changed_after_drop is True or not died_otherwise

    @property
    def is_reused(self) -> bool:
        """Whether its memory was given out again while a stream read the dropped result."""
        return any(evidence.reused for _, evidence in all_looks(self.result.lifetime))

    @property
    def is_ordered_by_default(self) -> bool:
        """Whether the case is ordered on the default streams."""
        return self.ordering_runs.get("default") in ("stream-ordered", *WAITS)

    @property
    def ordering_runs(self) -> dict[str, object]:
        """The order on each setting of streams."""
        ordering = self.result.ordering
        runs = (ordering.evidence.by_streams if ordering is not None else None) or {}
        return {name: run.get("verdict") for name, run in runs.items() if isinstance(run, dict)}

    @property
    def is_synchronous(self) -> bool:
        """Whether the consumer's calls return only when all work is done."""
        return self.ready is not None and self.ready.same_as == "host_time"

    @property
    def is_torn(self) -> bool:
        """Whether a write after the call changed the copy in some process."""
        return self.result.early_write is not None and self.result.early_write.saw("unsafe")

    @cached_property
    def broken_promises(self) -> int:
        """Count the processes in which the documentation's promise was broken."""
        broken = {"copy": "view", "view": "copy"}.get(self.promise or "")
        if broken is None or self.changed.dtype:
            return 0  # another dtype cannot be a view
        # A view of another device's memory cannot be made, whatever is promised.
        return sum(
            word == broken and (word == "view" or evidence.result_device == self.result.case.device)
            for word, evidence in self.kinds
        )

    @cached_property
    def words_by_address(self) -> frozenset[str]:
        """The views, copies and refusals that *alignment* saw, if each place has one answer."""
        if self.by_address is None or not self.by_address.says("dependent", "independent"):
            return frozenset()
        return frozenset(str(look.verdict) for _, look in self.by_address.evidence.places)

    @property
    def copies_elsewhere(self) -> bool:
        """Whether *alignment* saw a copy at some address."""
        return "copy" in self.words_by_address

    @property
    def stays_on_device(self) -> bool:
        """Whether the result is known to be on the device of the source."""
        return self.result_device == self.result.case.device

    @property
    def bounces(self) -> bool:
        """Whether the data go through the host: by NumPy, or all of the array was copied both ways.

        CUPTI's trace or the record of a simulated device knows the copies.
        """
        if not (self.result.case.device == "cuda" and self.stays_on_device):
            return False
        trace, owned = self.result.trace, self.result.ownership
        if owned is not None and owned.evidence.crosses_twice:
            return True
        copied = {"device to host": 0.0, "host to device": 0.0}
        for event in (trace.evidence.events if trace is not None else None) or ():
            if event.direction in copied:
                copied[event.direction] += event.bytes or 0.0
        both_ways = self.size_bytes > 0 and min(copied.values()) >= self.size_bytes
        return both_ways or self.result.case.protocol == "numpy"

    @cached_property
    def changed(self) -> Changed:
        """The parts of the array that did not survive."""
        wrong = [evidence for word, evidence in all_looks(self.result.values) if word == "wrong"]
        return (wrong[0].changed if wrong else None) or Changed()

    @property
    def is_wrong(self) -> bool:
        """Whether a part of the array did not survive in some process."""
        values = self.result.values
        return values is not None and values.saw("wrong") and not self.recasts

    @property
    def recasts(self) -> bool:
        """Whether a user's own statement makes another dtype or shape, as ``x.T`` does."""
        kinds = {*self.changed.kinds}
        is_own = self.result.case.is_statement and not self.reinterprets
        return is_own and bool(kinds) and kinds <= {"dtype", "shape"}

    @property
    def reinterprets(self) -> bool:
        """Whether another library's view of the memory has another dtype."""
        is_other = self.pair[0] != self.pair[1]
        return is_other and self.kind == "view" and self.changed.dtype is not None

    @property
    def recast_text(self) -> str:
        """Return ``to float32``, ``to shape 700x500`` or ``to row-major order``."""
        changed = self.changed if self.recasts else Changed()
        words = [*(changed.dtype or ())[1:]]
        words += [f"shape {shape_text(shape)}" for shape in (changed.shape or ())[1:]]
        if not words and self.kind == "copy" and self.new_order:
            words = [f"{self.new_order} order"]
        return " and ".join(f"to {word}" for word in words)

    @property
    def orders(self) -> tuple[str, str] | None:
        """The memory orders of source and result, ``F`` or ``C``; None if processes disagree."""
        orders = {evidence.orders for _, evidence in all_looks(self.result.values)}
        return orders.pop() if len(orders) == 1 else None

    @property
    def new_order(self) -> str:
        """``row-major`` or ``column-major`` of the result; empty if it has its source's order."""
        source, result = self.orders or ("", "")
        return "" if source == result else ORDERS[result]

    @property
    def new_strides(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Strides of source and result, if those of a view or of an empty array differ."""
        found = (evidence.strides for _, evidence in all_looks(self.result.values))
        is_shared = self.kind == "view" or 0 in self.result.case.shape
        return next(filter(None, found), None) if is_shared and self.is_right else None

    @property
    def is_right(self) -> bool:
        return self.result.values is not None and self.result.values.verdict == "ok"

    @cached_property
    def writable(self) -> Writable:
        """Whether source and result can be written; None if that is not known."""
        found = (evidence.writable for _, evidence in all_looks(self.result.values))
        return next((flags for flags in found if flags is not None), Writable())

    @property
    def loses_read_only(self) -> bool:
        return (self.kind, self.writable.source, self.writable.result) == ("view", False, True)

    def with_verdict(self, name: str, word: str) -> CaseView:
        """Return the case with the evidence of the first process that saw ``word``."""
        verdict: Verdict[Any] | None = getattr(self.result, name)
        evidence = verdict.first(word) if verdict is not None else None
        if verdict is None or evidence is None or verdict.says(word):
            return self
        alone = verdict.model_copy(update={"verdict": word, "evidence": evidence})
        return replace(self, result=self.result.model_copy(update={name: alone}))

    def how_often(self, name: str, word: str) -> str:
        """Return ``Seen in 1 of 3 processes.``; empty if all agree."""
        verdict: Verdict[Any] | None = getattr(self.result, name)
        return verdict.how_often(word) if verdict is not None else ""

    @property
    def is_unordered(self) -> bool:
        """Whether a process saw a result that is not ordered after the work on its source."""
        return self.result.ordering is not None and self.result.ordering.saw("unordered")

    @property
    def order(self) -> str | None:
        return self.result.ordering.verdict if self.result.ordering else None

    @property
    def waits_for(self) -> str | None:
        """The word of :data:`WAITS` that fits the call, also if it is a race."""
        ordering = self.result.ordering
        if ordering is None:
            return None
        # A race may wait too: it reads first, and waits then.
        word = ordering.evidence.waits if ordering.verdict == "unordered" else ordering.verdict
        return word if word in WAITS else None

    @property
    def loaded(self) -> tuple[float, float] | None:
        """The call's host time behind the longest queue, and the length of that queue."""
        loaded = self.result.ordering.evidence.loaded if self.result.ordering else None
        if loaded is None or loaded.host_ns is None or not (loaded.queued_ns or 0) > 0:
            return None
        return loaded.host_ns, loaded.queued_ns or 0.0

    @property
    def share(self) -> float | None:
        """The share of the queue that the call took."""
        ordering = self.result.ordering
        if ordering is not None and ordering.evidence.recorded:  # it waits, or it does not
            return 1.0 if self.waits_for else 0.0
        return min(self.loaded[0] / self.loaded[1], 1.0) if self.loaded else None

    @property
    def waits_for_all(self) -> bool:
        """Whether it waits for the whole queue."""
        return self.share is not None and self.share >= ALL

    @property
    def peak_arrays(self) -> float | None:
        peak = self.result.peak_memory
        return peak.evidence.arrays if peak is not None and peak.says("ok") else None

    @property
    def is_cached(self) -> bool:
        """Whether the framework keeps the result: a new array costs more than the timed one."""
        return self.result.fresh_source is not None and self.result.fresh_source.says("kept")


def _can_be_compared(longer: TimeMeasure | None, shorter: TimeMeasure | None) -> bool:
    """Whether both times are certain, or too far apart for other programs to explain."""
    long, short = longer and longer.ci95_ns, shorter and shorter.ci95_ns
    if longer is None or not long or not short:
        return False
    is_far = min(long[0], longer.min_ns) >= thresholds.FAR_RATIO * short[1]
    return is_far or (is_known(longer) and is_known(shorter))


def longer_by_itself(
    longer: TimeMeasure | None, shorter: TimeMeasure | None, ratio: float, gap_ns: float
) -> bool:
    """Return whether ``longer`` takes ``ratio`` times as long and ``gap_ns`` more, beyond noise.

    Both times must be certain, or far apart. Its interval must lie above that of ``shorter``, or
    it must take ``ratio`` times as long in every process that measured both. Its fastest sample
    must confirm it: other programs only ever add time.
    """
    if longer is None or shorter is None or not _can_be_compared(longer, shorter):
        return False
    is_longer = longer.median_ns >= max(ratio * shorter.median_ns, shorter.median_ns + gap_ns)
    if not is_longer or longer.min_ns < thresholds.LEAST_RATIO * shorter.median_ns:
        return False
    long, short = longer.ci95_ns or (0.0, 0.0), shorter.ci95_ns or (0.0, 0.0)
    # Load makes the intervals wide, but it slows both paths of a process.
    ratios = [slow / fast for slow, fast in _by_process(longer, shorter)]
    return min(ratios, default=0.0) >= ratio or long[0] > short[1]


def is_too_fast_to_copy(case: CaseView) -> bool:
    """Whether a copy is too fast to have copied all its bytes.

    The reference copies as many bytes in the same process, on all processors. A broadcast array,
    whose one row is read from a cache, and a copy of another dtype are not judged.
    """
    cost, ready = case.result.copy_cost, case.ready
    if cost is None or cost.least_ns is None or ready is None or case.kind != "copy":
        return False
    if case.result.case.layout == "broadcast" or case.changed.dtype:
        return False
    is_one = is_known(ready) and not is_wide(ready)
    return is_one and case.cost_ns * thresholds.LEAST_RATIO < cost.least_ns


def saved_ns(case: CaseView, other: CaseView | None) -> float:
    """Return the time that the other path saves; 0 if they cannot be compared."""
    if other is None or not _can_be_compared(case.ready, other.ready):
        return 0.0
    return max(case.cost_ns - other.cost_ns, 0.0)


def surely_saved_ns(longer: TimeMeasure | None, shorter: TimeMeasure | None) -> float:
    """Return the least difference: between the intervals, or in every process that measured both;
    0 if they cannot be compared.
    """
    if longer is None or shorter is None or not _can_be_compared(longer, shorter):
        return 0.0
    long, short = longer.ci95_ns or (0.0, 0.0), shorter.ci95_ns or (0.0, 0.0)
    gaps = [slow - fast for slow, fast in _by_process(longer, shorter)]
    return max(long[0] - short[1], min(gaps, default=0.0), 0.0)


def _by_process(longer: TimeMeasure, shorter: TimeMeasure) -> list[tuple[float, float]]:
    """Return both medians of each process; empty if too few processes measured both."""
    slow, fast = longer.medians_by_round, shorter.medians_by_round
    both = [(slow[round_], fast[round_]) for round_ in slow.keys() & fast.keys()]
    known = [medians for medians in both if min(medians) > 0]
    return known if len(known) >= thresholds.LEAST_PROCESSES else []
