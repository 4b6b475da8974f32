"""``--resume``: what a session has is not measured again, and what is added fits to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlprof.analysis.case_view import mapping
from dlprof.compare.surroundings import Difference, in_place
from dlprof.errors import UsageError
from dlprof.plan.catalog import Catalog, environment
from dlprof.plan.pairing import Case
from dlprof.plan.request import Request, request_from
from dlprof.session import files, provenance, state
from dlprof.session import model as sessions
from dlprof.session.journal import Journal
from dlprof.session.merge import unmerge
from dlprof.session.slim import without_texts

ANOTHER = {
    "machine": "on another machine",
    "measuring": "by another dlprof",
    "python": "with another Python",
    "version": "with other versions",
}
"""Kinds of differences, in words, that one result cannot have between its rounds."""
IN_USE = "version"
"""The kind that matters only of what the measured frameworks consist of."""


def resume(path: Path, command: tuple[str, ...]) -> tuple[Request, sessions.Session]:
    """The request and the session of a file to be finished. Raises :class:`UsageError`."""
    session = sessions.load(path)
    if files.special(path):
        raise UsageError(f"{path} cannot be finished: it is no file that can be written again")
    if session.environments:
        raise UsageError(f"{path} holds several interpreters, so it cannot be finished")
    try:
        request = request_from(session.request, command)
    except (LookupError, TypeError, ValueError, UsageError):
        raise UsageError(
            f"{path} does not say what was asked for, so it cannot be finished"
        ) from None
    if not provenance.is_ours(path, state.state_folder()):
        # What is finished here is ours, and another's source text is not.
        session = session.model_copy(update={"results": list(map(without_texts, session.results))})
    return replace(request, command=command), session


def check_same(session: sessions.Session, catalog: Catalog) -> None:
    """The rounds of one result are rounds of one thing; raises :class:`UsageError` where not.

    What a session does not say of itself is not asked.
    """
    differ = list(_differences(session.environment, catalog, _measured(session)))
    said = [
        f"{words} ({', '.join(told)})"
        for kind, words in ANOTHER.items()
        if (told := dict.fromkeys(str(one) for one in differ if one.kind == kind))
    ]
    if said:
        raise UsageError(f"the session cannot be finished here: it was measured {', '.join(said)}")


def _measured(session: sessions.Session) -> set[str]:
    """The frameworks of which there are rounds that others must fit to."""
    cases = [result.case for result in session.results if result.status != "skipped"]
    return {name for case in cases for name in (case.producer, case.consumer)}


def _differences(then: dict[str, Any], catalog: Catalog, names: set[str]) -> Iterator[Difference]:
    probes = [probe for probe in catalog.probes if probe.name in names]
    used = {probe.distribution for probe in probes}
    if then.get("libraries") is not None:  # older sessions do not say them
        used |= {name for probe in probes for name in probe.also}
    if not mapping(then.get("packages")):
        used = set()
    for found in in_place(then, environment(catalog, {})):
        if found.kind != IN_USE or found.what in used:
            yield found


@dataclass(frozen=True)
class Recalled:
    """What a session knows: of planned cases by their place, of others, and of round trips."""

    known: Mapping[int, sessions.Result]
    unplanned: Sequence[sessions.Result]
    trips: list[sessions.RoundTrip]


def recall(
    session: sessions.Session, cases: Sequence[Case], journal: Journal, rounds: int
) -> Recalled:
    """Write what was measured into the journal, as if it had been measured now.

    Results that are not planned any more come behind those that are.
    """
    left = {
        _key(result.case.model_dump(by_alias=True)): (place, result)
        for place, result in enumerate(session.results)
    }
    known: dict[int, sessions.Result] = {}
    moved: dict[int, int] = {}
    for index, case in enumerate(cases):
        place, result = left.pop(_key(case.record()), (None, None))
        if place is None or result is None:
            continue
        known[index], moved[place] = result, index
        for round_, answer in _answers(result, rounds):
            journal.add(index, round_, answer)
    unplanned = list(left.values())
    moved |= {place: index for index, (place, _) in enumerate(unplanned, len(cases))}
    trips = [there for trip in session.round_trips if (there := _moved(trip, moved))]
    journal.mark()
    return Recalled(known, [result for _, result in unplanned], trips)


def _answers(result: sessions.Result, rounds: int) -> list[tuple[int, dict[str, Any]]]:
    try:
        return unmerge(result, rounds)
    except (LookupError, TypeError, ValueError, AttributeError):
        # What no field's type says may have another form in another version.
        raise UsageError(
            "the session cannot be finished: a result has not the form that this dlprof writes"
        ) from None


def _moved(trip: sessions.RoundTrip, moved: Mapping[int, int]) -> sessions.RoundTrip | None:
    """The trip with the places that its results have now; None where one has none."""
    indices = {trip.there, trip.back, *(one.result for one in trip.refused)}
    if not indices <= moved.keys():
        return None
    refused = [one.model_copy(update={"result": moved[one.result]}) for one in trip.refused]
    places = {"there": moved[trip.there], "back": moved[trip.back], "refused": refused}
    return trip.model_copy(update=places)


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    names = ("producer", "consumer", "code", "dtype", "layout", "device")
    return (*(record[name] for name in names), tuple(record["shape"]))


def together(
    here_s: float, here: float | None, earlier_s: float, earlier: float | None
) -> float | None:
    """The cores that others kept busy over both parts of a run; those of the one that is known
    now where the other's are not.
    """
    if here is None or earlier is None:
        return here
    whole_s = here_s + earlier_s
    return (here_s * here + earlier_s * earlier) / whole_s if whole_s else here
