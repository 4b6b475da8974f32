"""``dlprof selftest``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="cpu|cuda",
        help="Where to plant. Default: on the host, and on a GPU where there is one.",
    ),
]


def selftest(device: Device = None, python: options.Python = None) -> None:
    """Plant known faults on this machine and say which are found."""
    from pathlib import Path

    from dlprof.errors import FindingsFailed, Interrupted, Unsure, UsageError
    from dlprof.measuring.selftest import plants_for, run
    from dlprof.reports.selftest import render
    from dlprof.runner.progress import Bar
    from dlprof.session.files import temporary_folder

    if device not in (None, "cpu", "cuda"):
        raise UsageError(f"there is no device {device!r}: known are cpu and cuda")
    interpreter = options.interpreter(python)
    plants, no_streams = plants_for(interpreter, device)
    with temporary_folder("faults are planted") as folder, Bar() as bar:
        found = run(interpreter, Path(folder), bar, plants)
    typer.echo(render(found, no_streams), nl=False)
    if found.stopped:
        raise Interrupted("stopped; the table says what was measured by then")
    if not found.passed:
        raise FindingsFailed("the selftest failed: what dlprof says on this machine is in doubt")
    if found.unmeasured:
        raise Unsure("the selftest is not complete: some of what was planted was not measured")
