"""Placement: what does the conversion cost in the loop that uses it?

A loop uses a conversion's result in one operation of the consumer, and waits for it, unless the
device is simulated. The conversion stands in the loop (``in-loop``), before the loop (``hoisted``),
or is left to the consumer, whose operation gets the foreign array itself (``implicit``). The loops
are sampled in turn in one process, so that their difference is the conversion.

The answer: ``use`` (the operation, None if there is none), ``times`` by placement (timings as in
:mod:`~dlprof.worker.instruments.times`, in ns per iteration), and ``refused`` (the reason of a
placement without a time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from dlprof.probes.base import Unsupported, Use, written
from dlprof.protocol.messages import NO_ARRAY, words
from dlprof.worker import memory, timer
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.simulated import OnSimulatedDevice
from dlprof.worker.source_text import check_code, compile_call, execute
from dlprof.worker.subject import Subject

ARRAYS = 2
"""Further arrays of the case's size: the converted array and the operation's result."""
PLACEMENTS = ("in-loop", "hoisted", "implicit")
"""The placement ``convert`` is the ready time."""


def measure(subject: Subject, budget_ns: int, placements: Sequence[str]) -> dict[str, Any]:
    if subject.result_device == "cpu":
        memory.check_more(ARRAYS * subject.spec.size_bytes)
    names = [name for name in PLACEMENTS if name in placements]
    use = _operation(subject)
    loops, refused = _loops(subject, use, names)
    if not loops:
        return {"use": None, "times": {}, "refused": refused}
    timings = timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())
    times = {name: asdict(timing) for name, timing in timings.items()}
    return {"use": _applied(use), "times": times, "refused": refused}


def _operation(subject: Subject) -> Use:
    """Return an operation of the consumer: on several arrays if it has one, else on one."""
    consumer, device = subject.consumer, subject.result_device
    spec = replace(subject.spec, device=device)
    many = None if subject.is_one_array else consumer.use_many(spec)
    if many is not None:
        check_code(many.code, f"{consumer.name}'s use_many", names=("x", *many.shapes))
        return many
    return Use(check_code(consumer.use(device), f"{consumer.name}'s use"))


def _loops(
    subject: Subject, use: Use, names: Sequence[str]
) -> tuple[dict[str, timer.Loop], dict[str, str]]:
    """Return warm loops of the placements that work, and the reasons of the others."""
    loops: dict[str, timer.Loop] = {}
    refused: dict[str, str] = {}
    namespace = attempt(partial(_namespace, subject, use))
    if isinstance(namespace, Refusal):
        return {}, dict.fromkeys(names, words(namespace.error))
    for name in names:
        loop = attempt(partial(_loop, name, subject, use, namespace))
        if isinstance(loop, Refusal):
            refused[name] = words(loop.error)
        else:
            loops[name] = loop
    return loops, refused


def _namespace(subject: Subject, use: Use) -> dict[str, Any]:
    namespace = dict(subject.namespace)
    execute(use.setup, namespace, "use setup")
    for name, shape in use.shapes.items():
        spec = replace(subject.spec, shape=shape, layout="C")
        namespace[name] = replace(subject, spec=spec).make_another()
    return namespace


def _loop(placement: str, subject: Subject, use: Use, namespace: dict[str, Any]) -> timer.Loop:
    loop = timer.compile_loop(_statement(placement, subject, use, namespace), namespace)
    loop(1)
    return loop


def _statement(placement: str, subject: Subject, use: Use, namespace: dict[str, Any]) -> str:
    """Return the body of a loop. Its arrays are put into ``namespace``."""
    if placement == "implicit":
        return _turn(subject, _applied(use))
    if not subject.import_.returns_array:
        raise Unsupported(NO_ARRAY)
    dtype, shapes = subject.spec.dtype, {"x": subject.spec.shape, **use.shapes}
    conversions = {}
    for name, shape in shapes.items():
        handed = written(subject.export.code, name, dtype, shape)
        conversions[name] = written(subject.import_.code, handed, dtype, shape)
    if placement == "in-loop":
        converted = [f"_{name} = {code}" for name, code in conversions.items()]
        dropped = ", ".join(f"_{name}" for name in conversions)
        return "\n".join([*converted, _turn(subject, _applied(use, "_")), f"del {dropped}"])
    for name, code in conversions.items():
        result = compile_call(code, namespace)()
        subject.wait_for(result)
        namespace[f"_hoisted_{name}"] = result
    return _turn(subject, _applied(use, "_hoisted_"))


def _applied(use: Use, prefix: str = "") -> str:
    """Return the operation on its arrays, each name with ``prefix``."""
    return use.code.format(**{name: prefix + name for name in ("x", *use.shapes)})


def _turn(subject: Subject, operation: str) -> str:
    is_simulated = isinstance(subject.consumer, OnSimulatedDevice)
    wait = "" if is_simulated else subject.wait.format(x="_used")
    return "\n".join(line for line in (f"_used = {operation}", wait, "del _used") if line)
