"""Advice below the table of a trace: replacements of its conversions, and forms not seen."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from dlprof.runner.quantity import plain_time, size_text
from dlprof.runner.trace import LEAST_SHARE, Trace, TraceRow
from dlprof.text.clean import counted

SHARES = "shares memory and strides, so a later write to either shows in the other"
READ_ONLY = "shares memory and is read-only: a write to it raises"
REPLACEMENTS = {
    ("torch.tensor(x)", "numpy"): ("torch.from_numpy(x)", SHARES),
    ("torch.Tensor(x)", "numpy"): ("torch.from_numpy(x)", SHARES),
    ("t.new_tensor(x)", "numpy"): ("torch.from_numpy(x)", SHARES),
    ("numpy.array(x)", "torch"): ("x.numpy()", SHARES),
    ("numpy.array(x)", "jax"): ("numpy.asarray(x)", READ_ONLY),
    ("numpy.array(x)", "tensorflow"): ("numpy.from_dlpack(x)", READ_ONLY),
    ("x.numpy()", "tensorflow"): ("numpy.from_dlpack(x)", READ_ONLY),
    ("x.tolist()", "torch"): ("x.detach().numpy()", f"gives an array that {SHARES}"),
    ("x.tolist()", "jax"): ("numpy.asarray(x)", f"gives an array that {READ_ONLY}"),
}
"""By a conversion that copies or reads on the host, and its producer: the view, what changes."""
STACKED = {
    "torch": "torch.from_numpy(numpy.stack(list))",
    "jax": "jnp.asarray(numpy.stack(list))",
    "tensorflow": "tf.convert_to_tensor(numpy.stack(list))",
}
"""By framework: a conversion of a list of NumPy arrays that copies whole arrays."""
AFTERWARD = "keep results on the device, as a sum or a stack, and {} once after the loop."
PINNED = (
    "from pinned memory, non_blocking=True does not: then write to x only when the copy is done."
)
WAITS = {
    "tf.experimental.dlpack.to_dlpack(x)": (
        "waits for all that TensorFlow has queued, as its other exports do:"
        " convert once, before or after the loop."
    ),
    "numba.cuda.as_cuda_array(x)": (
        "waits for the queue: call it once before the loop, or with sync=False if the kernel runs"
        " on the stream of x."
    ),
    **dict.fromkeys(("x.to()", "x.cuda()", "t.copy_(x)"), f"waits for the queue; {PINNED}"),
}
"""By a conversion that waits in a loop: the cause, and what does without."""
LAUNCH = "kernel[…](x)"
MOST_ADVICE, MOST_PLACES = 6, 3
LEAST_LINE_NS = 100_000_000
"""The least time of a whole line that samples tell."""


def notes(trace: Trace) -> Iterator[str]:
    """Yield lines below the table: replacements, counts without a row, and forms not seen."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for row in trace.rows:
        if advice := replacement(row, trace.wall_ns):
            found[advice][row_place(row)] = None
    for advice, lines_of_advice in [*found.items()][:MOST_ADVICE]:
        yield f"{first_places([*lines_of_advice])}: {advice}"
    if trace.arguments:
        calls = sum(calls for _, _, calls, _ in trace.arguments)
        size = sum(size for *_, size in trace.arguments)
        lines, places = counted(len(trace.arguments), "line"), first_places(argument_places(trace))
        times_ns = {(file, line): ns for file, line, ns in trace.lines}
        took_ns = sum(times_ns.get((file, line), 0) for file, line, *_ in trace.arguments)
        whole = f", {plain_time(took_ns)} in whole lines" if took_ns > LEAST_LINE_NS else ""
        yield (
            f"NumPy arrays as arguments of jitted functions: {counted(calls, 'call')} on {lines}"
            f" ({size_text(size, 2)}{whole}), {places}. Their own time is not known."
            " Put what does not change on the device before the loop: jax.device_put(a)."
        )
    yield from _ways_back(trace)
    if trace.uncounted:
        texts = [
            f"{' and '.join(copies)} in {short_file(file)}:{line}"
            + (f" (whole line {plain_time(took_ns)})" if took_ns >= LEAST_LINE_NS else "")
            for file, line, took_ns, copies in trace.uncounted
        ]
        more = f"; {counted(len(texts) - MOST_PLACES, 'more line')}" if texts[MOST_PLACES:] else ""
        yield f"may copy without a row: {'; '.join(texts[:MOST_PLACES])}{more}."
    if trace.unseen:
        where = " elsewhere" if trace.uncounted else ""
        yield f"not seen, if they occur{where}: {', '.join(trace.unseen)}."


