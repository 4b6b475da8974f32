"""List the arrays of the survey: small ones, of every dtype, layout and kind of shape.

Most bugs of conversions sit off the contiguous float32 path, and one call shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from dlprof.probes.base import DTYPES, FLAGGED_DTYPES, LAYOUTS, ArraySpec
from dlprof.runner.axes import shape_text
from dlprof.runner.pairing import Case
from dlprof.runner.session import CaseRecord

SHAPE = (6, 10)
"""Two axes, so that rows and columns can be mistaken; even, for every second element."""
PLAIN = {"cpu": "aligned", "cuda": "C"}
"""The layout of most arrays, by device: some imports are a view of aligned memory only."""
ONE_ELEMENT_OFF = ("int8", "float64", "complex128")
"""Dtypes of 1, 8 and 16 bytes. The array begins one element off an aligned address."""
CROSSED = (
    *(("F", "complex64"), ("F", "float64"), ("strided", "int8"), ("strided", "complex64")),
    *(("broadcast", "int8"), ("readonly", "int64"), ("reversed", "int64")),
)
"""Layouts of other items than float32: of one byte, of eight, and of two parts. With every dtype
they would be most of the survey. A negative stride is last: it ends the process of some paths,
which are tried with no other array then."""
SHAPES = ((), (1,), (0,), (0, 3), (1, 1, 7), (1024,), (1025,), (2, 3, 2, 3, 2), (100_003,))
"""A scalar, one element, none, none in one of two axes, axes of length one, a power of two and
one above, five axes, and a long axis."""
CROSSED_SHAPES = (((), "int64"), ((3, 0), "float64"))
FLAGGED_SHAPES: Mapping[str, tuple[int, ...]] = {"number": ()}
CUBE = (2, 3, 4)
"""In column-major order, as the transpose of an array of three axes is."""


def arrays(flags: Iterable[str], device: str) -> Iterator[ArraySpec]:
    """Yield the arrays that each path converts once; ``flags`` are those of the producer.

    The plain one is first: its answer is known when another is refused.
    """
    plain = PLAIN[device]
    layouts = [layout for layout in LAYOUTS if layout not in PLAIN.values()]
    found = chain(
        ((SHAPE, dtype, plain) for dtype in sorted(DTYPES, key=lambda dtype: dtype != "float32")),
        ((SHAPE, "float32", layout) for layout in layouts),
        ((SHAPE, dtype, "sliced") for dtype in ONE_ELEMENT_OFF),
        (
            (FLAGGED_SHAPES.get(flag, SHAPE), FLAGGED_DTYPES.get(flag, "float32"), flag)
            for flag in flags
        ),
        ((shape, "float32", plain) for shape in SHAPES),
        ((shape, dtype, plain) for shape, dtype in CROSSED_SHAPES),
        [(CUBE, "float32", "F")],
        ((SHAPE, dtype, layout) for layout, dtype in CROSSED),
    )
    return (ArraySpec(*array, device, corners=True) for array in found)


class Label(NamedTuple):
    """An array by what sets it apart from the others: ``dtypes``, ``layouts`` or ``shapes``."""

    axis: str
    name: str
    dtype: str = ""
    """Set for an unaligned array, and for a layout or shape with a dtype other than float32."""


UNALIGNED = "unaligned arrays"
PLAINEST = Label("dtypes", "float32")


def is_plainest(case: Case) -> bool:
    """Whether this is the survey's first conversion of its path."""
    array = case.shape, case.dtype, case.layout
    return case.surveyed and array == (SHAPE, PLAINEST.name, PLAIN[case.device])


def survey_label(case: CaseRecord) -> Label:
    if case.layout in FLAGGED_SHAPES:
        return Label("layouts", case.layout)
    if case.shape != SHAPE:
        dtype = case.dtype if (case.shape, case.dtype) in CROSSED_SHAPES else ""
        detail = case.layout if case.shape == CUBE else dtype
        return Label("shapes", f"{shape_text(case.shape)} {detail}".rstrip(), dtype)
    if case.layout in PLAIN.values():
        return Label("dtypes", case.dtype)
    if case.layout == "sliced":
        return Label(UNALIGNED, f"sliced {case.dtype}", case.dtype)
    if (case.layout, case.dtype) in CROSSED:
        return Label("layouts", f"{case.layout} {case.dtype}", case.dtype)
    return Label("layouts", case.layout)
