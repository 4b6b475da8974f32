"""Placement: what does the conversion cost in the loop that uses it?

A loop uses a conversion's result in one operation of the consumer, and waits for it. The conversion
stands in the loop (``in-loop``), before the loop (``hoisted``), or is left to the consumer, whose
operation gets the foreign array itself (``implicit``). The loops are sampled in turn in one
process, so that their difference is the conversion.

The answer: ``use`` (the operation, None if there is none), ``times`` by placement (timings as in
:mod:`~dlprof.worker.instruments.times`, in ns per iteration), and ``refused`` (why a placement has
no time). It cannot tell if the probe has no operation, if the call leaves no array behind, or if
the operation would be the producer's own (``x + 1`` of a foreign ``x``).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dlprof.probes.base import Unsupported, written
from dlprof.protocol.messages import NO_ARRAY, words
from dlprof.worker import memory, timer
from dlprof.worker.contract import check_use
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, prepare
from dlprof.worker.subject import Subject

ARRAYS = 2
"""Arrays of the case's size beside the source: the converted one, and the operation's result."""
LEAST_BUDGET_NS = 60_000_000
"""The cost is a difference, in which a few disturbed samples show more than in a time."""


@dataclass(frozen=True)
class Operation:
    """``code`` holds each array's name in braces; ``others`` are the shapes of all but ``x``."""

    code: str
    others: Mapping[str, tuple[int, ...]]
    setup: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return ("x", *self.others)

    def of(self, prefix: str = "") -> str:
        """The operation on the arrays of these names, each with ``prefix``."""
        return self.code.format(**{name: prefix + name for name in self.names})


def measure(subject: Subject, budget_ns: int, placements: Sequence[str]) -> dict[str, Any]:
    if subject.result_device == "cpu":
        memory.check_more(ARRAYS * subject.spec.size_bytes)
    refused: dict[str, str] = {}
    for operation in _operations(subject):
        loops, reasons, longest_ns = _loops(subject, operation, placements)
        if loops:
            timings = _timings(loops, budget_ns, longest_ns)
            times = {name: asdict(timing) for name, timing in timings.items()}
            return {"use": operation.of(), "times": times, "refused": refused | reasons}
        refused |= {f"{operation.of()}, {name}": reason for name, reason in reasons.items()}
    return {"use": None, "times": {}, "refused": refused}


def _timings(loops: dict[str, timer.Loop], budget_ns: int, longest_ns: int) -> dict[str, Any]:
    """One turn of each if one took as long as a statement that is timed once."""
    if longest_ns >= timer.LONG_NS:
        return {name: timer.Timing(1, [float(loop(1))]) for name, loop in loops.items()}
    budget_ns = max(budget_ns, LEAST_BUDGET_NS)
    return timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())


def _operations(subject: Subject) -> Iterator[Operation]:
    """The consumer's operations: the richer one first, then the plain one."""
    consumer, device = subject.consumer, subject.result_device
    spec = replace(subject.spec, device=device)
    many = None if subject.is_one_array else consumer.use_many(spec)
    if many is not None:
        yield Operation(check_use(many, consumer.name), many.others, many.setup)
    yield Operation(check_use(consumer.use(device), consumer.name), {})


def _loops(
    subject: Subject, operation: Operation, placements: Sequence[str]
) -> tuple[dict[str, timer.Loop], dict[str, str], int]:
    """Loops of the placements that work, why the others do not, and the ns of the longest turn."""
    longest_ns = 0
    loops: dict[str, timer.Loop] = {}
    refused: dict[str, str] = {}
    wanted = [name for name in MAKE if name in placements]
    namespace = attempt(partial(_namespace, subject, operation))
    if isinstance(namespace, Refusal):
        return {}, dict.fromkeys(wanted, words(namespace.error)), 0
    for name in wanted:
        made = attempt(partial(_loop, MAKE[name], subject, operation, namespace))
        if isinstance(made, Refusal):
            refused[name] = words(made.error)
        else:
            loops[name], turn_ns = made
            longest_ns = max(longest_ns, turn_ns)
    return loops, refused, longest_ns


def _loop(
    make: Make, subject: Subject, operation: Operation, namespace: dict[str, Any]
) -> tuple[timer.Loop, int]:
    loop = timer.compile_loop(make(subject, operation, namespace), namespace)
    turn_ns = loop(1)
    # What is compiled at the first call is no part of the loop.
    return loop, loop(1) if turn_ns >= timer.LONG_NS else turn_ns


def _namespace(subject: Subject, operation: Operation) -> dict[str, Any]:
    namespace = dict(subject.namespace)
    prepare(operation.setup, namespace)
    for name, shape in operation.others.items():
        spec = replace(subject.spec, shape=shape, layout="C")
        namespace[name] = replace(subject, spec=spec).make_another()
    return namespace


def _in_loop(subject: Subject, operation: Operation, _: dict[str, Any]) -> str:
    _check_left_behind(subject)
    conversions = [f"_{name} = {_conversion(subject, operation, name)}" for name in operation.names]
    dropped = ", ".join(f"_{name}" for name in operation.names)
    return "\n".join([*conversions, _turn(subject, operation.of("_")), f"del {dropped}"])


def _hoisted(subject: Subject, operation: Operation, namespace: dict[str, Any]) -> str:
    _check_left_behind(subject)
    for name in operation.names:
        converted = compile_call(_conversion(subject, operation, name), namespace)()
        subject.wait_for(converted)
        namespace[f"_hoisted_{name}"] = converted
    return _turn(subject, operation.of("_hoisted_"))


def _implicit(subject: Subject, operation: Operation, _: dict[str, Any]) -> str:
    if not takes_arrays(operation.code, operation.names):
        raise Unsupported(
            f"{operation.of()} of a foreign x is an operation of its own framework, not of"
            f" {subject.consumer.name}'s"
        )
    return _turn(subject, operation.of())


Make = Callable[[Subject, Operation, dict[str, Any]], str]
MAKE: Mapping[str, Make] = {"in-loop": _in_loop, "hoisted": _hoisted, "implicit": _implicit}
"""Functions that make the statement of a placement. The placement ``convert`` is the ready time."""


def takes_arrays(code: str, names: Sequence[str]) -> bool:
    """Whether each array is an argument of a call, so that the called framework handles it."""
    tree = ast.parse(code.format(**{name: name for name in names}), mode="eval")
    handed = [
        argument.id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(argument, ast.Name)
    ]
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    return sorted(used) == sorted(name for name in handed if name in names)


def _conversion(subject: Subject, operation: Operation, name: str) -> str:
    dtype, shape = subject.spec.dtype, operation.others.get(name, subject.spec.shape)
    handed = written(subject.export.code, name, dtype, shape)
    return written(subject.import_.code, handed, dtype, shape)


def _turn(subject: Subject, operation: str) -> str:
    wait = subject.wait.format(x="_used")
    return "\n".join(line for line in (f"_used = {operation}", wait, "del _used") if line)


def _check_left_behind(subject: Subject) -> None:
    if not subject.import_.returns_array:
        raise Unsupported(NO_ARRAY)
