"""``dlprof paths``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def paths(
    producer: Annotated[str, typer.Argument(help="The framework that owns the array.")],
    consumer: Annotated[str, typer.Argument(help="The framework that takes it in.")],
    device: options.Device = None,
    python: options.Python = None,
    probe: options.ProbeFiles = None,
) -> None:
    """List the ways from one framework to another as code, without running them."""
    from dlprof.cli.listing import paths_text
    from dlprof.cli.show import say
    from dlprof.errors import UsageError
    from dlprof.plan import pairing
    from dlprof.runner.inspection import inspect_interpreter

    if device not in (None, "cpu", "cuda"):
        raise UsageError(f"there is no device {device!r}: known are cpu and cuda")
    catalog = inspect_interpreter(options.interpreter(python), options.probe_files(probe))
    pair = catalog.named(producer), catalog.named(consumer)
    devices = [device] if device else [name for name in ("cpu", "cuda") if name in pair[0].devices]
    found = {name: pairing.paths(*pair, name) for name in devices}
    say(paths_text(pair[0].name, pair[1].name, found))
