"""The interpreter before anything is measured: declarations of its probes, and devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from dlprof._version import __version__
from dlprof.errors import MissingFramework, Unmeasured, UsageError
from dlprof.protocol.statement import ProgramSource
from dlprof.runner import worker_client
from dlprof.runner.axes import simulated_in
from dlprof.runner.options import split
from dlprof.runner.worker_client import Outcome, same_interpreter
from dlprof.simulated import environment as simulation
from dlprof.text.clean import first_line, nearest, sanitised

INSPECT_LIMIT_S = 20.0
NEAR_SPELLING = 0.75
"""Two letters of a name of eight are wrong or in the wrong order."""
UNMEASURED = "interrupted, nothing measured"
SYNTHETIC = "synthetic"
NOT_FILES = (SYNTHETIC, "code:", "object:", "step:", ProgramSource.PREFIX)
"""Sources of probes that are no files."""

UNWANTED = "the CUDA driver here is the simulated one: ask for it by --device simulated"
ELSEWHERE = ("simulated", "cupti")
"""Facts about the interpreter that the session keeps elsewhere."""
BY_USER = ("code:", "file:", "object:", "step:", ProgramSource.PREFIX)
"""Sources of probes that the user named."""


@dataclass(frozen=True)
class Way:
    """An export or an import, as declared in ``dlprof.probes.base``."""

    name: str
    protocols: tuple[str, ...]
    code: str
    devices: tuple[str, ...]
    promise: str | None
    producers: tuple[str, ...] = ()
    setup: str = ""
    result_device: str = ""
    """The device of an import's result; empty if it is that of the source."""
    arrays: int = 1
    """How many arrays one call of an import takes."""
    array: str = "x"
    """The name of the source in the code that is shown."""


@dataclass(frozen=True)
class ProbeInfo:
    """One framework: the declarations of its probe, and the installed version."""

    source: str
    name: str
    aliases: tuple[str, ...]
    module: str
    found: bool
    version: str | None
    distribution: str | None
    requirement: str
    variables: dict[str, str]
    devices: tuple[str, ...]
    exports: tuple[Way, ...]
    imports: tuple[Way, ...]
    also: dict[str, str] = field(default_factory=dict)
    """Version of each further distribution of the framework."""
    flags: tuple[str, ...] = ()
    narrows: dict[str, str] = field(default_factory=dict)
    narrows_why: str = ""

    @property
    def reference(self) -> tuple[str, str]:
        """Return the key by which a worker finds the probe."""
        return self.source, self.name


