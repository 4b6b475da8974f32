"""Which case of BASE is which of HEAD."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """One case on both sides; None where a side does not have it."""

    base: Result | None
    head: Result | None

    @property
    def case(self) -> CaseRecord:
        found = self.head or self.base
        assert found is not None  # noqa: S101 - a pair has a side
        return found.case

    @property
    def environment(self) -> str:
        """Where it was measured; empty where a session has one environment only."""
        found = self.head or self.base
        return (found.environment if found else None) or ""


@dataclass(frozen=True)
class Matched:
    """All cases of both sides; ``ambiguous`` are keys that a session has more than once."""

    pairs: tuple[Pair, ...]
    ambiguous: tuple[Key, ...] = ()
    named: bool = True
    """Whether environments were told apart by their names."""


def key(case: CaseRecord) -> Key:
    """What makes a case the same in another session: the ways by name, and the array."""
    way = (case.producer, case.export, case.consumer, case.import_)
    return (*way, case.shape, case.dtype, case.layout, case.device)


def code_key(case: CaseRecord) -> Key:
    """The same by what a user types: a probe may rename its ways."""
    pair = (case.producer, case.consumer, case.code)
    return (*pair, case.shape, case.dtype, case.layout, case.device)


def match(base: Iterable[Result], head: Iterable[Result]) -> Matched:
    """Match by the names of the ways, and what is left by code. A case that a session has twice
    is matched with nothing: which of them is meant cannot be told. The only environment of one side
    is that of a side that names none.
    """
    sides = list(base), list(head)
    named = not _is_one_place(*sides)
    bases, twice = _unique(sides[0], named)
    heads, twice_too = _unique(sides[1], named)
    ambiguous = {*twice, *twice_too}
    for name in ambiguous:
        bases.pop(name, None)
        heads.pop(name, None)
    renamed = _renamed(bases, heads, named)
    pairs = [Pair(found, heads.get(renamed.get(name, name))) for name, found in bases.items()]
    taken = {renamed.get(name, name) for name in bases}
    pairs += [Pair(None, found) for name, found in heads.items() if name not in taken]
    return Matched(tuple(pairs), tuple(sorted(ambiguous, key=repr)), named)


def _is_one_place(base: Sequence[Result], head: Sequence[Result]) -> bool:
    places = [{result.environment or "" for result in side} for side in (base, head)]
    return {""} in places and all(len(names) <= 1 for names in places)


def _unique(results: Iterable[Result], named: bool) -> tuple[dict[Key, Result], set[Key]]:
    found: dict[Key, Result] = {}
    twice: set[Key] = set()
    for result in results:
        name = (*key(result.case), *(_where(result) if named else ()))
        if name in found:
            twice.add(name)
        found[name] = result
    return found, twice


def _by_code(result: Result, named: bool) -> Key:
    return (*code_key(result.case), *(_where(result) if named else ()))


def _where(result: Result) -> Key:
    """The environment it was measured in, where the session has several."""
    return (result.environment,) if result.environment else ()


def _renamed(
    bases: Mapping[Key, Result], heads: Mapping[Key, Result], named: bool
) -> dict[Key, Key]:
    """Cases of BASE that HEAD has under other names, where only one case can be meant."""
    lost = [name for name in bases if name not in heads]
    fresh = [name for name in heads if name not in bases]
    codes = Counter(_by_code(bases[name], named) for name in lost)
    by_code: dict[Key, list[Key]] = {}
    for name in fresh:
        by_code.setdefault(_by_code(heads[name], named), []).append(name)
    found = {}
    for name in lost:
        code = _by_code(bases[name], named)
        if codes[code] == 1 and len(by_code.get(code, ())) == 1:
            found[name] = by_code[code][0]
    return found


def asked_for(header: Header, case: CaseRecord, environment: str | None = None) -> bool:
    """Whether a session set out to measure ``case``: if it did, and has not, the case is gone.

    ``environment`` is where; None where that does not matter.

    A session that does not say what it was asked for is taken to have been asked. What a scenario
    asked for with a glob, as ``torch->*``, is asked for also where a framework was not there.
    """
    request = header.request
    axes = request.get("axes")
    if environment is not None and environment not in _environments(header):
        return False
    if not _names_pair(request, case) or not _names_way(request.get("globs"), case):
        return False
    if not isinstance(axes, dict):
        return True
    device = axes.get("device")
    if device not in (None, "auto", case.device) and _is_text(device):
        return False
    shapes = _told(axes.get("shapes"), _is_shape)
    texts = (("dtypes", case.dtype), ("layouts", case.layout))
    if shapes is not None and tuple(case.shape) not in map(tuple, shapes):
        return False
    told = [(_told(axes.get(name), _is_text), value) for name, value in texts]
    return all(values is None or value in values for values, value in told)


def _environments(header: Header) -> set[str]:
    return {str(one.get("name", "")) for one in header.environments} or {""}


def _names_pair(request: Mapping[str, Any], case: CaseRecord) -> bool:
    pair = (case.producer, case.consumer)
    patterns = _told(mapping(request.get("scenario")).get("pairs"), _is_text)
    if patterns:
        return any(_matches(text, pair) for text in patterns)
    pairs = _told(request.get("pairs"), _is_pair)
    return pairs is None or any(tuple(one) == pair for one in pairs)


def _matches(pattern: str, pair: tuple[str, str]) -> bool:
    try:
        return parse(pattern).matches(pair)
    except UsageError:  # of another version of dlprof
        return True


def _names_way(globs: Any, case: CaseRecord) -> bool:
    """As :func:`dlprof.plan.pairing.matches`, for code whose dtype and shape are filled in."""
    told = _told(globs, _is_text)
    if not told:
        return True
    names = (f"{case.export}->{case.import_}", case.code)
    return any("{" in glob or any(fnmatchcase(name, glob) for name in names) for glob in told)


def _told(values: Any, fits: Callable[[Any], bool]) -> list[Any] | None:
    """A list of a session; None where it is no list, or holds what nobody asks for."""
    if not isinstance(values, list | tuple) or not all(fits(value) for value in values):
        return None
    return list(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_text, value))  # noqa: PLR2004 - a pair


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(length, int) for length in value)
