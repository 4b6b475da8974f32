"""A scenario file: a problem and options, which become a request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from dlprof import inference
from dlprof.errors import Unmeasured, UsageError
from dlprof.measuring.judged import in_catalog, pairs, parse_expectation, parse_pair
from dlprof.protocol.statement import ProgramSource
from dlprof.runner import files, options
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import Catalog, frameworks_on
from dlprof.runner.options import IN_FILE, OF_PROGRAMS, OPTIONS, PROGRAM, read_value, settle
from dlprof.runner.request import Request, ScenarioRecord, make_request
from dlprof.runner.session_file import first_error
from dlprof.text.clean import clean, nearest, sanitised

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Inspect = Callable[[str, tuple[str, ...], int], Catalog]
"""Return the catalog of an interpreter, with these probe files and simulated devices."""


def _fit(read: Callable[[str], object]) -> AfterValidator:
    """Accept the texts that ``read`` accepts, and keep them as written."""

    def check(value: Any) -> Any:
        try:
            read(str(value))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value

    return AfterValidator(check)


def _step_framework(word: str) -> str:
    """Return the framework of a name or alias. Raises :class:`UsageError` with the nearest."""
    for name, kind in inference.KNOWN.items():
        if word.lower() in (name.lower(), *(alias.lower() for alias in kind.aliases)):
            return name
    raise UsageError(f"dlprof measures no steps of {word!r}: {nearest(word, inference.KNOWN)}")


Pair = Annotated[str, _fit(parse_pair)]
Expect = Annotated[str, _fit(parse_expectation)]
Command = Annotated[str, _fit(PROGRAM.kind.read)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class StepRequest(Part):
    """A framework that runs a model, to measure the cost of its output's memory.

    ``model`` is an ONNX file, or a Python file that defines ``model``, relative to the scenario.
    Without one, it is a small model of dlprof. ``threads`` on the host; 0 for the framework's own
    choice.
    """

    framework: Annotated[str, _fit(_step_framework)]
    model: str | None = None
    threads: int = Field(0, ge=0, le=4096)

    def name_and_source(self, folder: Path) -> tuple[str, str]:
        """Return the name and the source of the step; a relative model begins at ``folder``.

        Raises :class:`UsageError`.
        """
        name, model = _step_framework(self.framework), ""
        if self.model is not None:
            file = folder / files.expand_home(Path(self.model))
            if not file.is_file():
                raise UsageError(f"there is no model file {self.model}")
            suffix = inference.KNOWN[name].suffix
            if file.suffix.lower() != suffix:
                raise UsageError(f"{name} reads {suffix}, not {self.model}")
            model = str(file.absolute())
        source = inference.reference(name, model, self.threads)
        return inference.steps_name(name, model), source


class Problem(Part):
    """A question, the pairs, steps or program that answer it, and the findings that are expected.

    ``source`` holds links to descriptions of the problem. The ``program`` starts in the folder of
    the scenario.
    """

    title: str
    question: str
    source: list[str] = Field(default=[], min_length=1)
    pairs: list[Pair] = Field(default=[], min_length=1)
    step: list[StepRequest] = Field(default=[], min_length=1)
    program: Command | None = None
    expect: list[Expect] = Field(default=[], min_length=1)

    @model_validator(mode="after")
    def _pairs_or_steps(self) -> Problem:
        if sum(map(bool, (self.pairs, self.step, self.program))) != 1:
            raise ValueError("it must name one of pairs, step and program")
        if self.step and "expect" in self.model_fields_set:
            raise ValueError("expect is about conversions, and steps are none: leave it out")
        return self


@dataclass(frozen=True)
class Scenario:
    """A problem, and the options that its file gives."""

    file: Path
    problem: Problem
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A scenario as a request in the names of one interpreter's catalog."""

    request: Request
    catalog: Catalog


def read(path: Path) -> Scenario:
    """Read a scenario file. Raises :class:`UsageError`."""
    try:
        return parse(files.read_bytes(path).decode("utf-8-sig"), path)
    except (OSError, ValueError) as error:  # it cannot be opened, or is no text
        cause = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read the scenario {clean(str(path))}: {cause}") from None


