"""What ``dlprof sweep`` does before it measures: read, settle, say what would run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dlprof.analysis.quantity import size_text
from dlprof.cli import options
from dlprof.cli.show import say
from dlprof.cli.starting import started
from dlprof.errors import ScenarioError, UsageError
from dlprof.plan.axes import shape_text, split
from dlprof.plan.pairing import Case
from dlprof.plan.plan import plan
from dlprof.plan.settings import Settings, sample_ns_for
from dlprof.probes.base import DTYPES
from dlprof.reports.scenario import origin_lines
from dlprof.scenario.estimate import Estimate, duration_text, estimate
from dlprof.scenario.model import Scenario
from dlprof.scenario.read import read
from dlprof.scenario.request import MOST_CASES, Sweep, check_count, count, sweep
from dlprof.scenario.settle import settle
from dlprof.worker import memory

__all__ = ["Given", "check_count", "count", "prepare", "say_cases", "say_plan", "say_scenarios"]

QUICK: dict[str, Any] = {"rounds": 1, "sample_ms": options.QUICK_SAMPLE_NS / 1e6, "diagnose": False}


@dataclass(frozen=True)
class Given:
    """The options of the command line that stand over a scenario; None is not given."""

    shape: list[str] | None
    dtype: list[str] | None
    layout: list[str] | None
    device: str | None
    path: list[str] | None
    rounds: int | None
    budget: float | None
    timeout: float | None
    seed: int | None
    quick: bool
    diagnose: bool | None
    probe: list[str] | None
    placement: list[str] | None = None

    def named(self) -> dict[str, Any]:
        """By the name of the option."""
        return {f"--{part.name}": getattr(self, part.name) for part in fields(self)}

    def values(self) -> dict[str, Any]:
        """What was given, by the keys of a scenario."""
        found = {
            "shapes": self.shape and split(self.shape),
            "dtypes": self.dtype and split(self.dtype),
            "layouts": self.layout and split(self.layout),
            "devices": self.device and [self.device],
            "paths": self.path,
            "placement": self.placement and split(self.placement),
            "rounds": self.rounds,
            "budget": self.budget,
            "timeout": self.timeout,
            "seed": self.seed,
            "diagnose": self.diagnose,
            "probes": self.probe and list(options.probe_files(self.probe)),
        }
        quick = QUICK if self.quick else {}
        return {**quick, **{key: value for key, value in found.items() if value is not None}}


def prepare(path: Path, given: Given, python: str | None) -> Sweep:
    """The sweep of a scenario file. Raises :class:`UsageError` for what makes no sense."""
    return prepared(read(path), path, given, python)


def prepared(written: Scenario, path: Path, given: Given, python: str | None) -> Sweep:
    """The same of a scenario that is at hand; ``path`` is what it is called."""
    scenario, origins = settle(written, given.values(), "the command line")
    if python is not None:
        origins = (*origins, ("python", python, "command line"))
    return sweep(scenario, origins, path, options.interpreter(python), started)


def say_cases(found: Sweep) -> None:
    """Every case on a line: pair, array and code."""
    for case in plan(found.request, found.catalog).cases:
        array = f"{shape_text(case.shape)} {case.dtype} {case.layout} {case.device}"
        what, code = f"{case.producer.name}->{case.consumer.name}", case.path.code
        if case.is_step:
            what, code = case.producer.name, f"{case.path.import_.name}: {code}"
        say(f"{what}  {array}  {code}\n")


def say_plan(found: Sweep) -> None:
    """What would run, how many cases, how long, and what could not be measured.

    Raises what the run would raise where there is nothing to measure.
    """
    told, total = found.request.scenario, count(found)
    if told is not None:
        say("\n".join((told.title, told.question, *origin_lines(told.origins))) + "\n\n")
    if total > MOST_CASES:
        say(f"{total:,} cases: more than {MOST_CASES:,}, so --yes is asked for\n")
        return
    planned = plan(found.request, found.catalog)
    say("".join(_plan_lines(planned.cases)))
    for line in dict.fromkeys(planned.left_out):
        say(f"left out: {line}\n")
    say(f"\n{_cost_text(planned.cases, found.request.settings)}")


def _cost_text(cases: Sequence[Case], settings: Settings) -> str:
    settings = replace(settings, sample_ns=sample_ns_for(settings, cases))
    most = max(map(_size_bytes, cases), default=0)
    head = f"{len(cases):,} cases, arrays of up to {size_text(most)}, {settings.rounds} rounds\n"
    available = memory.available_bytes()
    fitting = [case for case in cases if available is None or _size_bytes(case) < available]
    if available is not None and len(fitting) < len(cases):
        head += (
            f"{len(cases) - len(fitting):,} of them are larger than the {size_text(available)} of"
            " memory that are available now, and would be skipped\n"
        )
    return head + (_likely_text(fitting, settings) if fitting else "")


def _likely_text(cases: Sequence[Case], settings: Settings) -> str:
    expected = estimate(cases, settings)
    low, high = (duration_text(seconds) for seconds in expected.range_s)
    most = max(map(_size_bytes, cases), default=0)
    return (
        f"likely {low} to {high}: {', '.join(_parts(expected))}\n"
        "(from the settings, and from what such runs took on another machine, the longer if others"
        " kept it busy; nothing was measured)\n"
        f"{_room_text(most)}"
    )


def _parts(expected: Estimate) -> list[str]:
    """What the time is for; only what is done."""
    parts = {
        "rounds": expected.rounds_s,
        "starts and imports": expected.starts_s,
        "diagnosis": expected.diagnosis_s,
        "trips in a row": expected.trips_s,
    }
    return [f"{name} {duration_text(seconds)}" for name, seconds in parts.items() if seconds]


def _room_text(most_bytes: int) -> str:
    """How often the largest array fits into memory, where that may matter."""
    available = memory.available_bytes()
    if available is None or memory.fits(memory.COPIES * most_bytes):
        return ""
    return (
        f"the largest array fits {available / most_bytes:.1f} times into the"
        f" {size_text(available)} of memory that are available now: it must fit once for a view,"
        " twice for a copy; a case that does not fit is skipped\n"
    )


def say_scenarios(folder: Path) -> None:
    """The scenario files of a folder, with their questions."""
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UsageError(f"there are no scenario files in {folder}")
    for file in files:
        try:
            found = read(file)
            say(f"{file}\n    {found.title}\n    {found.question}\n")
        except ScenarioError as error:
            say(f"{file}\n    {error}\n")


def _plan_lines(cases: Sequence[Case]) -> Iterator[str]:
    """One line for each pair and device: how many paths, on how many arrays."""
    paths: dict[str, set[str]] = {}
    arrays: dict[str, set[object]] = {}
    nouns: dict[str, str] = {}
    for case in cases:
        between = "" if case.is_step else f" → {case.consumer.name}"
        pair = f"{case.producer.name}{between} on {case.device}"
        nouns[pair] = "step" if case.is_step else "path"
        paths.setdefault(pair, set()).add(case.path.code)
        arrays.setdefault(pair, set()).add((case.shape, case.dtype, case.layout))
    for pair, codes in paths.items():
        yield f"{pair}: {_several(codes, nouns[pair])} x {_several(arrays[pair], 'array')}\n"


def _several(things: Collection[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _size_bytes(case: Case) -> int:
    return math.prod(case.shape) * DTYPES[case.dtype]
