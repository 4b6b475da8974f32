"""``dlprof compare``."""

from __future__ import annotations

from dlprof.cli import options


def compare(
    base: options.Base,
    head: options.Head,
    fail_on: options.Regressions = None,
    json: options.ComparisonJson = None,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse?

    Example: dlprof compare before.json after.json
    """
    from dlprof.cli.comparing import criteria_from, show, unsure_code

    criteria = criteria_from(fail_on)
    show(base, head, criteria, unsure_code(None) if fail_on else None, json)
