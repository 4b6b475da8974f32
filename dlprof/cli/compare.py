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
    from dlprof.cli.comparing import criteria_from, show, unsure_code
    from dlprof.cli.comparison_wanted import ComparisonWanted

    criteria = criteria_from(fail_on)
    wanted = ComparisonWanted(json, markdown, junit, github)
    unsure = unsure_code(None) if fail_on else None
    show(base, head, criteria, unsure, wanted, across_pythons)
