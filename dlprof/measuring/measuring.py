"""From a request to a session file: inspect the interpreter, plan, run, keep what was measured."""

from __future__ import annotations

import contextlib
import datetime
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from dlprof.analysis.cases import by_environment
from dlprof.errors import Unmeasured, Unsaved, UsageError
from dlprof.measuring import resuming
from dlprof.measuring.resuming import resume as resume  # noqa: PLC0414
from dlprof.plan.catalog import Catalog, environment
from dlprof.plan.omissions import not_paired, not_run, without_path
from dlprof.plan.pairing import Case
from dlprof.plan.request import Request as Request  # noqa: PLC0414 - callers find it here
from dlprof.plan.settings import Settings, sample_ns_for
from dlprof.rules.evaluate import judge
from dlprof.runner.asker import Watcher, way
from dlprof.runner.inspecting import SYNTHETIC as SYNTHETIC  # noqa: PLC0414 - callers find these here
from dlprof.runner.inspecting import UNMEASURED as UNMEASURED  # noqa: PLC0414
from dlprof.runner.inspecting import inspect_interpreter as inspect_interpreter  # noqa: PLC0414
from dlprof.runner.inspecting import last_words, nothing_measured
from dlprof.runner.interpreter import Worker
from dlprof.runner.place import place_of, present_pairs
from dlprof.runner.rounds import Runner
from dlprof.runner.standby import Interpreter
from dlprof.scenario import expectation
from dlprof.session import files, machine, provenance, replaced, state
from dlprof.session import model as sessions
from dlprof.session.interrupts import uninterrupted
from dlprof.session.journal import Journal
from dlprof.session.merge import merge
from dlprof.session.state import default_path as default_path  # noqa: PLC0414 - callers find it here
from dlprof.session.state import state_folder as state_folder  # noqa: PLC0414

SAVE_EVERY_S = 5.0
SAVE_SHARE = 20
"""A save waits until it would take less than one part in so many of the run."""


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


