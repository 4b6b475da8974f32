"""One run: from a request to its session file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dlprof.errors import Unmeasured
from dlprof.runner import session as sessions
from dlprof.runner import worker_client
from dlprof.runner.case_client import imports_of
from dlprof.runner.catalog import Catalog, environment
from dlprof.runner.inspection import last_words, nothing_measured
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.machine import Meter
from dlprof.runner.plan import not_run, plan
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import sample_ns_for
from dlprof.runner.session_file import SessionFile


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class Measurement:
    """A run in one interpreter. What the session file ``path`` answers is not measured again.

    Raises :class:`UsageError` if the file cannot be written or holds something else.
    """

    def __init__(self, request: Request, catalog: Catalog, path: Path, watcher: Watcher) -> None:
        self._plan = plan(request, catalog)
        self.cases = self._plan.cases
        sample_ns = sample_ns_for(request.settings, self.cases)
        self.request = replace(request, settings=replace(request.settings, sample_ns=sample_ns))
        self.catalog = catalog
        self.path = path
        self.watcher = watcher
        self._meter = Meter()
        self.file = SessionFile(path, self._header())
        self._end = {"complete": False, **self.file.end}

    @contextmanager
    def running(self) -> Iterator[Runner]:
        """Yield a runner for the cases. Whatever ends it, the session file says how it ended.

        Raises :class:`Unmeasured` if the user's setup fails, and :class:`Unsaved` if the session
        file can no longer be written.
        """
        with nothing_measured():
            self._check_setup()
        runner = Runner(
            self.catalog.python,
            self._plan.variables,
            self.cases,
            self.request.settings,
            self.file,
            self.watcher,
            self.catalog.can_trace,
        )
        try:
            yield runner
        finally:
            with uninterrupted():
                runner.close()
                wall_s, foreign_s = self._meter.read()
                self._end["wall_s"] = round(wall_s, 3)
                self._end["foreign_cores"] = None if foreign_s is None else foreign_s / wall_s
                self.file.finish(self._end)

    def complete_with(self, runner: Runner) -> None:
        """Note that everything is measured, as far as the budget allowed."""
        settings = self.request.settings
        not_done = not_run(settings, runner.rounds_done, runner.undiagnosed, runner.out_of_time)
        left_out = [*self._plan.left_out, *not_done]
        self._end |= {"complete": True, "rounds": runner.rounds_done, "left_out": left_out}

    def stop_with(self, runner: Runner, complete: bool) -> None:
        """Note how many rounds a gate took."""
        self._end |= {"complete": complete, "rounds": runner.rounds_done}

    def session(self) -> sessions.Session:
        """Return what was measured so far, without findings."""
        return self.file.session(self._end)

    def results(self) -> list[sessions.Result]:
        return self.session().results

    def close(self) -> None:
        self.file.close()

    def _header(self) -> dict[str, Any]:
        request = self.request
        return {
            "schema": sessions.SCHEMA,
            "created": now(),
            "command": list(request.command),
            "seed": request.settings.seed,
            "request": {key: value for key, value in asdict(request).items() if key != "command"},
            "environment": environment(self.catalog, self._plan.variables),
            "device_choice": self._plan.device_choice,
            "simulated": self.catalog.simulated,
            "left_out": list(self._plan.left_out),
            "unmatched": list(self._plan.unmatched),
            "cases": [case.record() for case in self.cases],
        }

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
