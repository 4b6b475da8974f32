"""Compare two sessions and report it: shared by ``compare`` and ``gate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlprof.cli.outputs import Outputs
from dlprof.compare.comparison import (
    NOT_KNOWN,
    NOTHING,
    REGRESSION,
    Comparison,
    compare,
    exit_code,
)
from dlprof.compare.times import Settings
from dlprof.errors import DlprofError, Interrupted, Regression, Unmeasured, Unsure
from dlprof.measuring.measure import load
from dlprof.report.comparison_document import (
    answers_of,
    as_json,
    checks_of,
    comparison_document,
    refusal_check,
    refusal_document,
    refusal_json,
    sentence,
)

UNSURE_CODES = {None: NOT_KNOWN, "pass": 0, "fail": REGRESSION}
"""Of what is unsure, by ``--unsure``."""


def compare_files(
    paths: Sequence[Path], settings: Settings, unsure: int | None, outputs: Outputs, verb: str
) -> None:
    """Compare BASE and HEAD, print, and raise what the exit code says; see :func:`tell`."""
    base, head = map(load, paths)
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
    from dlprof.report import ci

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
            "--json": lambda: [as_json(found, code)],
            "--junit": lambda: [ci.junit(f"dlprof {verb}", checks)],
        },
        checks=checks,
    )
    errors = {REGRESSION: Regression, NOT_KNOWN: Unsure, NOTHING: Unmeasured}
    if code in errors:
        raise errors[code](sentence(answers_of(found)[0]))


def refuse(outputs: Outputs, error: DlprofError) -> None:
    """Write what was asked for of a gate that ended before there was a comparison."""
    from dlprof.report import ci

    checks = [refusal_check(str(error))]
    outputs.write(
        refusal_document(str(error)),
        {
            "--json": lambda: [refusal_json(str(error), error.exit_code)],
            "--junit": lambda: [ci.junit("dlprof gate", checks)],
        },
        checks=checks,
    )
