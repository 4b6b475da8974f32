"""``dlprof time``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every

SETUP = replace(every.SETUP, short="-s", metavar="CODE", help="Makes the array.")


@takes(
    *(SETUP, *every.HOW, every.SAMPLE_MS, every.DIAGNOSE, every.FAIL_ON),
    *(*every.INTERPRETER, every.SESSION, every.FULL, *every.REPORTS),
)
def time(
    statement: Annotated[str, typer.Argument(help="One expression: the conversion.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="The array. Default: the only one in the statement."
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Measure a conversion of your own.

    Example: dlprof time -s "import torch; x = torch.rand(4096, 4096)" "x.numpy()"
    """
    from dlprof.cli.measure import measure
    from dlprof.cli.outputs import Outputs
    from dlprof.plan.request import settings_of
    from dlprof.runner.own_code import Asked, request_for

    Outputs.of(given.raw)  # before anything of the user's runs
    values = given.settled()
    asked = Asked(statement, values["setup"] or "", source)
    settings = replace(settings_of(values), setup="")  # it makes the array, and is no more
    request, catalog = request_for(asked, settings, values["python"], values["probes"])
    measure(request, catalog, given)
