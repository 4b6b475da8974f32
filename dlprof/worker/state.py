"""What outlives a request of the parent."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import Probe
from dlprof.worker import loading
from dlprof.worker.channel import Channel
from dlprof.worker.subject import Refused


class WorkerState:
    """Probes, namespaces, imports that failed, and how many cases ran."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.probes: dict[tuple[str, str], Probe] = {}
        self.namespaces: dict[tuple[str, ...], dict[str, Any]] = {}
        self.refused: Refused = {}
        self.cases_before = 0

    def probe(self, source: str, name: str) -> Probe:
        """The probe, loaded once per worker."""
        if (source, name) not in self.probes:
            self.probes[source, name] = loading.find(source, name)
        return self.probes[source, name]
