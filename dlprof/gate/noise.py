"""The noise file: what a machine can tell of each case. The contract ``dlprof.noise/1``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from dlprof.compare.match import Key, key
from dlprof.compare.surroundings import MACHINE, differences
from dlprof.errors import Unsure, UsageError
from dlprof.plan.catalog import environment
from dlprof.plan.floors import Floor
from dlprof.scenario.request import Sweep
from dlprof.session import files, replaced
from dlprof.session.model import CaseRecord, Header, Mode, Model

SCHEMA = "dlprof.noise/1"

LARGEST_FLOOR = 0.3
"""A case that needs a larger floor is too noisy to gate: a conversion that takes a third longer is
what a gate is for, and a floor above that lets it pass."""

NOT_IN_TURNS = (
    "The noise file was measured in turns: against a baseline the machine tells less than it says."
)

Size = Annotated[float, Field(gt=0)]


class CaseNoise(Model):
    """One time of one case. ``spread`` is the standard deviation of logarithms between processes.

    ``caught`` and ``floor`` as in :class:`dlprof.gate.power.Power`.
    """

    case: CaseRecord
    measure: str
    median_ns: Size
    processes: int
    spread: float
    modes: list[Mode]
    caught: Size | None
    floor: Size | None

    @property
    def gated_floor(self) -> float | None:
        """The floor to gate it with; None where it is too noisy to gate."""
        return None if self.floor is None or self.floor > LARGEST_FLOOR else self.floor


class Noise(Model):
    """What ``dlprof calibrate`` writes. ``sample_ns`` is None in files of before it was kept.

    ``gate_rounds`` is what a gate of ``budget_s`` has time for, by
    :func:`dlprof.gate.calibrate.fitting`.
    """

    schema_: str = Field(default=SCHEMA, alias="schema")
    created: str
    scenario: str
    environment: dict[str, Any]
    rounds: int
    gate_rounds: int
    budget_s: Annotated[float, Field(ge=0)]
    sample_ns: Annotated[int, Field(gt=0)] | None = None
    cases: list[CaseNoise]


def write(path: Path, noise: Noise) -> None:
    """Write the file atomically. Raises :class:`UsageError`."""
    with replaced.atomic(path) as file:
        file.write(json.dumps(noise.model_dump(by_alias=True), indent=1) + "\n")


def load(path: Path) -> Noise:
    """Read a noise file. Raises :class:`UsageError` with one sentence that says why not."""
    endless = files.endless(path)
    if endless:
        raise UsageError(f"cannot read the noise file {path}: it is {endless}")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the noise file {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is no noise file: it is not JSON") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if isinstance(schema, str) and re.fullmatch(
        r"dlprof\.noise/([2-9]|[1-9]\d{1,8})(\.\d+)?", schema
    ):
        raise UsageError(
            f"{path} was written by a newer dlprof ({schema}); this one reads {SCHEMA}"
        )
    if not (isinstance(schema, str) and schema.split(".")[:2] == SCHEMA.split(".")):
        raise UsageError(f"{path} is no noise file: it has no schema {SCHEMA!r}")
    try:
        return Noise.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is no noise file: {where}: {first['msg']}") from None


def check(noise: Noise, here: Sweep) -> None:
    """Raises :class:`Unsure` where it was measured on another machine, or on none that it names."""
    if not any(noise.environment.get(name) for name in MACHINE):
        raise Unsure("the noise file does not say which machine it is of")
    try:
        then = Header(created="", command=[], seed=0, environment=noise.environment)
    except ValidationError:
        raise UsageError("the noise file's environment is none that dlprof writes") from None
    now = Header(created="", command=[], seed=0, environment=environment(here.catalog, {}))
    machine = [str(one) for one in differences(then, now) if one.kind == "machine"]
    if machine:
        raise Unsure(f"the noise file is of another machine: {', '.join(machine)}")


def raised(
    noise: Noise,
    cases: Iterable[CaseRecord],
    floors: Sequence[Floor],
    own: Mapping[Key, tuple[Floor, ...]],
) -> dict[Key, tuple[Floor, ...]]:
    """The floors of single cases: where one is below what the machine can tell, it is raised."""
    least = {(key(one.case), one.measure): one.gated_floor for one in noise.cases}
    found = dict(own)
    for case in cases:
        name = key(case)
        asked = own.get(name, tuple(floors))
        higher = tuple(_raised(floor, least.get((name, floor.measure))) for floor in asked)
        if higher != tuple(floors):
            found[name] = higher
    return found


def _raised(floor: Floor, least: float | None) -> Floor:
    if least is None or least <= floor.relative:
        return floor
    return replace(floor, relative=least, raised_from=floor.relative)


@dataclass(frozen=True)
class Terms:
    """How a gate measures, where that makes what a noise file says untrue of it."""

    in_turns: bool = True
    budget_s: float | None = None
    sample_ns: int | None = None

    def told(self, noise: Noise) -> Iterator[str]:
        """What is otherwise, in sentences. A file comes from sides in turns."""
        if not self.in_turns:
            yield NOT_IN_TURNS
        if self.budget_s is not None and self.budget_s < noise.budget_s:
            yield (
                f"The noise file says what a gate of {noise.budget_s:g} s tells; "
                f"one of {self.budget_s:g} s tells less."
            )
        if None not in (self.sample_ns, noise.sample_ns) and self.sample_ns != noise.sample_ns:
            yield "The noise file is of samples of another length (sample_ms): calibrate again."


def said(
    noise: Noise,
    cases: Iterable[CaseRecord],
    own: Mapping[Key, tuple[Floor, ...]],
    terms: Terms = Terms(),
) -> list[str]:
    """What the file means for these cases, in sentences; ``own`` is what :func:`raised` gave."""
    known = {key(one.case) for one in noise.cases}
    wanted = {key(case): case.code for case in cases}
    here = [one for one in noise.cases if key(one.case) in wanted]
    higher = [
        f"{code} {100 * floor.relative:g} %"
        for name, code in wanted.items()
        for floor in own.get(name, ())
        if floor.raised_from is not None
    ]
    noisy = [one.case.code for one in here if one.gated_floor is None]
    missing = sum(name not in known and own.get(name) != () for name in wanted)
    most = f"no floor up to {100 * LARGEST_FLOOR:g} % tells"
    return [
        *terms.told(noise),
        *([f"Floors raised to what this machine can tell: {', '.join(higher)}."] if higher else []),
        *([f"Too noisy to gate here ({most}): {', '.join(noisy)}."] if noisy else []),
        *([f"Of {missing} cases the noise file says nothing."] if missing else []),
    ]
