"""Versions and hardware, without who and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlprof.analysis.known import mapping, number
from dlprof.analysis.quantity import size_text
from dlprof.analysis.versions import used
from dlprof.evidence.ticket.markdown import prose
from dlprof.session.model import Result, Session

MOST = 12


def environment(session: Session, results: Sequence[Result]) -> str:
    """A list: frameworks, Python, system, processor, memory, GPUs, environment variables."""
    known = mapping(session.environment)
    memory = number(known.get("memory_bytes"))
    lines = [
        _packages(known, results),
        f"{known.get('implementation', 'Python')} {known.get('python', '?')}",
        f"{known.get('platform', 'unknown system')}",
        f"{known.get('cpu', 'unknown processor')}, {known.get('cores', '?')} cores"
        + (f", {size_text(round(memory))} memory" if memory and memory > 0 else ""),
        _gpus(known),
        ", ".join(
            f"{name}={value}"
            for name, value in list(mapping(known.get("variables")).items())[:MOST]
        ),
    ]
    return "\n".join(f"- {prose(line, 400)}" for line in lines if line)


def _packages(known: Mapping[str, Any], results: Sequence[Result]) -> str:
    names = {name for result in results for name in (result.case.producer, result.case.consumer)}
    modules = {
        module for result in results if result.recipe for module in result.recipe.modules
    } | names
    return ", ".join(f"{name} {version}" for name, version in used(known, modules)[:MOST])


def _gpus(known: object) -> str:
    gpus = mapping(known).get("gpus")
    if not isinstance(gpus, list) or not gpus:
        return "no GPU was used" if not mapping(known).get("cuda_devices") else ""
    return ", ".join(
        f"{mapping(gpu).get('name', 'GPU')} (driver {mapping(gpu).get('driver_version', '?')})"
        for gpu in gpus[:MOST]
    )
