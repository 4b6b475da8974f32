"""Probes for a user's own conversion: the probes of its frameworks, with the user's text.

The setup makes the array instead of ``create``, and the statement stands in the place of a way out
and a way in. All else (pointers, waits, values, queues) is what the framework's own probe says; for
an object of no known framework it is what the object itself says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlprof.probes.base import ANY_DEVICE, Export, Import, Probe, Protocol
from dlprof.worker.foreign import Foreign
from dlprof.worker.subject import OneArray

PREFIX = "code:"
STATEMENT = "statement"


@dataclass(frozen=True)
class Side:
    """One framework of a conversion. ``probe`` is where its own probe is found, if it has one.

    ``wait`` is source text that waits for an object of a framework that has none.
    """

    name: str
    module: str
    probe: tuple[str, str] | None = None
    wait: str = ""


@dataclass(frozen=True)
class OwnCode:
    """A user's conversion, as :mod:`dlprof.worker.recognise` understood it."""

    setup: str
    source: str
    export: str
    import_: str
    protocol: str
    producer: Side
    consumer: Side
    result_device: str = ""
    returns_array: bool = True

    def reference(self) -> str:
        """The source of its probes, as :func:`dlprof.worker.loading.load` takes it."""
        fields = {
            name: vars(value) if isinstance(value, Side) else value
            for name, value in vars(self).items()
        }
        return PREFIX + json.dumps(fields)


def read(reference: str) -> OwnCode:
    """The inverse of :meth:`OwnCode.reference`."""
    fields = json.loads(reference.removeprefix(PREFIX))
    for name in ("producer", "consumer"):
        side = fields[name]
        fields[name] = Side(**{**side, "probe": side["probe"] and tuple(side["probe"])})
    return OwnCode(**fields)


def probes(reference: str, find: Callable[[str, str], Probe]) -> list[Probe]:
    """A probe for each framework of the conversion; ``find`` gives the frameworks' own."""
    own = read(reference)
    sides = {side.name: side for side in (own.producer, own.consumer)}
    return [_probe(own, side, find) for side in sides.values()]


def _probe(own: OwnCode, side: Side, find: Callable[[str, str], Probe]) -> Probe:
    base = type(find(*side.probe)) if side.probe else Foreign
    protocol = Protocol(own.protocol)
    export = Export("array" if own.export == "{x}" else "export", protocol, own.export)
    import_ = Import(
        STATEMENT,
        (protocol,),
        own.import_,
        setup=own.setup,
        result_device=own.result_device,
        returns_array=own.returns_array,
    )
    members: dict[str, Any] = {
        "name": side.name,
        "array_name": own.source,
        "module": side.module,
        "devices": ANY_DEVICE,
        "exports": (export,),
        "imports": (import_,),
        "create": lambda _self, _spec: create_text(own),
    }
    if side.probe is None:
        members |= {"distributions": (side.module,), "wait_text": side.wait}
    probe: Probe = type(f"Own{base.__name__}", (OneArray, base), members)()
    return probe


def create_text(own: OwnCode) -> str:
    """Source text for ``create``: the array that the setup made, then one of a setup run anew."""
    again = f"exec(compile({own.setup!r}, '<setup>', 'exec', dont_inherit=True), globals())"
    return f"if '_made' in globals():\n    {again}\n_made = True\nx = {own.source}"
