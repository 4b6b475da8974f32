"""Which machine a session was measured on: another machine is another series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlprof.clean import clean
from dlprof.compare.surroundings import GPU, MACHINE
from dlprof.rules.known import mapping

RENEWED = "platform"
"""Holds the version of the kernel: an update is a change of version, and may bring a step. It makes
no other machine, or a history would begin anew with every update."""

UNKNOWN = "unknown machine"
SHORT = 60


@dataclass(frozen=True)
class Machine:
    """``facts`` tell machines apart; ``name`` is for people."""

    facts: tuple[tuple[str, str], ...]
    name: str


def machine_of(environment: Mapping[str, Any]) -> Machine:
    """The machine of an environment: processor, cores, GPUs and their clocks."""
    facts = [(name, environment.get(name)) for name in MACHINE if name != RENEWED]
    found = environment.get("gpus")
    gpus = [mapping(gpu) for gpu in (found if isinstance(found, list) else [])]
    facts += [
        (f"GPU {index} {name}", gpu.get(name)) for index, gpu in enumerate(gpus) for name in GPU
    ]
    known = tuple((name, str(value)) for name, value in facts if value is not None)
    return Machine(known, _name(environment, gpus))


def _name(environment: Mapping[str, Any], gpus: list[Mapping[str, Any]]) -> str:
    cores = environment.get("cores")
    words = [
        environment.get("cpu"),
        None if cores is None else f"{cores} core{'' if cores == 1 else 's'}",
        *(gpu.get("name") for gpu in gpus),
    ]
    return ", ".join(clean(str(word), SHORT) for word in words if word) or UNKNOWN
