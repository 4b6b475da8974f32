"""How a session was measured: versions, what disturbed it, all circumstances, and its scenario."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

from dlprof.judge.cases import coverage
from dlprof.report.document import Answer, Cell, Column, Facts, Level, Section, Table, Tone
from dlprof.runner.header import SIMULATED
from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Header, Session
from dlprof.text.clean import listed

MOST_PACKAGES = 6
TONES: dict[str, Tone] = {"met": "better", "not met": "bad"}
SAFE = (
    "every value survives, the documentation holds, no error was found, and no race, torn copy or"
    " lost memory was seen"
)
NOT_DIAGNOSED = "Not diagnosed: races, lifetime and late reads were not checked."
SURVEYED = "one for an array, and another for what is in doubt"
ORIGINS = {"file": "from the file", "command line": "from the command line", "default": "default"}


def versions(header: Header) -> str:
    """``torch 2.13.0, jax 0.10.2, Python 3.11``."""
    known = header.environment
    python = ".".join((known.python or "?").split(".")[:2])
    found = [text for name, text in packages(header) if name not in (known.libraries or {})]
    return ", ".join([*found[:MOST_PACKAGES], f"Python {python}"])


def packages(header: Header) -> list[tuple[str, str]]:
    """Names, each with its version, of what was measured, in the order of the pairs."""
    # A step's model of one's own stands behind a colon.
    names = [name.partition(":")[0] for pair in header.request.pairs or () for name in pair]
    found = header.environment.distributions(names or [""])
    ranked = sorted(found, key=lambda one: names.index(one[0]) if one[0] in names else len(names))
    return [(name, f"{name} {version}") for name, version in ranked]


def short_command(header: Header) -> str:
    """Verb and frameworks: a title, the same wherever files lie and whatever was asked besides."""
    words = list(header.command)
    if words[:1] == ["time"]:
        words = ["time", *words[1:][-1:]]
    options = (place for place, word in enumerate(words) if place and word.startswith("-"))
    return " ".join(["dlprof", *words[: next(options, len(words))]])


def notices(header: Header, diagnosed: bool, timed: bool = True) -> tuple[str, ...]:
    """What keeps the reader from relying on what it says; of load only if something is timed."""
    found = [simulated_notice(header)] if header.simulated else []
    foreign = header.foreign_cores
    if timed and foreign is not None and foreign > NOTABLE_CORES and not header.simulated:
        told = load_text(foreign, header.environment.cores or "?")
        found.append(f"{told[0].upper()}{told[1:]}. Times may be too high.")
    if not header.complete:
        found.append("The run was stopped. Results are partial.")
    if header.left_out:
        found.append(f"Left out: {listed(header.left_out)}.")
    if not diagnosed:
        found.append(NOT_DIAGNOSED)
    return tuple(found)


def simulated_notice(header: Header) -> str:
    """That the device is simulated; empty if it is not."""
    return f"{SIMULATED[:1].upper()}{SIMULATED[1:]}." if header.simulated else ""


def method_section(session: Session) -> Section:
    facts = (*_facts(session), ("coverage", coverage(session.results)))
    return Section("How it was measured", (Facts(facts),))


def _facts(header: Header) -> Iterator[tuple[str, str]]:
    most = "" if header.complete else "up to "
    rounds = f"{most}{header.rounds}, each new"
    yield "command", shlex.join(["dlprof", *header.command])
    if header.rounds:
        yield "safe", SAFE
    yield "date", header.created
    yield "processes", SURVEYED if header.request.settings.survey_alone else rounds
    machine = header.environment
    told = [f"Python {machine.python or '?'}", *(text for _, text in packages(header))]
    yield "versions", ", ".join(told)
    known = {
        "platform": machine.platform,
        "cpu": machine.cpu,
        "cores": machine.cores,
        **(machine.variables or {}),
        "device": header.device_choice,
        "seed": str(header.seed),
        "setup": header.request.settings.setup,
        "measured in": header.wall_s and plain_time(header.wall_s * 1e9),
        "other programs": header.foreign_cores and f"{header.foreign_cores:.1f} cores",
    }
    yield from ((name, str(value)) for name, value in known.items() if value)
    for gpu in machine.known_gpus or ():
        yield "gpu", f"{gpu.name}, driver {gpu.driver_version}"
    for line in header.left_out:
        yield "left out", line


def expectations(header: Header) -> Iterator[Answer]:
    """How many expectations of a scenario were met."""
    verdicts = Counter(one.verdict for one in header.expectations)
    if verdicts:
        told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        yield Answer("expectations", "", "", told)


def scenario_sections(header: Header) -> Iterator[Section]:
    """What a scenario expects and whether it was found; what it asks, and where values are from."""
    scenario = header.request.scenario
    if not scenario:
        return
    if header.expectations:
        has_reasons = any(one.reason for one in header.expectations)
        columns = (Column("expectation"), Column("result"), *[Column("reason")] * has_reasons)
        rows = tuple(
            (
                Cell(one.text),
                Cell(one.verdict, TONES.get(one.verdict, "")),
                *[Cell(one.reason)] * has_reasons,
            )
            for one in header.expectations
        )
        yield Section("Expectations", (Table(columns, rows),), Level.FIRST)
    facts = [("question", scenario.question or ""), ("file", scenario.file or "")]
    facts += [("source", source) for source in scenario.sources or ()]
    facts += origins(scenario.origins or ())
    yield Section("Scenario", (Facts(tuple(facts)),))


def origins(found: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Where values come from, with the keys and values of each origin."""
    told: dict[str, list[str]] = {}
    for key, value, origin in found:
        told.setdefault(origin, []).append(f"{key} {value}")
    return [(words, "; ".join(told[name])) for name, words in ORIGINS.items() if name in told]
