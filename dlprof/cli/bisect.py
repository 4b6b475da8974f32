"""``dlprof bisect``."""

from __future__ import annotations

import glob
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Several, Text

if TYPE_CHECKING:
    from dlprof.atlas.bisect import Found, Tried
    from dlprof.plan.catalog import Catalog
    from dlprof.reports.document import Document

LIMIT_BYTES = 20e9
"""Of kept environments; the longest unused are removed."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RELEASE = re.compile(r"[0-9][A-Za-z0-9.!+]*")
PACKAGE = Option("package", Text(), "Its releases are tried.", every.MEASURING, metavar="NAME")
GOOD = Option("good", Text(), "A release as it should be.", every.MEASURING, metavar="VERSION")
BAD = Option("bad", Text(), "A release with the change.", every.MEASURING, metavar="VERSION")
REQUIREMENT = Option(
    "requirement",
    Several(),
    "What else is installed, such as torch==2.13.0.",
    every.MEASURING,
    metavar="REQUIREMENT",
    meaning="the frameworks' versions here",
)
KEEP = replace(every.SESSION, help="Keep the sessions here.", metavar="FOLDER")
HOW = (every.SHAPES, every.DTYPES, every.ROUNDS, every.TIMEOUT, every.QUICK, every.DIAGNOSE)


@takes(PACKAGE, GOOD, BAD, REQUIREMENT, *HOW, KEEP, every.FULL)
def bisect(
    producer: Annotated[str, typer.Argument(help="The framework that owns the array.")],
    consumer: Annotated[str, typer.Argument(help="The framework that takes it in.")],
    statement: Annotated[str, typer.Argument(help="The path, as dlprof paths lists it.")],
    *,
    given: Given,
) -> None:
    """Find the release of a package that changed a verdict or a time of one path.

    Example: dlprof bisect numpy jax 'jnp.asarray(x)' --package jax --good 0.6.2 --bad 0.8.0
    """
    from dlprof.atlas import bisect as search
    from dlprof.cli.show import show
    from dlprof.errors import UsageError

    package, good, bad = (given.raw[name] or "" for name in ("package", "good", "bad"))
    if not NAME.fullmatch(package):
        raise UsageError(f"--package {package!r}: name a package, such as numpy")
    if good == bad or not (RELEASE.fullmatch(good) and RELEASE.fullmatch(bad)):
        raise UsageError("--good and --bad name two releases, such as 2.0.2 and 2.1.0")
    others = others_of((producer, consumer), statement, package, given)
    versions = search.between(releases_of(package), good, bad)
    with tempfile.TemporaryDirectory(prefix="dlprof-") as temporary:
        folder = given.output or Path(temporary)
        names = [option.key for option in HOW if given.values.get(option.key) is not None]
        options = {name: given.values[name] for name in names}
        trial = Trial((producer, consumer), statement, package, others, folder, options)
        found = search.bisect(versions, trial.measure)
    show(document_of(found, package, statement, (producer, consumer)), bool(given.raw["full"]))


def others_of(pair: tuple[str, str], statement: str, package: str, given: Given) -> tuple[str, ...]:
    """The requirements beside the package. Raises :class:`UsageError` for an unknown path."""
    from dlprof.errors import UsageError
    from dlprof.plan import pairing
    from dlprof.runner.inspection import inspect_interpreter

    catalog: Catalog = inspect_interpreter(sys.executable)
    ends = (catalog.named(pair[0]), catalog.named(pair[1]))
    asked = given.settled()
    array = asked["dtypes"][0], asked["shapes"][0]
    known = {path.written(*array) for path in pairing.paths(*ends, "cpu")}
    if statement not in known:
        raise UsageError(f"{statement!r} is no path: dlprof paths {pair[0]} {pair[1]} lists them")
    if given.raw["requirement"]:
        return tuple(given.raw["requirement"])
    found = {}
    for end in ends:
        name = end.distribution or end.requirement
        version = (end.version or "").partition("+")[0]
        found[name] = f"{name}=={version}" if version else end.requirement
    found.pop(package, None)
    return tuple(found.values())


def releases_of(package: str) -> list[str]:
    """The releases that this Python can install. Raises :class:`UsageError`."""
    from dlprof.errors import UsageError
    from dlprof.jobs.environments import Unmade, output, pip

    try:
        told = output([*pip(sys.executable), "index", "versions", package])
    except Unmade as error:
        why = (error.lines or ("no answer",))[-1]
        raise UsageError(f"pip cannot list the releases of {package}: {why}") from None
    versions = told.partition("Available versions: ")[2].partition("\n")[0]
    return versions.split(", ")


@dataclass(frozen=True)
class Trial:
    """Measures the path with one release after another, each in an environment of its own."""

    pair: tuple[str, str]
    statement: str
    package: str
    others: tuple[str, ...]
    folder: Path
    options: Mapping[str, Any]

    def measure(self, version: str) -> Tried:
        """The cell of the path with a release, or why there is none."""
        from dlprof.atlas.bisect import Tried
        from dlprof.cli.show import complain
        from dlprof.errors import DlprofError, Interrupted
        from dlprof.jobs.environments import Unmade, made, resolved
        from dlprof.text.clean import first_line

        complain(f"dlprof: {self.package} {version} …")
        requirements = [f"{self.package}=={version}", *self.others]
        try:
            environment = resolved({"requirements": requirements}, f"with {self.package} {version}")
            with made(environment, LIMIT_BYTES) as python:
                return self._measured(version, python)
        except Unmade as error:
            lines = [line for line in error.lines if line.strip()] or [str(error)]
            return Tried(version, None, f"not installed: {first_line(lines[-1])}")
        except Interrupted:
            raise
        except DlprofError as error:
            return Tried(version, None, first_line(str(error)))

    def _measured(self, version: str, python: str) -> Tried:
        from dlprof import api
        from dlprof.atlas.bisect import Tried
        from dlprof.atlas.cells import read
        from dlprof.errors import Unmeasured

        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.package}-{version}.json"
        paths = glob.escape(self.statement)
        try:
            api.run(
                *self.pair, output=file, python=python, paths=paths, survey=False, **self.options
            )
        except Unmeasured:  # a refusal is an answer, too
            if not file.exists():
                raise
        cells = [cell for case, cell in read(file).cells if case.code == self.statement]
        return Tried(version, cells[0]) if cells else Tried(version, None, "it has no such path")


def document_of(found: Found, package: str, statement: str, pair: tuple[str, str]) -> Document:
    """What was found, and every release that was tried."""
    from dlprof.atlas.changes import TIME, word_text
    from dlprof.reports.document import Answer, Cell, Column, Document, Table
    from dlprof.reports.grid_document import cell_text
    from dlprof.session.model import pair_text

    def said(one: Tried) -> str:
        if one.cell is None:
            return one.reason
        if found.question in (TIME, "result"):
            return cell_text(one.cell).text
        return word_text(found.question, one.cell.word(found.question))

    words = {True: Cell("good"), False: Cell("changed", "worse"), None: Cell("not known", "dim")}
    rows = tuple(
        (Cell(f"{package} {one.version}"), Cell(said(one)), words[one.is_good])
        for one in found.tried
    )
    ends = {one.version: said(one) for one in found.tried}
    note = ", ".join(f"{ends[one]} with {one}" for one in (found.last_good, found.first_bad))
    if found.untold:
        note += f"; or with {', '.join(found.untold)}, which told nothing"
    return Document(
        title=f"{pair_text(pair)}    {statement}",
        context=f"{len(found.tried)} releases tried",
        answers=(Answer("changed", f"{package} {found.first_bad}", note=note),),
        tables=(Table((Column("release"), Column("result"), Column("")), rows),),
    )
