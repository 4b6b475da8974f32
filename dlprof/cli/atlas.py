"""``dlprof atlas build`` and ``dlprof bisect``: many environments side by side."""

from __future__ import annotations

import glob
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli import files
from dlprof.cli.options import Given, group, takes
from dlprof.cli.streams import complain, say, show
from dlprof.errors import UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Option, Several, Text
from dlprof.text.clean import clean

if TYPE_CHECKING:
    from dlprof.runner.catalog import ProbeInfo

atlas = group("Show sessions of many environments as a static site. See docs/atlas.md.")

OUT = Option("out", Text(), "The folder of the site.", every.OUTPUT, metavar="FOLDER")
MARK = '<meta name="generator" content="dlprof '
OWN = re.compile(r"(index|changes|environments|pair-.*|DLP\d{3})\.html")
"""A page that an earlier site left has such a name and this mark, and may be replaced."""


@atlas.command()
@takes(OUT)
def build(
    session: Annotated[
        list[Any],
        typer.Argument(
            parser=files.sessions,
            metavar="SESSION...",
            help="Session files, or folders of them, also as s3://….",
        ),
    ],
    *,
    given: Given,
) -> None:
    """Write a site: a matrix, a page for each pair and rule, the changes, and a search.

    Example: dlprof atlas build sessions/ --out site
    """
    from dlprof.atlas.changes import changes_of
    from dlprof.atlas.grid import grid_of
    from dlprof.report.html.site import pages_of
    from dlprof.runner.files import atomic

    if not given.raw["out"]:
        raise UsageError("name the folder of the site: --out site")
    folder = Path(given.raw["out"])
    own = own_pages(folder)
    grid = grid_of(session, lambda why: complain(f"dlprof: left out: {why}"))
    changes = changes_of(grid)
    files.made_folder(folder)
    count = 0
    for name, text in pages_of(grid, changes):
        own.discard(folder / name)
        count += 1
        with atomic(folder / name) as file:
            file.write(text)
    for stale in own:
        stale.unlink(missing_ok=True)
    start = clean(str(folder / "index.html"))
    say(f"{count:,} pages of {grid.sessions:,} sessions: open {start}\n")


def own_pages(folder: Path) -> set[Path]:
    """The pages of an earlier site. Raises :class:`UsageError` if other pages are there."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write the folder {folder}: it is a file")
    found = {page for page in folder.glob("*.html") if OWN.fullmatch(page.name)}
    for page in found:
        try:
            with page.open(encoding="utf-8", errors="replace") as file:
                is_own = MARK in file.read(2000)
        except OSError as error:
            raise UsageError(f"cannot read {page}: {error.strerror}") from None
        if not is_own:
            raise UsageError(f"{folder} has pages of something else ({page.name}): name another")
    return found


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
    from dlprof import api
    from dlprof.atlas import bisect as search
    from dlprof.jobs.environments import releases
    from dlprof.report.grid_document import bisect_document
    from dlprof.runner.inspection import inspect_interpreter

    package, good, bad = (given[one] or "" for one in (PACKAGE, GOOD, BAD))
    if not NAME.fullmatch(package):
        raise UsageError(f"--package {package!r}: name a package, such as numpy")
    if good == bad or not (RELEASE.fullmatch(good) and RELEASE.fullmatch(bad)):
        raise UsageError("--good and --bad name two releases, such as 2.0.2 and 2.1.0")
    catalog = inspect_interpreter(sys.executable)
    ends = catalog.named(producer), catalog.named(consumer)
    check_path(ends, statement, given)
    others = given[REQUIREMENT] or search.requirements(ends, package)
    versions = search.between(releases(package), good, bad)
    typed = {one.key: given[one] for one in HOW if one.key in given.values}
    options: dict[str, Any] = {**typed, "paths": glob.escape(statement), "survey": False}

    def run(python: str, file: Path) -> None:
        api.run(producer, consumer, output=file, python=python, **options)

    with tempfile.TemporaryDirectory(prefix="dlprof-") as temporary:
        trial = search.Trial(statement, package, others, given.output or Path(temporary), run)

        def measure(version: str) -> search.Tried:
            complain(f"dlprof: {package} {version} …")
            return trial.measure(version)

        found = search.bisect(versions, measure)
    show(bisect_document(found, package, statement, (producer, consumer)), given[every.FULL])


def check_path(ends: tuple[ProbeInfo, ProbeInfo], statement: str, given: Given) -> None:
    """Raise :class:`UsageError` for what is no path between two frameworks."""
    from dlprof.runner import pairing

    asked = given.settled()
    array = asked["dtypes"][0], asked["shapes"][0]
    if statement not in {path.written(*array) for path in pairing.paths(*ends, "cpu")}:
        names = " ".join(end.name for end in ends)
        raise UsageError(f"{statement!r} is no path: dlprof paths {names} lists them")
