"""The subject of a step's measurement: a model, its input, and a strategy for its output."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dlprof.inference.base import FRESH, Steps
from dlprof.probes.base import ArraySpec, Import, Unsupported
from dlprof.worker import timer

OTHER_SEED = 1
DROP = "del y"


@dataclass(frozen=True)
class Step:
    """A strategy with its buffers made, for the input ``x`` of ``namespace``.

    ``code`` and ``setup`` are statements. ``namespace`` also holds the model, and ``output``, what
    it gave for ``x`` at first, in memory of its own.
    """

    steps: Steps
    strategy: Import
    spec: ArraySpec
    namespace: dict[str, Any] = field(repr=False)

    @property
    def code(self) -> str:
        return self.strategy.code.format(x="x")

    @property
    def setup(self) -> str:
        return self.strategy.setup

    @property
    def turn(self) -> str:
        """One step, its output there and dropped."""
        return "\n".join(line for line in (self.code, self.wait, DROP) if line)

    @property
    def reading(self) -> str:
        """One step, every value of its output read, and the output dropped."""
        return "\n".join((self.code, self.steps.read(self.strategy.name), DROP))

    @property
    def wait(self) -> str:
        """Source text that returns when ``y`` is there; empty where it is when the call returns."""
        return self.steps.wait(self.spec.device).format(x="y")

    def build(self) -> None:
        """Make the buffers anew."""
        _execute(self.setup, self.namespace)

    def run(self, x: Any = None) -> Any:
        """One step on ``x``, or on the input; returns the output when it is there."""
        names = self.namespace
        own = names["x"]
        try:
            names["x"] = own if x is None else x
            _execute(self.code, names)
            _execute(self.wait, names)
            return names.pop("y")
        finally:
            names["x"] = own

    def another_input(self) -> Any:
        """An input of the same shape with other values."""
        return self._made(self.steps.create(self.spec, OTHER_SEED))

    def loop(self, statement: str) -> timer.Loop:
        """A timed loop over ``statement``, whose names are those of the namespace."""
        return timer.compile_loop(as_globals(statement), self.namespace)

    def of_shape(self, shape: tuple[int, ...]) -> Step:
        """The same model and strategy for an input of another shape, with buffers of its own."""
        other = replace(self, spec=replace(self.spec, shape=shape), namespace=dict(self.namespace))
        other.namespace["x"] = self._made(other.steps.create(other.spec))
        other.first_output()
        other.build()
        return other

    @property
    def is_fresh(self) -> bool:
        """Whether each call allocates its output."""
        return self.strategy.name == FRESH

    @property
    def fresh(self) -> Step:
        """The same model and input with an output of its own for each call."""
        (way,) = (way for way in self.steps.imports if way.name == FRESH)
        return replace(self, strategy=way, namespace=dict(self.namespace))

    def first_output(self) -> None:
        """Let the model run as ever, so that ``output`` has what a buffer must look like.

        Raises :class:`Unsupported` for an output that is no single tensor.
        """
        self.namespace["output"] = self.fresh.run()
        self.steps.check_output(self.namespace["output"])

    def _made(self, text: str) -> Any:
        names = dict(self.namespace)
        _execute(text, names)
        return names["x"]


def prepare(
    steps: Steps, strategy: Import, spec: ArraySpec, announce: Callable[[str], None]
) -> Step:
    """Make the input, load the model and make the buffers.

    Raises :class:`Unsupported` for a model that is none of one input and one output, and whatever
    the framework raises.
    """
    if spec.layout != "C":
        raise Unsupported(f"a step takes a contiguous input, and not one of layout {spec.layout}")
    namespace: dict[str, Any] = {}
    _execute(steps.setup, namespace)
    announce("create")
    steps.check_strategy(strategy.name, spec.device)
    steps.ready(spec.device)
    _execute(steps.create(spec), namespace)
    _execute(steps.load(spec), namespace)
    steps.check(namespace)
    return Step(steps, strategy, spec, namespace)


def as_globals(statement: str) -> str:
    """``statement`` for the body of a function, in which all its names stay those of the module.

    What one step sets, such as the buffer for the next one, is there for the next one.
    """
    names = {
        node.id
        for node in ast.walk(ast.parse(statement))
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return f"global {', '.join(sorted(names))}\n{statement}" if names else statement


def _execute(text: str, namespace: dict[str, Any]) -> None:
    exec(compile(text, "<step>", "exec"), namespace)  # noqa: S102 - the steps' own text
