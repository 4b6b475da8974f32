"""``dlprof time``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Text

SETUP = replace(every.SETUP, short="-s", metavar="CODE", help="Makes the array.")
DEVICES = replace(
    every.DEVICES,
    help="The array's device; simulated gives its setup a CUDA device without a GPU.",
    meaning="where the setup makes it",
    details="",
)
SOURCE = Option(
    "source",
    Text(),
    "The array.",
    every.ARRAYS,
    metavar="NAME",
    meaning="the only one in the statement",
)


@takes(
    *(SOURCE, SETUP, DEVICES, *every.TIMED, every.FAIL_ON),
    *(every.SESSION, every.FULL, *every.REPORTS),
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
    from dlprof.errors import UsageError
    from dlprof.plan.axes import simulated_in
    from dlprof.plan.request import settings_of
    from dlprof.runner.user_code import Statement, request_for

    Outputs.of(given.raw, json_is_session=True)  # before anything of the user's runs
    values = given.settled()
    if values["devices"] != (every.DEVICES.default,) and not simulated_in(values["devices"]):
        raise UsageError(
            f"--device {', '.join(values['devices'])}: the setup makes the array where it likes;"
            " only simulated changes what it finds"
        )
    asked = Statement(statement, values["setup"] or "", given.raw["source"])
    settings = replace(settings_of(values), setup="")  # it makes the array, and is no more
    simulated = simulated_in(values["devices"])
    request, catalog = request_for(asked, settings, values["python"], values["probes"], simulated)
    measure(request, catalog, given)
