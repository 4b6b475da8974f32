"""How a session was measured: versions, what disturbed it, its circumstances, and its scenario."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from dlprof.report.document import Cell, Column, Level, Section, Table, Tone, facts
from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import SIMULATED, Header, Result
from dlprof.text.clean import first_words, listed

MOST_PACKAGES, MOST_WORDS = 6, 20
TONES: dict[str, Tone] = {"met": "better", "not met": "bad"}
NOT_DIAGNOSED = "Not diagnosed: races, lifetime and late reads were not checked."


def versions(header: Header) -> str:
    """``torch 2.13.0, jax 0.10.2, Python 3.11``."""
    known = header.environment
    python = ".".join((known.python or "?").split(".")[:2])
    found = [text for name, text in packages(header) if name not in (known.libraries or {})]
    return ", ".join([*found[:MOST_PACKAGES], f"Python {python}"])


def packages(header: Header) -> list[tuple[str, str]]:
    """Names, each with its version, of what was measured, in the order of the pairs."""
    # A model of the user stands behind a colon.
    names = [name.partition(":")[0] for pair in header.request.pairs for name in pair]
    found = header.environment.distributions(names or [""])
    ranked = sorted(found, key=lambda one: names.index(one[0]) if one[0] in names else len(names))
    return [(name, f"{name} {version}") for name, version in ranked]


def short_command(header: Header) -> str:
    """Verb and frameworks: a title that does not depend on files and options."""
    words = list(header.command)
    if words[:1] == ["time"]:
        words = ["time", *words[1:][-1:]]
    options = (place for place, word in enumerate(words) if place and word.startswith("-"))
    return " ".join(["dlprof", *words[: next(options, len(words))]])


def notices(header: Header, results: Sequence[Result]) -> tuple[str, ...]:
    """Reasons not to rely on the report; ``results`` are those with conversions that were timed."""
    found = [simulated_notice(header)] if header.simulated else []
    foreign = header.foreign_cores
    if results and foreign is not None and foreign > NOTABLE_CORES and not header.simulated:
        told = load_text(foreign, header.environment.cores or "?")
        found.append(f"{told[0].upper()}{told[1:]}. Times may be too high.")
    if not header.complete:
        found.append("The run was stopped. Results are partial.")
    if header.left_out:
        found.append(first_words(f"Left out: {listed(header.left_out)}.", MOST_WORDS))
    if results and not any(map(_is_diagnosed, results)):
        found.append(NOT_DIAGNOSED)
    return tuple(found)


def _is_diagnosed(result: Result) -> bool:
    return any((result.lifetime, result.ordering, result.early_write, result.peak_memory))


def simulated_notice(header: Header) -> str:
    """Say that the device is simulated; empty if it is not."""
    return f"{SIMULATED[:1].upper()}{SIMULATED[1:]}." if header.simulated else ""


def method_section(header: Header) -> Section:
    return Section("How it was measured", (facts(_facts(header)),))


def _facts(header: Header) -> Iterator[tuple[str, str]]:
    machine = header.environment
    yield "command", shlex.join(["dlprof", *header.command])
    yield "date", header.created
    if not header.request.settings.survey_alone:
        yield "processes", f"{'' if header.complete else 'up to '}{header.rounds}, each new"
    told = [f"Python {machine.python or '?'}", *(text for _, text in packages(header))]
    yield "versions", ", ".join(told)
    known = {
        "platform": machine.platform,
        "cpu": machine.cpu,
        "cores": machine.cores,
        **(machine.variables or {}),
        "device": header.device_choice,
        "seed": header.seed,
        "setup": header.request.settings.setup,
        "measured in": header.wall_s and plain_time(header.wall_s * 1e9),
        "other programs": header.foreign_cores and f"{header.foreign_cores:.1f} cores",
    }
    yield from ((name, str(value)) for name, value in known.items() if value)
    for gpu in machine.known_gpus or ():
        yield "gpu", f"{gpu.name}, driver {gpu.driver_version}"


def scenario_sections(header: Header) -> Iterator[Section]:
    """The expectations of a scenario with their results, its question and its sources."""
    scenario = header.request.scenario
    if not scenario:
        return
    if header.expectations:
        columns = (Column("expectation"), Column("result"), Column("reason"))
        rows = tuple(
            (Cell(one.text), Cell(one.verdict, TONES.get(one.verdict, "")), Cell(one.reason or ""))
            for one in header.expectations
        )
        yield Section("Expectations", (Table(columns, rows),), Level.FIRST)
    told = [("question", scenario.question), ("file", scenario.file)]
    told += [("source", source) for source in scenario.sources]
    yield Section("Scenario", (facts(told),))
