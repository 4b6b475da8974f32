"""What the command line does, from Python: the same names and checks; errors, and no exits."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.cli import options
from dlprof.errors import Unmeasured, UsageError
from dlprof.measuring import measure as measuring
from dlprof.plan.axes import shape_text
from dlprof.plan.pairing import Axes
from dlprof.plan.request import Request
from dlprof.plan.settings import Settings
from dlprof.reports.result_row import rows_of
from dlprof.reports.row import check_measured
from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.own_code import Asked, request_for
from dlprof.runner.progress import Bar, Silent, Watcher
from dlprof.session import model

if TYPE_CHECKING:
    import pandas as pd

    from dlprof.plan.catalog import Catalog

MOST_ROUNDS = 1000
LEAST_LIMIT_S = 0.1
"""The limits of the command line."""

Shape = str | Sequence[int]
Words = str | Iterable[str]
Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Session(model.Session):
    """A session, with its reports; ``dlprof.load`` reads one from a file."""

    def to_frame(self) -> pd.DataFrame:
        """One row for each case, with units in the names of the columns; see docs/tables.md."""
        from dlprof.reports.table import to_frame

        return to_frame(self)

    def to_html(self) -> str:
        """The report as one HTML page that needs nothing else."""
        from dlprof.reports.html import render

        return render(self)

    def _repr_html_(self) -> str:
        from dlprof.reports.notebook import render

        return render(self)


def load(path: str | os.PathLike[str]) -> Session:
    """Read a session file. Raises :class:`SessionError` with one sentence that says why not."""
    return Session(**dict(model.load(path)))


def run(  # noqa: PLR0913 - as many as options of the command line
    producer: str,
    consumer: str,
    *,
    shapes: str | Iterable[Shape] | None = None,
    dtypes: Words | None = None,
    layouts: Words | None = None,
    device: str | None = None,
    paths: Words | None = None,
    placements: Words | None = None,
    setup: str = "",
    rounds: int | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    quick: bool = False,
    diagnose: bool | None = None,
    python: str | os.PathLike[str] | None = None,
    probes: Files = (),
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Session:
    """Measure every way from one framework to another, as ``dlprof run`` does.

    ``shapes`` are tuples of lengths in elements, or text such as ``"4096x4096"``; ``paths`` are
    globs; ``setup`` is source text that runs after the imports. ``placements`` are of ``convert``,
    ``in-loop``, ``hoisted`` and ``implicit``: what a loop that uses the result takes. Times are in
    seconds: ``budget`` for the whole, ``timeout`` for one case in one process. The session is kept
    in the file ``output``, by default in the user's state folder.

    Raises :class:`DlprofError` with one sentence: :class:`UsageError` for arguments that make
    no sense, :class:`Unmeasured` where no case could be measured.
    """
    axes = options.axes_from(_shapes(shapes), _words(dtypes), _words(layouts), device, Axes())
    settings = _settings(
        rounds,
        seed,
        timeout,
        budget,
        quick,
        diagnose,
        placements=_words(placements),
        setup=_text(setup, "the setup"),
    )
    interpreter = options.interpreter(None if python is None else _file(python))
    files = options.probe_files(_files(probes))
    for name in (producer, consumer):
        _text(name, "the framework")
    if paths is not None and not paths:
        raise UsageError("the list of paths is empty: leave it out for all of them")
    catalog = inspect_interpreter(interpreter, files)
    pair = (catalog.installed(producer).name, catalog.installed(consumer).name)
    request = Request(
        pairs=(pair,),
        axes=axes,
        globs=tuple(_words(paths) or ()),
        settings=settings,
        python=interpreter,
        probe_files=files,
        command=("run", producer, consumer),
    )
    return _measure(request, catalog, output, progress)


def measure(  # noqa: PLR0913 - as many as options of the command line
    statement: str,
    *,
    setup: str = "",
    source: str | None = None,
    rounds: int | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    quick: bool = False,
    diagnose: bool | None = None,
    python: str | os.PathLike[str] | None = None,
    probes: Files = (),
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Session:
    """Measure a conversion of your own, as ``dlprof time`` does: a session with one case.

    ``statement`` is one expression whose value is the converted array, ``setup`` makes the array
    that it converts, and ``source`` is that array's name (by default the only one in the
    statement). Both run in processes of their own, and the setup runs several times.

    Raises as :func:`run`, and :class:`Unmeasured` where the setup raises.
    """
    if source is not None:
        _text(source, "the source")
    request, catalog = request_for(
        Asked(_text(statement, "the statement"), _text(setup, "the setup"), source),
        _settings(rounds, seed, timeout, budget, quick, diagnose),
        options.interpreter(None if python is None else _file(python)),
        options.probe_files(_files(probes)),
    )
    return _measure(request, catalog, output, progress)


def _measure(
    request: Request, catalog: Catalog, output: str | os.PathLike[str] | None, progress: bool
) -> Session:
    target = None if output is None else Path(_file(output))
    path = measuring.session_path(target, request.command[0])
    with (
        _watcher(progress) as watcher,
        closing(Measurement(request, catalog, path, watcher)) as measurement,
    ):
        measuring.run(measurement)
        measuring.hand_over(measurement, target)
        results = list(measurement.results())
        header = measurement.header()
    try:
        check_measured(rows_of(results))
    except Unmeasured as reason:
        raise Unmeasured(f"{reason}; the session is in {path}") from None
    return Session(**{**dict(header), "results": results})


def _watcher(progress: bool) -> AbstractContextManager[Watcher]:
    return Bar() if progress else nullcontext(Silent())


def _shapes(shapes: str | Iterable[Shape] | None) -> list[str] | None:
    if shapes is None or isinstance(shapes, str):
        return None if shapes is None else [shapes]
    return [_shape(shape) for shape in _listed(shapes, "shapes")]


def _shape(shape: Any) -> str:
    if isinstance(shape, str):
        return shape
    try:
        return shape_text([operator.index(length) for length in shape])
    except TypeError:
        raise UsageError(
            f"shapes are a list such as [(4096, 4096)] or ['4096x4096'], and {shape!r} is no shape"
        ) from None


def _words(words: Words | None) -> list[str] | None:
    if words is None or isinstance(words, str):
        return None if words is None else [words]
    return [_text(word, "each of several names") for word in _listed(words, "names")]


def _files(files: Files) -> list[str]:
    if isinstance(files, str | os.PathLike):
        return [_file(files)]
    return [_file(file) for file in _listed(files, "probes")]


def _file(file: Any) -> str:
    if not isinstance(file, str | os.PathLike):
        raise UsageError(f"a file must be text or a path, not {file!r}")
    return str(os.fspath(file))


def _listed(things: Any, what: str) -> list[Any]:
    try:
        return list(things)
    except TypeError:
        raise UsageError(f"{what} must be text or a list, not {things!r}") from None


def _text(thing: Any, what: str) -> str:
    if not isinstance(thing, str):
        raise UsageError(f"{what} must be text, not {thing!r}")
    return thing


def _settings(  # noqa: PLR0913 - as many as options
    rounds: int | None,
    seed: int | None,
    timeout: float | None,
    budget: float | None,
    quick: bool,
    diagnose: bool | None,
    *,
    placements: list[str] | None = None,
    setup: str = "",
) -> Settings:
    """The settings, within the limits that the command line has."""
    _in_range(rounds, "rounds", 1, MOST_ROUNDS, whole=True)
    _in_range(seed, "seed", -math.inf, math.inf, whole=True)
    _in_range(timeout, "timeout", LEAST_LIMIT_S, math.inf)
    _in_range(budget, "budget", 0, math.inf)
    return options.settings_from(
        rounds, seed, timeout, budget, quick, diagnose, placements=placements, setup=setup
    )


def _in_range(value: Any, name: str, least: float, most: float, *, whole: bool = False) -> None:
    if value is None:
        return
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise UsageError(f"{name} must be {'a whole number' if whole else 'a number'}: {value!r}")
    if not least <= value <= most:
        raise UsageError(f"{name} must be at least {least:g} and at most {most:g}, not {value}")
