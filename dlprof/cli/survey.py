"""``dlprof survey``."""

from __future__ import annotations

from typing import Annotated

from dlprof.cli.options import CONSUMER, PRODUCER, Given, takes
from dlprof.plan import options as every


@takes(
    *(every.DEVICES, every.PATHS, every.SETUP, every.TIMEOUT),
    *(every.FAIL_ON, *every.INTERPRETER, every.SESSION, every.YES, every.FULL),
    *(every.JSON, every.HTML, every.MARKDOWN, every.JUNIT, every.GITHUB),
)
def survey(
    producer: Annotated[str, PRODUCER],
    consumer: Annotated[str, CONSUMER],
    *,
    given: Given,
) -> None:
    """Convert small arrays of every dtype, layout and shape, and look at the results.

    Example: dlprof survey numpy jax
    """
    from dataclasses import replace

    from dlprof.cli.inspection import inspected
    from dlprof.errors import UsageError
    from dlprof.plan.axes import simulated_in

    values = given.settled({"survey": True})
    if simulated_in(values["devices"]):
        raise UsageError("a simulated device runs no kernel: it shows no value to survey")
    catalog = inspected(values["python"], values["probes"])
    from dlprof.cli.measure import measure
    from dlprof.plan.catalog import pairs_named
    from dlprof.plan.request import request_of

    pairs = pairs_named(catalog, producer, consumer)
    request = request_of(values, pairs, ("survey", producer, consumer))
    settings = replace(request.settings, survey_alone=True, rounds=1)
    measure(replace(request, settings=settings), catalog, given)
