"""What the user asked for: pairs or steps, and how to measure them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dlprof import inference
from dlprof.errors import UsageError
from dlprof.runner import files, options
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.pairing import Axes
from dlprof.text.clean import nearest


@dataclass(frozen=True)
class Settings:
    """How to measure.

    ``sample_ns`` is what one timer spends on one case in one process, and ``limit_s`` the time
    limit of a case there. ``together`` serves all pairs from one worker. ``in_turns`` says that
    another side took its samples in turns with these, on the same processor. The diagnosis makes
    arrays of up to ``largest_bytes``; without it ``alignment`` has at least that looked at. The
    placement ``convert`` is what the timers measure anyway. ``setup`` is source text that runs
    after that of the frameworks, in each worker. Without ``times`` nothing is timed: on a simulated
    device order and copies are real, and times are not. ``survey`` looks at each path with many
    small arrays; ``survey_alone`` at nothing else.
    """

    rounds: int = options.ROUNDS.default
    seed: int = options.SEED.default
    sample_ns: int = round(options.SAMPLE_MS.default * 1e6)
    limit_s: float = options.TIMEOUT.default
    budget_s: float | None = None
    together: bool = False
    in_turns: bool = False
    diagnose: bool = options.DIAGNOSE.default
    alignment: bool = True
    largest_bytes: int = 256 << 20
    placements: tuple[str, ...] = (options.PLACEMENTS.default,)
    setup: str = ""
    times: bool = True
    survey: bool = False
    survey_alone: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ScenarioRecord:
    """What a session keeps of its scenario.

    ``pairs`` and ``expect`` use the catalog's names. ``left_out`` says which pairs of the file were
    not measured, and why.
    """

    file: str
    title: str
    question: str = ""
    sources: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What the user asked for. ``pairs`` are (producer, consumer) in names of the catalog.

    ``simulated`` is the number of simulated CUDA devices: to frameworks they are ``cuda``. It is 0
    if the driver is to be the machine's own.
    """

    pairs: tuple[tuple[str, str], ...]
    axes: Axes = field(default_factory=Axes)
    globs: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    python: str = ""
    probe_files: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    scenario: ScenarioRecord | None = None
    simulated: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For the session file."""
        return {name: value for name, value in asdict(self).items() if name != "command"}


def request_of(
    values: Mapping[str, Any], pairs: tuple[tuple[str, str], ...], command: tuple[str, ...]
) -> Request:
    """The request that the options make of these pairs."""
    return Request(
        pairs=pairs,
        axes=axes_of(values),
        globs=values["paths"],
        settings=settings_of(values),
        python=values["python"],
        probe_files=values["probes"],
        command=command,
        simulated=simulated_in(values["devices"]),
    )


def axes_of(values: Mapping[str, Any]) -> Axes:
    devices = values["devices"]
    if simulated_in(devices):
        devices = ("cuda",)
    return Axes(
        shapes=values["shapes"],
        dtypes=values["dtypes"],
        layouts=values["layouts"],
        device=devices[0] if len(devices) == 1 else "auto",
        devices=devices if len(devices) > 1 else (),
    )


WITHOUT_TIMES: dict[str, Any] = {"times": False, "largest_bytes": 16 << 20}
"""Of a simulated device. Nothing but a time needs an array of hundreds of MB."""


def settings_of(values: Mapping[str, Any]) -> Settings:
    """How to measure. Raises :class:`UsageError` for loops on a device without times."""
    in_loops = set(values["placements"]) - {options.PLACEMENTS.default}
    if in_loops and simulated_in(values["devices"]):
        raise UsageError(f"--placement needs {NO_TIMES}")
    return Settings(
        rounds=values["rounds"],
        seed=values["seed"],
        sample_ns=round(values["sample_ms"] * 1e6),
        limit_s=values["timeout"],
        budget_s=values["budget"],
        together=values["together"],
        diagnose=values["diagnose"],
        placements=values["placements"],
        setup=values["setup"] or "",
        survey=values["survey"],
        **(WITHOUT_TIMES if simulated_in(values["devices"]) else {}),
    )


@dataclass(frozen=True)
class Step:
    """A framework, and the file of a model; the built-in one where there is none.

    ``threads`` is how many it may use on the host; 0 leaves it the choice.
    """

    framework: str
    model: str = ""
    threads: int = 0

    @property
    def name(self) -> str:
        return inference.name_of(self.framework, self.model)

    @property
    def pair(self) -> tuple[str, str]:
        """A step converts nothing: its framework stands on both sides."""
        return self.name, self.name

    @property
    def source(self) -> str:
        return inference.reference(self.framework, self.model, self.threads)


def step_named(word: str, model: str | None, threads: int, folder: Path) -> Step:
    """The step of a framework and a model; a relative model begins at ``folder``.

    Raises :class:`UsageError`.
    """
    name = step_framework(word)
    if model is None:
        return Step(name, "", threads)
    file = folder / files.at_home(Path(model))
    if not file.is_file():
        raise UsageError(f"there is no model file {model}")
    suffix = inference.KNOWN[name].suffix
    if file.suffix.lower() != suffix:
        raise UsageError(f"{name} reads {suffix}, not {model}")
    return Step(name, str(file.absolute()), threads)


def step_framework(word: str) -> str:
    """The framework of a name or alias. Raises :class:`UsageError` with the nearest one."""
    names = {
        alias.lower(): name
        for name, kind in inference.KNOWN.items()
        for alias in (name, *kind.aliases)
    }
    if word.lower() in names:
        return names[word.lower()]
    raise UsageError(f"dlprof measures no steps of {word!r}: {nearest(word, inference.KNOWN)}")
