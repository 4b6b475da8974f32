"""Which machine a session was measured on: another machine is another series."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.case_view import mapping
from dlprof.compare.surroundings import GPU, MACHINE
from dlprof.text.clean import clean

RENEWED = "platform"
"""Holds the version of the kernel: an update is a change of version, and may bring a step. It makes
no other machine, or a history would begin anew with every update."""

UNKNOWN = "unknown machine"
GPU_FACT = "GPU "
SHORT = 60


@dataclass(frozen=True)
class Machine:
    """``facts`` tell machines apart; ``name`` is for people.

    ``nameless`` are GPUs that CUDA counts and of which nothing else is known: NVML has their names,
    and may be missing.
    """

    facts: tuple[tuple[str, str], ...]
    name: str
    nameless: int = 0


def machine_of(environment: Mapping[str, Any]) -> Machine:
    """The machine of an environment: processor, cores, GPUs and their clocks."""
    facts = [(name, environment.get(name)) for name in MACHINE if name != RENEWED]
    found = environment.get("gpus")
    gpus = [mapping(gpu) for gpu in (found if isinstance(found, list) else [])]
    facts += [
        (f"{GPU_FACT}{index} {name}", gpu.get(name))
        for index, gpu in enumerate(gpus)
        for name in GPU
    ]
    known = tuple((name, str(value)) for name, value in facts if value is not None)
    counted = environment.get("cuda_devices")
    nameless = counted if isinstance(found, str) and isinstance(counted, int) else 0
    return Machine(known, _name(environment, gpus), nameless)


def recognised(machine: Machine, known: Collection[Machine]) -> Machine:
    """The one machine of ``known`` whose GPUs have names and whose other facts are the same, with
    as many devices; ``machine`` itself where none is so, or several are.
    """
    if not machine.nameless:
        return machine
    fitting = [
        other
        for other in known
        if not other.nameless
        and tuple(fact for fact in other.facts if not fact[0].startswith(GPU_FACT)) == machine.facts
    ]
    return fitting[0] if len(fitting) == 1 else machine


def _name(environment: Mapping[str, Any], gpus: list[Mapping[str, Any]]) -> str:
    cores = environment.get("cores")
    words = [
        environment.get("cpu"),
        None if cores is None else f"{cores} core{'' if cores == 1 else 's'}",
        *(gpu.get("name") for gpu in gpus),
    ]
    return ", ".join(clean(str(word), SHORT) for word in words if word) or UNKNOWN
