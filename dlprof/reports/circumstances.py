"""How a session was measured, with what, and what was left out: lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from dlprof.session.environment import typed
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Header
from dlprof.text.clean import clean

MOST_PACKAGES = 12


def processes_text(header: Header) -> str:
    """``3 fresh processes``; of a run that was stopped no more is known than what was asked for."""
    most = "" if header.complete else "up to "
    return f"{most}{header.rounds} fresh process{'es' if header.rounds != 1 else ''}"


def compose(header: Header) -> Text:
    """Processes and versions, the device and why, foreign load, and what was left out."""
    measured = packages(header)
    python = clean(f"Python {header.environment.get('python', '?')}")
    text = Text(f"{processes_text(header)}; {', '.join([python, *measured])}")
    setup = _setup(header)
    if setup:
        text.append(f"\nsetup: {setup}")
    if header.device_choice:
        text.append(f"\n{clean(header.device_choice)}")
    foreign = foreign_text(header)
    if foreign:
        text.append(f"\n{foreign}", style="red")
    if header.left_out:
        text.append("\n" + clean(f"Left out: {'; '.join(header.left_out)}."), style="dim")
    if not header.complete:
        text.append("\nThe run was stopped: what follows is what was measured until then.")
    return text


def foreign_text(header: Header) -> str:
    """The warning that other processes kept the machine busy; empty where they did not."""
    foreign = header.foreign_cores
    if foreign is None or foreign <= NOTABLE_CORES:
        return ""
    intervals = ", and their intervals do not cover it" if header.rounds > 1 else ""
    return clean(
        f"Other processes kept {foreign:.1f} of {header.environment.get('cores', '?')} cores "
        f"busy: times may be too high{intervals}."
    )


def packages(header: Header, environment: Mapping[str, Any] | None = None) -> list[str]:
    """Name and version of the distributions that were measured, in the first environment if no
    other is said.
    """
    names = _frameworks(header) or {""}  # with which every name begins
    found = typed(header.environment if environment is None else environment).distributions(names)
    return [clean(f"{name} {version}") for name, version in found[:MOST_PACKAGES]]


def _setup(header: Header) -> str:
    """What the user had run after the imports."""
    settings = header.request.get("settings")
    setup = settings.get("setup") if isinstance(settings, dict) else None
    return clean(" / ".join(setup.strip().splitlines())) if isinstance(setup, str) else ""


def _frameworks(header: Header) -> set[str]:
    pairs = header.request.get("pairs")
    pairs = pairs if isinstance(pairs, list | tuple) else []
    # A step with a model of one's own is called by both: onnxruntime:net.onnx.
    return {
        str(name).partition(":")[0]
        for pair in pairs
        if isinstance(pair, list | tuple)
        for name in pair
    }
