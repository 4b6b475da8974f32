"""One session as cells: of each case the verdicts in words, the rules and the time.

A store may hold ten thousand sessions. So no model of a session is made here: of each result only
what a cell needs is looked at. A value of another form counts as missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from pydantic import ValidationError

from dlprof.analysis.case_view import PLACES
from dlprof.compare.verdicts import SCALES
from dlprof.session import model
from dlprof.session.measured import DISTURBED
from dlprof.session.model import CaseRecord, Header, Session
from dlprof.text.clean import first_line

QUESTIONS = ("result", "values", "lifetime", "early_write", "ordering")
"""What a cell answers; the most important first."""
LOST = {"unsupported": "refused", "crashed": "crash", "timeout": "hangs"}
WHOLE = ("view", "copy")
AT_ADDRESSES = ("view", "copy", "refused")
"""What the address of an array may decide between."""
BY_ADDRESS = tuple(
    " or ".join(words) for count in (2, 3) for words in combinations(AT_ADDRESSES, count)
)
"""The results of paths where it does: ``view or copy``."""


class Time(NamedTuple):
    """A time per call and its interval; the interval is None if one process measured it."""

    median_ns: float
    interval_ns: tuple[float, float] | None


class Cell(NamedTuple):
    """``words`` answer :data:`QUESTIONS`; an empty one is unknown. ``reason`` is a refusal's."""

    words: tuple[str, ...]
    reason: str = ""
    rules: tuple[str, ...] = ()
    time: Time | None = None
    by_chance: bool = False
    """Whether nothing looked if the address decides between the view and the copy."""

    @property
    def result(self) -> str:
        return self.words[0]


@dataclass(frozen=True)
class SessionCells:
    """A session without its results; ``cells`` are those of its cases."""

    header: Header
    cells: tuple[tuple[CaseRecord, Cell], ...]


def read(path: str | os.PathLike[str], content: bytes | None = None) -> SessionCells:
    """The cells of a session file. Raises as :func:`dlprof.session.model.load`.

    ``content`` is that of a file elsewhere, of which ``path`` is the address.
    """
    return model.load_as(path, _entries, _session, content)


def _entries(key: str, contents: Iterable[Any]) -> list[Any]:
    """Of a long list what cells need: expectations and round trips are in none."""
    each: Callable[[Any], Any] = {"results": _result, "findings": _finding}.get(key, bool)
    return [each(one) for one in contents]


def _session(found: Mapping[str, Any]) -> SessionCells:
    # What is no list is refused as by those who read all of a session.
    lists: dict[str, list[Any]] = {
        key: [] for key in model.ENTRIES if isinstance(found.get(key), list)
    }
    header = Session.model_validate({**found, **lists})
    results, findings = found["results"], found.get("findings", [])
    rules: dict[int, dict[str, None]] = {}
    for rule, indices in findings:
        for index in indices:
            rules.setdefault(index, {})[rule] = None
    by_address = _by_address(results)
    cells = []
    for index, one in enumerate(results):
        if one is not None:
            case, words, reason, time, _ = one
            own = tuple(sorted(rules.get(index, ())))
            met = by_address.get(_path(case))
            may_vary = words[0] in WHOLE or "align" in reason
            if met in BY_ADDRESS and words[0] in AT_ADDRESSES:
                words = (str(met), *words[1:])
            # A survey puts its arrays where it wants them.
            by_chance = may_vary and met is None and not case.survey
            cells.append((case, Cell(words, reason, own, time, by_chance)))
    return SessionCells(header, tuple(cells))


NOT_CONVERTED = ("import", "create")
"""Where a case ends that says nothing of the path: without a framework, or without an array."""

_Result = tuple[CaseRecord, tuple[str, ...], str, Time | None, frozenset[str]]


