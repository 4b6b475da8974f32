"""``dlprof gate``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def gate(
    base: options.Base,
    head: options.Head,
    fail_on: options.Regressions = None,
    unsure: Annotated[
        str | None,
        typer.Option(
            "--unsure",
            metavar="pass|fail",
            help="Exit code 0 or 1 where it is unsure. Default: exit code 3.",
        ),
    ] = None,
    json: options.ComparisonJson = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    gitlab: options.Gitlab = None,
    github: options.Github = False,
) -> None:
    """Fail if HEAD is slower than BASE, or worse: exit code 1. See docs/compare.md.

    Example: dlprof gate before.json after.json --fail-on ready:5%,200ns
    """
    from dlprof.cli.comparing import criteria_from, show, unsure_code
    from dlprof.cli.comparison_wanted import ComparisonWanted

    wanted = ComparisonWanted(json, markdown, junit, sarif, gitlab, github)
    show(base, head, criteria_from(fail_on), unsure_code(unsure), wanted)
