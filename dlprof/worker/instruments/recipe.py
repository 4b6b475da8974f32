"""Recipe: the source text of one case, so that a script without dlprof can do the same.

It holds what the probes say in words of their frameworks: how the array is made, how a result is
waited for and looked at, how work is queued. Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.probes.base import ArraySpec, Import, Probe
from dlprof.worker.subject import OneArray, result_device

ALIGNMENTS = ("aligned", "sliced")
CONTIGUOUS = ("C", *ALIGNMENTS)
"""Layouts of contiguous arrays whose alignment is known: where ``C`` copies in one process and not
in the next, these tell which is which."""


def measure(
    producer: Probe, consumer: Probe, import_: Import, spec: ArraySpec, own_setup: str = ""
) -> dict[str, Any]:
    """The texts of a case; see :class:`dlprof.session.model.Recipe`.

    What a probe does not say, or refuses to say of this array, is left out.
    """
    device = result_device(consumer, import_, spec)
    setups = dict.fromkeys((producer.setup, consumer.setup, import_.setup))
    return {
        "modules": list(dict.fromkeys((producer.module, consumer.module))),
        "setup": [*setups, *([own_setup] if own_setup else [])],
        "create": _creates(producer, spec),
        "source": _idioms(producer, spec.device, spec.dtype),
        "result": _idioms(consumer, device, spec.dtype),
        "queue": _kept(
            {
                "setup": partial(producer.queue_setup, spec),
                "enqueue": partial(producer.enqueue, spec),
                "unrelated": partial(producer.enqueue_unrelated, spec),
            }
        ),
    }


def _creates(producer: Probe, spec: ArraySpec) -> dict[str, str]:
    """By layout: that of the case, and for a contiguous array those that fix its alignment."""
    if isinstance(producer, OneArray):  # its setup has made the array
        return {spec.layout: f"x = {producer.array_name}"}
    layouts = dict.fromkeys((spec.layout, *(ALIGNMENTS if spec.layout in CONTIGUOUS else ())))
    specs = {layout: replace(spec, layout=layout) for layout in layouts}
    found = _kept({name: partial(producer.create, spec) for name, spec in specs.items()})
    asked = found.get(spec.layout)
    return {name: text for name, text in found.items() if name == spec.layout or text != asked}


def _idioms(probe: Probe, device: str, dtype: str) -> dict[str, str]:
    try:
        idioms = dict(probe.idioms(device, dtype))
    except Exception:  # noqa: BLE001 - a probe may raise anything
        idioms = {}
    texts = {name: partial(str, text) for name, text in idioms.items()}
    texts |= {"wait": partial(probe.wait, device), "use": partial(probe.use, device)}
    return _kept(texts)


def _kept(texts: Mapping[str, Callable[[], str | None]]) -> dict[str, str]:
    """The texts that there are."""
    found = {}
    for name, text in texts.items():
        try:
            said = text()
        except Exception:  # noqa: BLE001, S112 - a probe may raise anything; it is told by the case
            continue
        if said and isinstance(said, str):
            found[name] = said
    return found