def _ways_back(trace: Trace) -> Iterator[str]:
    """Name lines between which an array goes to a framework and back."""
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in trace.rows:
        if row.origin is not None:
            file, line = row.origin
            goal = ", for a jitted function" * row.is_argument
            way = f"through {row.producer} and back to {row.consumer}{goal}"
            found[way, f"{short_file(file)}:{line}"][row_place(row)] = None
    for (way, first), backs in [*found.items()][:MOST_ADVICE]:
        took = f"{first_places([*backs])} took memory of a result of {first}"
        yield f"{way}: {took} in the first call."


def row_place(row: TraceRow) -> str:
    """Return the short file name and the line."""
    return f"{short_file(row.file)}:{row.line}" if row.line else row.file


def argument_places(trace: Trace) -> list[str]:
    """Return the lines that give NumPy arrays to compiled functions, the most bytes first."""
    return [f"{short_file(file)}:{line}" if line else file for file, line, *_ in trace.arguments]


def first_places(places: Sequence[str]) -> str:
    more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    return f"{', '.join(places[:MOST_PLACES])}{more}"


def short_file(file: str) -> str:
    """Return the path below the working folder, or the name alone elsewhere."""
    try:
        relative = Path(file).relative_to(Path.cwd())
    except (ValueError, OSError):
        return os.path.basename(file)  # noqa: PTH119 - it may be no path at all
    return relative.as_posix()


def replacement(row: TraceRow, wall_ns: float = math.inf) -> str:
    """Return what to write instead of the row's conversion; empty if no way is known as better."""
    if row.via:  # the call is in a package
        return ""
    if advice := _loop_advice(row):
        return advice
    is_long_read = row.reads and LEAST_SHARE * row.total_ns >= wall_ns
    if not (row.copies or is_long_read) or row.crossings or "copy" in row.allowed:
        return ""
    if row.producer == "list" and row.consumer in STACKED:
        before = row.conversion.replace("(x)", "(list of arrays)")
        return f"instead of {before} write {STACKED[row.consumer]}: it copies whole arrays at once."
    is_known = (row.conversion, row.producer) in REPLACEMENTS
    if row.retyped or joins_arrays(row) or not is_known:
        return ""
    better, change = REPLACEMENTS[row.conversion, row.producer]
    return f"instead of {row.conversion} write {better}: it {change}."


def _loop_advice(row: TraceRow) -> str:
    if row.calls <= 1 or "wait" in row.allowed:
        return ""
    waits, call = row.waits or row.maybe_waits, row.waits_in or row.conversion
    if row.reads and (waits or row.device.partition(":")[0] != "cpu"):
        return f"reads wait for the queue: {AFTERWARD.format('read')}"
    if row.conversion == LAUNCH:
        before = "write cuda.as_cuda_array(x) before the loop, once the work on x is done"
        if row.copies or row.device == "cpu":
            before = "write cuda.to_device(x) before the loop, copy_to_host() after it"
        return f"{row.conversion} converts its arguments at each launch: {before}."
    if waits and "cpu" in [target for _, target, _ in row.crossings]:
        return f"copies to the host wait for the queue: {AFTERWARD.format('copy')}"
    return f"{call} {WAITS[call]}" if waits and call in WAITS else ""


def joins_arrays(row: TraceRow) -> bool:
    """Whether calls took lists of arrays: a copy is larger than each of them."""
    largest = max((size for *_, size in row.arrays), default=0)
    return row.bytes > row.copies * largest
