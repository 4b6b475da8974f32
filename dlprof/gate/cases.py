"""What a sweep of one interpreter measures, as a session tells of it."""

from __future__ import annotations

from dlprof.place import place_of
from dlprof.scenario.request import Sweep
from dlprof.session import CaseRecord


def cases_of(sweep: Sweep) -> list[CaseRecord]:
    """Its cases. Raises :class:`~dlprof.errors.Unmeasured` where there are none."""
    request = sweep.request
    place = place_of(request.pairs, request.axes, request.globs, sweep.catalog)
    return [CaseRecord.model_validate(case.record()) for case in place.cases]
