"""Measure with a progress bar, then show: shared by the verbs that measure."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from dlprof.cli.options import Given
from dlprof.cli.outputs import Outputs, write_session
from dlprof.cli.streams import LAST, complain, say, session_name
from dlprof.errors import Interrupted, Unsaved, UsageError
from dlprof.judge import fail_on as fail_on_words
from dlprof.judge.cases import coverage
from dlprof.judge.fail_on import FailOn
from dlprof.measuring.judged import MISSED, UNKNOWN, judged, raise_for
from dlprof.report.checks import check_measured, is_measured
from dlprof.report.session_document import session_document
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.catalog import Catalog, check_cuda
from dlprof.runner.files import KEPT_SESSIONS, default_path, remember_last
from dlprof.runner.measurement import Measurement, plan
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Bar
from dlprof.runner.request import Request, Settings
from dlprof.runner.session import Session
from dlprof.runner.worker_client import Workers
from dlprof.text.clean import clean, counted


def measure(request: Request, catalog: Catalog, given: Given, pool: Workers | None = None) -> None:
    """Measure, keep the session, print the report, and write the other outputs.

    With ``--dry-run`` it only prints what it would measure.

    Raises after the report: :class:`Unmeasured` if no case could be measured,
    :class:`FindingsFailed` for a finding that ``--fail-on`` names, :class:`Unsure` if an instrument
    failed, :class:`Interrupted` if the user stopped it, and :class:`Unsaved` if the session could
    not be written. Raises :class:`UsageError` before anything is measured, if a rule of
    ``--fail-on`` needs a part that the run leaves out.
    """
    if given.raw.get("dry_run"):
        say("".join(f"{line}\n" for line in _planned(request, catalog)))
        return
    outputs = Outputs.parse(given.raw)
    if outputs.export_times and not request.settings.times:
        raise UsageError(f"--export needs {NO_TIMES}")
    fail_on = read_fail_on(given, request.settings)
    output = given.output
    request = replace(request, command=command_words(request.command))
    path = output or default_path(request.command[0])
    bar = Bar()
    with closing(Measurement(request, catalog, path, bar, pool)) as measurement:
        stopped, unsaved = False, None
        if measurement.file.is_complete:
            complain(f"dlprof: {clean(str(path))} holds this run already: nothing is measured")
        try:
            with bar:
                measurement.run()
        except KeyboardInterrupt:
            stopped = True
        except Unsaved as error:
            unsaved = error
        is_kept = not measurement.file.is_empty
        if stopped and not is_kept:
            raise Interrupted("stopped before anything was measured")
        session = judged(measurement.session())
        _check_builds(session, catalog)
        document = session_document(session, LAST if output is None else session_name(path))
        outputs.print_report(document)
        write_session(outputs, session, document, fail_on)
        if is_kept:
            remember_last(path)
            note = "" if output else f" (the newest {KEPT_SESSIONS + 1} are kept)"
            complain(f"session: {clean(str(path))}{note}")
        if unsaved is not None:
            raise unsaved
        if stopped:
            again = shlex.join(["dlprof", *request.command, *([] if output else ["-o", str(path)])])
            raise Interrupted(f"stopped; finish it with: {clean(again)}")
        check(session, fail_on, expects=True)


def _check_builds(session: Session, catalog: Catalog) -> None:
    """Raise :class:`Unmeasured` if a framework cannot use the simulated device."""
    if session.complete and session.simulated and not is_measured(session.results):
        check_cuda(catalog, dict.fromkeys(name for pair in session.request.pairs for name in pair))


def _planned(request: Request, catalog: Catalog) -> Iterator[str]:
    """Yield the pairs that a request would measure, and the reasons why others are left out."""
    planned = plan(request, catalog)
    if request.scenario is not None:
        yield from (request.scenario.title, request.scenario.question, "")
    pairs: dict[str, list[Case]] = {}
    for case in planned.cases:
        pair = case.producer.name if case.is_step else " → ".join(case.pair)
        pairs.setdefault(f"{pair} on {case.device}", []).append(case)
    for pair, cases in pairs.items():
        paths = {case.path.code for case in cases}
        arrays = {(case.shape, case.dtype, case.layout) for case in cases}
        yield f"{pair}: paths: {len(paths)}, arrays: {len(arrays)}"
    yield from (f"left out: {line}" for line in planned.left_out)
    yield f"{counted(len(planned.cases))}, {counted(request.settings.rounds, 'round')}"


def check(session: Session, fail_on: FailOn | None, expects: bool = False) -> None:
    """Raise the error of a session's exit code. Faults come first, then doubts.

    ``expects`` says whether to check the expectations of its scenario.
    """
    if fail_on is not None:
        fail_on.check(session.findings)
    if expects:
        raise_for(session, MISSED)
    check_measured(session.results)
    if fail_on is not None:
        fail_on.check_coverage(session.results)
    if expects:
        raise_for(session, UNKNOWN)
    if fail_on is not None:
        complain(f"dlprof: --fail-on: {coverage(session.results)}")


def read_fail_on(given: Given, settings: Settings | None = None) -> FailOn | None:
    """Return the rules and severities of ``--fail-on``.

    Raises :class:`UsageError` for an unknown word, and for a rule that needs a part which the
    ``settings`` of a run leave out.
    """
    words = given.raw.get("fail_on")
    if not words:
        return None
    found = fail_on_words.parse(words)
    if settings is None:
        return found
    repeated = settings.rounds > 1
    if missing := found.missing(
        diagnosed=settings.diagnose, timed=settings.times, repeated=repeated
    ):
        is_diagnosis = repeated and not settings.diagnose
        raise UsageError(f"{missing}; add --diagnose" if is_diagnosis else missing)
    return found


def command_words(short: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the command line, with the statements of ``dlprof time`` at the end.

    Return ``short`` if the command line runs another verb, or none.
    """
    verb, *words = sys.argv[1:] or [""]
    if short[:1] != (verb,):
        return short
    for statement in short[1:] if verb == "time" else ():
        if statement in words:
            words.remove(statement)
            words.append(statement)
    return (verb, *words)
