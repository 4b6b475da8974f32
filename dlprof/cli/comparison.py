"""Compare two session files and say so: shared by ``compare`` and ``gate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dlprof.analysis.case_view import mapping
from dlprof.cli.comparison_output import Concluded, give
from dlprof.cli.outputs import Outputs
from dlprof.compare.comparison import Comparison, compare
from dlprof.compare.criteria import Criteria, own_floors
from dlprof.compare.outcome import NOT_KNOWN, NOTHING, REGRESSION, outcome
from dlprof.compare.times import Settings
from dlprof.errors import Interrupted, Regression, Unmeasured, Unsure, UsageError
from dlprof.plan.floors import FloorRule
from dlprof.reports.comparison_answers import answers_of, sentence
from dlprof.reports.comparison_document import Names
from dlprof.session import files
from dlprof.session import model as sessions
from dlprof.session.model import Header

UNSURE_CODES = {None: NOT_KNOWN, "pass": 0, "fail": REGRESSION}


def unsure_code(word: str | None) -> int:
    """The exit code of what is unsure. Raises :class:`UsageError`."""
    if word not in UNSURE_CODES:
        raise UsageError(f"--unsure is pass or fail, not {word!r}")
    return UNSURE_CODES[word]


def show(
    paths: Sequence[Path],
    criteria: Criteria,
    unsure: int | None,
    output: Outputs,
    across_pythons: bool = False,
    verb: str = "compare",
) -> None:
    """Compare BASE and HEAD, print, and raise what the exit code says.

    ``unsure`` is the exit code of a doubt. None is for one who only wants to see: then neither a
    regression nor a doubt fails, but what could not be compared at all does. Raises
    :class:`Regression`, :class:`Unsure` and :class:`Unmeasured`.
    """
    base, head = paths
    if base == head == files.STDIN:
        raise UsageError("BASE and HEAD cannot both be on stdin")
    output.check({"BASE": base, "HEAD": head})
    before, after = sessions.load(base), sessions.load(head)
    own = own_floors(rules_of(after), (one.case for one in after.results), criteria.floors)
    settings = Settings(criteria.floors, own, across_pythons=across_pythons)
    found = compare(before, after, settings)
    tell(found, criteria, unsure, Names(str(base), str(head)), output, verb=verb)


def tell(
    found: Comparison,
    criteria: Criteria,
    unsure: int | None,
    names: Names,
    output: Outputs,
    stopped: bool = False,
    verb: str = "compare",
) -> None:
    """Print a comparison, and raise what its exit code says; see :func:`show`.

    If a gate was ``stopped``, its caller says so.
    """
    result = outcome(found, criteria)
    if stopped:
        code = Interrupted.exit_code
    elif unsure is not None:
        code = result.code(unsure)
    elif result.nothing:
        code = NOTHING
    else:
        code = NOT_KNOWN if found.invalid is not None else 0
    give(output, Concluded(found, result, code, unsure, names, verb))
    errors = {REGRESSION: Regression, NOT_KNOWN: Unsure, NOTHING: Unmeasured}
    if code in errors:
        raise errors[code](sentence(answers_of(found, result)[0]))


def rules_of(header: Header) -> tuple[FloorRule, ...]:
    """The floors that a session's scenario has for single cases; none that make no sense."""
    written = mapping(header.request.get("scenario")).get("floors")
    try:
        found = TypeAdapter(tuple[FloorRule, ...]).validate_python(written or ())
    except ValidationError:
        return ()
    amounts = [amount for rule in found for amount in (rule.relative, rule.absolute_ns)]
    fit = all(amount is None or 0 <= amount < float("inf") for amount in amounts)
    return found if fit else ()
