"""What a session was measured in, typed: what an older or foreign file lacks is None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.session.evidence import Maybe, Record


class Gpu(Record):
    name: Maybe[str] = None
    driver_version: Maybe[str] = None


class Environment(Record):
    python: Maybe[str] = None
    cpu: Maybe[str] = None
    gpus: Maybe[tuple[Gpu, ...]] = None
    packages: Maybe[dict[str, str]] = None

    @property
    def versions(self) -> tuple[str, ...]:
        """``torch 2.13.0``: each distribution with its version."""
        return tuple(f"{name} {version}" for name, version in (self.packages or {}).items())

    @property
    def gpu_names(self) -> tuple[str, ...]:
        return tuple(gpu.name for gpu in self.gpus or () if gpu.name)


def typed(environment: Mapping[str, Any]) -> Environment:
    """The ``environment`` of a session's header."""
    return Environment.model_validate(environment)
