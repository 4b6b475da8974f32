"""What a scenario file says: the problem, and the options with which it is measured.

The JSON Schema in docs/ is made of both. ``python -m dlprof.scenario.model`` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from dlprof.analysis.thresholds import named as known_thresholds
from dlprof.errors import UsageError
from dlprof.inference import KNOWN as STEPS
from dlprof.plan.floors import Floor
from dlprof.plan.option import Option
from dlprof.plan.options import IN_FILE, MODEL, THREADS
from dlprof.plan.request import framework as step_framework
from dlprof.scenario.expectation import parse as parse_expectation
from dlprof.scenario.pairs import parse as parse_pair


def _fit(read: Callable[[str], object]) -> AfterValidator:
    """Valid is what ``read`` takes; the text stays as it was written."""

    def check(found: Any) -> Any:
        try:
            read(str(found))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return found

    return AfterValidator(check)


def _read(option: Option) -> Callable[[object], Any]:
    """Valid is what the option takes."""

    def check(found: object) -> Any:
        try:
            return option.kind.read(found)
        except UsageError as error:
            raise ValueError(str(error)) from None

    return check


def _words(option: Option) -> str:
    default = f" Default: {option.default_text}." if option.default is None else ""
    return f"{option.help}{default} {option.details}".rstrip()


def _threshold(name: str) -> str:
    if name not in known_thresholds():
        raise ValueError(
            f"there is no threshold {name!r}: known are {', '.join(known_thresholds())}"
        )
    return name


Text = Annotated[str, Field(min_length=1, max_length=1000)]
Pair = Annotated[Text, _fit(parse_pair), Field(examples=["tf->cupy", "tf<->cupy", "torch->*"])]
Expect = Annotated[
    Text, _fit(parse_expectation), Field(examples=["DLP001 on tf->*", "no error on torch->numpy"])
]
Threshold = Annotated[
    str, AfterValidator(_threshold), Field(json_schema_extra={"enum": list(known_thresholds())})
]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FloorSpec(Part):
    """How much slower some cases may be before the gate calls it a regression."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [name]} for name in ("percent", "ns", "times")]}
    )

    case: Text = Field(
        description="Cases by a glob of their code, their path, or their pair (torch->numpy).",
        examples=["torch->numpy", "jnp.array(*)"],
    )
    measure: Literal["ready", "host"] = "ready"
    percent: float | None = Field(
        None, ge=0, le=1e6, description=f"As --fail-on: {Floor.relative * 100:g} by default."
    )
    ns: float | None = Field(
        None, ge=0, le=1e15, description=f"Nanoseconds: {Floor.absolute_ns:g} by default."
    )
    times: Literal[False] | None = Field(
        None, description="false: no times of these cases are judged, only their verdicts."
    )

    @model_validator(mode="after")
    def _says_something(self) -> FloorSpec:
        if self.times is None and not (self.percent or self.ns):
            raise ValueError("name percent or ns, above 0, or times = false")
        return self


class StepSpec(Part):
    """A framework that runs a model: what its output's memory costs is measured."""

    framework: Annotated[Text, _fit(step_framework)] = Field(examples=list(STEPS))
    model: Text | None = Field(None, description=_words(MODEL))
    threads: Annotated[
        int, BeforeValidator(_read(THREADS)), WithJsonSchema(THREADS.kind.schema())
    ] = Field(THREADS.default, description=_words(THREADS))

    @property
    def name(self) -> str:
        """What the report of origins calls it."""
        threads = f", threads {self.threads}" if self.threads else ""
        return f"{self.framework}{f' with {self.model}' if self.model else ''}{threads}"


class Problem(Part):
    """What is asked, of which pairs, and what is expected to be found."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pairs"]}, {"required": ["step"]}]}
    )

    title: Text = Field(description="The problem in a few words.")
    question: Text = Field(description="What the sweep answers.")
    source: list[Text] = Field(
        default=[], min_length=1, description="Links to where the problem is described."
    )
    pairs: list[Pair] = Field(
        default=[],
        min_length=1,
        description="Producer and consumer: tf->cupy, tf<->cupy for both ways, torch->* for all.",
    )
    step: list[StepSpec] = Field(
        default=[],
        min_length=1,
        description="Instead of pairs: frameworks that run a model, see docs/steps.md.",
    )
    report: Literal["paths", "round trip"] = Field(
        default="paths", description="Which table answers the question."
    )
    floor: list[FloorSpec] = Field(
        default=[],
        min_length=1,
        description="Floors of the gate for single cases; of several that match the last counts.",
    )
    thresholds: dict[Threshold, Annotated[float, Field(ge=0)]] = Field(
        default={}, description="Numbers on which the rules decide, other than dlprof's own."
    )
    expect: list[Expect] = Field(
        default=[],
        min_length=1,
        description="Findings that must be there: DLP001 on tf->*, no error.",
    )

    @model_validator(mode="after")
    def _pairs_or_steps(self) -> Problem:
        if bool(self.pairs) == bool(self.step):
            found = "both" if self.pairs else "neither"
            raise ValueError(f"it names {found} of pairs and steps: name one of them")
        for name in ("expect", "report", "thresholds"):
            if self.step and name in self.model_fields_set:
                raise ValueError(f"{name} is about conversions, and steps are none: leave it out")
        return self


TABLES: dict[str, type[Part]] = {"floor": FloorSpec, "step": StepSpec}


@dataclass(frozen=True)
class Scenario:
    """A problem, and the options that its file gives. ``text`` is that of the file, for lines."""

    file: Path
    problem: Problem
    options: Mapping[str, Any]
    text: str = ""


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a scenario."""
    found = Problem.model_json_schema()
    for option in IN_FILE:
        said = {"description": option.help} | (
            {} if option.default is None else {"default": option.default}
        )
        for name in dict.fromkeys((option.key, option.singular)):
            found["properties"][name] = {**option.kind.schema(), **said}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "dlprof scenario",
    }


def schema_text() -> str:
    """What stands in docs/scenario.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")  # noqa: T201 - the answer
