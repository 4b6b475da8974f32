"""The user's own setup, tried before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping

from dlprof.errors import Unmeasured
from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.runner.asking import way
from dlprof.runner.inspecting import last_words
from dlprof.runner.interpreter import Worker
from dlprof.runner.standby import Interpreter


def check_setup(firsts: Mapping[str, tuple[Interpreter, Case]], settings: Settings) -> None:
    """Raise :class:`Unmeasured` where the user's setup fails, in the first case of each place."""
    for name, (interpreter, case) in firsts.items() if settings.setup else ():
        with Worker(interpreter.python, interpreter.variables) as worker:
            asked = {"do": "setup", **way(case), "setup": settings.setup}
            outcome = worker.ask(asked, settings.limit_s)
        if outcome.status == "skipped" or not outcome.alive:
            where = f" in {name}" if name else ""
            ended = "" if outcome.alive else "the setup, or an import before it, ended: "
            raise Unmeasured(f"{ended}{last_words(outcome)}{where}")
