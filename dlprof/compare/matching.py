"""Which case of BASE is which of HEAD, and whether a session was asked for a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlprof.errors import UsageError
from dlprof.scenario.pairs import parse
from dlprof.session.header import Asked
from dlprof.session.model import CaseRecord, Header, Result

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """One case on both sides; None for a side that does not have it."""

    base: Result | None
    head: Result | None

    @property
    def case(self) -> CaseRecord:
        found = self.head or self.base
        assert found is not None  # noqa: S101 - a pair has a side
        return found.case


@dataclass(frozen=True)
class Matched:
    """All cases of both sides; ``ambiguous`` are keys that a session has more than once."""

    pairs: tuple[Pair, ...]
    ambiguous: tuple[Key, ...] = ()


def key(case: CaseRecord) -> Key:
    """What makes a case the same in another session: export and import by name, and the array."""
    path = (case.producer, case.export, case.consumer, case.import_)
    return (*path, case.shape, case.dtype, case.layout, case.device)


def code_key(case: CaseRecord) -> Key:
    """The same by what a user types: a probe may rename its exports and imports."""
    pair = (case.producer, case.consumer, case.code)
    return (*pair, case.shape, case.dtype, case.layout, case.device)


def match(base: Iterable[Result], head: Iterable[Result]) -> Matched:
    """Match by the names of export and import, and the rest by code.

    A case that a session has twice is matched with nothing: which one is meant cannot be told.
    """
    bases, twice = _unique(base)
    heads, twice_in_head = _unique(head)
    ambiguous = twice | twice_in_head
    for name in ambiguous:
        bases.pop(name, None)
        heads.pop(name, None)
    renamed = _renamed(bases, heads)
    pairs = [Pair(found, heads.pop(renamed.get(name, name), None)) for name, found in bases.items()]
    pairs += [Pair(None, found) for found in heads.values()]
    return Matched(tuple(pairs), tuple(sorted(ambiguous, key=repr)))


def _unique(results: Iterable[Result]) -> tuple[dict[Key, Result], set[Key]]:
    every = [(key(result.case), result) for result in results]
    counts = Counter(name for name, _ in every)
    return dict(every), {name for name, count in counts.items() if count > 1}


def _renamed(bases: Mapping[Key, Result], heads: Mapping[Key, Result]) -> dict[Key, Key]:
    """Cases of BASE that HEAD has under other names, if only one case can be meant."""
    gone = [name for name in bases if name not in heads]
    fresh = [name for name in heads if name not in bases]
    old = Counter(code_key(bases[name].case) for name in gone)
    new = Counter(code_key(heads[name].case) for name in fresh)
    by_code = {code_key(heads[name].case): name for name in fresh}
    codes = {name: code_key(bases[name].case) for name in gone}
    return {name: by_code[code] for name, code in codes.items() if old[code] == new[code] == 1}


def asked_for(header: Header, case: CaseRecord) -> bool:
    """Whether a session set out to measure ``case``: if it did, and has not, the case is gone.

    A session that does not say what it was asked for is taken to have been asked. A glob of a
    scenario, such as ``torch->*``, asks for a framework that was not installed, too.
    """
    asked, axes = header.request, header.request.axes
    return (
        _names_pair(asked, case)
        and _names_path(asked.globs, case)
        and axes.device in (None, "auto", case.device)
        and (axes.shapes is None or case.shape in axes.shapes)
        and (axes.dtypes is None or case.dtype in axes.dtypes)
        and (axes.layouts is None or case.layout in axes.layouts)
    )


def _names_pair(asked: Asked, case: CaseRecord) -> bool:
    pair = (case.producer, case.consumer)
    if asked.scenario is not None and asked.scenario.pairs:
        return any(_matches(text, pair) for text in asked.scenario.pairs)
    return asked.pairs is None or pair in asked.pairs


def _matches(pattern: str, pair: tuple[str, str]) -> bool:
    try:
        return parse(pattern).matches(pair)
    except UsageError:  # another version of dlprof wrote it
        return True


def _names_path(globs: Sequence[str] | None, case: CaseRecord) -> bool:
    """As :func:`dlprof.plan.pairing.matches`, for code with dtype and shape filled in."""
    names = (f"{case.export}->{case.import_}", case.code)
    return not globs or any(
        "{" in glob or any(fnmatchcase(name, glob) for name in names) for glob in globs
    )
