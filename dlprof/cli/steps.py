"""``dlprof steps``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every


@takes(
    every.MODEL,
    *(every.SHAPES, every.DTYPES, every.DEVICES, every.PATHS),
    *(*every.HOW, every.SAMPLE_MS, every.THREADS),
    *(every.PYTHON, every.SESSION, every.FULL, *every.REPORTS[:5]),
)
def steps(
    frameworks: Annotated[
        str | None,
        typer.Argument(
            help="torch, onnxruntime or torch_tensorrt; several with commas between. Default: all."
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Measure steps of inference: an output of its own for each, a buffer used again, or two.

    Example: dlprof steps onnxruntime --model net.onnx --shape 1x3x224x224
    """
    from dlprof.cli.measure import measure
    from dlprof.errors import UsageError
    from dlprof.plan.option import split
    from dlprof.plan.request import STEP_SHAPES, request_of, steps_named

    model, threads = given[every.MODEL], given[every.THREADS]
    found = steps_named(split([frameworks or ""]), model, threads)
    if model is not None and "shapes" not in given.values:
        raise UsageError("name the shape of the model's input, such as --shape 1x3x224x224")
    values = given.settled({"shapes": STEP_SHAPES})
    from dlprof.cli.inspection import inspected

    sources = tuple(one.source for one in found)
    request = request_of(
        values, tuple(one.pair for one in found), ("steps", *(one.name for one in found))
    )
    # Of steps there is no diagnosis that --quick could leave out.
    settings = replace(request.settings, diagnose=True)
    request = replace(request, settings=settings, probe_files=sources)
    measure(request, inspected(values["python"], sources), given)
