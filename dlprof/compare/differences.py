"""What differs between two sessions besides what they found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from dlprof.runner.header import Environment, in_one_boot, on_one_machine
from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.options import SYSTEM, TUNABLES
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Header
from dlprof.text.clean import counted

MACHINE = ("machine", "cpu", "cores", "platform", "cuda_devices")
GPU = ("name", "sm_clock_max_mhz", "memory_clock_max_mhz")
GOVERNOR = "CPU governor"
SAMPLE = "sample_ns"
WORDS = {
    SAMPLE: "samples of",
    "together": "all pairs in one process",
    "in_turns": "measured in turns",
}
MEASURING = tuple(WORDS)
"""Settings that change the times themselves: what a sample is the mean of, what else a process
serves, and whether it shares its processor's caches. So does the allocator of the host."""

ACROSS = "--any-python"

REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
    "python": f"measured with different Pythons; {ACROSS} compares them all the same",
}
"""Kinds of differences that times cannot be compared across, in words."""

UNKNOWN_MACHINE = "it is not known whether BASE and HEAD were measured on one machine"

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Difference:
    """``what`` is ``base`` in BASE and ``head`` in HEAD.

    Times cannot be compared across the kinds ``machine``, ``measuring`` and ``python``, the last
    unless that is what one compares. ``version`` is what is compared, as a rule, and ``setting`` is
    worth knowing.
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
    """All differences; a session that does not say what it ran on differs in nothing."""
    found = in_place(base.environment, head.environment)
    return (*found, *_settings(base, head))


def in_place(old: Environment, new: Environment) -> tuple[Difference, ...]:
    """What differs between the environments of two headers: machines, versions and variables."""
    return (*_machine(old, new), *_versions(old, new), *_variables(old, new))


def refusal(base: Header, head: Header, across_pythons: bool = False) -> str | None:
    """Why times of two sessions cannot be compared, by what differs; None if they can.

    ``across_pythons`` says that the user compares two versions of Python.
    """
    differ = differences(base, head)
    kinds = {one.kind for one in differ} - ({"python"} if across_pythons else set())
    found = [
        f"{words}: {', '.join(str(one) for one in differ if one.kind == kind)}"
        for kind, words in REFUSED.items()
        if kind in kinds
    ]
    if "machine" not in kinds and on_one_machine(base.environment, head.environment) is None:
        found.insert(0, UNKNOWN_MACHINE)
    return "; ".join(found) or None


def apart(base: Header, head: Header) -> str:
    """Why two sessions without a calibration are not called the same, by when they were measured;
    empty if that was within a day, and within one boot of the machine.
    """
    when = "at unknown times"
    # No date, or one with a time zone and one without.
    with suppress(ValueError, TypeError):
        old, new = (datetime.fromisoformat(header.created) for header in (base, head))
        if abs(new - old) > ONE_DAY:
            when = f"{abs(new - old) / ONE_DAY:,.0f} days apart"
        elif in_one_boot(base.environment, head.environment):
            return ""
        elif None in (base.environment.boot_id, head.environment.boot_id):
            when = "where it is not known whether the machine was restarted in between"
        else:
            when = "before and after a restart, or on two machines of one image"
    return f"measured {when}: name a calibration of this machine with --noise"


def machine_name(environment: Environment) -> str:
    """The processor, its cores and the GPUs, for people."""
    cores = environment.cores and counted(environment.cores, "core")
    words = [str(word) for word in (environment.cpu, cores, *environment.gpu_names) if word]
    return ", ".join(words) or "unknown machine"


def tunables_of(found: Environment) -> str:
    """What glibc's allocator was told; empty for nothing."""
    return (found.variables or {}).get(TUNABLES) or ""


def disturbance(header: Header) -> str | None:
    """What other programs did to a session, if they left its processes less than one core.

    What one thread does in a microsecond then takes as long as ever: views agreed within 2 %
    between a quiet machine and one with 1.6 of 2 cores taken. A copy by two threads took 55 us
    there and 16 ms here.
    """
    foreign, cores = header.foreign_cores, header.environment.cores
    if foreign is None or cores is None or foreign <= max(NOTABLE_CORES, cores - 1):
        return None
    return load_text(foreign, cores)


def _machine(base: Environment, head: Environment) -> Iterator[Difference]:
    for name in MACHINE:
        yield from _differ(name, getattr(base, name), getattr(head, name), "machine")
    yield from _differ(GOVERNOR, base.governor, head.governor, "measuring")
    if on_one_machine(base, head) is False:
        yield from _differ("machine id", base.machine_id, head.machine_id, "machine")
    if base.known_gpus is None or head.known_gpus is None:  # their number is compared above
        if base.cuda_devices or head.cuda_devices:
            yield Difference("names and clocks of the GPUs", "compared", "not known", "setting")
        return
    for index, (gpu, other) in enumerate(zip_longest(base.known_gpus, head.known_gpus)):
        for name in GPU:
            old, new = (getattr(one, name) if one else "none" for one in (gpu, other))
            yield from _differ(f"GPU {index} {name}", old, new, "machine")


def _versions(base: Environment, head: Environment) -> Iterator[Difference]:
    # Minor versions of dlprof may time otherwise, and those of Python run the timed loop otherwise.
    for name, kind in (("dlprof", "measuring"), ("python", "python")):
        old, new = getattr(base, name), getattr(head, name)
        same = str(old).split(".")[:2] == str(new).split(".")[:2]
        yield from _differ(name, old, new, "version" if same else kind)
    yield from _differ("implementation", base.implementation, head.implementation, "python")
    before, after = base.packages or {}, head.packages or {}
    for name in dict.fromkeys((*before, *after)):
        versions = before.get(name, "missing"), after.get(name, "missing")
        yield from _differ(name, *versions, "version")
    for index, (gpu, other) in enumerate(
        zip(base.known_gpus or (), head.known_gpus or (), strict=False)
    ):
        drivers = gpu.driver_version, other.driver_version
        yield from _differ(f"GPU {index} driver", *drivers, "version")


def _settings(base: Header, head: Header) -> Iterator[Difference]:
    devices = ["simulated" if header.simulated else "real" for header in (base, head)]
    yield from _differ("CUDA device", devices[0], devices[1], "machine")
    old, new = (header.request.settings for header in (base, head))
    for name in MEASURING:
        # Older sessions were not measured in turns, sample by sample, and do not say so.
        before, after = getattr(old, name), getattr(new, name)
        if name == "in_turns":
            before, after = bool(before), bool(after)
        yield from _differ(name, before, after, "measuring")
    # Older sessions have that of the system, and do not say so.
    allocators = old.allocator or SYSTEM, new.allocator or SYSTEM
    yield from _differ("allocator", *allocators, "measuring")
    if allocators[0] == allocators[1]:  # else it is known that these differ
        before, after = tunables_of(base.environment), tunables_of(head.environment)
        yield from _differ(TUNABLES, before or "unset", after or "unset", "measuring")
    yield from _differ("setup", old.setup or "none", new.setup or "none", "setting")


def _variables(base: Environment, head: Environment) -> Iterator[Difference]:
    before, after = base.variables or {}, head.variables or {}
    for name in dict.fromkeys((*before, *after)):
        if name == TUNABLES:
            continue  # they are of the allocator
        values = before.get(name) or "unset", after.get(name) or "unset"
        yield from _differ(name, *values, "setting")


def _differ(what: str, old: Any, new: Any, kind: str) -> Iterator[Difference]:
    if old is not None and new is not None and old != new:
        yield Difference(what, _text(old), _text(new), kind)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
