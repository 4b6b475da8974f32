"""What a scenario file says: the problem, and the options with which it is measured.

An error names the line, the key, the value and what was expected.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from dlprof.errors import ScenarioError, UsageError
from dlprof.inference import KNOWN as STEPS
from dlprof.judge.thresholds import named as known_thresholds
from dlprof.measuring.expectation import parse as parse_expectation
from dlprof.measuring.pairs import parse as parse_pair
from dlprof.runner import files, options
from dlprof.runner.options import IN_FILE, OPTIONS, shown, value_of
from dlprof.runner.request import step_framework
from dlprof.text.clean import clean, nearest, sanitised

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def _fit(read: Callable[[str], object]) -> AfterValidator:
    """Valid is what ``read`` takes; the text stays as it was written."""

    def check(found: Any) -> Any:
        try:
            read(str(found))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return found

    return AfterValidator(check)


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


class StepSpec(Part):
    """A framework that runs a model: what its output's memory costs is measured."""

    framework: Annotated[Text, _fit(step_framework)] = Field(examples=list(STEPS))
    model: Text | None = Field(
        None,
        description="An ONNX file, or a Python file that defines model; relative to the scenario. "
        "Default: a small model of dlprof's own.",
    )
    threads: int = Field(
        0, ge=0, le=4096, description="Threads on the host; 0 is the framework's own choice."
    )


class Problem(Part):
    """What is asked, of which pairs, and what is expected to be found."""

    title: Text = Field(description="The problem in a few words.")
    question: Text = Field(description="What the scenario answers.")
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
        for name in ("expect", "thresholds"):
            if self.step and name in self.model_fields_set:
                raise ValueError(f"{name} is about conversions, and steps are none: leave it out")
        return self


TABLES: dict[str, type[Part]] = {"step": StepSpec}


@dataclass(frozen=True)
class Scenario:
    """A problem, and the options that its file gives. ``text`` is that of the file, for lines."""

    file: Path
    problem: Problem
    options: Mapping[str, Any]
    text: str = ""


LONGEST_FILE = 1 << 20
MOST_DOTS = 1000
"""Of a key: the parser takes a minute for one of 50,000 parts."""


def read(path: Path) -> Scenario:
    """The scenario of a file. Raises :class:`ScenarioError`."""
    return parse(_text(path), path)


