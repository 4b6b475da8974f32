"""What a sweep of one interpreter measures, as a session tells of it."""

from __future__ import annotations

from dataclasses import replace

from dlprof.plan.pairing import Case
from dlprof.plan.settings import OWN_PROCESS_BYTES, Settings, sample_ns_for
from dlprof.runner.place import place_of
from dlprof.scenario.request import Sweep
from dlprof.session.model import CaseRecord

NO_TURNS = (
    "Arrays of 1 GiB or more took no turns: their sides were measured one after the other, round by"
    " round."
)


def cases_of(sweep: Sweep) -> list[CaseRecord]:
    """Its cases. Raises :class:`~dlprof.errors.Unmeasured` where there are none."""
    return [CaseRecord.model_validate(case.record()) for case in _planned(sweep)]


def settings_of(sweep: Sweep, rounds: int) -> Settings:
    """How a gate of so many rounds measures it, as its session will say."""
    settings = replace(sweep.request.settings, rounds=rounds)
    return replace(settings, sample_ns=sample_ns_for(settings, _planned(sweep)))


def without_turns(sweep: Sweep) -> tuple[str, ...]:
    """What is to be said where two arrays of a case at once may be more than there is memory."""
    large = any(case.size_bytes >= OWN_PROCESS_BYTES for case in _planned(sweep))
    return (NO_TURNS,) if large else ()


def _planned(sweep: Sweep) -> tuple[Case, ...]:
    request = sweep.request
    place = place_of(request.pairs, request.axes, request.globs, sweep.catalog)
    return tuple(place.cases)
