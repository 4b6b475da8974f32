"""What a session was measured in, and what was asked for.

A value that a file lacks, or holds in another form, is None.
"""

from __future__ import annotations

from collections.abc import Collection

from dlprof.runner.evidence import Flag, Maybe, Number, Record, Whole

SIMULATED = "simulated CUDA device: order and copies are real, times are not"
"""What every output from such a session says."""


class Gpu(Record):
    name: Maybe[str] = None
    driver_version: Maybe[str] = None
    sm_clock_max_mhz: Maybe[Whole] = None
    memory_clock_max_mhz: Maybe[Whole] = None


class Environment(Record):
    dlprof: Maybe[str] = None
    python: Maybe[str] = None
    parent_python: Maybe[str] = None
    implementation: Maybe[str] = None
    executable: Maybe[str] = None
    platform: Maybe[str] = None
    machine: Maybe[str] = None
    cpu: Maybe[str] = None
    cores: Maybe[Whole] = None
    governor: Maybe[str] = None
    machine_id: Maybe[str] = None
    boot_id: Maybe[str] = None
    """Hashes that tell the machine, and the time since it was started, from others."""
    cuda_devices: Maybe[Whole] = None
    gpus: Maybe[tuple[Gpu, ...] | str] = None
    """The GPUs, or why they cannot be read."""
    packages: Maybe[dict[str, str]] = None
    libraries: Maybe[dict[str, str]] = None
    """By distribution the framework whose work it does."""
    variables: Maybe[dict[str, Maybe[str]]] = None
    """Environment variables that a probe or a GPU reads."""

    @property
    def versions(self) -> tuple[str, ...]:
        """``torch 2.13.0``: each distribution with its version."""
        return tuple(f"{name} {version}" for name, version in (self.packages or {}).items())

    def distributions(self, frameworks: Collection[str]) -> list[tuple[str, str]]:
        """Distribution (``onnxruntime-gpu``) and version of each framework, and of what does the
        work of one.
        """
        libraries = self.libraries or {}
        return [
            (name, version)
            for name, version in (self.packages or {}).items()
            if libraries.get(name) in frameworks or name.startswith(tuple(frameworks))
        ]

    @property
    def known_gpus(self) -> tuple[Gpu, ...] | None:
        return self.gpus if isinstance(self.gpus, tuple) else None

    @property
    def gpu_names(self) -> tuple[str, ...]:
        return tuple(gpu.name for gpu in self.known_gpus or () if gpu.name)


def on_one_machine(old: Environment, new: Environment) -> bool | None:
    """Whether two environments name one machine; None if that is not known.

    Containers of one machine may have several names: the boot tells. Two machines of one image may
    have one name, and only :func:`in_one_boot` tells them apart.
    """
    if in_one_boot(old, new):
        return True
    return old.machine_id == new.machine_id if old.machine_id and new.machine_id else None


def in_one_boot(old: Environment, new: Environment) -> bool:
    """Whether both are known to be of one machine that was not restarted in between."""
    return bool(old.boot_id) and old.boot_id == new.boot_id


class RecordedAxes(Record):
    shapes: Maybe[tuple[tuple[Whole, ...], ...]] = None
    dtypes: Maybe[tuple[str, ...]] = None
    layouts: Maybe[tuple[str, ...]] = None
    device: Maybe[str] = None


class RecordedSettings(Record):
    rounds: Maybe[Whole] = None
    sample_ns: Maybe[Whole] = None
    together: Maybe[Flag] = None
    in_turns: Maybe[Flag] = None
    diagnose: Maybe[Flag] = None
    placements: Maybe[tuple[str, ...]] = None
    setup: Maybe[str] = None
    survey_alone: Maybe[Flag] = None


class RecordedScenario(Record):
    file: Maybe[str] = None
    title: Maybe[str] = None
    question: Maybe[str] = None
    sources: Maybe[tuple[str, ...]] = None
    pairs: Maybe[tuple[str, ...]] = None
    expect: Maybe[tuple[str, ...]] = None
    thresholds: Maybe[dict[str, Maybe[Number]]] = None


class RecordedRequest(Record):
    """The request as :mod:`dlprof.runner.request` writes it."""

    pairs: Maybe[tuple[tuple[str, str], ...]] = None
    globs: Maybe[tuple[str, ...]] = None
    axes: RecordedAxes = RecordedAxes()
    settings: RecordedSettings = RecordedSettings()
    python: Maybe[str] = None
    probe_files: Maybe[tuple[str, ...]] = None
    scenario: Maybe[RecordedScenario] = None
