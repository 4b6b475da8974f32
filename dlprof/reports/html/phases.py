"""Where the time goes: export, import, release and waiting, stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time, time_text
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import Rows, drawn, y_axis
from dlprof.reports.html.shares import DIFFERENT, PARTS, UNKNOWN, differs, parts, waiting_ns
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS
from dlprof.session.model import FindingRecord

MOST = 16
BAR = 12
"""Pixels."""
OUTLINE = {"stroke": COLOURS["muted"], "strokeDash": [2, 2]}
"""Of what is not known."""
CAPTION = (
    "Shares of one call: export and import are what each side does to hand the array over,"
    " release is dropping the result, waiting is the time from the call's return until the"
    " values are there, where it can be told from nothing. The number at the right is their"
    " sum. Phases are timed one call at a time, so the sum can differ from ready, the time per"
    " call in a loop. Where the export is the array itself, the handing over is part of the import."
)

REST = (
    "Unknown is the rest of the call's time: of a conversion in one piece, or where a phase was not"
    " timed, nobody can say which part took it."
)
DIFFERING = (
    f" marked ≠: more than {DIFFERENT:g} times away from the ready time. Processes that"
    " fall into modes, work that is still under way, or memory that is at hand for one call and"
    " not for many in a row, make such a call another one than those in the loop: its shares"
    " tell how it divides, not what the path costs."
)
NONE_KNOWN = ": no phase of the call is known, or none can be told from nothing."


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
            " ".join(_said(shown, known, everything)),
            _chart(shown),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                *((part, _cell(part)) for part in _present(shown)),
                ("sum", lambda entry: plain_time(sum(parts(entry).values()))),
                ("ready", _ready),
            ),
        )
    ]


def _ready(entry: Entry) -> str:
    return time_text(entry.row.ready, entry.row.process_medians_ns)


def _said(
    shown: Sequence[Entry], known: Sequence[Entry], everything: Sequence[Entry]
) -> Iterator[str]:
    """The caption, sentence by sentence."""
    yield CAPTION
    if UNKNOWN in _present(shown):
        yield REST
    count = sum(differs(entry) for entry in shown)
    if count:
        yield ("One sum is" if count == 1 else f"{count} sums are") + DIFFERING
    left = sum(entry.measured for entry in everything) - len(known)
    if left:
        yield ("Left out is one case" if left == 1 else f"Left out are {left:,} cases") + NONE_KNOWN
    yield chosen_text(len(shown), len(known)).strip()


def _present(shown: Sequence[Entry]) -> tuple[str, ...]:
    """The parts; that which is not known only where there is one."""
    return (*PARTS, UNKNOWN) if any(UNKNOWN in parts(entry) for entry in shown) else PARTS


def _cell(part: str) -> Any:
    if part == UNKNOWN:
        return lambda entry: plain_time(rest) if (rest := parts(entry).get(part)) else "-"

    def cell(entry: Entry) -> str:
        phases = entry.result.phases
        is_wait = part == "waiting"
        known = waiting_ns(entry) if is_wait else getattr(phases, f"{part}_ns")
        if known is None:
            return "-" if is_wait else "unknown"
        value = parts(entry)[part]
        floor = (phases.resolution_ns if phases else None) or 0.0
        if value <= 0 and is_wait:
            return "not told"
        return plain_time(value) if value > 0 else f"<{plain_time(max(floor, 1.0))}"

    return cell


def _chart(shown: Sequence[Entry]) -> Any:
    import altair as alt

    rows = Rows(*label_lines(shown), list(map(_sum_text, shown)))
    bars = [bar for place, entry in enumerate(shown) for bar in _bars(entry, rows.y(place))]
    present = _present(shown)
    encoding = {
        "x": alt.X(
            "from:Q",
            title="share of one call",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
        ),
        "x2": "to:Q",
        "y": y_axis(alt, rows),
        "y2": "below:Q",
        "color": alt.Color(
            "part:N", scale=alt.Scale(domain=present, range=[COLOURS[part] for part in present])
        ),
    }
    layers = []
    for told, stroke in ((True, {"stroke": COLOURS["surface"]}), (False, OUTLINE)):
        values = [bar for bar in bars if (bar["part"] != UNKNOWN) is told]
        layers += [chart(values).mark_bar(strokeWidth=1, **stroke).encode(**encoding)]
    return drawn(alt, rows, [layer for layer in layers if layer.data.values])


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
