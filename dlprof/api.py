"""The command line from Python: the same names and checks, with errors in place of exit codes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.errors import Unmeasured, UsageError
from dlprof.measuring import judged as judging
from dlprof.report.checks import check_measured
from dlprof.runner import options
from dlprof.runner import session as model
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.files import default_path
from dlprof.runner.measurement import Measurement
from dlprof.runner.options import Option
from dlprof.runner.progress import Bar, Watcher
from dlprof.runner.request import Request, make_request
from dlprof.runner.user_code import request_for

if TYPE_CHECKING:
    import pandas as pd

    from dlprof.runner.catalog import Catalog
    from dlprof.runner.trace import Trace, TraceRow
    from dlprof.runner.worker_client import Workers

File = str | os.PathLike[str]
Words = str | Iterable[str]


class Session(model.Session):
    """A session, with its reports; ``dlprof.load`` reads one from a file."""

    def to_frame(self) -> pd.DataFrame:
        """One row for each case, with units in the names of the columns; see docs/tables.md."""
        from dlprof.report.data_table import to_frame

        return to_frame(self)

    def to_html(self) -> str:
        """The report as one HTML page that needs nothing else."""
        from dlprof.report.html import SAVED, render
        from dlprof.report.session_document import session_document

        return render(session_document(self, SAVED, scripts=True), self)

    def _repr_markdown_(self) -> str:
        """Return the report for a notebook."""
        from dlprof.report.markdown import render
        from dlprof.report.session_document import session_document

        return render(session_document(self))


def load(path: File) -> Session:
    """Read a session file. Raises :class:`SessionError` with one sentence that says why not."""
    return Session(**dict(judging.load(path)))


def run(
    producer: str,
    consumer: str,
    *,
    output: File | None = None,
    progress: bool = False,
    **given: Any,
) -> Session:
    """Measure every way from one framework to another, as ``dlprof run`` does.

    The options are those of the command line, see docs/options.md: ``shapes`` may also be tuples
    of lengths in elements. Times are in seconds. The session is kept in the file ``output``, by
    default in the user's state folder.

    Raises :class:`DlprofError` with one sentence: :class:`UsageError` for arguments that make
    no sense, :class:`Unmeasured` where no case could be measured.
    """
    values = read(given, options.RUN)
    simulated = simulated_in(values["devices"])
    catalog = inspect_interpreter(values["python"], values["probes"], simulated)
    pair = (catalog.installed(str(producer)).name, catalog.installed(str(consumer)).name)
    request = make_request(values, (pair,), ("run", producer, consumer))
    return _measure(request, catalog, output, progress)


def measure(
    *statements: str,
    setup: str = "",
    source: str | None = None,
    output: File | None = None,
    progress: bool = False,
    **given: Any,
) -> Session:
    """Measure conversions of your own, as ``dlprof time`` does: a session with a case for each.

    A statement is one expression whose value is the converted array, ``setup`` makes the array
    that it converts, and ``source`` is that array's name (by default the only one in the
    statement). Both run in processes of their own, and the setup runs several times.

    Raises as :func:`run`, and :class:`Unmeasured` where the setup raises.
    """
    values = read(given, (*options.TIMED, options.SURVEY))
    with request_for(statements, setup, source, values) as (request, catalog, pool):
        return _measure(request, catalog, output, progress, pool)


class Traced:
    """The result of :func:`trace`, once its block has ended."""

    def __init__(self) -> None:
        self.trace: Trace | None = None

    @property
    def rows(self) -> list[TraceRow]:
        """The lines that converted, slowest first; see docs/trace.md."""
        return [] if self.trace is None else self.trace.rows

    def __str__(self) -> str:
        from dlprof.report.terminal import render
        from dlprof.report.trace_document import trace_document

        if self.trace is None:
            raise UsageError("the block that is traced has not ended")
        return render(trace_document(self.trace, full=True), full=True)


@contextmanager
def trace(include: Words = ()) -> Iterator[Traced]:
    """Trace the conversions of a block, as ``dlprof trace`` does those of a program.

    Names that modules took out of frameworks before are replaced too, and all is put back at the
    end. ``include`` names packages whose lines count as your own.
    """
    from dlprof.runner.trace import traced_block

    found, packages = Traced(), (include,) if isinstance(include, str) else tuple(include)
    with traced_block(packages, partial(setattr, found, "trace")):
        yield found


def read(given: Mapping[str, Any], known: Sequence[Option]) -> dict[str, Any]:
    """Return options as a caller in Python writes them.

    Raises :class:`UsageError`, and TypeError for an unknown option.
    """
    found: dict[str, Any] = {}
    for name, raw in given.items():
        try:
            key = options.option_key(name, known)
        except LookupError as hint:
            raise TypeError(f"there is no option {name!r}: {hint.args[0]}") from None
        if raw is not None:
            found[key] = raw
    return options.settle(options.read(found), known=known)


def _measure(
    request: Request,
    catalog: Catalog,
    output: File | None,
    progress: bool,
    pool: Workers | None = None,
) -> Session:
    target = None if output is None else Path(output)
    path = target or default_path(request.command[0])
    with (
        Bar() if progress else nullcontext(Watcher()) as watcher,
        closing(Measurement(request, catalog, path, watcher, pool)) as measurement,
    ):
        measurement.run()
        session = judging.judged(measurement.session())
    try:
        check_measured(session.results)
    except Unmeasured as reason:
        raise Unmeasured(f"{reason}; the session is in {path}") from None
    return Session(**dict(session))
