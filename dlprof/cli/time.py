"""``dlprof time``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Text

SETUP = replace(every.SETUP, short="-s", metavar="CODE", help="Makes the array.")
SOURCE = Option(
    "source",
    Text(),
    "The array.",
    every.ARRAYS,
    metavar="NAME",
    meaning="the only one in the statement",
)


@takes(
    *(SOURCE, SETUP, *every.HOW, every.SAMPLE_MS, every.DIAGNOSE, every.FAIL_ON),
    *(*every.INTERPRETER, every.SESSION, every.FULL, *every.REPORTS),
)
def time(
    statement: Annotated[str, typer.Argument(help="One expression: the conversion.")],
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

    Outputs.of(given.raw, json_is_session=True)  # before anything of the user's runs
    values = given.settled()
    asked = Asked(statement, values["setup"] or "", given.raw["source"])
    settings = replace(settings_of(values), setup="")  # it makes the array, and is no more
    request, catalog = request_for(asked, settings, values["python"], values["probes"])
    measure(request, catalog, given)
