"""The verbs that measure: pairs of frameworks, scenarios, an expression, or planted faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import show
from dlprof.errors import FindingsFailed, Unmeasured, Unsure, UsageError
from dlprof.runner import options
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.options import Number, Option, Several, Switch, Text

if TYPE_CHECKING:  # `dlprof --help` does not wait for them
    from dlprof.runner.catalog import Catalog
    from dlprof.runner.request import Request

PRODUCER = typer.Argument(
    metavar="PRODUCER", help="The framework that owns the array; several with commas between."
)
CONSUMER = typer.Argument(
    metavar="CONSUMER", help="The framework that takes it in; several as well."
)
SUBJECT = typer.Argument(
    metavar="PRODUCER",
    help="The framework that owns the array (several with commas between), an expression that makes"
    " the array, or a scenario file.",
)
DRY_RUN = Option(
    "dry_run",
    Switch(),
    "Print what would be measured, and measure nothing.",
    options.OUTPUT,
    default=False,
)


@takes(
    *(*options.RUN, options.TOGETHER, options.FAIL_ON),
    *(options.SESSION, options.FULL, DRY_RUN, *options.REPORTS),
)
def run(
    subject: Annotated[str | None, SUBJECT] = None,
    consumer: Annotated[str | None, CONSUMER] = None,
    *,
    given: Given,
) -> None:
    """Measure every way from one framework to another, or what a scenario file asks for.

    Examples: dlprof run torch numpy --shape 4096x4096
    or dlprof run "h5py.File('a.h5')['x']" torch
    """
    from dlprof.cli.measure import measure
    from dlprof.protocol.statement import is_expression
    from dlprof.runner.catalog import inspect_interpreter

    if subject is not None and consumer is None and {".", "/"} & set(subject):
        from dlprof.measuring.scenario import read, sweep

        found = sweep(read(Path(subject)), given.values, inspect_interpreter)
        measure(found.request, found.catalog, given)
        return
    if subject is None or consumer is None:
        raise UsageError("name a producer and a consumer, such as: dlprof run torch numpy")
    if is_expression(subject):
        from dlprof.runner.user_code import object_request

        for option in (options.SHAPES, options.DTYPES, options.LAYOUTS):
            if given.raw.get(option.key):
                raise UsageError(f"{option.name}: the expression makes the array")
        request, catalog = object_request(subject, consumer, given.settled())
    else:
        request, catalog = _pairs_request(given.settled(), "run", subject, consumer)
    measure(request, catalog, given)


def _catalog(values: Mapping[str, Any]) -> Catalog:
    """Return the catalog of the interpreter and the devices in the options."""
    from dlprof.runner.catalog import inspect_interpreter

    simulated = simulated_in(values["devices"])
    return inspect_interpreter(values["python"], values["probes"], simulated)


def _pairs_request(
    values: Mapping[str, Any], verb: str, producer: str, consumer: str
) -> tuple[Request, Catalog]:
    """Return the request for every named producer with every named consumer."""
    from dlprof.runner.catalog import pairs_named
    from dlprof.runner.request import make_request

    catalog = _catalog(values)
    pairs = pairs_named(catalog, producer, consumer)
    return make_request(values, pairs, (verb, producer, consumer)), catalog


@takes(
    *(options.DEVICES, options.PATHS, options.SETUP, options.TIMEOUT),
    *(options.FAIL_ON, *options.INTERPRETER, options.SESSION, options.FULL),
    *(options.JSON, options.HTML, options.MARKDOWN, options.JUNIT, options.GITHUB),
)
def survey(
    producer: Annotated[str, PRODUCER],
    consumer: Annotated[str, CONSUMER],
    *,
    given: Given,
) -> None:
    """Convert small arrays of every dtype, layout and shape, and look at the results.

    Example: dlprof survey numpy jax
    """
    from dlprof.cli.measure import measure

    values = given.settled({"survey": True})
    if simulated_in(values["devices"]):
        raise UsageError("a simulated device runs no kernel: it shows no value to survey")
    request, catalog = _pairs_request(values, "survey", producer, consumer)
    settings = replace(request.settings, survey_alone=True, rounds=1)
    measure(replace(request, settings=settings), catalog, given)


@takes(
    *(*options.AXES, *options.HOW),
    # A matrix has hundreds of cases; its question is which way, not the last percent.
    replace(options.SAMPLE_MS, default=20.0),
    replace(options.DIAGNOSE, meaning="only on a simulated device"),
    *(options.FAIL_ON, *options.INTERPRETER, options.SESSION, options.FULL, *options.REPORTS),
)
def matrix(*, given: Given) -> None:
    """Measure every installed framework with every other."""
    from dlprof.cli.measure import measure
    from dlprof.runner.catalog import frameworks_on
    from dlprof.runner.request import make_request

    # A simulated device gives no times: the diagnosis is all that there is to report.
    simulated = simulated_in(given.values.get("devices", ()))
    values = given.settled({"together": True, "diagnose": bool(simulated)})
    catalog = _catalog(values)
    names = frameworks_on(catalog, values["devices"])
    pairs = tuple(product(names, names))
    if not pairs:
        raise Unmeasured("no framework is installed that can be measured here")
    measure(make_request(values, pairs, ("matrix",)), catalog, given)


SETUP = replace(
    options.SETUP, short="-s", metavar="CODE", help="Makes the array.", panel=options.ARRAYS
)
DEVICES = replace(
    options.DEVICES,
    help="The array's device; simulated gives its setup a CUDA device without a GPU.",
    meaning="where the setup makes it",
)
SOURCE = Option(
    "source",
    Text(),
    "The array.",
    options.ARRAYS,
    metavar="NAME",
    meaning="the only one in the statement",
)


NUMBER = Number(1, 1000, "whole numbers", int)
MANY = Option(
    "arrays",
    Several(lambda word: [NUMBER.read(word)], commas=True),
    "How many arrays one call takes, such as 1,8: f(x) also becomes f(x, *more_7).",
    options.ARRAYS,
    flag="--arrays",
    metavar="N",
    meaning="one",
)


@takes(
    *(options.PROGRAM, *options.OF_PROGRAMS, SOURCE, SETUP, MANY, DEVICES, *options.TIMED),
    *(options.SURVEY, options.FAIL_ON, options.SESSION, options.FULL, *options.REPORTS),
)
def time(
    statements: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STATEMENT...", help="An expression: the conversion. Several are compared."
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Measure a conversion of your own, or compare several ways to write it.

    Example: dlprof time -s "import torch; x = torch.rand(4096, 4096)" "x.numpy()"

    Example: dlprof time --program "cargo run -q --release"
    """
    from dlprof.cli.measure import measure
    from dlprof.cli.outputs import Outputs
    from dlprof.measuring.scenario import program_scenario, sweep
    from dlprof.runner.catalog import inspect_interpreter
    from dlprof.runner.user_code import request_for

    Outputs.parse(given.raw)  # before code of the user runs
    values = given.settled()
    if bool(statements) == bool(given[options.PROGRAM]):
        raise UsageError("name either statements or a program, such as: dlprof time 'x.numpy()'")
    of_statement = (SOURCE, SETUP, MANY, DEVICES, options.SURVEY)
    owner = "a program" if statements else "a statement"
    for option in options.OF_PROGRAMS if statements else of_statement:
        if given.raw[option.key] is not None:
            raise UsageError(f"{option.name} is for {owner}: leave it out")
    if not statements:
        found = sweep(program_scenario(given[options.PROGRAM]), given.values, inspect_interpreter)
        request = replace(found.request, command=("time",), scenario=None)
        measure(request, found.catalog, given)
        return
    if values["devices"] != (options.DEVICES.default,) and not simulated_in(values["devices"]):
        raise UsageError(
            f"--device {', '.join(values['devices'])}: the setup makes the array where it likes;"
            " only simulated changes what it finds"
        )
    source, arrays = given.raw["source"], given[MANY] or ()
    if arrays and simulated_in(values["devices"]):
        raise UsageError(f"--arrays needs {NO_TIMES}")
    setup = values["setup"] or ""
    with request_for(statements, setup, source, values, arrays) as (request, catalog, pool):
        measure(request, catalog, given, pool)


PLACES = replace(
    options.DEVICES,
    help="Where to plant: cpu, cuda or simulated.",
    meaning="on the host, and on a GPU where there is one",
)


@takes(PLACES, options.PYTHON, options.FULL)
def selftest(*, given: Given) -> None:
    """Plant known faults on this machine and report which are found."""
    from dlprof.measuring import selftest as planting
    from dlprof.report.check_document import selftest_document
    from dlprof.runner.progress import Bar

    values = given.settled()
    device = None if values["devices"] == ("auto",) else values["devices"][0]
    plants, no_streams = planting.plants_for(values["python"], device)
    with TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True) as folder, Bar() as bar:
        simulated = simulated_in(values["devices"])
        found = planting.run(values["python"], Path(folder), bar, plants, simulated)
    show(selftest_document(found, no_streams, simulated > 0), bool(given.raw.get("full")))
    if not found.passed:
        raise FindingsFailed(
            "the self-test failed: do not rely on what it missed or reported falsely here"
        )
    if found.unmeasured:
        raise Unsure("the self-test is not complete: some of what was planted was not measured")