@dataclass(frozen=True)
class Catalog:
    """All probes of an interpreter, and facts about it; ``faults`` of probes that did not load."""

    python: str
    interpreter: dict[str, Any]
    probes: tuple[ProbeInfo, ...]
    faults: dict[str, str]
    simulated: int = 0
    """Simulated CUDA devices; 0 if the driver is the machine's own."""

    @property
    def can_trace(self) -> bool:
        """Whether CUPTI is there."""
        return bool(self.interpreter.get("cupti", True))

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that every worker of the interpreter needs."""
        return simulation.variables(self.simulated)

    def find(self, word: str) -> ProbeInfo:
        """Return the probe of a name or alias. Raises :class:`UsageError` with the nearest."""
        probes = self.probes[::-1]  # the first of a name counts, and a name before an alias
        names = {alias.lower(): probe for probe in probes for alias in probe.aliases}
        names |= {probe.name.lower(): probe for probe in probes}
        if word.lower() in names:
            return names[word.lower()]
        known = [name for probe in self.probes for name in (probe.name, *probe.aliases)]
        otherwise = (
            "give an expression that makes the array instead, measure one conversion with"
            " 'dlprof time', or write a probe of your own for --probe"
        )
        hint = nearest(word, known, otherwise, cutoff=NEAR_SPELLING)
        raise UsageError(f"dlprof has no probe of {word!r}: {hint}")

    def installed(self, word: str) -> ProbeInfo:
        """Return an installed probe. Raises :class:`MissingFramework` with the pip command."""
        probe = self.find(word)
        self.check_installed([probe])
        return probe

    def check_installed(self, probes: Iterable[ProbeInfo]) -> None:
        """Raise :class:`MissingFramework` with one pip command for all that is missing."""
        wanted = list(probes)
        missing = [probe for probe in wanted if not probe.found]
        if missing:
            builds = CUDA_BUILDS if any(probe.devices == ("cuda",) for probe in wanted) else {}
            packages = [builds.get(probe.name, probe.requirement) for probe in missing]
            pip = "pip" if same_interpreter(self.python) else f"{self.python} -m pip"
            names = " and ".join(probe.name for probe in missing)
            hint = f"{pip} install {' '.join(packages)}"
            raise MissingFramework(
                f"{names} {'are' if missing[1:] else 'is'} not installed: {hint}"
            )


def catalog_from(python: str, answer: dict[str, Any], simulated: int = 0) -> Catalog:
    """Make the catalog from a worker's ``inspect`` answer.

    A probe file, or a user's own code, stands before probes of the same name that are installed.
    Raises :class:`Unmeasured` if the worker was to run on the ``simulated`` driver and did not.
    """
    probes = TypeAdapter(tuple[ProbeInfo, ...]).validate_python(answer["probes"])
    names = {probe.name for probe in probes if probe.source.startswith(BY_USER)}
    probes = tuple(
        probe for probe in probes if probe.source.startswith(BY_USER) or probe.name not in names
    )
    interpreter = dict(answer["interpreter"])
    if interpreter.get("simulated"):
        if not simulated:  # the user's own library path has it
            interpreter |= {"no_cuda": UNWANTED, "cuda_devices": 0}
    elif simulated:
        raise Unmeasured(f"{python} does not load the simulated driver: its own comes first")
    return Catalog(python, interpreter, probes, answer["faults"], simulated)


def environment(catalog: Catalog, variables: dict[str, str]) -> dict[str, Any]:
    """Return the session's record of the measured interpreter."""
    packages: dict[str, str] = {}
    for probe in catalog.probes:
        if probe.distribution and probe.version:
            packages |= {probe.distribution: probe.version, **probe.also}
    installed = [probe for probe in catalog.probes if probe.version]
    return {
        **{name: value for name, value in catalog.interpreter.items() if name not in ELSEWHERE},
        "dlprof": __version__,
        "gpus": catalog.interpreter.get("gpus", []),
        "packages": packages,
        "libraries": {name: probe.name for probe in installed for name in probe.also},
        "variables": variables,
    }


def frameworks_on(catalog: Catalog, devices: Iterable[str]) -> list[str]:
    """Return the installed frameworks with arrays on ``devices`` (``auto``: any here)."""
    usable = {"cuda"} if simulated_in(devices) else set(devices)
    if "auto" in usable:
        usable = {"cpu"} if catalog.interpreter.get("no_cuda") else {"cpu", "cuda"}
    return [
        probe.name
        for probe in catalog.probes
        if probe.found and probe.imports and usable & set(probe.devices)
    ]


def pairs_named(catalog: Catalog, producers: str, consumers: str) -> tuple[tuple[str, str], ...]:
    """Pair every named producer with every named consumer, both separated by commas.

    Raises :class:`UsageError` for an unknown framework.
    """
    sides = [
        [catalog.find(word.strip()) for word in split([words]) or [words]]
        for words in (producers, consumers)
    ]
    catalog.check_installed({probe.name: probe for side in sides for probe in side}.values())
    producer_names, consumer_names = ([probe.name for probe in side] for side in sides)
    return tuple(dict.fromkeys(product(producer_names, consumer_names)))


