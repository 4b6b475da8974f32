"""Which release changed the answer of a conversion? A search between a good and a bad one.

Each release is measured in an environment of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlprof.atlas.cells import QUESTIONS, Cell, read
from dlprof.atlas.changes import TIME, word_text
from dlprof.atlas.grid import version_key
from dlprof.compare.verdicts import RACE
from dlprof.errors import DlprofError, Interrupted, Unmeasured, Unsure, UsageError
from dlprof.jobs.environments import Unmade, made, resolved
from dlprof.judge.slower import are_apart
from dlprof.runner.catalog import ProbeInfo
from dlprof.text.clean import first_line


@dataclass(frozen=True)
class Tried:
    """A release: its cell, or why there is none. ``is_good`` is None where that tells nothing."""

    version: str
    cell: Cell | None
    reason: str = ""
    is_good: bool | None = None


@dataclass(frozen=True)
class Found:
    """``question`` is what changed. Releases between ``last_good`` and ``first_bad`` told nothing.

    ``tried`` are in the order of their versions.
    """

    question: str
    last_good: str
    first_bad: str
    tried: tuple[Tried, ...]

    @property
    def untold(self) -> list[str]:
        low, high = version_key(self.last_good), version_key(self.first_bad)
        return [one.version for one in self.tried if low < version_key(one.version) < high]


def between(releases: Sequence[str], good: str, bad: str) -> list[str]:
    """The releases from ``good`` to ``bad``, which may be the older one. Raises UsageError."""
    order = sorted({*releases}, key=version_key)
    for version in (good, bad):
        if version not in order:
            near = [one for one in order if one.startswith(f"{version}.")]
            hint = f"such as {', '.join(near[-3:])}" if near else f"the newest is {order[-1]}"
            raise UsageError(f"there is no release {version} that can be installed here; {hint}")
    low, high = sorted((order.index(good), order.index(bad)))
    found = order[low : high + 1]
    return found if order.index(good) <= order.index(bad) else found[::-1]


def bisect(versions: Sequence[str], measure: Callable[[str], Tried]) -> Found:
    """The step between the first of ``versions``, which is good, and the last, which is bad.

    A release that cannot be measured is passed over. Raises :class:`Unsure` if good and bad give
    the same, or one of them cannot be measured.
    """
    good, bad = measure(versions[0]), measure(versions[-1])
    for one in (good, bad):
        if one.cell is None:
            raise Unsure(f"{one.version} cannot be measured: {one.reason}")
    question = _difference(good, bad)
    known = {0: good, len(versions) - 1: bad}
    low, high = 0, len(versions) - 1
    while untried := [at for at in range(low + 1, high) if at not in known]:
        at = min(untried, key=lambda one: abs(2 * one - low - high))
        found = measure(versions[at])
        is_good = _is_good(question, found.cell, good, bad)
        known[at] = Tried(found.version, found.cell, found.reason, is_good)
        low, high = (at, high) if is_good else (low, at) if is_good is False else (low, high)
    known[0] = Tried(good.version, good.cell, is_good=True)
    known[len(versions) - 1] = Tried(bad.version, bad.cell, is_good=False)
    tried = tuple(known[at] for at in sorted(known))
    return Found(question, versions[low], versions[high], tried)


def _difference(good: Tried, bad: Tried) -> str:
    """The most important question that both answer, and differently."""
    for question in (one for one in QUESTIONS if one != RACE):
        words = {_word(good.cell, question), _word(bad.cell, question)}
        if len(words) > 1 and "" not in words:
            return question
    times = [one.cell.time for one in (good, bad) if one.cell and one.cell.time]
    is_repeated = len(times) > 1 and all(time.interval_ns for time in times)
    if is_repeated and are_apart(times[:1], times[1:]):
        return TIME
    same = word_text("result", _word(good.cell, "result")) or "an unknown result"
    raise Unsure(f"{good.version} and {bad.version} give the same: {same}, and no other time")


def _word(cell: Cell | None, question: str) -> str:
    return "" if cell is None else cell.word(question)


def _is_good(question: str, cell: Cell | None, good: Tried, bad: Tried) -> bool | None:
    """Whether a release answers as the good one; of times the nearer end counts."""
    if question != TIME:
        word = _word(cell, question)
        return None if not word else word == _word(good.cell, question)
    times = [one.time if one else None for one in (cell, good.cell, bad.cell)]
    logs = [math.log(time.median_ns) for time in times if time is not None]
    if len(logs) < len(times):
        return None
    own, like_good, like_bad = logs
    return abs(own - like_good) < abs(own - like_bad)


LIMIT_BYTES = 20e9
"""Of kept environments; the longest unused are removed."""


def requirements(ends: Sequence[ProbeInfo], package: str) -> tuple[str, ...]:
    """The frameworks of a path in their versions here, without the package."""
    found = {}
    for end in ends:
        name = end.distribution or end.requirement
        version = (end.version or "").partition("+")[0]
        found[name] = f"{name}=={version}" if version else end.requirement
    found.pop(package, None)
    return tuple(found.values())


@dataclass(frozen=True)
class Trial:
    """``run`` measures the path in an interpreter and writes the session to a file.

    ``others`` are the requirements beside the package.
    """

    statement: str
    package: str
    others: tuple[str, ...]
    folder: Path
    run: Callable[[str, Path], object]

    def measure(self, version: str) -> Tried:
        """The cell of the path with a release, or why there is none."""
        required = {"requirements": [f"{self.package}=={version}", *self.others]}
        try:
            environment = resolved(required, f"with {self.package} {version}")
            with made(environment, LIMIT_BYTES) as python:
                return self._measured(version, python)
        except Unmade as error:
            lines = [line for line in error.lines if line.strip()] or [str(error)]
            return Tried(version, None, f"not installed: {first_line(lines[-1])}")
        except Interrupted:
            raise
        except DlprofError as error:
            return Tried(version, None, first_line(str(error)))

    def _measured(self, version: str, python: str) -> Tried:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.package}-{version}.json"
        try:
            self.run(python, file)
        except Unmeasured:  # a refusal is an answer, too
            if not file.exists():
                raise
        cells = [cell for case, cell in read(file).cells if case.code == self.statement]
        return Tried(version, cells[0]) if cells else Tried(version, None, "it has no such path")
