"""How it was measured: command, seed, versions, machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.case_view import mapping
from dlprof.analysis.quantity import significant
from dlprof.reports import command
from dlprof.reports.html.evidence import name_text, value_text
from dlprof.session.environment import typed
from dlprof.session.environments import environments_of
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Session
from dlprof.text.clean import clean

LONGEST = 2000


@dataclass(frozen=True)
class Block:
    title: str
    lines: list[tuple[str, str]]


def versions(session: Session) -> str:
    """``Python 3.11.7, numpy 2.4.6``: of what was measured, and of nothing else."""
    return "; ".join(
        (f"{clean(name, 80)}: " if name else "") + _versions(environment, _frameworks(session))
        for name, environment in environments_of(session)
    )


def _versions(environment: Mapping[str, Any], frameworks: set[str]) -> str:
    python = clean(f"Python {environment.get('python', '?')}", 80)
    found = typed(environment).distributions(frameworks, _is_of)
    return ", ".join([python, *(clean(f"{name} {version}", 80) for name, version in found)])


def _frameworks(session: Session) -> set[str]:
    """Names and modules of both sides of every case."""
    found: set[str] = set()
    for result in session.results:
        found |= {result.case.producer, result.case.consumer}
    return found


def _is_of(distribution: str, framework: str) -> bool:
    """Whether it is the framework's: ``tensorflow-cpu`` is, ``torchvision`` is another's."""
    word, name = framework.lower(), distribution.lower()
    return name == word or re.match(rf"{re.escape(word)}[-_]", name) is not None


def blocks(session: Session) -> list[Block]:
    """The run, its request, the machine, the packages: all that the session says of them."""
    places = [block for one in environments_of(session) for block in _of_one(*one)]
    found = [Block("Run", _run(session)), *places, Block("Request", _lines(session.request))]
    return [block for block in found if block.lines]


def _of_one(name: str, environment: Mapping[str, Any]) -> list[Block]:
    rest = dict(environment)
    packages = mapping(rest.pop("packages", {}))
    variables = mapping(rest.pop("variables", {}))
    where = f" of {clean(name, 80)}" if name else ""
    return [
        Block(f"Machine and interpreter{where}", _lines(rest)),
        Block(f"Packages{where}", _plain(packages)),
        Block(f"Environment variables{where}", _plain(variables)),
    ]


def _plain(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(clean(str(name), 80), clean(str(value))) for name, value in found.items()]


def _run(session: Session) -> list[tuple[str, str]]:
    lines = [
        ("command", command.whole(session)),
        ("seed", f"{session.seed}"),
        ("rounds", f"{session.rounds}"),
        ("begun", clean(session.created)),
        ("complete", "yes" if session.complete else "no: the run was stopped"),
    ]
    if session.wall_s is not None:
        lines.append(("took", f"{significant(session.wall_s, 3)} s"))
    if session.device_choice:
        lines.append(("device", clean(session.device_choice, LONGEST)))
    if session.foreign_cores is not None:
        lines.append(("cores kept busy by others", f"{session.foreign_cores:.2f} on average"))
    return lines


def busy(session: Session) -> str:
    """A warning where other programs used the machine meanwhile, else nothing."""
    foreign = session.foreign_cores
    if foreign is None or foreign <= NOTABLE_CORES:
        return ""
    cores = value_text("cores", session.environment.get("cores"))
    intervals = ", and their intervals do not cover it" if session.rounds > 1 else ""
    return (
        f"Other processes kept {foreign:.1f} of {cores} cores busy: times may be too "
        f"high{intervals}."
    )


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name_text(key), clean(value_text(key, value), LONGEST))
        for key, value in found.items()
        if value is not None
    ]
