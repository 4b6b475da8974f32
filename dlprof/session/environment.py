"""What a session was measured in, typed: what an older or foreign file lacks is None."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from dlprof.session.evidence import Maybe, Record, Whole


class Gpu(Record):
    name: Maybe[str] = None
    driver_version: Maybe[str] = None
    sm_clock_max_mhz: Maybe[Whole] = None
    memory_clock_max_mhz: Maybe[Whole] = None


class Environment(Record):
    dlprof: Maybe[str] = None
    python: Maybe[str] = None
    implementation: Maybe[str] = None
    executable: Maybe[str] = None
    platform: Maybe[str] = None
    machine: Maybe[str] = None
    cpu: Maybe[str] = None
    cores: Maybe[Whole] = None
    cuda_devices: Maybe[Whole] = None
    gpus: Maybe[tuple[Gpu, ...]] = None
    packages: Maybe[dict[str, str]] = None
    libraries: Maybe[dict[str, str]] = None
    """By distribution the framework whose work it does."""
    variables: Maybe[dict[str, Maybe[str]]] = None
    """Environment variables that a probe or a GPU reads."""

    @property
    def versions(self) -> tuple[str, ...]:
        """``torch 2.13.0``: each distribution with its version."""
        return tuple(f"{name} {version}" for name, version in (self.packages or {}).items())

    def distributions(
        self, frameworks: Collection[str], is_of: Callable[[str, str], bool] = str.startswith
    ) -> list[tuple[str, str]]:
        """Distribution and version of each framework, and of what does the work of one.

        ``is_of`` says whether a distribution's name is that of a framework: ``onnxruntime-gpu``.
        """
        libraries = self.libraries or {}
        return [
            (name, version)
            for name, version in (self.packages or {}).items()
            if libraries.get(name) in frameworks or any(is_of(name, one) for one in frameworks)
        ]

    @property
    def gpu_names(self) -> tuple[str, ...]:
        return tuple(gpu.name for gpu in self.gpus or () if gpu.name)


def typed(environment: Mapping[str, Any]) -> Environment:
    """The ``environment`` of a session's header."""
    return Environment.model_validate(environment)
