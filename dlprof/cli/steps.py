"""``dlprof steps``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def steps(
    frameworks: Annotated[
        str | None,
        typer.Argument(
            help="torch, onnxruntime or torch_tensorrt; several with commas between. Default: all."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="FILE",
            help="An ONNX file, or a Python file that defines `model`. Default: a small one.",
            rich_help_panel=options.ARRAYS,
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            min=0,
            max=4096,
            metavar="N",
            help="Threads on the host. Default: the framework's own.",
            rich_help_panel=options.MEASURING,
        ),
    ] = 0,
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    device: options.Device = None,
    path: options.Paths = None,
    rounds: options.Rounds = None,
    budget: options.Budget = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    quick: options.Quick = False,
    python: options.Python = None,
    output: options.Output = None,
    json: options.Json = None,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
    resume: options.Resume = None,
) -> None:
    """Measure steps of inference: an output of its own for each, a buffer used again, or two.

    Example: dlprof steps onnxruntime --model net.onnx --shape 1x3x224x224
    """
    from dlprof.cli.measure import finish, measure
    from dlprof.cli.starting import started
    from dlprof.cli.wanted import Wanted
    from dlprof.plan import step_request
    from dlprof.plan.axes import split
    from dlprof.plan.request import Request

    wanted = Wanted(json, html, csv, parquet, markdown)
    if resume is not None:
        given = {
            "the frameworks": frameworks,
            "--model": model,
            "--threads": threads or None,
            "--shape": shape,
            "--dtype": dtype,
            "--device": device,
            "--path": path,
            "--rounds": rounds,
            "--budget": budget,
            "--timeout": timeout,
            "--seed": seed,
            "--quick": quick,
            "--python": python,
        }
        options.refuse_with_resume(given)
        finish(resume, output, wanted, None)
        return
    asked = step_request.asked(split([frameworks or ""]), model, threads)
    interpreter = options.interpreter(python)
    default = step_request.default_axes(model, named=bool(shape))
    sources = tuple(one.source for one in asked)
    request = Request(
        pairs=tuple(one.pair for one in asked),
        axes=options.axes_from(shape, dtype, None, device, default),
        globs=tuple(path or ()),
        settings=options.settings_from(rounds, seed, timeout, budget, quick, diagnose=True),
        python=interpreter,
        probe_files=sources,
        command=("steps", *(one.name for one in asked)),
    )
    measure(request, started(interpreter, sources), output, wanted)
