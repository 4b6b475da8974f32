"""``dlprof bisect``: which release of a package changed a path?"""

from __future__ import annotations

import glob
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import complain, show
from dlprof.errors import DlprofError, Interrupted, Unmeasured, UsageError
from dlprof.runner import options
from dlprof.runner.options import Option, Text
from dlprof.text.clean import first_line

PACKAGE = Option("package", Text(), "Its releases are tried.", options.MEASURING, metavar="NAME")
GOOD = Option("good", Text(), "A release as it should be.", options.MEASURING, metavar="VERSION")
BAD = Option("bad", Text(), "A release with the change.", options.MEASURING, metavar="VERSION")
KEEP = replace(options.SESSION, help="Keep the sessions here.", metavar="FOLDER")
HOW = (
    *(options.SHAPES, options.DTYPES, options.ROUNDS),
    *(options.TIMEOUT, options.QUICK, options.DIAGNOSE),
)


@takes(PACKAGE, GOOD, BAD, *HOW, KEEP, options.FULL)
def bisect(
    producer: Annotated[str, typer.Argument(help="The framework that owns the array.")],
    consumer: Annotated[str, typer.Argument(help="The framework that takes it in.")],
    statement: Annotated[str, typer.Argument(help="The path, as dlprof list paths lists it.")],
    *,
    given: Given,
) -> None:
    """Find the release of a package that changed a verdict or a time of one path.

    Example: dlprof bisect numpy jax 'jnp.asarray(x)' --package jax --good 0.6.2 --bad 0.8.0
    """
    from dlprof import api
    from dlprof.jobs import bisect as search
    from dlprof.jobs.plan import JobEnvironment, interpreter, releases
    from dlprof.report.comparison_document import bisect_document
    from dlprof.runner import session_file
    from dlprof.runner.catalog import inspect_interpreter

    package, good, bad = (given[option] for option in (PACKAGE, GOOD, BAD))
    if not package or not good or not bad or good == bad:
        raise UsageError("name a package and two releases: --package numpy --good 2.0 --bad 2.1")
    catalog = inspect_interpreter(sys.executable)
    ends = catalog.find(producer), catalog.find(consumer)
    requirements = search.requirements(ends, package)
    versions = search.release_range(releases(package), good, bad)
    typed = {option.key: given[option] for option in HOW if option.key in given.values}
    values: dict[str, Any] = {**typed, "paths": glob.escape(statement), "survey": False}
    with tempfile.TemporaryDirectory(prefix="dlprof-") as temporary:
        folder = given.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        def measure(version: str) -> search.Tried:
            complain(f"dlprof: {package} {version} …")
            file = folder / f"{package}-{version}.json"
            try:
                environment = JobEnvironment(requirements=[f"{package}=={version}", *requirements])
                python = interpreter(environment, Path(temporary), folder)
                api.run(producer, consumer, output=file, python=python, **values)
            except Interrupted:
                raise
            except DlprofError as error:
                if not (isinstance(error, Unmeasured) and file.exists()):  # a refusal is an answer
                    return search.Tried(version, None, first_line(str(error)))
            return search.Tried(version, session_file.load(file))

        found = search.bisect(versions, measure)
    show(bisect_document(found, package, statement, (producer, consumer)), given[options.FULL])
