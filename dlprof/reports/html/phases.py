"""Where the time goes: export, import, release and waiting, stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.quantity import plain_time, time_text
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import Rows, drawn, y_axis
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS
from dlprof.session import FindingRecord

MOST = 16
BAR = 12
"""Pixels."""
UNREPEATED = 2.0
DIFFERENT = 1.5
"""A sum so many times longer or shorter than the ready time is told to be another."""
PARTS = ("export", "import", "release", "waiting")
CAPTION = (
    "Shares of one call: export and import are what each side does to hand the array over,"
    " release is dropping the result, waiting is the time from the call's return until the"
    " values are there, where it can be told from nothing. The number at the right is their"
    " sum. Phases are timed one call at a time, so the sum can differ from ready, the time per"
    " call in a loop. Where the export is the array itself, the handing over is part of the import."
)


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of shares; none where no phase was measured."""
    known = [entry for entry in everything if sum(parts(entry).values()) > 0]
    if not known:
        return []
    shown = sorted(choose(known, findings, MOST), key=lambda entry: entry.row.cost_ns)
    return [
        figure(
            "phases",
            "Where the time of a call goes",
            CAPTION + _differing(shown) + chosen_text(len(shown), len(known)),
            _chart(shown),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                *((part, _cell(part)) for part in PARTS),
                ("sum", lambda entry: plain_time(sum(parts(entry).values()))),
                ("ready", _ready),
            ),
        )
    ]


def _ready(entry: Entry) -> str:
    return time_text(entry.row.ready, entry.row.process_medians_ns)


def _differing(shown: Sequence[Entry]) -> str:
    """Why a sum is not the ready time, where it is not."""
    count = sum(differs(entry) for entry in shown)
    if not count:
        return ""
    which = "One sum is" if count == 1 else f"{count} sums are"
    return (
        f" {which} marked ≠: more than {DIFFERENT:g} times away from the ready time. Processes that"
        " fall into modes, work that is still under way, or memory that is at hand for one call and"
        " not for many in a row, make such a call another one than those in the loop: its shares"
        " tell how it divides, not what the path costs."
    )


def differs(entry: Entry) -> bool:
    """Whether the sum of the phases is not the time that is reported, by a good deal."""
    total, ready = sum(parts(entry).values()), entry.row.ready
    modes = [mode.median_ns for mode in ready.modes] if ready is not None else []
    low, high = min(modes or [entry.row.cost_ns]), max(modes or [entry.row.cost_ns])
    return total > DIFFERENT * high or DIFFERENT * total < low


def parts(entry: Entry) -> dict[str, float]:
    """Ns of each part; a part that cannot be told from nothing is 0."""
    phases = entry.result.phases
    if phases is None or not entry.measured:
        return {}
    found = {
        "export": phases.export_ns,
        "import": phases.import_ns,
        "release": phases.release_ns,
        "waiting": waiting_ns(entry),
    }
    floor = phases.resolution_ns or 0.0
    return {
        name: value if value is not None and value > floor else 0.0 for name, value in found.items()
    }


def waiting_ns(entry: Entry) -> float | None:
    """From the return of the call until the values are there; None where nothing is waited for.

    Both were timed in loops of their own: a difference within their intervals is 0. Without an
    interval twice the time is asked for, as in the answer.
    """
    ready, host = entry.result.ready_time, entry.result.host_time
    if ready is None or host is None or ready.same_as is not None or ready.modes or host.modes:
        return None  # modes of the one are not those of the other
    if ready.ci95_ns is None or host.ci95_ns is None:
        told = ready.median_ns > UNREPEATED * host.median_ns
    else:
        told = ready.ci95_ns[0] > host.ci95_ns[1]
    return ready.median_ns - host.median_ns if told else 0.0


def _cell(part: str) -> Any:
    def cell(entry: Entry) -> str:
        phases = entry.result.phases
        known = waiting_ns(entry) if part == "waiting" else getattr(phases, f"{part}_ns")
        if known is None:
            return "-"
        value = parts(entry)[part]
        floor = (phases.resolution_ns if phases else None) or 0.0
        if value <= 0 and part == "waiting":
            return "not told"
        return plain_time(value) if value > 0 else f"<{plain_time(max(floor, 1.0))}"

    return cell


def _chart(shown: Sequence[Entry]) -> Any:
    import altair as alt

    rows = Rows(*label_lines(shown), list(map(_sum_text, shown)))
    bars = chart([bar for place, entry in enumerate(shown) for bar in _bars(entry, rows.y(place))])
    x = alt.X(
        "from:Q",
        title="share of one call",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    colour = alt.Color(
        "part:N", scale=alt.Scale(domain=PARTS, range=[COLOURS[part] for part in PARTS])
    )
    layer = bars.mark_bar(stroke=COLOURS["surface"], strokeWidth=1).encode(
        x=x, x2="to:Q", y=y_axis(alt, rows), y2="below:Q", color=colour
    )
    return drawn(alt, rows, [layer])


def _bars(entry: Entry, y: float) -> Iterator[dict[str, Any]]:
    """Each part beside the one before it."""
    found = parts(entry)
    total, begin = sum(found.values()), 0.0
    for part, ns in found.items():
        if ns > 0:
            ends = {"from": begin / total, "to": (begin + ns) / total}
            yield {"y": y - BAR / 2, "below": y + BAR / 2, "part": part, **ends}
        begin += ns


def _sum_text(entry: Entry) -> str:
    mark = "\u2260 " if differs(entry) else ""
    return f"{mark}{plain_time(sum(parts(entry).values()))}"
