"""Which case of BASE is which of HEAD, and whether a session was asked for a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlprof.errors import UsageError
from dlprof.measuring.pairs import parse
from dlprof.runner.header import RecordedRequest
from dlprof.runner.session import CaseRecord, Header, Result

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """One case on both sides; None for a side that does not have it.

    ``twice``: a session has several cases of this key, so which one is meant cannot be told.
    """

    base: Result | None
    head: Result | None
    twice: bool = False

    @property
    def case(self) -> CaseRecord:
        found = self.head or self.base
        assert found is not None  # noqa: S101 - a pair has a side
        return found.case


def key(case: CaseRecord) -> Key:
    """What makes a case the same in another session: export and import by name, and the array."""
    path = (case.producer, case.export, case.consumer, case.import_)
    return (*path, case.shape, case.dtype, case.layout, case.device)


def code_key(case: CaseRecord) -> Key:
    """The same by what a user types: a probe may rename its exports and imports."""
    pair = (case.producer, case.consumer, case.code)
    return (*pair, case.shape, case.dtype, case.layout, case.device)


def match(base: Iterable[Result], head: Iterable[Result]) -> list[Pair]:
    """Match by the names of export and import, and the rest by code."""
    sides = [list(base), list(head)]
    counts = [Counter(key(one.case) for one in side) for side in sides]
    twice = {name for count in counts for name, number in count.items() if number > 1}
    bases, heads = ({key(one.case): one for one in side} for side in sides)
    renamed = _renamed(bases, heads)
    pairs = []
    for name, before in bases.items():
        after = heads.pop(renamed.get(name, name), None)
        pairs.append(Pair(before, after, name in twice))
    return [*pairs, *(Pair(None, after, name in twice) for name, after in heads.items())]


def _renamed(bases: Mapping[Key, Result], heads: Mapping[Key, Result]) -> dict[Key, Key]:
    """Cases of BASE that HEAD has under other names, if only one case can be meant."""
    gone = {name: code_key(one.case) for name, one in bases.items() if name not in heads}
    fresh = {name: code_key(one.case) for name, one in heads.items() if name not in bases}
    old, new = Counter(gone.values()), Counter(fresh.values())
    by_code = {code: name for name, code in fresh.items()}
    return {name: by_code[code] for name, code in gone.items() if old[code] == new[code] == 1}


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


def _names_pair(asked: RecordedRequest, case: CaseRecord) -> bool:
    pair = case.pair
    if asked.scenario is not None and asked.scenario.pairs:
        return any(_matches(text, pair) for text in asked.scenario.pairs)
    return asked.pairs is None or pair in asked.pairs


def _matches(pattern: str, pair: tuple[str, str]) -> bool:
    try:
        return parse(pattern).matches(pair)
    except UsageError:  # another version of dlprof wrote it
        return True


def _names_path(globs: Sequence[str] | None, case: CaseRecord) -> bool:
    """As :func:`dlprof.runner.pairing.matches`, for code with dtype and shape filled in."""
    names = (f"{case.export}->{case.import_}", case.code)
    return not globs or any(
        "{" in glob or any(fnmatchcase(name, glob) for name in names) for glob in globs
    )