def _result(content: Any) -> _Result | None:
    """Case, words, reason and time of a result, and what it is by the address; None for none."""
    try:
        case = CaseRecord.model_validate(content["case"])
    except (ValidationError, TypeError, KeyError):
        return None
    part = partial(_words, content)
    is_whole = content.get("status") in ("ok", "invalid")
    result = _worst("ownership", part("ownership")) if is_whole else ""
    is_made = content.get("refused_at") not in NOT_CONVERTED
    words = (
        result or LOST.get(str(content.get("status")) * is_made, ""),
        *(_worst(name, part(name)) if is_whole else "" for name in QUESTIONS[1:]),
    )
    reason = content.get("reason")
    return (
        case,
        words,
        first_line(reason) if isinstance(reason, str) and not is_whole else "",
        _time(content) if content.get("status") == "ok" else None,
        _places(content),
    )


def _words(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The verdicts of an instrument: several if processes disagree."""
    found = content.get(name)
    if not isinstance(found, dict):
        return ()
    if found.get("verdict") == "varies":
        evidence = found.get("evidence")
        each = _records(evidence, "processes") if isinstance(evidence, dict) else ()
        return tuple(str(one.get("verdict")) for one in each)
    return (str(found.get("verdict")),)


def _worst(name: str, words: Iterable[str]) -> str:
    """The worst word that a measure knows: a user may meet it."""
    scale = SCALES[name]
    return max((word for word in words if word in scale), key=scale.__getitem__, default="")


def _places(content: Mapping[str, Any]) -> frozenset[str]:
    """What the instrument *alignment* saw at all its places."""
    found = content.get("alignment")
    evidence = found.get("evidence") if isinstance(found, dict) else None
    if not isinstance(evidence, dict):
        return frozenset()
    looks = evidence.get("looks")
    seen = [evidence.get(place) for place in PLACES]
    words = [str(look.get("verdict")) for look in seen if isinstance(look, dict)]
    for several in looks.values() if isinstance(looks, dict) else ():
        words += map(str, several) if isinstance(several, list) else ()
    return frozenset(words)


_Path = tuple[str, str, str, str]


def _path(case: CaseRecord) -> _Path:
    return case.producer, case.export, case.consumer, case.import_


def _by_address(results: Iterable[_Result | None]) -> Mapping[_Path, str]:
    """The paths that *alignment* looked at, and what it saw of each at any dtype."""
    found: dict[_Path, frozenset[str]] = {}
    for one in results:
        if one is not None and one[4]:
            path = _path(one[0])
            found[path] = found.get(path, frozenset()) | one[4]
    return {
        path: " or ".join(word for word in AT_ADDRESSES if word in seen)
        for path, seen in found.items()
    }


def _time(content: Mapping[str, Any]) -> Time | None:
    """The ready time, if it is the path's own."""
    ready, host = content.get("ready_time"), content.get("host_time")
    if not isinstance(ready, dict):
        return None
    sampled = host if ready.get("same_as") == "host_time" and isinstance(host, dict) else ready
    processes = _records(sampled, "processes")
    disturbed = sum(_number(one.get("disturbed")) >= DISTURBED for one in processes)
    median = _number(ready.get("median_ns"))
    if median <= 0 or 0 < len(processes) <= 2 * disturbed:
        return None
    modes = [_number(one.get("median_ns")) for one in _records(ready, "modes")]
    ends = [min(modes), max(modes)] if modes else ready.get("ci95_ns")
    if not isinstance(ends, list) or len(ends) != len(("low", "high")):
        return Time(median, None)
    return Time(median, (_number(ends[0]), _number(ends[1])))


def _records(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The records of a list; none of what is no list."""
    found = content.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _finding(content: Any) -> tuple[str, list[int]]:
    """A rule and the results that it was found of."""
    found = content if isinstance(content, dict) else {}
    indices = found.get("results")
    known = indices if isinstance(indices, list) else []
    return str(found.get("rule")), [one for one in known if isinstance(one, int)]
