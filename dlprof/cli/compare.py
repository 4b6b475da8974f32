"""``dlprof compare``, and the report of a comparison, which a gate prints too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli import streams
from dlprof.cli.options import COMPARISONS, REGRESSIONS, Given, takes
from dlprof.cli.streams import complain
from dlprof.errors import Interrupted, Regression, Unmeasured, Unsure, UsageError

if TYPE_CHECKING:
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.comparison import Comparison
    from dlprof.compare.verdicts import Criteria
    from dlprof.runner.session import Session


@takes(REGRESSIONS, *COMPARISONS)
def compare(
    session: Annotated[
        list[Any],
        typer.Argument(
            parser=streams.session,
            metavar="BASE HEAD...",
            help="Two session files: before and after. Or more of them, or a folder.",
        ),
    ],
    *,
    given: Given,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse? Of more: what differs?

    Example: dlprof compare before.json after.json
    """
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.comparison import NOT_KNOWN
    from dlprof.compare.verdicts import parse

    outputs, fail_on = Outputs.parse(given.raw), given.raw["fail_on"]
    if len(session) != 2 or any(path.is_dir() for path in session):  # noqa: PLR2004 - BASE and HEAD
        _compare_many(session, given, outputs)
        return
    unsure = NOT_KNOWN if fail_on else None
    compare_files(session, parse(fail_on or ()), unsure, outputs, "compare")


def _compare_many(places: Sequence[Path], given: Given, outputs: Outputs) -> None:
    """Show what differs between environments. Raises :class:`UsageError`."""
    from dlprof.compare.environments import read_environments
    from dlprof.report.comparison_document import environments_document, environments_json

    if len(places) == 1 and not places[0].is_dir():
        raise UsageError("one session is no comparison: name another, or a folder of sessions")
    unfit = [
        f"--{name.replace('_', '-')}"
        for name in ("fail_on", "junit", "export", "github")
        if given.raw[name]
    ]
    if unfit:
        raise UsageError(f"{', '.join(unfit)} compares two sessions: name two, and no folder")
    environments = read_environments(places, lambda why: complain(f"dlprof: left out: {why}"))
    if len(environments.columns) == 1:
        raise UsageError("the sessions are of one environment: name two of them")
    document = environments_document(environments)
    outputs.print_report(document)
    outputs.write(document, {"--json": lambda: environments_json(environments)})


def compare_files(
    paths: Sequence[Path], criteria: Criteria, unsure: int | None, outputs: Outputs, verb: str
) -> None:
    """Compare BASE and HEAD, and report; see :func:`report`."""
    from dlprof.compare import comparison
    from dlprof.measuring.judged import load

    base, head = map(load, paths)
    in_turns = comparison.is_one_gate(base, head)
    found = comparison.compare(base, head, criteria, in_turns)
    report(found, unsure, (str(paths[0]), str(paths[1])), outputs, lambda: head, verb)


def report(
    comparison: Comparison,
    unsure: int | None,
    names: tuple[str, str],
    outputs: Outputs,
    head: Callable[[], Session],
    verb: str = "gate",
    stopped: bool = False,
) -> None:
    """Print a comparison, and raise the error of its exit code.

    ``head`` returns the session of HEAD, whose times ``--export`` writes.
    ``unsure`` is the exit code of a doubt. Without it neither a regression nor a doubt fails, but
    sides that cannot be compared do. Raises :class:`Regression`, :class:`Unsure` and
    :class:`Unmeasured`; the caller raises :class:`Interrupted` for a gate that was ``stopped``.
    """
    from dlprof.compare.comparison import NOT_KNOWN, NOTHING, REGRESSION, exit_code
    from dlprof.report import exports
    from dlprof.report.checks import junit
    from dlprof.report.comparison_document import (
        as_json,
        comparison_answers,
        comparison_checks,
        comparison_document,
        sentence,
    )

    if stopped:
        code = Interrupted.exit_code
    elif unsure is not None:
        code = exit_code(comparison, unsure)
    elif comparison.nothing:
        code = NOTHING
    else:
        code = NOT_KNOWN if comparison.incomparable else 0
    document = comparison_document(comparison, names)
    checks = comparison_checks(comparison, unsure)
    if not comparison.nothing:  # the error says so
        outputs.print_report(document)
    texts = {
        "--json": lambda: as_json(comparison, code),
        "--junit": lambda: junit(f"dlprof {verb}", checks),
        "--export bmf": lambda: exports.bmf(head()),
        "--export github-benchmark": lambda: exports.github_benchmark(head()),
    }
    outputs.write(document, texts, checks=checks)
    errors = {REGRESSION: Regression, NOT_KNOWN: Unsure, NOTHING: Unmeasured}
    if code in errors:
        raise errors[code](sentence(comparison_answers(comparison)[0]))
