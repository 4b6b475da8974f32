"""What may stand in a scenario file. The JSON Schema in docs/ is made from this model."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, model_validator

from dlprof.analysis.thresholds import named as known_thresholds
from dlprof.errors import UsageError
from dlprof.inference import KNOWN as STEPS
from dlprof.plan.axes import PLACEMENTS, parse_dtype, parse_layout, parse_placement, parse_shapes
from dlprof.plan.settings import LONGEST_S, Settings
from dlprof.plan.step_request import framework as step_framework
from dlprof.probes.base import DTYPES, LAYOUTS
from dlprof.scenario.expectation import parse as parse_expectation
from dlprof.scenario.pairs import parse as parse_pair
from dlprof.text.clean import HIDDEN

DEFAULT = Settings()
LOOPS = tuple(name for name in PLACEMENTS if name not in DEFAULT.placements)


def _fit(read: Callable[[str], object]) -> AfterValidator:
    """Valid is what ``read`` takes; the text stays as it was written."""

    def check(found: Any) -> Any:
        try:
            read(str(found))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return found

    return AfterValidator(check)


def _showable(text: str) -> str:
    """A scenario may come from anybody, and its texts are printed."""
    hidden = [character for character in text if unicodedata.category(character) in HIDDEN]
    if hidden:
        raise ValueError(f"{hidden[0]!a} cannot be shown in a line")
    return text


def _threshold(name: str) -> str:
    if name not in known_thresholds():
        raise ValueError(
            f"there is no threshold {name!r}: known are {', '.join(known_thresholds())}"
        )
    return name


def _distinct(found: Sequence[Any]) -> Any:
    known: set[str] = set()
    for one in found:
        if repr(one) in known:
            raise ValueError(f"{one!r} stands there twice")
        known.add(repr(one))
    return found


def _no_choice_beside(devices: list[str]) -> list[str]:
    if "auto" in devices and len(devices) > 1:
        raise ValueError("auto chooses one device: it cannot stand beside others")
    return devices


Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_showable)]
Distinct = AfterValidator(_distinct)
Shape = Annotated[
    Annotated[StrictInt, Field(ge=0)] | Text,
    _fit(parse_shapes),
    Field(examples=["4096x4096", "1Ki..1Gi", "1Ki..1Gi by 16", "scalar", 1024]),
]
Dtype = Annotated[Text, _fit(parse_dtype), Field(examples=list(DTYPES))]
Layout = Annotated[Text, _fit(parse_layout), Field(examples=list(LAYOUTS))]
Placement = Annotated[Text, _fit(parse_placement), Field(examples=list(PLACEMENTS))]
Pair = Annotated[Text, _fit(parse_pair), Field(examples=["tf->cupy", "tf<->cupy", "torch->*"])]
Expect = Annotated[
    Text,
    _fit(parse_expectation),
    Field(examples=["DLP001 on tf->*", "no error on torch->numpy"]),
]
Threshold = Annotated[
    str, AfterValidator(_threshold), Field(json_schema_extra={"enum": list(known_thresholds())})
]


Devices = Annotated[
    list[Literal["auto", "cpu", "cuda"]], Distinct, AfterValidator(_no_choice_beside)
]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FloorSpec(Part):
    """How much slower some cases may be before the gate calls it a regression."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("percent", "ns", "times")],
        }
    )

    case: Text = Field(
        description="Cases by a glob of their code, their path, or their pair (torch->numpy).",
        examples=["torch->numpy", "jnp.array(*)"],
    )
    measure: Literal["ready", "host"] = "ready"
    percent: float | None = Field(None, ge=0, le=1e6, description="As --fail-on: 5 by default.")
    ns: float | None = Field(None, ge=0, le=1e15, description="Nanoseconds: 5 by default.")
    times: Literal[False] | None = Field(
        None, description="false: no times of these cases are judged, only their verdicts."
    )

    @model_validator(mode="after")
    def _says_something(self) -> FloorSpec:
        if self.times is False:
            if self.model_fields_set & {"percent", "ns", "measure"}:
                raise ValueError(
                    "times = false takes all times out: leave percent, ns, measure out"
                )
            return self
        if self.percent is None and self.ns is None:
            raise ValueError("it names neither percent nor ns, nor times = false: name one")
        if not (self.percent or self.ns):
            raise ValueError("one of percent and ns must be above 0")
        return self


