"""How a comparison is given: the report, files, or one of these on stdout in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.cli.files import check_distinct, check_no_session, given
from dlprof.cli.github import below, check_summary, no_commands, scenario_file, tell
from dlprof.cli.show import colour, say, width, write
from dlprof.compare.comparison import Comparison
from dlprof.compare.outcome import Outcome
from dlprof.errors import DlprofError, UsageError
from dlprof.reports import comparison as terminal
from dlprof.session import files

STDOUT = "-"


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


@dataclass(frozen=True)
class ComparisonOutput:
    """Each is the name of a file, ``-`` for stdout instead of the report, or None."""

    json: str | None = None
    markdown: str | None = None
    junit: str | None = None
    github: bool = False
    verb: str = "compare"

    @classmethod
    def of(cls, options: Mapping[str, Any], verb: str = "compare") -> ComparisonOutput:
        """Those among the options of a verb."""
        names = ("json", "markdown", "junit", "github")
        return cls(**{name: options[name] for name in names}, verb=verb)

    def check(self, **beside: Path | None) -> None:
        """Raises :class:`UsageError` before anything is read or measured.

        ``beside`` are files, by what they are for, that must not be replaced.
        """
        targets = self._targets()
        for name, target in targets.items():
            given(name, target)
        for what, file in beside.items():
            check_distinct({what: file, **targets})
        check_distinct(targets)
        printed = [name for name, target in targets.items() if target == STDOUT]
        if len(printed) > 1:
            raise UsageError(f"only one of {', '.join(printed)} can be printed")
        if self.github and printed:
            raise UsageError(f"--github prints annotations: name a file for {printed[0]}")
        for target in targets.values():
            if target != STDOUT:
                files.check_writable(Path(target))
                check_no_session(Path(target))
        if self.github:
            for what, file in beside.items():
                check_summary({what: str(file or "-")})
            check_summary(targets)

    def give(self, found: Concluded) -> None:
        """Print the report, or what takes its place, and write the files.

        Raises :class:`UsageError` for what cannot be written.
        """
        if STDOUT not in self._targets().values():
            with no_commands(self.github):
                args = (found.comparison, found.outcome, found.names)
                say(terminal.render(*args, width(), colour()))
        named = replace(found, verb=self.verb)
        self._write({name: partial(writer, named) for name, writer in WRITERS.items()})
        if self.github:
            from dlprof.reports.ci import of_comparison
            from dlprof.reports.ci.remark import problem_of

            doubt = of_comparison.doubts(found.unsure)
            remarks = of_comparison.remarks(found.comparison, found.outcome, doubt)
            tell(map(problem_of, remarks), _markdown(found), scenario_file(found.comparison.head))

    def refuse(self, error: DlprofError, file: Path | None) -> None:
        """Write what was asked for of a gate that ended before there was a comparison.

        ``file`` is the scenario, if it is one. Raises :class:`UsageError` for what cannot be
        written.
        """
        from dlprof.reports import junit
        from dlprof.reports.ci import of_refusal
        from dlprof.reports.ci.remark import problem_of

        found = of_refusal.Refusal(str(error), error.exit_code)
        self._write(
            {
                "--json": lambda: of_refusal.as_json(found),
                "--markdown": lambda: of_refusal.markdown(found),
                "--junit": lambda: junit.render(f"dlprof {self.verb}", [of_refusal.check(found)]),
            }
        )
        if self.github:
            place = None if file is None else below(str(file))
            tell([problem_of(of_refusal.remark(found))], of_refusal.markdown(found), place)

    def _write(self, texts: dict[str, Callable[[], str]]) -> None:
        for name, target in self._targets().items():
            write(Path(target), texts[name]())

    def _targets(self) -> dict[str, str]:
        named = {"--json": self.json, "--markdown": self.markdown, "--junit": self.junit}
        return {name: target for name, target in named.items() if target is not None}


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


WRITERS: dict[str, Callable[[Concluded], str]] = {
    "--json": _json,
    "--markdown": _markdown,
    "--junit": _junit,
}
