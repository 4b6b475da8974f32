"""How a comparison is given: the report, files, or one of these on stdout in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlprof.cli.github import below, no_commands, scenario_file, tell
from dlprof.cli.outputs import Outputs
from dlprof.cli.show import colour, say, width
from dlprof.compare.comparison import Comparison
from dlprof.compare.outcome import Outcome
from dlprof.errors import DlprofError
from dlprof.reports import comparison as terminal


@dataclass(frozen=True)
class Concluded:
    """A comparison with what it comes to.

    ``code`` is the exit code, and ``unsure`` that of a doubt; None for one who only wants to see.
    """

    comparison: Comparison
    outcome: Outcome
    code: int
    unsure: int | None
    names: terminal.Names
    verb: str = "compare"


def give(outputs: Outputs, found: Concluded) -> None:
    """Print the report, or what takes its place, and write the files.

    Raises :class:`UsageError` for what cannot be written.
    """
    if not outputs.printed:
        with no_commands(outputs.github):
            args = (found.comparison, found.outcome, found.names)
            say(terminal.render(*args, width(), colour()))
    outputs.write(
        {
            "--json": lambda: [_json(found)],
            "--markdown": lambda: [_markdown(found)],
            "--junit": lambda: [_junit(found)],
        }
    )
    if outputs.github:
        from dlprof.reports.ci import of_comparison
        from dlprof.reports.ci.remark import problem_of

        doubt = of_comparison.doubts(found.unsure)
        remarks = of_comparison.remarks(found.comparison, found.outcome, doubt)
        tell(map(problem_of, remarks), _markdown(found), scenario_file(found.comparison.head))


def refuse(outputs: Outputs, error: DlprofError, file: Path | None) -> None:
    """Write what was asked for of a gate that ended before there was a comparison.

    ``file`` is the scenario, if it is one. Raises :class:`UsageError` for what cannot be written.
    """
    from dlprof.reports import junit
    from dlprof.reports.ci import of_refusal
    from dlprof.reports.ci.remark import problem_of

    found = of_refusal.Refusal(str(error), error.exit_code)
    outputs.write(
        {
            "--json": lambda: [of_refusal.as_json(found)],
            "--markdown": lambda: [of_refusal.markdown(found)],
            "--junit": lambda: [junit.render("dlprof gate", [of_refusal.check(found)])],
        }
    )
    if outputs.github:
        place = None if file is None else below(str(file))
        tell([problem_of(of_refusal.remark(found))], of_refusal.markdown(found), place)


def _json(found: Concluded) -> str:
    from dlprof.reports import comparison_json

    return comparison_json.render(found.comparison, found.outcome, found.code)


def _markdown(found: Concluded) -> str:
    from dlprof.reports import comparison_markdown

    return comparison_markdown.render(found.comparison, found.outcome, found.names)


def _junit(found: Concluded) -> str:
    from dlprof.reports import junit
    from dlprof.reports.ci import of_comparison

    doubt = of_comparison.doubts(found.unsure)
    checks = of_comparison.checks(found.comparison, found.outcome, doubt)
    return junit.render(f"dlprof {found.verb}", checks, found.comparison.head.created)