def parse(text: str, path: Path) -> Scenario:
    """Return the scenario in ``text`` of the file ``path``. Raises :class:`UsageError`."""
    try:
        content = sanitised(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        raise UsageError(f"{path} is not TOML: {clean(str(error))}") from None
    names = {name for option in IN_FILE for name in (option.key, option.singular)}
    keys = {name: raw for name, raw in content.items() if name in names}
    fields = {name: raw for name, raw in content.items() if name not in names}
    for name in fields:
        if name not in Problem.model_fields:
            hint = nearest(name, (*Problem.model_fields, *names))
            raise UsageError(f"{path}: unknown key {name!r}: {hint}")
    try:
        return Scenario(path, Problem.model_validate(fields), _options(keys, path))
    except ValidationError as error:
        raise UsageError(f"{path}: {clean(first_error(error))}") from None


def pair_scenario(producer: str, consumer: str) -> Scenario:
    """Return the scenario of one pair of the command line. Raises :class:`UsageError`."""
    pair = f"{producer}->{consumer}"
    parse_pair(pair)
    problem = Problem.model_construct(title=pair, question=f"Is {pair} slower?", pairs=[pair])
    return Scenario(Path(pair), problem, {})


def program_scenario(command: str) -> Scenario:
    """Return the scenario of one program of the command line."""
    problem = Problem.model_construct(title=command, question=command, program=command)
    return Scenario(Path(command), problem, {})


def _options(keys: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, raw in keys.items():
        option = OPTIONS[options.option_key(name, IN_FILE)]
        if option.key in found:
            raise UsageError(f"{path}: {name} is given twice: {option.key}")
        try:
            given = _from_folder(raw, path.parent) if option == options.PROBES else raw
            found[option.key] = read_value(option, given, option.key)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
    return found


def _from_folder(raw: Any, folder: Path) -> Any:
    """Return probe files; a relative path begins at the scenario's folder."""
    if isinstance(raw, list):
        return [_from_folder(item, folder) for item in raw]
    return str(folder / files.expand_home(Path(raw))) if isinstance(raw, str) else raw


def sweep(scenario: Scenario, given: Mapping[str, Any], inspect: Inspect) -> Sweep:
    """Return the request of a scenario and of the options ``given`` on the command line.

    Raises :class:`UsageError` for an unknown framework and for a contradiction.
    """
    problem, known = scenario.problem, OF_PROGRAMS if scenario.problem.program else ()
    values = settle(scenario.options, given, known=known)
    if simulated_in(values["devices"]):  # the diagnosis looks at order
        kept = {key: item for key, item in scenario.options.items() if key != "diagnose"}
        values = settle(kept, given)
    if problem.step and not {"shapes"} & {*scenario.options, *given}:
        raise UsageError(f"{scenario.file}: name the shapes of the model's input")
    inside = "steps" if problem.step else "programs" if problem.program else ""
    if inside and {"placements"} & {*scenario.options, *given}:
        raise UsageError(f"{scenario.file}: placements are not for {inside}: leave them out")
    steps = [step.name_and_source(scenario.file.parent) for step in problem.step]
    sources = list(dict.fromkeys(source for _, source in steps))
    if len(sources) > len({name for name, _ in steps}):
        raise UsageError(
            f"{scenario.file}: two steps of one framework, with models of the same file name, "
            "would share their results: put them into two scenarios"
        )
    if problem.program:
        typed = given.get(PROGRAM.key)
        folder = Path.cwd() if typed else scenario.file.parent.absolute()
        command = typed or problem.program
        sources = [ProgramSource(command, str(folder), values["timeout"]).reference()]
    probes = (*values["probes"], *sources)
    catalog = inspect(values["python"], probes, simulated_in(values["devices"]))
    patterns = [in_catalog(parse_pair(text), catalog) for text in problem.pairs]
    expected = [parse_expectation(text) for text in problem.expect]
    expected = [
        replace(expectation, pair=in_catalog(expectation.pair, catalog)) for expectation in expected
    ]
    # A step converts nothing: its framework stands on both sides.
    pair_names = tuple(dict.fromkeys((name, name) for name, _ in steps))
    if problem.program:
        names = [probe.name for probe in catalog.probes if probe.source in sources]
        pair_names = ((names[0], names[-1]),)
    pair_names = pair_names or pairs(patterns, frameworks_on(catalog, values["devices"]))
    if not pair_names:
        raise Unmeasured(f"no framework that fits {', '.join(problem.pairs)} can be measured here")
    request = make_request(values, pair_names, ("run", str(scenario.file)))
    # Steps have no diagnosis that could be left out.
    settings = replace(request.settings, diagnose=request.settings.diagnose or bool(steps))
    record = ScenarioRecord(
        file=str(scenario.file),
        title=problem.title,
        question=problem.question,
        sources=tuple(problem.source),
        expect=tuple(map(str, expected)),
        pairs=tuple(map(str, patterns)),
    )
    return Sweep(replace(request, settings=settings, probe_files=probes, scenario=record), catalog)
