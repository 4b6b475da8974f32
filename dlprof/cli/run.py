"""``dlprof run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dlprof.cli import options


def run(
    producer: Annotated[
        str | None,
        typer.Argument(help="The framework that owns the array; several with commas between."),
    ] = None,
    consumer: Annotated[
        str | None, typer.Argument(help="The framework that takes it in; several as well.")
    ] = None,
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    layout: options.Layouts = None,
    device: options.Device = None,
    path: options.Paths = None,
    placement: options.Placements = None,
    setup: options.Setup = None,
    rounds: options.Rounds = None,
    budget: options.Budget = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    quick: options.Quick = False,
    diagnose: options.Diagnose = None,
    first_calls: options.FirstCalls = False,
    fail_on: options.FailOn = None,
    python: options.Python = None,
    probe: options.ProbeFiles = None,
    output: options.Output = None,
    json: options.Json = None,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    github: options.Github = False,
    resume: options.Resume = None,
) -> None:
    """Measure every way from one framework to another.

    Example: dlprof run torch numpy --shape 4096x4096
    """
    from dlprof.cli.starting import Starting
    from dlprof.errors import UsageError
    from dlprof.plan.pairing import Axes

    files_wanted: tuple[Any, ...] = (
        json,
        html,
        csv,
        parquet,
        markdown,
        junit,
        github,
    )
    if resume is not None:
        given = {
            "the frameworks": producer,
            "--shape": shape,
            "--dtype": dtype,
            "--layout": layout,
            "--device": device,
            "--path": path,
            "--placement": placement,
            "--setup": setup,
            "--rounds": rounds,
            "--budget": budget,
            "--seed": seed,
            "--quick": quick,
            "--diagnose": diagnose,
            "--first-calls": first_calls,
            "--python": python,
            "--probe": probe,
            "--timeout": timeout,
        }
        options.refuse_with_resume(given)
        _finish(resume, output, files_wanted, fail_on)
        return
    if producer is None or consumer is None:
        raise UsageError("name a producer and a consumer, such as: dlprof run torch numpy")
    axes = options.axes_from(shape, dtype, layout, device, Axes())
    settings = options.settings_from(
        rounds,
        seed,
        timeout,
        budget,
        quick,
        diagnose,
        placements=placement,
        first_calls=first_calls,
        setup="\n".join(setup or ()),
    )
    interpreter = options.interpreter(python)
    files = options.probe_files(probe)
    allowed = _allowed(fail_on)
    with Starting(interpreter, files) as starting:
        # These imports take as long as the interpreter needs to answer.
        from dlprof.cli.measure import measure
        from dlprof.cli.wanted import Wanted
        from dlprof.plan.request import Request

        wanted = Wanted(*files_wanted)
        catalog = starting.catalog()
    request = Request(
        pairs=options.pairs(catalog, producer, consumer),
        axes=axes,
        globs=tuple(path or ()),
        settings=settings,
        python=interpreter,
        probe_files=files,
        command=("run", producer, consumer),
    )
    measure(request, catalog, output, wanted, fail_on=allowed)


def _allowed(fail_on: list[str] | None) -> Any:
    if not fail_on:
        return None
    from dlprof.rules.fail_on import parse

    return parse(fail_on)


def _finish(
    session: Path,
    output: Path | None,
    files_wanted: tuple[Any, ...],
    fail_on: list[str] | None,
) -> None:
    from dlprof.cli.measure import finish
    from dlprof.cli.wanted import Wanted

    finish(session, output, Wanted(*files_wanted), _allowed(fail_on))
