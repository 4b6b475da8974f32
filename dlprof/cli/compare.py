"""``dlprof compare``."""

from __future__ import annotations

from dlprof.cli import options


def compare(
    base: options.Base,
    head: options.Head,
    across_pythons: options.AcrossPythons = False,
    fail_on: options.Regressions = None,
    json: options.ComparisonJson = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    github: options.Github = False,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse?

    Example: dlprof compare before.json after.json
    """
    from dlprof.cli.comparison import show, unsure_code
    from dlprof.cli.comparison_output import ComparisonOutput
    from dlprof.compare.criteria import parse

    output = ComparisonOutput(json, markdown, junit, github)
    unsure = unsure_code(None) if fail_on else None
    show((base, head), parse(fail_on or ()), unsure, output, across_pythons)