@dataclass
class Measurement:
    """One run, from a request to a session file at ``path``.

    ``resumed`` is a session to be finished.
    """

    request: Request
    catalog: Catalog
    path: Path
    watcher: Watcher
    resumed: sessions.Session | None = None
    created: str = field(default_factory=now)
    cases: list[Case] = field(init=False)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        asked = self.request
        self._place = place_of(asked.pairs, asked.axes, asked.globs, self.catalog)
        self.cases = self._place.cases
        if self.resumed is None:  # else the file says how long samples are, as they were
            settings = self.request.settings
            settings = replace(settings, sample_ns=sample_ns_for(settings, self.cases))
            self.request = replace(self.request, settings=settings)
        self.device_choice = self._place.device_choice
        self.journal = Journal()
        self.complete = False
        self.saved = False
        # Who chooses pairs, or what runs a model, wants no others.
        chosen = self.request.scenario is not None or any(case.is_step for case in self.cases)
        self._left_out = [
            *([] if chosen else not_paired(self.catalog, self.request.pairs)),
            *without_path(self._pairs_with_devices(), self.cases),
            *self._place.left_out,
            *(self.request.scenario.left_out if self.request.scenario else ()),
        ]
        self._findings: list[sessions.FindingRecord] = []
        self._expectations: list[sessions.ExpectationRecord] = []
        self._trips: list[sessions.RoundTrip] = []
        self._kept_trips: list[sessions.RoundTrip] = []
        self.rounds_done = 0
        self._begun = time.monotonic()
        self._usage = machine.usage()
        self._spent: tuple[float, float | None] | None = None
        self._saved = self._begun
        self._save_took = 0.0
        self._digests: tuple[str, ...] = ()
        self._earlier_s = 0.0
        self._earlier_foreign: float | None = None
        self._replaces = self.resumed is None and sessions.is_session(self.path)
        self._known: Mapping[int, sessions.Result] = {}
        self._unplanned: Sequence[sessions.Result] = ()
        if self.resumed is not None:
            self._take_up(self.resumed)

    def _take_up(self, session: sessions.Session) -> None:
        resuming.check_same(session, self.catalog)
        recalled = resuming.recall(session, self.cases, self.journal, self.request.settings.rounds)
        self.created = session.created
        self._earlier_s = session.wall_s or 0.0
        self._earlier_foreign = session.foreign_cores
        self._known, self._unplanned = recalled.known, recalled.unplanned
        if session.complete:
            self._trips = recalled.trips
        else:  # they are made again with the others, and kept until then
            self._kept_trips = recalled.trips

    def _pairs_with_devices(self) -> list[tuple[str, str]]:
        """Pairs that could be measured somewhere; why the others cannot is said of each."""
        present = present_pairs(self.request.pairs, self.catalog)
        return [pair for pair in present if pair not in self._place.nowhere]

    def run(self) -> None:
        """Measure; the session file is written as the run goes on and whatever ends it.

        Raises :class:`UsageError` before anything is measured where the file cannot be written,
        and :class:`Unsaved` where it no longer can at the end.
        """
        with self.kept() as runner:
            runner.run()
            self._run_trips(runner.out_of_time)
            self.complete = True
            self.rounds_done = runner.rounds_done
            self._left_out += not_run(
                self.request.settings,
                runner.rounds_done,
                runner.undiagnosed if runner.out_of_time else None,
                runner.out_of_time,
            )

    @contextlib.contextmanager
    def kept(self) -> Iterator[Runner]:
        """For one who asks the runner for single rounds; the session is kept as by :meth:`run`.

        He says in ``rounds_done`` and ``complete`` how far it got.
        """
        with nothing_measured():
            check_setup(self._place.interpreter, self.cases[0], self.request.settings)
        self._save_first()  # an output that cannot be written is known before anything is measured
        runner = Runner(
            self._place.interpreter,
            self.cases,
            self.request.settings,
            self.journal,
            self.watcher,
            self._save_now_and_then,
        )
        try:
            yield runner
        finally:
            with uninterrupted():
                runner.close()
                self._spent = self._spend()  # what is printed later is what the file says
                self._save_unjudged()  # who is stopped while rules look loses what they find alone
            unjudged = self._judge()
            self._save_last()
            if unjudged:
                raise Unsaved(f"{unjudged}; the session is in {self.path}: dlprof report judges it")

    def _judge(self) -> str:
        """Why no rule could look, in words; empty where all did."""
        try:
            self._findings = judge(self.header(), self.results, len(self.cases))
            self._expectations = self._check_expectations()
        except UsageError as error:
            self._left_out.append(f"no rule could look: {error}")
            return str(error)
        return ""

    def _run_trips(self, out_of_time: bool) -> None:
        """Trips there and back, by the paths that were found to be the cheapest safe ones.

        Where none is safe, by the cheapest right one.
        """
        settings = self.request.settings
        if not settings.round_trips or self._trips or out_of_time:
            return
        from dlprof.runner import (
            trips,  # few runs ask for trips, and every command imports this module
        )

        try:
            findings = judge(self.header(), self.results, len(self.cases))
        except UsageError:
            return  # the last judgement says why
        # Results behind the planned cases were measured earlier, and cannot be measured now.
        results = islice(self.results(), len(self.cases))
        ends = [
            ([case.index for case in there], [case.index for case in back])
            for cases in by_environment(results, findings).values()
            for there, back in cases.round_trips()
        ]
        attempts = trips.attempts(ends)
        try:
            trips.measure(attempts, self.cases, self._place.interpreter, settings, self.watcher)
        finally:
            self._trips = trips.merged(attempts, settings)

    def _check_expectations(self) -> list[sessions.ExpectationRecord]:
        scenario = self.request.scenario
        if scenario is None or not scenario.expect:
            return []
        expected = [expectation.parse(text) for text in scenario.expect]
        return expectation.check(expected, self.results(), self._findings, self.header().rounds)

    def close(self) -> None:
        """Give the journal up; no results can be had any more."""
        self.journal.close()

    def results(self) -> Iterator[sessions.Result]:
        """The results so far, one at a time; what was resumed and is not new stays as it was."""
        for index, case in enumerate(self.cases):
            if index in self._known and not self.journal.grown(index):
                yield self._known[index]
            else:
                answers = self.journal.answers(index)
                yield merge(case.record(), answers, self.request.settings.rounds)
        yield from self._unplanned

    def _spend(self) -> tuple[float, float | None]:
        """Seconds of the run until now, and the cores that others kept busy meanwhile."""
        here_s = time.monotonic() - self._begun
        foreign = machine.foreign_cores(self._usage, machine.usage())
        if self.resumed is not None and not self._has_measured():
            foreign = self._earlier_foreign  # what is told is of the processes that are in the file
        else:
            foreign = resuming.together(here_s, foreign, self._earlier_s, self._earlier_foreign)
        return round(here_s + self._earlier_s, 3), foreign

    def _has_measured(self) -> bool:
        return any(self.journal.grown(index) for index in range(len(self.cases)))

    def header(self) -> sessions.Header:
        """All but the results; once the run has ended, the same each time."""
        wall_s, foreign_cores = self._spent or self._spend()
        return sessions.Header(
            created=self.created,
            command=list(self.resumed.command if self.resumed else self.request.command),
            seed=self.request.settings.seed,
            request=self.request.as_dict(),
            environment=environment(self.catalog, dict(self._place.interpreter.variables)),
            device_choice=self.device_choice,
            rounds=self.rounds_done or self.request.settings.rounds,
            complete=self.complete,
            left_out=self._left_out,
            findings=self._findings,
            expectations=self._expectations,
            round_trips=self._trips or self._kept_trips,
            wall_s=wall_s,
            foreign_cores=foreign_cores,
        )

    def judged(self, header: sessions.Header) -> sessions.Header:
        """The header with what was found when the measurement ended."""
        found = {"findings": self._findings, "expectations": self._expectations}
        return header.model_copy(update=found)

    def save(self) -> None:
        if self._replaces and not self._has_measured():
            return  # what stands there was measured, and nothing is yet that could take its place
        begun = time.monotonic()
        sessions.write(self.path, self.header(), self.results())
        if not files.special(self.path):
            folder = state.state_folder()
            self._digests = provenance.remember(self.path, folder, self._digests)
        self.saved = True
        self._saved = time.monotonic()
        self._save_took = self._saved - begun

    def _save_first(self) -> None:
        replaced.check_writable(self.path)
        if not files.special(self.path):
            self.save()

    def _save_now_and_then(self) -> None:
        waited = time.monotonic() - self._saved
        if waited < max(SAVE_EVERY_S, SAVE_SHARE * self._save_took):
            return
        if files.special(self.path):
            return  # what is written to a pipe cannot be replaced
        try:
            self.save()
        except UsageError:
            self._saved = time.monotonic()  # a full disk may be emptied before the run ends

    def _save_unjudged(self) -> None:
        if not files.special(self.path):
            with contextlib.suppress(UsageError):  # the last save says why
                self.save()

    def _save_last(self) -> None:
        if files.special(self.path):
            self._give_to_reader()
            return
        with uninterrupted():
            self._save_or_elsewhere()

    def _give_to_reader(self) -> None:
        """Write to a pipe, for whose reader nobody waits longer than the user."""
        try:
            self._save_or_elsewhere()
        except KeyboardInterrupt:
            self.saved = False
            with uninterrupted():
                where = self._save_elsewhere()
            raise Unsaved(f"stopped while {self.path} waited for its reader; {where}") from None

    def _save_or_elsewhere(self) -> None:
        try:
            self.save()
        except UsageError as error:
            self.saved = False
            raise Unsaved(f"{error}; {self._save_elsewhere()}") from None

    def _save_elsewhere(self) -> str:
        for folder in (state.state_folder(), Path(tempfile.gettempdir())):
            path = folder / f"{state.stamp()}-{self.request.command[0]}.json"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                sessions.write(path, self.header(), self.results())
            except (OSError, UsageError):
                continue
            provenance.remember(path, state.state_folder())
            return f"the session is in {path}"
        return "nor is there any other place for the session"


def check_setup(interpreter: Interpreter, case: Case, settings: Settings) -> None:
    """Raise :class:`Unmeasured` where the user's setup fails, tried in the first case."""
    if not settings.setup:
        return
    with Worker(interpreter.python, interpreter.variables) as worker:
        asked = {"do": "setup", **way(case), "setup": settings.setup}
        outcome = worker.ask(asked, settings.limit_s)
    if outcome.status == "skipped" or not outcome.alive:
        ended = "" if outcome.alive else "the setup, or an import before it, ended: "
        raise Unmeasured(f"{ended}{last_words(outcome)}")
