"""``dlprof matrix``."""

from __future__ import annotations

from dlprof.cli import options


def matrix(
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    layout: options.Layouts = None,
    device: options.Device = None,
    path: options.Paths = None,
    rounds: options.Rounds = None,
    budget: options.Budget = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    quick: options.Quick = False,
    diagnose: options.Diagnose = None,
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
) -> None:
    """Measure every installed framework with every other."""
    from dlprof.cli.measure import measure
    from dlprof.cli.starting import started
    from dlprof.cli.wanted import Wanted
    from dlprof.errors import Unmeasured
    from dlprof.plan.catalog import pairs_of
    from dlprof.plan.pairing import Axes
    from dlprof.plan.request import Request
    from dlprof.rules.fail_on import parse

    allowed = parse(fail_on) if fail_on else None
    wanted = Wanted(json, html, csv, parquet, markdown, junit, github)
    axes = options.axes_from(shape, dtype, layout, device, Axes())
    interpreter = options.interpreter(python)
    files = options.probe_files(probe)
    catalog = started(interpreter, files)
    pairs = pairs_of(catalog, axes.device)
    if not pairs:
        raise Unmeasured("no framework is installed that can be measured here")
    request = Request(
        pairs=pairs,
        axes=axes,
        globs=tuple(path or ()),
        settings=options.settings_from(
            rounds, seed, timeout, budget, quick, diagnose, together=True
        ),
        python=interpreter,
        probe_files=files,
        command=("matrix",),
    )
    measure(request, catalog, output, wanted, fail_on=allowed)
