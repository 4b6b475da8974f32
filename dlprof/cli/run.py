"""``dlprof run``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from dlprof.cli.options import CONSUMER, PRODUCER, Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Text

if TYPE_CHECKING:
    from dlprof.session.trace_file import Row

FROM = Option(
    "trace_row",
    Text(),
    "Take frameworks, shape, dtype and device from this row of a trace: LAST:1.",
    every.ARRAYS,
    flag="--from",
    metavar="TRACE:N",
)


@takes(
    *(*every.RUN, FROM, every.FAIL_ON),
    *(every.SESSION, every.YES, every.FULL, *every.REPORTS, every.RESUME),
)
def run(
    producer: Annotated[str | None, PRODUCER] = None,
    consumer: Annotated[str | None, CONSUMER] = None,
    *,
    given: Given,
) -> None:
    """Measure every way from one framework to another.

    Example: dlprof run torch numpy --shape 4096x4096
    """
    from dlprof.cli.inspection import inspected
    from dlprof.errors import UsageError
    from dlprof.plan.axes import simulated_in

    if given.raw["resume"] is not None:
        from pathlib import Path

        from dlprof.cli.measure import finish

        reason = "--resume takes what to measure from the file"
        given.check_none(reason, {"the frameworks": producer or consumer})
        finish(Path(given.raw["resume"]), given)
        return
    preset: dict[str, str] = {}
    trace_row = given[FROM]
    if trace_row is not None:
        from dlprof.cli.files import row_of_trace

        traced, row = row_of_trace(trace_row)
        producer, consumer = producer or row.producer, consumer or row.consumer
        preset = array_of(row)
    if producer is None or consumer is None:
        raise UsageError("name a producer and a consumer, such as: dlprof run torch numpy")
    values = given.settled(preset)
    catalog = inspected(values["python"], values["probes"], simulated_in(values["devices"]))
    from dlprof.cli.measure import measure
    from dlprof.plan.catalog import pairs_named
    from dlprof.plan.request import request_of

    pairs = pairs_named(catalog, producer, consumer)
    measure(request_of(values, pairs, ("run", producer, consumer)), catalog, given)
    if trace_row is not None:
        from dlprof.cli.streams import complain

        complain(f"dlprof report {shlex.quote(str(traced))} shows what the lines would gain.")


def array_of(row: Row) -> dict[str, str]:
    """The array that a row of a trace converts most often, as options have it."""
    from dlprof.plan.axes import shape_text
    from dlprof.probes.base import ANY_DEVICE, DTYPES

    if not row.arrays or row.arrays[0][0] not in DTYPES:
        return {}
    dtype, shape, *_ = row.arrays[0]
    where = row.device.partition(":")[0]
    device = {"devices": where} if where in ANY_DEVICE else {}
    return {"dtypes": dtype, "shapes": shape_text(tuple(shape)), **device}
