"""What differs between two sessions besides what they found."""

from __future__ import annotations

from dataclasses import dataclass

from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Environment, Header, on_one_machine
from dlprof.text.clean import counted

REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
}
"""Kinds of differences that times cannot be compared across, in words."""
ABSENT = {"version": "missing", "setting": "unset"}
"""What a side has that lacks a package or a variable. Any other fact that it lacks is not known."""


@dataclass(frozen=True)
class Difference:
    """``what`` is ``base`` in BASE and ``head`` in HEAD.

    Times cannot be compared across the kinds ``machine`` and ``measuring``. A ``version`` is what
    is compared, as a rule, and a ``setting`` is worth knowing.
    """

    what: str
    base: str
    head: str
    kind: str

    def __str__(self) -> str:
        return f"{self.what} {self.base} → {self.head}"


def differences(base: Header, head: Header) -> tuple[Difference, ...]:
    """Return all differences; a session that does not say what it ran on differs in nothing."""
    found = []
    before, after = _facts(base), _facts(head)
    for kind, old in before.items():
        new, absent = after[kind], ABSENT.get(kind)
        for what in dict.fromkeys((*old, *new)):
            sides = old.get(what, absent), new.get(what, absent)
            if None not in sides and sides[0] != sides[1]:
                found.append(Difference(what, str(sides[0]), str(sides[1]), kind))
    if on_one_machine(base.environment, head.environment) is False:
        ids = [str(one.environment.machine_id) for one in (base, head)]
        found.append(Difference("machine id", ids[0], ids[1], "machine"))
    return tuple(found)


def refusal(base: Header, head: Header) -> str:
    """Return why times of two sessions cannot be compared; empty if they can."""
    differ = differences(base, head)
    found = [
        f"{words}: {', '.join(str(one) for one in differ if one.kind == kind)}"
        for kind, words in REFUSED.items()
        if any(one.kind == kind for one in differ)
    ]
    is_other = any(one.kind == "machine" for one in differ)
    if not is_other and on_one_machine(base.environment, head.environment) is None:
        found.insert(0, "it is not known whether BASE and HEAD were measured on one machine")
    return "; ".join(found)


def machine_name(environment: Environment) -> str:
    """Return the processor, its cores and the GPUs, for people."""
    cores = environment.cores and counted(environment.cores, "core")
    words = [str(word) for word in (environment.cpu, cores, *environment.gpu_names) if word]
    return ", ".join(words) or "unknown machine"


def load_notice(name: str, header: Header) -> str:
    """Return a notice that other programs left a session less than one core; empty if not.

    Views agreed within 2 % between a quiet machine and one with 1.6 of 2 cores taken. A copy by
    two threads took 55 us there and 16 ms here.
    """
    foreign, cores = header.foreign_cores, header.environment.cores
    if foreign is None or cores is None or foreign <= max(NOTABLE_CORES, cores - 1):
        return ""
    return f"While {name} was measured, {load_text(foreign, cores)}"


def _facts(header: Header) -> dict[str, dict[str, object]]:
    """Return what a session says of itself, by kind; None for what it does not know."""
    environment, settings = header.environment, header.request.settings
    gpus, variables = environment.known_gpus, environment.variables or {}
    clocks = [
        f"{gpu.name} ({gpu.sm_clock_max_mhz} MHz, memory {gpu.memory_clock_max_mhz} MHz)"
        for gpu in gpus or ()
    ]
    drivers = {str(gpu.driver_version) for gpu in gpus or ()}
    return {
        "machine": {
            "machine": environment.machine,
            "cpu": environment.cpu,
            "cores": environment.cores,
            "platform": environment.platform,
            "cuda_devices": environment.cuda_devices,
            "GPUs": None if gpus is None else ", ".join(clocks) or "none",
            "CUDA device": "simulated" if header.simulated else "real",
        },
        "measuring": {
            "CPU governor": environment.governor,
            "samples of": settings.sample_ns and plain_time(float(settings.sample_ns)),
            "all pairs in one process": settings.together,
            "measured in turns": settings.in_turns,
        },
        "version": {
            "dlprof": environment.dlprof,
            "python": environment.python,
            "implementation": environment.implementation,
            **(environment.packages or {}),
            "driver": ", ".join(sorted(drivers)) or None,
        },
        "setting": {
            "setup": settings.setup or "none",
            **{name: value or "unset" for name, value in variables.items()},
        },
    }
