"""The verbs that measure what the command line names: frameworks, code of one's own, or faults."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli.files import LAST
from dlprof.cli.options import Given, takes
from dlprof.cli.streams import complain, show
from dlprof.errors import FindingsFailed, Unmeasured, Unsure, UsageError
from dlprof.runner import options as every
from dlprof.runner import state
from dlprof.runner.axes import shape_text, simulated_in
from dlprof.runner.catalog import Catalog, frameworks_on, inspect_interpreter, pairs_named
from dlprof.runner.files import temporary_folder
from dlprof.runner.options import Option, Switch, Text
from dlprof.runner.progress import Bar
from dlprof.runner.request import Request, request_of

if TYPE_CHECKING:
    from dlprof.runner.trace import Row

PRODUCER = typer.Argument(help="The framework that owns the array; several with commas between.")
CONSUMER = typer.Argument(help="The framework that takes it in; several as well.")
WHAT = typer.Argument(
    metavar="PRODUCER|SCENARIO",
    help="The framework that owns the array (several with commas between), or a scenario file.",
)
FROM = Option(
    "trace_row",
    Text(),
    "Take frameworks, shape, dtype and device from this row of a trace: LAST:1.",
    every.ARRAYS,
    flag="--from",
    metavar="TRACE:N",
)
DRY_RUN = Option(
    "dry_run",
    Switch(),
    "Print what would be measured, and measure nothing.",
    every.OUTPUT,
    default=False,
)


@takes(
    *(*every.RUN, every.TOGETHER, FROM, every.FAIL_ON),
    *(every.SESSION, every.FULL, DRY_RUN, *every.REPORTS),
)
def run(
    what: Annotated[str | None, WHAT] = None,
    consumer: Annotated[str | None, CONSUMER] = None,
    *,
    given: Given,
) -> None:
    """Measure every way from one framework to another, or what a scenario file asks for.

    Example: dlprof run torch numpy --shape 4096x4096
    """
    from dlprof.cli.measure import measure

    if what is not None and consumer is None and {".", "/"} & set(what):
        from dlprof.measuring.scenario import read, sweep

        found = sweep(read(Path(what)), given.values, inspect_interpreter)
        measure(found.request, found.catalog, given)
        return
    preset: dict[str, str] = {}
    producer, trace_row = what, given[FROM]
    if trace_row is not None:
        traced, row = _row_of_trace(trace_row)
        producer, consumer = producer or row.producer, consumer or row.consumer
        preset = _array_of(row)
    if producer is None or consumer is None:
        raise UsageError("name a producer and a consumer, such as: dlprof run torch numpy")
    values = given.settled(preset)
    request, catalog = _pairs_request(values, "run", producer, consumer)
    measure(request, catalog, given)
    if trace_row is not None:
        complain(f"dlprof report {shlex.quote(str(traced))} shows what the lines would gain.")


def _catalog(values: Mapping[str, Any]) -> Catalog:
    """Return the catalog of the interpreter and the devices that are asked for."""
    simulated = simulated_in(values["devices"])
    return inspect_interpreter(values["python"], values["probes"], simulated)


def _pairs_request(
    values: Mapping[str, Any], verb: str, producer: str, consumer: str
) -> tuple[Request, Catalog]:
    """Return the request for every named producer with every named consumer."""
    catalog = _catalog(values)
    pairs = pairs_named(catalog, producer, consumer)
    return request_of(values, pairs, (verb, producer, consumer)), catalog


def _row_of_trace(text: str) -> tuple[Path, Row]:
    """Return what ``TRACE:ROW`` names; the first row is 1. Raises :class:`UsageError`."""
    from dlprof.runner import trace as traces

    name, _, number = text.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        raise UsageError(f"--from {text}: expected a trace and a row, such as LAST:1")
    path = state.last_session(state.LAST_TRACE) if name == LAST else Path(name)
    rows = traces.load(path).rows
    if not 1 <= int(number[:9]) <= len(rows):
        raise UsageError(f"--from {text}: the trace has {len(rows)} rows")
    return path, rows[int(number[:9]) - 1]


def _array_of(row: Row) -> dict[str, str]:
    """Return the array that a row of a trace converts most often, as options have it."""
    from dlprof.probes.base import ANY_DEVICE, DTYPES

    if not row.arrays or row.arrays[0][0] not in DTYPES:
        return {}
    dtype, shape, *_ = row.arrays[0]
    where = row.device.partition(":")[0]
    device = {"devices": where} if where in ANY_DEVICE else {}
    return {"dtypes": dtype, "shapes": shape_text(tuple(shape)), **device}


@takes(
    *(every.DEVICES, every.PATHS, every.SETUP, every.TIMEOUT),
    *(every.FAIL_ON, *every.INTERPRETER, every.SESSION, every.FULL),
    *(every.JSON, every.HTML, every.MARKDOWN, every.JUNIT, every.GITHUB),
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
    *(*every.AXES, *every.HOW),
    # A matrix has hundreds of cases; its question is which way, not the last percent.
    replace(every.SAMPLE_MS, default=20.0),
    replace(every.DIAGNOSE, meaning="only on a simulated device"),
    *(every.FAIL_ON, *every.INTERPRETER, every.SESSION, every.FULL, *every.REPORTS),
)
def matrix(*, given: Given) -> None:
    """Measure every installed framework with every other."""
    from dlprof.cli.measure import measure

    # Without times and without a diagnosis there would be next to nothing to say.
    simulated = simulated_in(given.values.get("devices", ()))
    values = given.settled({"together": True, "diagnose": bool(simulated)})
    catalog = _catalog(values)
    names = frameworks_on(catalog, values["devices"])
    pairs = tuple(product(names, names))
    if not pairs:
        raise Unmeasured("no framework is installed that can be measured here")
    measure(request_of(values, pairs, ("matrix",)), catalog, given)


SETUP = replace(every.SETUP, short="-s", metavar="CODE", help="Makes the array.")
DEVICES = replace(
    every.DEVICES,
    help="The array's device; simulated gives its setup a CUDA device without a GPU.",
    meaning="where the setup makes it",
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
    from dlprof.runner.user_code import request_for

    Outputs.of(given.raw, json_is_session=True)  # before anything of the user's runs
    values = given.settled()
    if values["devices"] != (every.DEVICES.default,) and not simulated_in(values["devices"]):
        raise UsageError(
            f"--device {', '.join(values['devices'])}: the setup makes the array where it likes;"
            " only simulated changes what it finds"
        )
    source = given.raw["source"]
    measure(*request_for(statement, values["setup"] or "", source, values), given)


PLACES = replace(
    every.DEVICES,
    help="Where to plant: cpu, cuda or simulated.",
    meaning="on the host, and on a GPU where there is one",
)


@takes(PLACES, every.PYTHON)
def selftest(*, given: Given) -> None:
    """Plant known faults on this machine and say which are found."""
    from dlprof.measuring import selftest as planting
    from dlprof.report.selftest import selftest_document

    values = given.settled()
    device = None if values["devices"] == ("auto",) else values["devices"][0]
    plants, no_streams = planting.plants_for(values["python"], device)
    with temporary_folder("faults are planted") as folder, Bar() as bar:
        simulated = simulated_in(values["devices"])
        found = planting.run(values["python"], Path(folder), bar, plants, simulated)
    show(selftest_document(found, no_streams, simulated > 0))
    if not found.passed:
        raise FindingsFailed(
            "the self-test failed: do not rely on what it missed or reported falsely here"
        )
    if found.unmeasured:
        raise Unsure("the self-test is not complete: some of what was planted was not measured")
