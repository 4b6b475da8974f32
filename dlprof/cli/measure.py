"""Measure with a progress bar, then show: shared by the verbs that measure."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import replace

from dlprof.cli.files import LAST, session_name
from dlprof.cli.options import Given
from dlprof.cli.outputs import Outputs, write_session
from dlprof.cli.streams import complain
from dlprof.errors import Interrupted, Unsaved, UsageError
from dlprof.judge import fail_on as fail_on_words
from dlprof.judge.cases import coverage
from dlprof.judge.fail_on import FailOn
from dlprof.measuring.expectation import MISSED, UNKNOWN, raise_for
from dlprof.measuring.measure import check_length, judged, run, session_path
from dlprof.report.checks import check_measured
from dlprof.report.session_document import session_document
from dlprof.runner.catalog import Catalog
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Bar
from dlprof.runner.request import Request
from dlprof.runner.session import Session
from dlprof.runner.state import remember_last
from dlprof.text.clean import clean


def measure(request: Request, catalog: Catalog, given: Given) -> None:
    """Measure, keep the session, print the report, and write what else was asked for.

    Raises :class:`Unmeasured` after the report where no case could be measured,
    :class:`FindingsFailed` where there is a finding that ``--fail-on`` does not allow,
    :class:`FindingsUnknown` where an instrument failed (:class:`UsageError` before anything is
    measured, if the run leaves out what a named rule needs),
    :class:`Interrupted` where the user stopped it, and :class:`Unsaved` where the session could
    not be written in the end. Expectations of a scenario are checked last.
    """
    outputs, fail_on = Outputs.of(given.raw, json_is_session=True), allowed(given)
    _check_asked(request, catalog, given, fail_on)
    output = given.output
    request = replace(request, command=typed(request.command))
    path = session_path(output, request.command[0])
    bar = Bar()
    with closing(Measurement(request, catalog, path, bar)) as measurement:
        stopped, unsaved = False, None
        if measurement.is_complete:
            complain(f"dlprof: {clean(str(path))} holds this run already: nothing is measured")
        try:
            with bar:
                run(measurement)
        except KeyboardInterrupt:
            stopped = True
        except Unsaved as error:
            unsaved = error
        is_kept = not measurement.file.is_empty
        if stopped and not is_kept:
            raise Interrupted("stopped before anything was measured")
        session = judged(measurement.session())
        name = LAST if output is None else session_name(path)
        document = session_document(session, name)
        outputs.print_report(document)
        write_session(outputs, session, document, fail_on)
        if is_kept:
            remember_last(path)
            complain(f"session: {clean(str(path))}")
        if unsaved is not None:
            raise unsaved
        if stopped:
            again = shlex.join(["dlprof", *request.command, *([] if output else ["-o", str(path)])])
            raise Interrupted(f"stopped; finish it with: {clean(again)}")
        _check(session, fail_on)


def _check_asked(request: Request, catalog: Catalog, given: Given, fail_on: FailOn | None) -> None:
    """Raise :class:`UsageError` for what need not be measured to be refused."""
    if fail_on is not None:
        diagnosed, timed = request.settings.diagnose, request.settings.times
        if missing := fail_on.missing(diagnosed=diagnosed, timed=timed):
            raise UsageError(missing if diagnosed else f"{missing}; add --diagnose")
    if not given.raw.get("yes", True):  # the verbs without it ask for few cases
        check_length(request, catalog)


def _check(session: Session, fail_on: FailOn | None) -> None:
    """Raise what the exit code says of a whole measurement."""
    # What is wrong comes first: a crash, too, if nothing else was measured.
    if fail_on is not None:
        fail_on.check(session.findings)
    raise_for(session, MISSED)
    check_measured(session.results, session.simulated)
    if fail_on is not None:
        fail_on.check_looked_at(session.results)
    raise_for(session, UNKNOWN)
    if fail_on is not None:
        complain(f"dlprof: --fail-on: {coverage(session.results)}")


def allowed(given: Given) -> FailOn | None:
    """What ``--fail-on`` names. Raises :class:`UsageError` for what is no rule or severity."""
    words = given.raw.get("fail_on")
    return fail_on_words.parse(words) if words else None


def typed(short: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the command line; ``short`` where it is not what runs that verb, as in Python.

    The statement of ``dlprof time`` comes last, wherever it was typed.
    """
    # A session can hold text alone, and an argument may be bytes of no encoding.
    raw = (word.encode("utf-8", "surrogateescape") for word in sys.argv[1:])
    verb, *words = [word.decode("utf-8", "backslashreplace") for word in raw] or [""]
    if short[:1] != (verb,):
        return short
    if verb == "time" and short[-1] in words:
        words.remove(short[-1])
        words.append(short[-1])
    return (verb, *words)