class StepSpec(Part):
    """A framework that runs a model: what its output's memory costs is measured."""

    framework: Annotated[Text, _fit(step_framework)] = Field(examples=list(STEPS))
    model: Text | None = Field(
        None,
        description="An ONNX file, or a Python file that defines model; a relative path begins at"
        " the scenario file. A small model of dlprof's own if there is none.",
    )
    threads: StrictInt = Field(
        0, ge=0, le=4096, description="Threads on the host; 0 is the framework's own choice."
    )

    @property
    def name(self) -> str:
        """What the report of origins calls it."""
        threads = f", threads {self.threads}" if self.threads else ""
        return f"{self.framework}{f' with {self.model}' if self.model else ''}{threads}"


OF_CONVERSIONS = ("placement", "round_trips", "report", "thresholds")
"""Keys that have no meaning beside steps."""


class Scenario(Part):
    """A problem, and the sweep that shows it."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pairs"]}, {"required": ["step"]}]}
    )

    title: Text = Field(description="The problem in a few words.")
    question: Text = Field(description="What the sweep answers.")
    source: list[Text] = Field(
        default=[], min_length=1, description="Where the problem was told: links."
    )
    pairs: Annotated[list[Pair], Distinct] = Field(
        default=[],
        min_length=1,
        description="Producer and consumer: tf->cupy, tf<->cupy for both ways, torch->* for all.",
    )
    step: Annotated[list[StepSpec], Distinct] = Field(
        default=[],
        min_length=1,
        description="Instead of pairs: frameworks that run a model, see docs/steps.md.",
    )
    paths: list[Text] = Field(
        default=[],
        min_length=1,
        description="Only paths whose name or code matches one of these globs.",
    )
    shapes: Annotated[list[Shape], Distinct] = Field(
        default=["1024x1024"],
        min_length=1,
        description="Shapes in elements; 1Ki..1Gi means every power of two between.",
    )
    dtypes: Annotated[list[Dtype], Distinct] = Field(default=["float32"], min_length=1)
    layouts: Annotated[list[Layout], Distinct] = Field(default=["C"], min_length=1)
    devices: Devices = Field(
        default=["auto"],
        min_length=1,
        description="Where the source array is. auto: cuda where both frameworks can use it.",
    )
    placement: Annotated[list[Placement], Distinct] = Field(
        default=list(DEFAULT.placements),
        min_length=1,
        description="Where a loop that uses the result has the conversion, besides on its own.",
    )
    round_trips: StrictInt | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Trips there and back in a row, by the cheapest safe paths, else right ones.",
    )
    probes: list[Text] = Field(
        default=[],
        min_length=1,
        description="Probe files; a relative path begins at the scenario file.",
    )
    rounds: StrictInt = Field(default=DEFAULT.rounds, ge=1, le=1000)
    seed: StrictInt = DEFAULT.seed
    timeout: float = Field(default=DEFAULT.limit_s, ge=0.1, lt=LONGEST_S, description="Seconds.")
    budget: float | None = Field(default=None, ge=0, lt=LONGEST_S, description="Seconds.")
    sample_ms: float = Field(
        default=DEFAULT.sample_ns / 1e6,
        ge=1,
        lt=LONGEST_S,
        description="Milliseconds that one timer spends on one case in one process.",
    )
    diagnose: bool = Field(
        default=DEFAULT.diagnose,
        description="Whether waiting, peak memory, early writes and lifetime are measured too;"
        " alignment is in any case.",
    )
    together: bool = Field(
        default=DEFAULT.together, description="Serve all pairs of a round from one process."
    )
    report: Literal["paths", "matrix", "round trip", "loop", "ingest"] = Field(
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
    def _pairs_or_steps(self) -> Scenario:
        if bool(self.pairs) == bool(self.step):
            found = "both" if self.pairs else "neither"
            raise ValueError(f"it names {found} of pairs and steps: name one of them")
        if self.step and "shapes" not in self.model_fields_set:
            raise ValueError("name the shapes of the model's input")
        if self.report == "loop" and not {parse_placement(text) for text in self.placement} & set(
            LOOPS
        ):
            raise ValueError(f"report 'loop' needs a placement: name some of {', '.join(LOOPS)}")
        if self.round_trips and self.report != "round trip":
            raise ValueError("round_trips are told by report 'round trip' alone: name it")
        if self.step and self.expect:
            raise ValueError("expect tells of findings, and of steps there are none")
        for name in OF_CONVERSIONS:
            if self.step and name in self.model_fields_set:
                raise ValueError(f"{name} is about conversions, and steps are none: leave it out")
        return self
