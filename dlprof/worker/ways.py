"""The path that a request names, imported: both frameworks, and the ways out of and into them."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.probes.base import ArraySpec, Export, Import, Probe
from dlprof.worker.declared import FaultyProbe
from dlprof.worker.subject import OneArray, Subject, namespace_for, prepare

if TYPE_CHECKING:
    from dlprof.worker.channel import Answer
    from dlprof.worker.state import WorkerState


class Ways(NamedTuple):
    """The path of a case, imported."""

    producer: Probe
    consumer: Probe
    export: Export
    import_: Import
    namespace: dict[str, Any]

    @property
    def is_one_array(self) -> bool:
        """Whether no array of another size can be made."""
        return isinstance(self.producer, OneArray)

    def subject(self, spec: ArraySpec) -> Subject:
        return prepare(
            self.producer, self.consumer, self.export, self.import_, spec, dict(self.namespace)
        )


def ways_of(state: WorkerState, request: dict[str, Any], answer: Answer) -> Ways:
    """What a request names, imported."""
    answer.stage("import")
    producer = state.probe(*request["producer"])
    consumer = state.probe(*request["consumer"])
    export = _named(producer, producer.exports, request["export"])
    import_ = _named(consumer, consumer.imports, request["import"])
    setup = str(request.get("setup", ""))
    key = (producer.name, consumer.name, import_.name, setup)
    if key not in state.namespaces:
        state.namespaces[key] = namespace_for(producer, consumer, import_, setup, state.refused)
        gc.freeze()  # the frameworks' own objects would make every collection below slow
    return Ways(producer, consumer, export, import_, state.namespaces[key])


def _named(probe: Probe, ways: tuple[Any, ...], name: str) -> Any:
    for way in ways:
        if way.name == name:
            return way
    raise FaultyProbe(f"{probe.name} has no way named {name}")
