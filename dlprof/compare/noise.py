"""The noise file ``dlprof.noise/1``: the floor of each case, from a machine against itself."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from dlprof.compare.differences import GOVERNOR, in_place, tunables_of
from dlprof.compare.gate import Task, side_of
from dlprof.compare.gate_rounds import Budget
from dlprof.compare.gate_suite import MeasuredSuite
from dlprof.compare.matching import Key, key
from dlprof.compare.processes import median_ns, modes_of_both, rounds_of
from dlprof.compare.samples import APART, Sample
from dlprof.compare.sequential import LOOKS
from dlprof.compare.times import LARGEST_FLOOR
from dlprof.errors import Unsure, UsageError
from dlprof.judge.rank_tests import wilcoxon
from dlprof.judge.slower import MARGIN, SAME_LEVEL
from dlprof.measuring.sweep import Sweep
from dlprof.runner import files
from dlprof.runner.catalog import environment
from dlprof.runner.floors import Floor
from dlprof.runner.header import Environment, on_one_machine
from dlprof.runner.measurement import now
from dlprof.runner.options import TUNABLES
from dlprof.runner.plan import plan
from dlprof.runner.session import CaseRecord, Model, first_error
from dlprof.text import json_text
from dlprof.text.clean import listed

SCHEMA = "dlprof.noise/1"

BLOCK = 4
"""So many rounds, of two processes each, stand for a session."""

LEAST_ROUNDS, MOST_ROUNDS = LOOKS[0], LOOKS[-1]

Size = Annotated[float, Field(gt=0)]


class CaseNoise(Model):
    """One time of one case.

    ``spread`` is the standard deviation of logarithms between processes. ``floor`` is the least
    relative floor that can be told from noise in turns, and ``across`` that of two sessions; None
    if processes run in modes, and ``across`` also for too few rounds.
    """

    case: CaseRecord
    measure: str
    median_ns: Size
    processes: int
    spread: float
    floor: Size | None
    across: Size | None

    @property
    def gated_floor(self) -> float | None:
        """The floor to gate it with; None if it is too noisy to gate."""
        return None if self.floor is None or self.floor > LARGEST_FLOOR else self.floor


class Noise(Model):
    """What ``dlprof calibrate`` writes."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    created: str
    scenario: str
    environment: Environment
    rounds: int
    budget_s: Annotated[float, Field(ge=0)]
    sample_ns: Annotated[int, Field(gt=0)]
    allocator: str
    cases: list[CaseNoise]


@dataclass(frozen=True)
class Calibrated:
    """``unmeasured`` are cases without a time. ``interrupted`` if it was stopped."""

    noise: Noise
    unmeasured: tuple[CaseRecord, ...]
    interrupted: bool = False


def calibrate(task: Task) -> Calibrated | None:
    """Measure a machine against itself in turns for the task's budget: equal code on both sides.

    At least :data:`LEAST_ROUNDS` rounds are measured; None if it was stopped before that.
    """
    with ExitStack() as stack:
        sides = [stack.enter_context(side_of(task, name)) for name in ("base", "head")]
        suite = MeasuredSuite(sides[0], sides[1], task.settings, task.watcher)
        task.watcher.start(2 * MOST_ROUNDS, task.budget_s)
        rounds, interrupted = _rounds(suite, task.budget_s)
        for side in sides:
            side.measurement.complete = not interrupted
        if rounds < LEAST_ROUNDS:
            return None
        records = {key(result.case): result.case for result in suite.head.results}
        cases = [records[head] for _, head, _ in suite.entries]
        samples = suite.samples()
        here = sides[1].measurement.header().environment
    # What a case has to prove SLOWER by at a late look of a gate.
    level = task.settings.level / max(len(cases), 1)
    found = [noise_of(case, one, level) for case, one in zip(cases, samples, strict=True)]
    scenario = task.head.request.scenario
    noise = Noise(
        created=now(),
        scenario=scenario.file if scenario else "",
        environment=here,
        rounds=rounds,
        budget_s=task.budget_s or 0.0,
        sample_ns=task.head.request.settings.sample_ns,
        allocator=task.head.request.settings.allocator,
        cases=[one for one in found if one is not None],
    )
    unmeasured = tuple(case for case, one in zip(cases, found, strict=True) if one is None)
    return Calibrated(noise, unmeasured, interrupted)


def _rounds(suite: MeasuredSuite, budget_s: float | None) -> tuple[int, bool]:
    """Rounds of all cases until the time is used up, and whether it was stopped."""
    budget = Budget(budget_s, time.monotonic())
    everything, done = frozenset(range(len(suite.entries))), 0
    try:
        while done < LEAST_ROUNDS or (done < MOST_ROUNDS and not budget.is_over(1.0)):
            suite.measure(done, everything)
            done += 1
    except KeyboardInterrupt:
        return done, True
    return done, False


def noise_of(case: CaseRecord, sample: Sample, level: float) -> CaseNoise | None:
    """What the rounds of equal code say of one time of a case; None for no round."""
    differences = rounds_of((sample.base, sample.head)).differences
    if not differences:
        return None
    return CaseNoise(
        case=case,
        measure=sample.floor.measure,
        median_ns=median_ns((*sample.base, *sample.head)) or 0.0,
        processes=len(sample.base) + len(sample.head),
        spread=math.sqrt(statistics.fmean(one**2 / 2 for one in differences)),
        floor=floor_of(sample, level),
        across=across_of(sample),
    )


