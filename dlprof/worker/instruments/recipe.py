"""Recipe: the source text of one case, so that a script without dlprof can do the same.

It holds what the probes say: how to make the array, how to wait for a result and look at it, how
to queue work. Nothing runs here. Text that a probe refuses to give is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.probes.base import CONTIGUOUS, ArraySpec, Import, Probe
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import OneArray, result_device

ALIGNMENTS = ("aligned", "sliced")
"""Layouts of known alignment. ``C`` may be a view in one process and a copy in the next; these
tell which is which."""

Text = Callable[[], str | None]


def measure(
    producer: Probe, consumer: Probe, import_: Import, spec: ArraySpec, own_setup: str = ""
) -> dict[str, Any]:
    device = result_device(consumer, import_, spec)
    setups = dict.fromkeys((producer.setup, consumer.setup, import_.setup))
    queue: dict[str, Text] = {
        "setup": partial(producer.queue_setup, spec),
        "enqueue": partial(producer.enqueue, spec),
    }
    return {
        "modules": list(dict.fromkeys((producer.module, consumer.module))),
        "setup": [*setups, *([own_setup] if own_setup else [])],
        "create": creates(producer, spec),
        "source": _idioms(producer, spec.device, spec.dtype),
        "result": _idioms(consumer, device, spec.dtype),
        "queue": {} if spec.corners else _texts(queue),  # a survey queues nothing
    }


def creates(producer: Probe, spec: ArraySpec) -> dict[str, str]:
    """Return text that makes an array, by layout: a contiguous one also with a known alignment."""
    if isinstance(producer, OneArray) and not spec.corners:
        return {spec.layout: producer.created}
    alignments = ALIGNMENTS if spec.layout in CONTIGUOUS and not spec.corners else ()
    layouts = dict.fromkeys((spec.layout, *alignments))
    specs = {layout: replace(spec, layout=layout) for layout in layouts}
    found = _texts({name: partial(producer.create, spec) for name, spec in specs.items()})
    own = found.get(spec.layout)
    return {name: text for name, text in found.items() if name == spec.layout or text != own}


def _idioms(probe: Probe, device: str, dtype: str) -> dict[str, str]:
    idioms = attempt(lambda: dict(probe.idioms(device, dtype)))
    found = {} if isinstance(idioms, Refusal) else idioms
    waits = {"wait": partial(probe.wait, device), "use": partial(probe.use, device)}
    return _texts({name: partial(str, text) for name, text in found.items()} | waits)


def _texts(calls: Mapping[str, Text]) -> dict[str, str]:
    found = {name: attempt(call) for name, call in calls.items()}
    return {name: text for name, text in found.items() if text and isinstance(text, str)}
