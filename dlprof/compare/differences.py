"""What differs between two sessions besides what they found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from dlprof.runner.header import Environment, on_one_machine
from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Header
from dlprof.text.clean import counted

MACHINE = ("machine", "cpu", "cores", "platform", "cuda_devices")
GPU = ("name", "sm_clock_max_mhz", "memory_clock_max_mhz")
SAMPLE = "sample_ns"
WORDS = {
    SAMPLE: "samples of",
    "together": "all pairs in one process",
    "in_turns": "measured in turns",
}
"""Settings that change the times themselves."""
REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
}
"""Kinds of differences that times cannot be compared across, in words."""
UNKNOWN_MACHINE = "it is not known whether BASE and HEAD were measured on one machine"


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
        sides = [self.base, self.head]
        if self.what == SAMPLE:
            sides = [plain_time(float(side)) for side in sides]
        return f"{WORDS.get(self.what, self.what)} {' → '.join(sides)}"


def differences(base: Header, head: Header) -> tuple[Difference, ...]:
    """Return all differences; a session that does not say what it ran on differs in nothing."""
    old, new = base.environment, head.environment
    return (*_machine(old, new), *_versions(old, new), *_settings(base, head))


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
        found.insert(0, UNKNOWN_MACHINE)
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


def _machine(base: Environment, head: Environment) -> Iterator[Difference]:
    for name in MACHINE:
        yield from _differ(name, getattr(base, name), getattr(head, name), "machine")
    yield from _differ("CPU governor", base.governor, head.governor, "measuring")
    if on_one_machine(base, head) is False:
        yield from _differ("machine id", base.machine_id, head.machine_id, "machine")
    for index, (gpu, other) in enumerate(zip_longest(base.known_gpus or (), head.known_gpus or ())):
        for name in GPU:
            old, new = (getattr(one, name) if one else "none" for one in (gpu, other))
            yield from _differ(f"GPU {index} {name}", old, new, "machine")


def _versions(base: Environment, head: Environment) -> Iterator[Difference]:
    for name in ("dlprof", "python", "implementation"):
        yield from _differ(name, getattr(base, name), getattr(head, name), "version")
    before, after = base.packages or {}, head.packages or {}
    for name in dict.fromkeys((*before, *after)):
        versions = before.get(name, "missing"), after.get(name, "missing")
        yield from _differ(name, *versions, "version")
    gpus = zip(base.known_gpus or (), head.known_gpus or (), strict=False)
    for index, (gpu, other) in enumerate(gpus):
        drivers = gpu.driver_version, other.driver_version
        yield from _differ(f"GPU {index} driver", *drivers, "version")


def _settings(base: Header, head: Header) -> Iterator[Difference]:
    devices = ["simulated" if header.simulated else "real" for header in (base, head)]
    yield from _differ("CUDA device", devices[0], devices[1], "machine")
    old, new = (header.request.settings for header in (base, head))
    for name in WORDS:
        before, after = getattr(old, name), getattr(new, name)
        yield from _differ(name, before, after, "measuring")
    yield from _differ("setup", old.setup or "none", new.setup or "none", "setting")
    variables, others = (header.environment.variables or {} for header in (base, head))
    for name in dict.fromkeys((*variables, *others)):
        values = variables.get(name) or "unset", others.get(name) or "unset"
        yield from _differ(name, *values, "setting")


def _differ(what: str, old: Any, new: Any, kind: str) -> Iterator[Difference]:
    if old is not None and new is not None and old != new:
        yield Difference(what, str(old), str(new), kind)
