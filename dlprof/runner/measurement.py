"""One run: from a request to a session file, by way of the journal."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlprof.errors import Unmeasured, Unsaved, UsageError
from dlprof.runner import files, resume, worker_client
from dlprof.runner import session as sessions
from dlprof.runner.case_client import imports_of
from dlprof.runner.catalog import Catalog, environment
from dlprof.runner.header import Environment, RecordedRequest
from dlprof.runner.inspection import last_words, nothing_measured
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.journal import InUse, Journal
from dlprof.runner.merge import merge, without_times
from dlprof.runner.plan import not_run, plan
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import sample_ns_for
from dlprof.runner.state import journal_of
from dlprof.text.clean import sanitised

SAVE_EVERY_S = 10.0
SAVE_SHARE = 50
"""A save waits until it would take less than one part in so many of the run."""

Found = tuple[list[sessions.FindingRecord], list[sessions.ExpectationRecord]]
Judge = Callable[["Measurement"], Found]
"""What rules and expectations say of a measurement."""


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class Measurement:
    """One run in one interpreter, whose session file is ``path``.

    ``journal`` is that of a run to be finished. ``is_resumable`` is false for a run of which a
    part alone means nothing, such as one side of a gate. With ``begun_ns``, when the command
    began, a path that another run wrote since then or writes now is left to it: then it is a free
    one beside that.
    """

    def __init__(
        self,
        request: Request,
        catalog: Catalog,
        path: Path,
        watcher: Watcher,
        journal: Journal | None = None,
        is_resumable: bool = True,
        begun_ns: int | None = None,
    ) -> None:
        self._plan = plan(request, catalog)
        self.cases = self._plan.cases
        if journal is None:
            sample_ns = sample_ns_for(request.settings, self.cases)
            request = replace(request, settings=replace(request.settings, sample_ns=sample_ns))
            header = resume.header_of(request, catalog, self.cases, now())
        else:
            resume.check_same(journal, catalog, self.cases)
        self.request = request
        self.catalog = catalog
        self.path = path
        self.watcher = watcher
        self.complete = False
        self.saved = False
        self.rounds_done = 0
        self._is_resumable = is_resumable
        self._left_out = list(self._plan.left_out)
        self._findings: list[sessions.FindingRecord] = []
        self._expectations: list[sessions.ExpectationRecord] = []
        self._spent: tuple[float, float | None] | None = None
        self._merged: list[sessions.Result] | None = None
        """All results, once no more answers come."""
        self._saved_at = time.monotonic()
        self._save_took = 0.0
        is_new = journal is None
        if journal is None:
            files.check_writable(path)
            self.path, journal = _own(path, header, begun_ns)
        self._replaces = is_new and files.begins_as(self.path, sessions.SCHEMA)
        self.journal = journal

    def start(self) -> Runner:
        """A runner for the cases; :meth:`end` must follow, whatever happens.

        Raises :class:`Unmeasured` if the user's setup fails, and :class:`UsageError` if the
        session cannot be written.
        """
        with nothing_measured():
            self._check_setup()
        self.save()
        runner = Runner(
            self.catalog.python,
            self._plan.variables,
            self.cases,
            self.request.settings,
            self.journal,
            self.watcher,
            self._save_now_and_then,
        )
        if not self.catalog.can_trace:
            runner.leave_out_traces()
        return runner

    def complete_with(self, runner: Runner) -> None:
        """All that was asked for is measured, as far as the budget allowed."""
        self.complete = True
        self.rounds_done = runner.rounds_done
        undiagnosed = runner.undiagnosed if runner.out_of_time else None
        settings = self.request.settings
        self._left_out += not_run(settings, runner.rounds_done, undiagnosed, runner.out_of_time)

    def end(self, runner: Runner, judge: Judge) -> None:
        """Save the session, also with what ``judge`` finds, and delete a journal that has served.

        Raises :class:`Unsaved` if the session cannot be written; the journal stays then.
        """
        with uninterrupted():
            runner.close()
            self._merged = list(self.results())
            self._spent = self.journal.meter.read()  # the file and the report show the same
        try:
            self._findings, self._expectations = judge(self)
        except BaseException:  # a user who stops the rules loses only what they find
            with uninterrupted(), contextlib.suppress(UsageError):
                self.save()
            raise
        with uninterrupted():
            try:
                self.save()
            except UsageError as error:
                self.saved = False
                raise Unsaved(f"{error}; what was measured is in {self.journal.path}") from None
            if self.complete or not self._is_resumable:
                self.journal.delete()

    def close(self) -> None:
        """Close the journal. There are no results after that."""
        if not self.saved and self.journal.is_empty:
            self.journal.delete()
        self.journal.close()

    def results(self) -> Iterator[sessions.Result]:
        yield from self._merged or self._merge()

    def _merge(self) -> Iterator[sessions.Result]:
        rounds = self.request.settings.rounds
        for index, case in enumerate(self.cases):
            found = merge(case.record(), self.journal.answers(index), rounds)
            yield found if self.request.settings.times else without_times(found)

    def header(self) -> sessions.Header:
        """All but the results; after :meth:`end` the same each time."""
        wall_s, foreign_s = self._spent or self.journal.meter.read()
        written = {name: self.journal.header[name] for name in ("created", "command")}
        told = sanitised({**written, "request": self.request.as_dict()})  # the user's words
        found = environment(self.catalog, self._plan.variables)
        return sessions.Header(
            created=told["created"],
            command=told["command"],
            seed=self.request.settings.seed,
            request=RecordedRequest.model_validate(told["request"]),
            environment=Environment.model_validate(found),
            device_choice=self._plan.device_choice,
            simulated=self.catalog.simulated,
            rounds=self.rounds_done or self.request.settings.rounds,
            complete=self.complete,
            left_out=self._left_out,
            unmatched=list(self._plan.unmatched),
            findings=self._findings,
            expectations=self._expectations,
            wall_s=round(wall_s, 3),
            foreign_cores=foreign_s / wall_s if foreign_s is not None and wall_s > 0 else None,
        )

    def judged(self, header: sessions.Header) -> sessions.Header:
        """Another header of this measurement, with what was found when it ended."""
        found = {"findings": self._findings, "expectations": self._expectations}
        return header.model_copy(update=found)

    def save(self) -> None:
        """Write the session file, unless a session is there and nothing can take its place yet."""
        if self._replaces and not self.journal.has_grown:
            return
        begun = time.monotonic()
        sessions.write(self.path, self.header(), self.results())
        self.saved = True
        self._saved_at = time.monotonic()
        self._save_took = self._saved_at - begun

    def _save_now_and_then(self) -> None:
        waited_s = time.monotonic() - self._saved_at
        if waited_s < max(SAVE_EVERY_S, SAVE_SHARE * self._save_took):
            return
        try:
            self.save()
        except UsageError:
            self._saved_at = time.monotonic()  # a full disk may have room before the run ends

    def _check_setup(self) -> None:
        """Raise :class:`Unmeasured` if the user's setup fails, in a worker of the first case."""
        settings = self.request.settings
        if not settings.setup:
            return
        with worker_client.start(self.catalog.python, self._plan.variables) as worker:
            asked = {"do": "setup", **imports_of(self.cases[0]), "setup": settings.setup}
            outcome = worker.ask(asked, settings.limit_s)
        if outcome.status == "skipped" or not outcome.alive:
            ended = "" if outcome.alive else "the setup, or an import before it, ended: "
            raise Unmeasured(f"{ended}{last_words(outcome)}")


def _own(path: Path, header: Mapping[str, Any], begun_ns: int | None) -> tuple[Path, Journal]:
    """A path that no other run writes, with its journal."""
    if begun_ns is None:
        return path, Journal(journal_of(path), header)
    is_taken = files.begins_as(path, sessions.SCHEMA) and path.stat().st_mtime_ns > begun_ns
    for free in files.free_names(path, is_taken):
        with contextlib.suppress(InUse):
            return free, Journal(journal_of(free), header)
    raise AssertionError("unreachable")
