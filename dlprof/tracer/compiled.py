"""NumPy arrays as arguments of compiled functions.

JAX converts them in code of C++, so there is no time, and no view or copy. Calls and bytes are
counted by line.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dlprof.tracer.arrays import CONTAINERS
from dlprof.tracer.calls import Tracer
from dlprof.tracer.rows import NO_LINE

LONGEST = 64
"""Items of an argument that are looked at; a longer container is passed over."""


def make(original: Callable[..., Any], tracer: Tracer) -> Callable[..., Any]:
    """Return ``jax.jit``, whose functions count the NumPy arrays among their arguments."""

    def jit(*args: Any, **kwargs: Any) -> Any:
        try:
            made = original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            raise
        if hasattr(made, "lower"):
            return _counted(made, tracer)
        return lambda function: _counted(made(function), tracer)  # jit(static_argnums=0)

    return functools.update_wrapper(jit, original)


def _counted(function: Any, tracer: Tracer) -> Any:
    array_type = sys.modules["numpy"].ndarray

    def compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            found = [x for x in _items((*args, *kwargs.values())) if type(x) is array_type]
            if found and tracer.is_active:
                _count(found, tracer)
            return function(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            raise

    wrapper = functools.update_wrapper(compiled, function)
    for name in dir(function):
        if not name.startswith("__"):
            setattr(wrapper, name, getattr(function, name))
    return wrapper


def _items(arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield the arguments, and what containers among them hold."""
    for argument in arguments:
        if type(argument) not in CONTAINERS:
            yield argument
        elif len(argument) <= LONGEST:
            yield from argument.values() if type(argument) is dict else argument


def _count(arrays: list[Any], tracer: Tracer) -> None:
    frame = tracer.places.line_frame(sys._getframe(2))  # noqa: SLF001 - CPython's own way
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else (NO_LINE, 0)
    numbers = tracer.rows.arguments.setdefault(place, [0, 0])
    numbers[0] += 1
    numbers[1] += sum(array.nbytes for array in arrays)
