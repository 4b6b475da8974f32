"""What the code of a test must not do: copy, wait, or cross devices on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dlprof import api
from dlprof.measuring.trace import FAULTS, checked, faults
from dlprof.reports.trace_groups import Group, grouped
from dlprof.session.trace_file import Row

MOST_LINES = 20


@contextmanager
def fail_on(*words: str, include: Sequence[str] = ()) -> Iterator[api.Traced]:
    """Trace a block, and raise :class:`AssertionError` for a line that does one of ``words``.

    Without words, none of :data:`FAULTS` may happen. ``include`` names packages whose lines count
    as the test's own. Raises :class:`UsageError` for another word.
    """
    __tracebackhide__ = True
    forbidden = checked(words) or FAULTS
    with api.trace(include=include) as found:
        yield found
    said = _said(found.rows, forbidden)
    if said:
        raise AssertionError(said)


def _said(rows: Sequence[Row], forbidden: Sequence[str]) -> str:
    """The lines that do it, those that took longest first; empty if there are none."""
    guilty = [
        (group, does)
        for group in grouped(rows, "line")
        if (does := [word for word in faults(group.rows[0]) if word in forbidden])
    ]
    if not guilty:
        return ""
    count = f"{len(guilty)} line{'s' if len(guilty) > 1 else ''}"
    verb = "do" if len(guilty) > 1 else "does"
    words = list(dict.fromkeys(word for _, does in guilty for word in does))
    return "\n".join(
        (
            f"{count} {verb} what this test forbids: {', '.join(words)}",
            *(_line(*one) for one in guilty[:MOST_LINES]),
            *([f"  … and {len(guilty) - MOST_LINES} more"] if len(guilty) > MOST_LINES else []),
            f"A comment on a line allows it: # dlprof: allow {', '.join(words)}",
        )
    )


def _line(group: Group, does: Sequence[str]) -> str:
    calls = group.total("calls")
    many = f"{calls:,} call{'s' if calls != 1 else ''}"
    return f"  {group.place}   {group.code}   {', '.join(does)}: {many}"
