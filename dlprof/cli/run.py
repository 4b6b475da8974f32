"""``dlprof run``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from dlprof.cli.options import CONSUMER, PRODUCER, Given, takes
from dlprof.plan import options as every

SURVEY = replace(every.SURVEY, default=True)


@takes(
    *(*every.AXES, every.PLACEMENTS, every.SETUP),
    *(*every.HOW, every.SAMPLE_MS, every.ALLOCATOR, every.DIAGNOSE, SURVEY),
    *(
        every.FAIL_ON,
        *every.INTERPRETER,
        every.SESSION,
        every.YES,
        every.FULL,
        *every.REPORTS,
        every.RESUME,
    ),
)
def run(
    producer: Annotated[
        str | None,
        PRODUCER,
    ] = None,
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
    if producer is None or consumer is None:
        raise UsageError("name a producer and a consumer, such as: dlprof run torch numpy")
    values = given.settled({"survey": not simulated_in(given.values.get("devices", ()))})
    catalog = inspected(values["python"], values["probes"], simulated_in(values["devices"]))
    from dlprof.cli.measure import measure
    from dlprof.plan.catalog import pairs_named
    from dlprof.plan.request import request_of

    pairs = pairs_named(catalog, producer, consumer)
    measure(request_of(values, pairs, ("run", producer, consumer)), catalog, given)