def floor_of(sample: Sample, level: float) -> float | None:
    """The least relative floor that as many rounds of equal code can tell; None for modes.

    Equal code is SAME if its interval lies within the floor. Code that is slower by the floor is
    SLOWER if the lower end of its interval lies above half the floor. The estimate of a gate may be
    lower than the floor by as much again, so the whole width of the interval has to fit into the
    other half.
    """
    if len(modes_of_both(sample.base, sample.head)) > 1:
        return None
    test = wilcoxon(rounds_of((sample.base, sample.head)).differences)
    low, high = test.interval(level)
    if math.isinf(high):  # too few rounds for the level: all of them agree on less
        low, high = float(test.shifts[0]), float(test.shifts[-1])
    least = max(map(abs, test.interval(SAME_LEVEL)))
    step = max((high - low) / (1 - MARGIN), least)
    return math.ceil(1000 * math.expm1(step)) / 1000 if step < 1 else math.expm1(min(step, 10.0))


def across_of(sample: Sample) -> float | None:
    """The least relative floor of two sessions; None for modes.

    Rounds that follow each other stand for a session: by so much as their medians were apart,
    sessions of equal code are. That comes on top of what sessions are apart on a quiet machine.
    """
    if len(modes_of_both(sample.base, sample.head)) > 1:
        return None
    rounds = sorted({process.round for process in sample.base})
    blocks = [rounds[at : at + BLOCK] for at in range(0, len(rounds) - BLOCK + 1, BLOCK)]
    medians = [
        statistics.median(
            math.log(one.time_ns) for one in (*sample.base, *sample.head) if one.round in block
        )
        for block in blocks
    ]
    if len(medians) <= 1:
        return None
    return math.ceil(1000 * math.expm1(APART + max(medians) - min(medians))) / 1000


def write(path: Path, noise: Noise) -> None:
    """Write the file atomically. Raises :class:`UsageError`."""
    with files.atomic(path) as file:
        file.write(json.dumps(noise.model_dump(by_alias=True), indent=1) + "\n")


def load(path: Path) -> Noise:
    """Read a noise file. Raises :class:`UsageError` with one sentence that says why not."""
    endless = files.endless(path)
    if endless:
        raise UsageError(f"cannot read the noise file {path}: it is {endless}")
    try:
        content = json_text.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the noise file {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is no noise file: it is not JSON") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    fault = files.version_fault(schema, SCHEMA)
    if fault is None:
        raise UsageError(f"{path} is no noise file: it has no schema {SCHEMA!r}")
    if fault:
        raise UsageError(f"{path} {fault}")
    try:
        return Noise.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{path} is no noise file: {first_error(error)}") from None


def check(noise: Noise, here: Sweep) -> None:
    """Raises :class:`Unsure` if it was measured on another machine, or on none that it names, or in
    another way.
    """
    settings = here.request.settings
    variables = plan(here.request, here.catalog).variables
    now_ = Environment.model_validate(environment(here.catalog, variables))
    check_machine(noise, now_, settings.allocator)
    if noise.sample_ns != settings.sample_ns:
        raise Unsure("the noise file is of samples of another length: calibrate again")


def check_machine(noise: Noise, here: Environment, allocator: str) -> None:
    """Raises :class:`Unsure` if it was measured on another machine, or with another allocator."""
    found = in_place(noise.environment, here)
    machine = [str(one) for one in found if one.kind == "machine"]
    if machine:
        raise Unsure(f"the noise file is of another machine: {', '.join(machine)}")
    if on_one_machine(noise.environment, here) is None:
        raise Unsure("it is not known whether the noise file is of this machine: calibrate again")
    if clocks := [str(one) for one in found if one.what == GOVERNOR]:
        raise Unsure(f"the noise file is of another {clocks[0]}: calibrate again")
    if noise.allocator != allocator:
        raise Unsure(
            f"the noise file is of the allocator {noise.allocator}, and this is measured with "
            f"{allocator}: dlprof calibrate --allocator {allocator}"
        )
    if tunables_of(noise.environment) != tunables_of(here):
        raise Unsure(f"the noise file is of other {TUNABLES}: calibrate again")


def drifts(noise: Noise) -> dict[tuple[Key, str], float | None]:
    """What sessions of equal code may differ by, for :class:`~dlprof.compare.times.Settings`."""
    return {
        (key(one.case), one.measure): None if one.across is None else math.log1p(one.across)
        for one in noise.cases
    }


def raised(
    noise: Noise,
    cases: Iterable[CaseRecord],
    floors: Sequence[Floor],
    own: Mapping[Key, tuple[Floor, ...]],
) -> dict[Key, tuple[Floor, ...]]:
    """The floors of single cases, raised to what the machine can tell if they are lower."""
    least = {(key(one.case), one.measure): one.gated_floor for one in noise.cases}
    found = dict(own)
    for case in cases:
        name = key(case)
        asked = own.get(name, tuple(floors))
        higher = tuple(floor.at_least(least.get((name, floor.measure)) or 0.0) for floor in asked)
        if higher != tuple(floors):
            found[name] = higher
    return found


def texts(noise: Noise, own: Mapping[Key, tuple[Floor, ...]]) -> list[str]:
    """What the file means for a gate, in sentences; ``own`` is what :func:`raised` gave."""
    named = {key(one.case): one.case.code for one in noise.cases}
    higher = [
        f"{named[name]} {100 * floor.relative:g} %"
        for name, floors in own.items()
        for floor in floors
        if floor.raised_from is not None
    ]
    noisy = [one.case.code for one in noise.cases if one.gated_floor is None]
    found = []
    if higher:
        found.append(f"Floors raised to what this machine can tell: {listed(higher)}.")
    if noisy:
        limit = f"no floor up to {100 * LARGEST_FLOOR:g} % tells"
        found.append(f"Too noisy to gate here ({limit}): {listed(noisy)}.")
    return found
