"""The map: for each producer and consumer what the cheapest right way does, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.reports.html.entry import Entry
from dlprof.reports.html.pair_cells import called, cell

LEAST_PAIRS = 2


@dataclass(frozen=True)
class Square:
    """``entry`` is the case that it speaks of; None where no time was measured."""

    verdict: str
    cost: str
    entry: Entry | None
    kind: str


@dataclass(frozen=True)
class Map:
    """All squares of one array; a square is None where the pair was not tried."""

    title: str
    consumers: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Square | None, ...]], ...]


def maps(everything: Sequence[Entry]) -> list[Map]:
    """One for each array; none for a single pair, of which the tables say more."""
    everything = [entry for entry in everything if not entry.row.is_step]
    if len({entry.row.pair for entry in everything}) < LEAST_PAIRS:
        return []
    arrays: dict[tuple[str, ...], list[Entry]] = {}
    for entry in everything:
        arrays.setdefault(entry.row.array[1:], []).append(entry)
    return [_map(array, group) for array, group in arrays.items()]


def _map(array: Sequence[str], group: Sequence[Entry]) -> Map:
    pairs: dict[tuple[str, str], list[Entry]] = {}
    for entry in group:
        pairs.setdefault(_ends(entry), []).append(entry)
    consumers = tuple(dict.fromkeys(consumer for _, consumer in pairs))
    producers = dict.fromkeys(producer for producer, _ in pairs)
    shape, dtype, layout, device = array
    return Map(
        title=f"{shape} {dtype} {layout} on {device}",
        consumers=consumers,
        lines=tuple(
            (
                producer,
                tuple(
                    square(pairs[producer, consumer]) if (producer, consumer) in pairs else None
                    for consumer in consumers
                ),
            )
            for producer in producers
        ),
    )


def _ends(entry: Entry) -> tuple[str, str]:
    # Split from the cleaned text, so that both are fit to be shown.
    producer, _, consumer = entry.row.pair.partition(" → ")
    return producer, consumer


def said(found: Iterable[Map]) -> tuple[str, str]:
    """What the cases of the squares may be called, and why no more than that: a square may say that
    its case is not even that.
    """
    squares = [one for map_ in found for _, line in map_.lines for one in line if one is not None]
    safe = [one.entry.row.unlooked for one in squares if one.entry and one.entry.row.safe]
    return called(safe) if safe else ("measured", "")


def square(group: Sequence[Entry]) -> Square:
    """The cheapest right case, else the cheapest, else why there is none."""
    found = cell([entry.row for entry in group])
    measured = [entry for entry in group if entry.measured and entry.row.code == found.code]
    best = min(measured, key=lambda entry: entry.row.cost_ns, default=None)
    kind = found.verdict if found.verdict in ("view", "copy", "wrong") else "other"
    verdict = {"?": "unknown", "-": "unknown"}.get(found.verdict, found.verdict)
    if best is not None and verdict == "unsafe":
        kind, verdict = "wrong", f"{_owner(best)}, not safe"
    elif verdict == "unseen":
        verdict = "nothing to look at"
    elif verdict == "unchecked":
        verdict = "values not checked"
    elif best is not None and not best.row.safe:
        kind = "wrong"
    elif found.depends:
        verdict = f"{verdict}, by alignment"
    time = f"{found.cost} ({found.doubt})" if found.doubt else found.cost
    return Square(verdict, time, best, kind)


def _owner(entry: Entry) -> str:
    return {"?": "unknown", "-": "unknown"}.get(entry.row.owner, entry.row.owner)
