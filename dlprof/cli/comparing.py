"""Compare two session files and say so: shared by ``compare`` and ``gate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dlprof.analysis.case_view import number
from dlprof.cli.comparison_wanted import ComparisonWanted, Concluded
from dlprof.compare.comparison import compare
from dlprof.compare.criteria import Criteria, own_floors, parse
from dlprof.compare.outcome import NOT_KNOWN, NOTHING, REGRESSION, Outcome, outcome
from dlprof.compare.record import Comparison
from dlprof.compare.speed import speed
from dlprof.compare.times import Settings
from dlprof.errors import Interrupted, Regression, Unmeasured, Unsure, UsageError
from dlprof.gate.words import speed_text
from dlprof.plan.floors import FloorRule
from dlprof.reports import comparison as terminal
from dlprof.reports.comparison_text import headline
from dlprof.session import files
from dlprof.session import model as sessions
from dlprof.session.model import Header

UNSURE_CODES = {None: NOT_KNOWN, "pass": 0, "fail": REGRESSION}


def criteria_from(fail_on: Sequence[str] | None) -> Criteria:
    """The criteria that were asked for. Raises :class:`UsageError`."""
    return parse(fail_on or ())


def unsure_code(word: str | None) -> int:
    """The exit code of what is unsure. Raises :class:`UsageError`."""
    if word not in UNSURE_CODES:
        raise UsageError(f"--unsure is pass or fail, not {word!r}")
    return UNSURE_CODES[word]


def show(
    base: Path,
    head: Path,
    criteria: Criteria,
    unsure: int | None,
    wanted: ComparisonWanted,
    across_pythons: bool = False,
) -> None:
    """Compare, print, and raise what the exit code says.

    ``unsure`` is the exit code of a doubt; None for one who only wants to see: then neither a
    regression nor a doubt fails, but what could not be compared at all does. Raises
    :class:`Regression`, :class:`Unsure` and :class:`Unmeasured`.
    """
    if base == head == files.STDIN:
        raise UsageError("BASE and HEAD cannot both be on stdin")
    wanted.check(BASE=base, HEAD=head)
    before, after = sessions.load(base), sessions.load(head)
    own = own_floors(rules_of(after), (one.case for one in after.results), criteria.floors)
    settings = Settings(
        floors=criteria.floors,
        own_floors=own,
        speed=speed(before, after),
        across_pythons=across_pythons,
    )
    found = compare(before, after, settings)
    found = replace(found, told=tuple(speed_text(found)))
    tell(found, criteria, unsure, terminal.Names(str(base), str(head)), wanted)


def tell(
    found: Comparison,
    criteria: Criteria,
    unsure: int | None,
    names: terminal.Names,
    wanted: ComparisonWanted,
    stopped: bool = False,
) -> None:
    """Print a comparison, and raise what its exit code says; see :func:`show`.

    The caller says that a gate was ``stopped``.
    """
    result = outcome(found, criteria)
    code = _told(found, result) if unsure is None else result.code(unsure)
    code = Interrupted.exit_code if stopped else code
    wanted.give(Concluded(found, result, code, unsure, names))
    if not stopped:
        _fail(found, result, code)


def rules_of(header: Header) -> tuple[FloorRule, ...]:
    """The floors that a session's scenario has for single cases; none that make no sense."""
    scenario = header.request.get("scenario")
    written = scenario.get("floors") if isinstance(scenario, dict) else None
    try:
        found = TypeAdapter(tuple[FloorRule, ...]).validate_python(written or ())
    except ValidationError:
        return ()
    amounts = (amount for rule in found for amount in (rule.relative, rule.absolute_ns))
    known = [number(amount) for amount in amounts if amount is not None]
    return found if all(amount is not None and amount >= 0 for amount in known) else ()


def _told(found: Comparison, result: Outcome) -> int:
    """The exit code of one who only wants to see."""
    if result.nothing:
        return NOTHING
    return NOT_KNOWN if found.invalid is not None else 0


def _fail(found: Comparison, result: Outcome, code: int) -> None:
    errors = {REGRESSION: Regression, NOT_KNOWN: Unsure, NOTHING: Unmeasured}
    if code:
        raise errors[code](headline(found, result, code))
