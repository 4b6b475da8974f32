"""``dlprof matrix``."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every

SAMPLE_MS = replace(every.SAMPLE_MS, default=20.0)
"""A matrix has hundreds of cases; its question is which way, not the last percent."""
DIAGNOSE = replace(every.DIAGNOSE, meaning="only on a simulated device")


@takes(
    *(*every.AXES, *every.HOW, SAMPLE_MS, every.ALLOCATOR, DIAGNOSE, every.FAIL_ON),
    *(*every.INTERPRETER, every.SESSION, every.YES, every.FULL, *every.REPORTS),
)
def matrix(*, given: Given) -> None:
    """Measure every installed framework with every other."""
    from dlprof.cli.inspection import inspected
    from dlprof.errors import Unmeasured
    from dlprof.plan.axes import simulated_in

    simulated = simulated_in(given.values.get("devices", ()))
    # Without times and without a diagnosis there would be next to nothing to say.
    values = given.settled({"together": True, "diagnose": bool(simulated)})
    catalog = inspected(values["python"], values["probes"], simulated)
    from dlprof.cli.measure import measure
    from dlprof.plan.catalog import frameworks_on
    from dlprof.plan.request import request_of

    names = frameworks_on(catalog, values["devices"])
    pairs = tuple(product(names, names))
    if not pairs:
        raise Unmeasured("no framework is installed that can be measured here")
    measure(request_of(values, pairs, ("matrix",)), catalog, given)
