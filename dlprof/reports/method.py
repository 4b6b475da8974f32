"""How a session was measured: one line of versions, what disturbed it, and all circumstances."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time
from dlprof.reports.document import Facts, Section
from dlprof.session.environment import typed
from dlprof.session.environments import environments_of
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Header

MOST_PACKAGES = 6


def versions(header: Header) -> str:
    """``torch 2.13.0, jax 0.10.2, Python 3.11``."""
    python = ".".join((typed(header.environment).python or "?").split(".")[:2])
    libraries = typed(header.environment).libraries or {}
    found = [text for name, text in packages(header) if name not in libraries]
    return ", ".join([*found[:MOST_PACKAGES], f"Python {python}"])


def packages(header: Header, environment: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Names, each with its version, of what was measured, in the order of the pairs."""
    names = _frameworks(header)
    found = typed(environment or header.environment).distributions(names or [""])
    ranked = sorted(found, key=lambda one: names.index(one[0]) if one[0] in names else len(names))
    return [(name, f"{name} {version}") for name, version in ranked]


def short_command(header: Header) -> str:
    """Verb and frameworks: a title, the same wherever files lie and whatever was asked besides."""
    words = list(header.command)
    if words[:1] == ["time"]:
        words = ["time", *words[1:][-1:]]
    options = (place for place, word in enumerate(words) if place and word.startswith("-"))
    return " ".join(["dlprof", *words[: next(options, len(words))]])


def notices(header: Header, diagnosed: bool) -> tuple[str, ...]:
    """What keeps the reader from relying on the numbers."""
    found = []
    foreign = header.foreign_cores
    if foreign is not None and foreign > NOTABLE_CORES:
        cores = typed(header.environment).cores or "?"
        found.append(
            f"Other programs kept {foreign:.1f} of {cores} cores busy. Times may be too high."
        )
    if not header.complete:
        found.append("The run was stopped. This is what it measured until then.")
    if header.left_out:
        first, *others = header.left_out
        more = f" … and {len(others)} more (--full)" if others else ""
        found.append(f"Left out: {first}{more}")
    if not diagnosed:
        found.append("Not diagnosed: races, lifetime and late reads were not checked.")
    return tuple(found)


def method_section(header: Header) -> Section:
    return Section("How it was measured", (Facts(tuple(_facts(header))),))


def _facts(header: Header) -> Iterator[tuple[str, str]]:
    most = "" if header.complete else "up to "
    yield "command", shlex.join(["dlprof", *header.command])
    yield "date", header.created
    yield "processes", f"{most}{header.rounds}, each new"
    for name, environment in environments_of(header):
        python = f"Python {environment.get('python', '?')}"
        told = [python, *(text for _, text in packages(header, environment))]
        yield f"versions of {name}" if name else "versions", ", ".join(told)
    machine = typed(header.environment)
    parts = {"platform": machine.platform, "cpu": machine.cpu, "cores": machine.cores}
    yield from ((name, str(value)) for name, value in parts.items() if value)
    for gpu in machine.gpus or ():
        yield "gpu", f"{gpu.name}, driver {gpu.driver_version}"
    for variable, value in (machine.variables or {}).items():
        yield variable, value or ""
    if header.device_choice:
        yield "device", header.device_choice
    yield "seed", str(header.seed)
    setup = _setting(header, "setup")
    if setup:
        yield "setup", setup
    if header.wall_s is not None:
        yield "measured in", plain_time(header.wall_s * 1e9)
    if header.foreign_cores is not None:
        yield "other programs", f"{header.foreign_cores:.1f} cores"
    for line in header.left_out:
        yield "left out", line


def _setting(header: Header, name: str) -> str:
    settings = header.request.get("settings")
    found = settings.get(name) if isinstance(settings, Mapping) else None
    return found if isinstance(found, str) else ""


def _frameworks(header: Header) -> list[str]:
    """The names of the pairs; a step's model of one's own stands behind a colon."""
    pairs: Any = header.request.get("pairs")
    names: Sequence[Any] = pairs if isinstance(pairs, list | tuple) else []
    found = [
        str(name).partition(":")[0]
        for pair in names
        if isinstance(pair, list | tuple)
        for name in pair
    ]
    return list(dict.fromkeys(found))
