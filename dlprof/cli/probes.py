"""``dlprof probes``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def probes(
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            metavar=options.FLAG,
            help="Import each framework in a worker and say what it can do.",
        ),
    ] = False,
    python: options.Python = None,
    probe: options.ProbeFiles = None,
) -> None:
    """List the frameworks: installed or not, devices, ways out and in."""
    from dlprof.cli.listing import probes_text
    from dlprof.cli.show import say
    from dlprof.runner.inspection import inspect_interpreter
    from dlprof.runner.inspection import verify as verified

    catalog = inspect_interpreter(options.interpreter(python), options.probe_files(probe))
    found = [probe for probe in catalog.probes if probe.found and verify]
    say(probes_text(catalog, {probe.name: verified(catalog, probe) for probe in found}))
