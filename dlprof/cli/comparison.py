"""Compare two sessions and report it: shared by ``compare`` and ``gate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlprof.cli.options import ANY_PYTHON, STRICT, Given
from dlprof.cli.outputs import Annotations, Outputs, below, scenario_file
from dlprof.compare import noise
from dlprof.compare.comparison import (
    NOT_KNOWN,
    NOTHING,
    REGRESSION,
    Comparison,
    compare,
    exit_code,
)
from dlprof.compare.criteria import Criteria, own_floors
from dlprof.compare.times import Settings
from dlprof.errors import DlprofError, Interrupted, Regression, Unmeasured, Unsure
from dlprof.report.comparison_answers import answers_of, sentence
from dlprof.report.comparison_document import comparison_document, refusal_document
from dlprof.runner import options
from dlprof.runner import session as sessions
from dlprof.runner.floors import FloorRule, rules_from
from dlprof.runner.session import Header

UNSURE_CODES = {None: NOT_KNOWN, "pass": 0, "fail": REGRESSION}
"""Of what is unsure, by ``--unsure``."""


def compare_files(
    paths: Sequence[Path],
    criteria: Criteria,
    unsure: int | None,
    outputs: Outputs,
    verb: str,
    given: Given,
) -> None:
    """Compare BASE and HEAD, print, and raise what the exit code says; see :func:`tell`.

    Raises :class:`Unsure` if a noise file is ``given`` that is of another machine.
    """
    base, head = map(sessions.load, paths)
    drifts, raw = None, given.raw
    if raw["noise"] is not None:
        known = noise.load(Path(raw["noise"]))
        allocator = head.request.settings.allocator or options.SYSTEM
        noise.check_machine(known, head.environment, allocator)
        drifts = noise.drifts(known)
    own = own_floors(rules_of(head), (one.case for one in head.results), criteria.floors)
    settings = Settings(
        criteria,
        own,
        across_pythons=given[ANY_PYTHON],
        wide_limit=given[options.WIDE_LIMIT] / 100,
        strict=given[STRICT],
        drifts=drifts,
    )
    names = (str(paths[0]), str(paths[1]))
    tell(compare(base, head, settings), unsure, names, outputs, verb)


def tell(
    found: Comparison,
    unsure: int | None,
    names: tuple[str, str],
    outputs: Outputs,
    verb: str = "gate",
    stopped: bool = False,
) -> None:
    """Print a comparison, and raise what its exit code says.

    ``unsure`` is the exit code of a doubt. None is for one who only wants to see: then neither a
    regression nor a doubt fails, but what could not be compared at all does. Raises
    :class:`Regression`, :class:`Unsure` and :class:`Unmeasured`. If a gate was ``stopped``, its
    caller says so.
    """
    from dlprof.report import ci, comparison_json
    from dlprof.report.comparison_checks import checks_of

    if stopped:
        code = Interrupted.exit_code
    elif unsure is not None:
        code = exit_code(found, unsure)
    elif found.nothing:
        code = NOTHING
    else:
        code = NOT_KNOWN if found.incomparable else 0
    document = comparison_document(found, names)
    checks = checks_of(found, unsure)
    outputs.print_report(document)
    outputs.write(
        document,
        {
            "--json": lambda: [comparison_json.render(found, code)],
            "--junit": lambda: [ci.junit(f"dlprof {verb}", checks, found.head.created)],
        },
        Annotations(checks=checks, file=scenario_file(found.head)),
    )
    errors = {REGRESSION: Regression, NOT_KNOWN: Unsure, NOTHING: Unmeasured}
    if code in errors:
        raise errors[code](sentence(answers_of(found)[0]))


def refuse(outputs: Outputs, error: DlprofError, scenario: Path) -> None:
    """Write what was asked for of a gate that ended before there was a comparison."""
    from dlprof.report import ci, comparison_json
    from dlprof.report.comparison_checks import refusal_check

    checks = [refusal_check(str(error), error.exit_code)]
    outputs.write(
        refusal_document(str(error)),
        {
            "--json": lambda: [comparison_json.refusal(str(error), error.exit_code)],
            "--junit": lambda: [ci.junit("dlprof gate", checks)],
        },
        Annotations(checks=checks, file=below(scenario)),
    )


def rules_of(header: Header) -> tuple[FloorRule, ...]:
    """The floors that a session's scenario has for single cases; none that make no sense."""
    scenario = header.request.scenario
    return rules_from(scenario.floors if scenario else None)
