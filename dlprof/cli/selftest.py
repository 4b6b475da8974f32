"""``dlprof selftest``."""

from __future__ import annotations

import typer

from dlprof.cli import options


def selftest(python: options.Python = None) -> None:
    """Plant known faults on this machine and say which are found."""
    import tempfile
    from pathlib import Path

    from dlprof.cli.progress import Bar
    from dlprof.errors import FindingsFailed
    from dlprof.reports.selftest import render
    from dlprof.selftest import run

    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder, Bar() as bar:
        found = run(options.interpreter(python), Path(folder), bar)
    typer.echo(render(found), nl=False)
    if not found.passed:
        raise FindingsFailed("the selftest failed: what dlprof says on this machine is in doubt")
