"""A user's own conversion, as the source of its probes: JSON that the parent writes."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