def parse(text: str, path: Path) -> Scenario:
    """The scenario that ``text`` tells of; ``path`` is where it stands."""
    if any(line.partition("=")[0].count(".") > MOST_DOTS for line in text.splitlines()):
        raise ScenarioError(f"{path} has a key of more than {MOST_DOTS:,} parts")
    try:
        content = sanitised(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        raise ScenarioError(f"{path} is not TOML: {clean(str(error))}") from None
    names = {name for option in IN_FILE for name in (option.key, option.singular)}
    keys = {name: raw for name, raw in content.items() if name in names}
    rest = {name: raw for name, raw in content.items() if name not in names}
    return Scenario(path, _problem(rest, path, text), _options(keys, path, text), text)


def of_pair(producer: str, consumer: str) -> Scenario:
    """The scenario of one pair that the command line names. Raises :class:`ScenarioError`."""
    pair = f"{producer}->{consumer}"
    content = {"title": pair, "question": f"Is {pair} slower?", "pairs": [pair]}
    return Scenario(Path(pair), _problem(content, Path("the command line"), ""), {})


def fault(scenario: Scenario, where: Sequence[str | int], words: str) -> ScenarioError:
    """What is wrong with a key of a scenario, and is known only where it is used."""
    return _fault(scenario.file, scenario.text, where, f"{_key_text(where)}: {words}")


def _options(keys: Mapping[str, Any], path: Path, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, raw in keys.items():
        option = OPTIONS[options.key_of(name, IN_FILE)]
        if option.key in found:
            raise _fault(path, text, (name,), f"{name} is given twice: {option.key}")
        try:
            given = _from_folder(raw, path.parent) if option == options.PROBES else raw
            found[option.key] = value_of(option, given, option.key)
        except UsageError as error:
            raise _fault(path, text, (name,), str(error)) from None
    return found


def _from_folder(raw: Any, folder: Path) -> Any:
    """Probe files, where a relative path begins at the scenario's folder."""
    if isinstance(raw, list):
        return [_from_folder(one, folder) for one in raw]
    return str(folder / files.at_home(Path(raw))) if isinstance(raw, str) else raw


def _problem(content: Mapping[str, Any], path: Path, text: str) -> Problem:
    try:
        return Problem.model_validate(content)
    except ValidationError as error:
        # An unknown key is often the wrong name of one that is missing.
        faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        more = len({fault["loc"][:2] for fault in faults}) - 1
        rest = f" (and {more} more)" if more else ""
        where = _where(faults[0])
        raise _fault(path, text, where, f"{_sentence(faults[0], where)}{rest}") from None


def _fault(path: Path, text: str, where: Sequence[str | int], words: str) -> ScenarioError:
    line = line_of(text, where)
    return ScenarioError(f"{path}, line {line}: {words}" if line else f"{path}: {words}")


def _text(path: Path) -> str:
    name = clean(str(path))
    endless = files.endless(path)
    if endless:
        raise ScenarioError(f"cannot read the scenario {name}: it is {endless}")
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
        if len(data) > LONGEST_FILE:
            raise ScenarioError(f"{name} is too long for a scenario")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # it cannot be opened, or is no text
        cause = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(f"cannot read the scenario {name}: {cause}") from None


def _where(fault: ErrorDetails) -> tuple[str | int, ...]:
    """The path to the fault in the file, without what the model adds to it."""
    path: list[str | int] = []
    for step in fault["loc"]:
        if isinstance(step, str) and re.search(r"[^A-Za-z0-9_-]|^constrained-", step) and path:
            break  # the branch of a union, or the mark of a key
        path.append(step)
    return tuple(path)


def _sentence(fault: ErrorDetails, where: Sequence[str | int]) -> str:
    key, kind = _key_text(where), fault["type"]
    if kind == "extra_forbidden":
        return f"unknown key {str(where[-1])!r}: {_nearest(where)}"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "value_error":
        words = fault["msg"].removeprefix("Value error, ")
        return f"{key}: {words}" if key else words
    expected = fault["msg"].replace("Input should be ", "").replace("Input should ", "to ")
    expected, given = expected.replace("a valid string", "text"), fault["input"]
    if isinstance(given, (dict, list)):
        return f"{key}: expected {expected}, not a {'table' if isinstance(given, dict) else 'list'}"
    return clean(f"{key} {shown(given)}: expected {expected}")


def _key_text(where: Sequence[str | int]) -> str:
    """``step 2, model``: places are counted from 1."""
    words: list[str] = []
    for step in where:
        if isinstance(step, int) and words:
            words[-1] += f" {step + 1}"
        else:
            words.append(str(step))
    return ", ".join(words)


def _nearest(where: Sequence[str | int]) -> str:
    table = TABLES.get(str(where[0])) if len(where) > 1 else None
    known = [*(table or Problem).model_fields]
    if table is None:
        known += [option.key for option in IN_FILE]
    return nearest(str(where[-1]), known)


def line_of(text: str, where: Sequence[str | int]) -> int | None:
    """The line, from 1, of the deepest key of ``where`` that can be found; None if there is none.

    ``where`` is a path such as ``("step", 1, "model")``: the table, its place among those of the
    same name, and the key in it.
    """
    lines, path = text.splitlines(), list(where)
    start, found = 0, None
    while path:
        name = re.escape(str(path.pop(0)))
        place = path.pop(0) if path and isinstance(path[0], int) else 0
        key = re.compile(rf"""\s*(\[\[?\s*)?["']?{name}["']?\s*[=.\]]""")
        hits = [number for number in range(start, len(lines)) if key.match(lines[number])]
        if not hits:
            break
        start = hits[min(int(place), len(hits) - 1)]
        found = start + 1
    return found
