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
    from dlprof.measuring.measuring import inspect_interpreter
    from dlprof.runner.verify import verify_all

    catalog = inspect_interpreter(options.interpreter(python), options.probe_files(probe))
    verified = verify_all(catalog) if verify else {}
    say(probes_text(catalog, verified))
