"""Which case of BASE is which of HEAD, and whether a session was asked for a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlprof.analysis.case_view import mapping
from dlprof.errors import UsageError
from dlprof.scenario.pairs import parse
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
    request = header.request
    if not _names_pair(request, case) or not _names_path(request.get("globs"), case):
        return False
    axes = mapping(request.get("axes"))
    device = axes.get("device")
    if isinstance(device, str) and device not in ("auto", case.device):
        return False
    shapes = _list(axes.get("shapes"), lambda value: isinstance(value, list | tuple))
    if shapes is not None and tuple(case.shape) not in map(tuple, shapes):
        return False
    named = [(_texts(axes.get(axis)), value) for axis, value in _axes(case)]
    return all(values is None or value in values for values, value in named)


def _axes(case: CaseRecord) -> tuple[tuple[str, str], ...]:
    return ("dtypes", case.dtype), ("layouts", case.layout)


def _names_pair(request: Mapping[str, Any], case: CaseRecord) -> bool:
    pair = (case.producer, case.consumer)
    patterns = _texts(mapping(request.get("scenario")).get("pairs"))
    if patterns:
        return any(_matches(text, pair) for text in patterns)
    pairs = _list(request.get("pairs"), lambda value: isinstance(value, list | tuple))
    return pairs is None or any(tuple(one) == pair for one in pairs)


def _matches(pattern: str, pair: tuple[str, str]) -> bool:
    try:
        return parse(pattern).matches(pair)
    except UsageError:  # another version of dlprof wrote it
        return True


def _names_path(globs: Any, case: CaseRecord) -> bool:
    """As :func:`dlprof.plan.pairing.matches`, for code with dtype and shape filled in."""
    names = (f"{case.export}->{case.import_}", case.code)
    found = _texts(globs) or ["*"]
    return any("{" in glob or any(fnmatchcase(name, glob) for name in names) for glob in found)


def _texts(values: Any) -> list[str] | None:
    return _list(values, lambda value: isinstance(value, str))


def _list(values: Any, fits: Callable[[Any], bool]) -> list[Any] | None:
    """A list of a session's request; None if it is none, or holds what dlprof does not write."""
    is_list = isinstance(values, list | tuple)
    return list(values) if is_list and all(fits(value) for value in values) else None
