"""The evidence of an instrument in words with units, each fact once; and how sure a finding is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from dlprof.judge.case_view import seen
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.axes import shape_text
from dlprof.runner.evidence import Evidence, TraceEvent
from dlprof.runner.quantity import plain_time, significant, size_text
from dlprof.runner.session import Result
from dlprof.text.clean import clean

LONGEST = 1200
NOT_TOLD = {
    *("create", "created_shape", "code", "plain_create"),
    *("processes", "points", "by_streams", "lost"),
}
"""Evidence that a reproducer shows, that the reason says, or that is too long for a line."""

LEFT_BEHIND = {
    "bytes_per_conversion": "memory",
    "references_per_conversion": "references",
    "objects_per_conversion": "objects",
    "descriptors_per_conversion": "file descriptors",
    "threads_per_conversion": "threads",
    "maps_per_conversion": "memory maps",
}
Phrase = str | tuple[str, str] | Callable[[Any], str]
"""A text with a place for the value; of a flag what true and what false mean; or a function."""


def facts(evidence: Evidence, untimed: bool = False) -> str:
    """All values of an evidence in one line; without times ``untimed``."""
    found = evidence.model_dump(exclude_none=True, exclude=NOT_TOLD)
    if "source_alignments_bytes" in found:  # which hold the one of the first process
        found.pop("source_alignment_bytes", None)
    if untimed:
        found = _without_times(found)
    idle = [key for key, value in found.items() if key in LEFT_BEHIND and value == 0]
    for key in idle:
        del found[key]
    if "other_device" in found:  # which is asked of what works as it is
        found.pop("reason", None)
    kinds = (kind.__name__ for kind in reversed(type(evidence).__mro__))
    phrases = dict(COMMON)
    for kind in kinds:
        phrases |= OF_INSTRUMENT.get(kind, {})
    none = f"left behind: no {', '.join(LEFT_BEHIND[key] for key in idle)}" if idle else ""
    told = "; ".join(filter(None, (none, *_phrases(found, phrases))))
    return clean(" ".join(told.split()), LONGEST)


def _phrases(
    found: Mapping[str, Any], phrases: Mapping[str, Phrase], before: str = ""
) -> Iterator[str]:
    for key, value in found.items():
        place = f"{before}{key}"
        phrase = phrases.get(place)
        if callable(phrase):
            yield phrase(value)
        elif isinstance(phrase, tuple):
            yield phrase[0 if value else 1]
        elif phrase is not None:
            yield phrase.format(_value(key, value))
        elif isinstance(value, dict):
            yield from _phrases(value, phrases, f"{place}.")
        else:
            name = place.removesuffix("_ns").removesuffix("_bytes")
            yield f"{name.replace('_', ' ').replace('.', ' ')}: {_value(key, value)}"


def _without_times(found: Mapping[str, Any]) -> dict[str, Any]:
    timeless = {
        key: _without_times(value) if isinstance(value, dict) else value
        for key, value in found.items()
        if not key.endswith("_ns")
    }
    return {key: value for key, value in timeless.items() if value != {}}


def _value(key: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(key, part) for part in value)
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {_value(name, part)}" for name, part in value.items() if name not in NOT_TOLD
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and key.endswith("_ns"):
        return plain_time(value)
    if isinstance(value, int | float) and ("bytes_" in key or key.endswith("bytes")):
        return size_text(int(value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _line(what: str, fit: Mapping[str, Any]) -> str:
    """A time against the length of the queue before it."""
    told = []
    if "slope" in fit:
        told.append(f"{what} follows the queue with a slope of {_slope(fit['slope'])}")
    if "interval" in fit:
        told.append(f"95 % interval {' to '.join(map(_slope, fit['interval']))}")
    if "intercept_ns" in fit:
        told.append(f"{plain_time(fit['intercept_ns'])} without a queue")
    if "scatter" in fit:
        told.append(f"scatter {significant(100 * fit['scatter'], 2)} % of the queue")
    return ", ".join(told)


def _slope(found: float) -> str:
    return f"{round(found, 2) + 0.0:.2f}"  # no -0.00


def _loaded(found: Mapping[str, Any]) -> str:
    call, queue = (
        plain_time(found[name]) if name in found else "?" for name in ("host_ns", "queued_ns")
    )
    return f"the call took {call} behind a queue of {queue}"


def _look(where: str, found: Mapping[str, Any]) -> str:
    """What came of a source at one address."""
    at = found.get("alignment_bytes")
    begins = f" ({size_text(int(at))})" if at is not None else ""
    why = f", {found['reason']}" if found.get("reason") else ""
    return f"{where}{begins}: {found.get('verdict', '?')}{why}"


def _by_size(what: str, found: Mapping[str, str]) -> str:
    """Sizes with the same answer together: ``a view at 4 KiB, 64 KiB and a changed copy at …``."""
    sizes: dict[str, list[str]] = defaultdict(list)
    for size, word in found.items():
        sizes[word].append(size_text(int(size)) if size.isdecimal() else size)
    told = " and ".join(
        f"{WRITTEN_AFTER.get(word, word)} at {', '.join(alike)}" for word, alike in sizes.items()
    )
    return f"{what}: {told}"


WRITTEN_AFTER = {"whole": "an unchanged copy", "torn": "a changed copy", "view": "a view"}
"""What a write to the source right after the call leaves."""


def _became(what: str, found: Any) -> str:
    before, after = (
        shape_text(tuple(one)) or "scalar" if isinstance(one, list | tuple) else str(one)
        for one in found
    )
    return f"{what} {before} became {after}"


def _count(what: str, found: Mapping[str, Any]) -> str:
    first = f", first at index {found['first_index']}" if "first_index" in found else ""
    lost = "; they are the source's bytes, swapped" if found.get("byte_order_lost") else ""
    return f"{what}: {found.get('different', '?')} of {found.get('of', '?')} differ{first}{lost}"


def _orders(found: Any) -> str:
    words = {"F": "column-major", "C": "row-major"}
    source, result = (words.get(order, "?") for order in found)
    return f"the source has {source} order, the result {result} order"


def _settings(found: Any) -> str:
    return ", ".join(
        f"the {one.get('name', 'setting')}: {one.get('before', '?')} before the call and"
        f" {one.get('after', '?')} after it"
        for one in found
    )


def _device_asked(found: Any) -> str:
    device = ", ".join(map(str, found))
    return f"x.__dlpack__ was asked for the DLPack device ({device}) with copy=False"


def _event(found: Mapping[str, Any]) -> str:
    told = [
        f"at {plain_time(found['start_ns'])}" if "start_ns" in found else "",
        f"for {plain_time(found['duration_ns'])}" if "duration_ns" in found else "",
        f"{size_text(int(found['bytes']))}" if found.get("bytes") else "",
        found.get("direction") or "",
        f"{plain_time(found['device_ns'])} on the device" if found.get("device_ns") else "",
        found.get("kernel") or "",
        "waited" if found.get("waited") else "",
    ]
    return f"{found.get('name', 'a call')} ({' '.join(filter(None, told))})"


COMMON: dict[str, Phrase] = {
    "reason": "{}",
    "moot": ("there was nothing to look at", ""),
    "corners": ("of NaN, infinities, denormals and extremes", "of the usual values"),
}
OF_INSTRUMENT: dict[str, dict[str, Phrase]] = {
    "Ownership": {
        "source_write_shows": (
            "a write to the source shows in the result",
            "a write to the source does not show in the result",
        ),
        "result_write_shows": (
            "a write to the result shows in the source",
            "a write to the result does not show in the source",
        ),
        "not_written": "{}",
        "one_file": ("both are mappings of one file", ""),
    },
    "Ordering": {
        "host": partial(_line, "the call's time"),
        "ready": partial(_line, "the time until the result is ready"),
        "unrelated": partial(_line, "the call's time behind unrelated work"),
        "ready_witness": "waited for by {}",
        "values_right": ("the values are right", "the values are wrong"),
        "loaded": _loaded,
    },
    "Values": {
        "changed.shape": partial(_became, "shape"),
        "changed.dtype": partial(_became, "dtype"),
        "changed.values": partial(_count, "values of the result"),
        "changed.source": partial(_count, "values of the source before and after"),
        "changed.earlier_result": partial(_count, "values of an earlier result"),
        "changed.after_write": partial(_count, "values after a write to the source"),
        "changed.unfinished": partial(_count, "values at once, which are there a moment later"),
        "orders": _orders,
    },
    "ChangedSettings": {
        "changed": _settings,
    },
    "Alignment": {
        "aligned": partial(_look, "aligned source"),
        "sliced": partial(_look, "source that begins one element further"),
    },
    "Refused": {
        "error": lambda found: f"the error is a {found[0]}" if found else "",
        "other_device": _device_asked,
        "words": "{}",
        "after": "a plain array that was converted before gives: {}",
    },
    "EarlyWrite": {
        "sizes_bytes": partial(_by_size, "x where the allocator puts it"),
        "unaligned_bytes": partial(_by_size, "x not aligned"),
        "aligned": lambda found: f"an aligned x of this size: {WRITTEN_AFTER.get(found, found)}",
    },
    "PeakMemory": {
        "arrays": lambda found: f"{found:.2f} arrays beyond the source at the peak",
        "aligned_arrays": lambda found: f"{found:.2f} if the source is aligned",
    },
    "Trace": {
        "events": lambda found: f"calls: {', '.join(map(_event, found))}",
    },
}
"""By the class of the evidence and the place of a value in it; the names of others say enough."""


WORDS = {
    "early_write": {
        "unsafe": "a write right after the call changed a copy",
        "safe": "a write right after the call changed no copy",
    },
    "refusal": {
        "unknown": "refused",
        "clean": "refused, and nothing stays behind",
        "retained": "refused, and something stays behind",
        "broken": "refused, and then another array does not convert",
    },
}
"""Verdicts that say little by themselves, by instrument."""
MOST = 12
MOST_CALLS = 3


def observations(result: Result, instrument: str) -> list[str]:
    """A line for each process that looked, with its verdict and the evidence for it."""
    looks = [
        f"{WORDS.get(instrument, {}).get(word, word)}: {facts(evidence, result.untimed)}"
        for word, evidence in seen(getattr(result, instrument, None))
    ]
    more = [f"and {len(looks) - MOST:,} more processes"] if len(looks) > MOST else []
    if len(looks) > 1:
        looks = [f"process {at} of {len(looks)}: {one}" for at, one in enumerate(looks, 1)]
    elif instrument in DIAGNOSIS:
        looks = [f"{one} (seen once, at the first shape of the path)" for one in looks]
    elif len(result.rounds) > 1:
        looks = [f"the same in {len(result.rounds)} processes: {one}" for one in looks]
    return [*looks[:MOST], *more]


def trace(result: Result) -> str:
    """``The trace saw: cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms.``: calls that
    waited or copied, the longest first. Empty where there are none.
    """
    events = (result.trace.evidence.events if result.trace is not None else None) or ()
    ranked = sorted(events, key=lambda event: -(event.duration_ns or 0.0))
    found = [text for event in ranked if (text := _call(event))]
    return f"The trace saw: {', '.join(found[:MOST_CALLS])}." if found else ""


def _call(event: TraceEvent) -> str:
    did = ["waited"] if event.waited else []
    if event.bytes and event.direction:
        did.append(f"copied {size_text(int(event.bytes))} ({event.direction})")
    # How long a wait took is how much was queued for the trace.
    took = f" in {plain_time(event.duration_ns)}" if event.duration_ns and not event.waited else ""
    return f"{event.name or 'a call'} {' and '.join(did)}{took}" if did else ""