def inspect_interpreter(
    python: str, probe_files: tuple[str, ...] = (), simulated: int = 0
) -> Catalog:
    """Return the catalog of an interpreter, with this number of ``simulated`` CUDA devices.

    ``probe_files`` are paths, or sources in :data:`NOT_FILES`. Raises :class:`UsageError` if the
    interpreter or a named probe file cannot be used.
    """
    sources = [
        path if path.startswith(NOT_FILES) else f"file:{Path(path).absolute()}"
        for path in probe_files
    ]
    originals = {sanitised(source): source for source in sources}  # by the worker's name
    try:
        answer = _answer(python, originals, simulated)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(UNMEASURED) from None
    for entry in answer["probes"]:
        entry["source"] = originals.get(entry["source"], entry["source"])
    for source, fault in answer["faults"].items():
        if source in originals:
            words = first_line(fault)
            if source.startswith(ProgramSource.PREFIX):
                command = ProgramSource.read(originals[source]).command
                raise UsageError(f"cannot use the program {command!r}: {words}")
            raise UsageError(f"cannot use the probe file {source.removeprefix('file:')}: {words}")
    return catalog_from(python, answer, simulated)


def _answer(python: str, originals: Mapping[str, str], simulated: int) -> dict[str, Any]:
    """Ask a worker for its catalog. A source that ends the worker is skipped by the next one."""
    faults: dict[str, str] = {}
    programs = [text for text in originals.values() if text.startswith(ProgramSource.PREFIX)]
    limit_s = ProgramSource.read(programs[0]).limit_s if programs else INSPECT_LIMIT_S
    while True:
        skip = [originals.get(source, source) for source in faults]
        with worker_client.start(python, simulation.variables(simulated)) as worker:
            request = {"do": "inspect", "sources": [*originals.values()], "skip": skip}
            outcome = worker.ask(request, limit_s)
        found = outcome.parts.get("inspect")
        # A probe's file may write into the pipe.
        if outcome.status == "ok" and isinstance(found, dict):
            return {**found, "faults": found["faults"] | faults}
        source, why = outcome.stage, last_words(outcome)
        if source == "start" or source in faults:
            not_python = f"{python} is no Python interpreter, or cannot run dlprof's worker"
            raise UsageError(f"{not_python}: {why}")
        faults[source] = why


def why_unusable(catalog: Catalog, probe: ProbeInfo) -> str | None:
    """Return why a framework cannot use CUDA, in its own words; None if it can."""
    with worker_client.start(catalog.python, {**probe.variables, **catalog.variables}) as worker:
        outcome = worker.ask(
            {"do": "verify", "source": probe.source, "name": probe.name}, INSPECT_LIMIT_S
        )
    if "verify" not in outcome.parts:
        return outcome.reason or f"{probe.name} cannot be imported"
    return cast("str | None", outcome.parts["verify"]["reason"])


CUDA_BUILDS = {
    "tensorflow": "'tensorflow[and-cuda]'",
    "jax": "'jax[cuda12]'",
    "torch": "torch",
    "cupy": "cupy-cuda12x nvidia-cuda-nvrtc-cu12",
    "numba": "'numba-cuda[cu12]'",
}
"""Arguments of ``pip install`` for what runs on a CUDA device, by framework."""


def builds_text(probes: Iterable[ProbeInfo]) -> str:
    """Return where the CUDA builds of frameworks come from; empty for other frameworks."""
    names = [CUDA_BUILDS[probe.name] for probe in probes if probe.name in CUDA_BUILDS]
    return f"CUDA builds: pip install {' '.join(dict.fromkeys(names))}" if names else ""


def check_cuda(catalog: Catalog, names: Iterable[str]) -> None:
    """Raise :class:`Unmeasured` if one of these frameworks cannot use the simulated device."""
    for probe in map(catalog.find, names):
        reason = why_unusable(catalog, probe) if "cuda" in probe.devices else None
        if reason is not None:
            why = f"{probe.name} cannot use CUDA here: {first_line(reason)}"
            raise Unmeasured(f"{why}. {builds_text([probe])}".rstrip(". "))


def last_words(outcome: Outcome) -> str:
    """Return the last line that a worker wrote before it ended, or how it ended."""
    if outcome.status == "ok":
        return "its answer did not arrive: what was loaded may have written into the pipe"
    if outcome.lost is None:
        return outcome.reason or outcome.status
    lines = (outcome.output or "").splitlines()
    how = str(outcome.lost.how)
    if outcome.stage == "start":
        return lines[-1].strip() if lines else how
    return f"{how} while it was loaded"
