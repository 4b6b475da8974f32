"""Where the time goes: export, import, release and waiting, stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.quantity import plain_time
from dlprof.reports.html.cost import STEP, names_axis
from dlprof.reports.html.entry import Entry, choose, chosen_text, labels
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS
from dlprof.session import FindingRecord

MOST = 16
WIDTH = 300
UNREPEATED = 2.0
PARTS = ("export", "import", "release", "waiting")


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of shares; none where no phase was measured."""
    known = [entry for entry in everything if sum(parts(entry).values()) > 0]
    if not known:
        return []
    shown = sorted(choose(known, findings, MOST), key=lambda entry: entry.row.cost_ns)
    caption = (
        "Shares of one call: export and import are what each side does to hand the array over,"
        " release is dropping the result, waiting is the time from the call's return until the"
        " values are there, where it can be told from nothing. The number at the right is their"
        " sum. Phases are timed one call at a time, so the sum can differ from the time per call"
        " in a loop. Where the export is the array itself, the handing over is part of the import."
    )
    return [
        figure(
            "phases",
            "Where the time of a call goes",
            caption + chosen_text(len(shown), len(known)),
            _chart(shown),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                *((part, _cell(part)) for part in PARTS),
            ),
        )
    ]


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
    if ready is None or host is None or ready.same_as is not None:
        return None
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

    names = labels(shown)
    values: list[dict[str, Any]] = []
    sums: list[dict[str, Any]] = []
    for entry, name in zip(shown, names, strict=True):
        found = parts(entry)
        total = sum(found.values())
        sums.append({"name": name, "text": plain_time(total)})
        values += [
            {"name": name, "part": part, "share": ns / total, "order": order}
            for order, (part, ns) in enumerate(found.items())
        ]
    y = alt.Y("name:N", sort=names, title=None, axis=names_axis(alt))
    x = alt.X(
        "share:Q",
        title="share of the call",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    colour = alt.Color(
        "part:N", scale=alt.Scale(domain=PARTS, range=[COLOURS[part] for part in PARTS])
    )
    bars = (
        chart(values)
        .mark_bar(height=12, stroke=COLOURS["surface"], strokeWidth=1)
        .encode(x=x, y=y, color=colour, order="order:Q")
    )
    text = chart(sums).mark_text(align="left").encode(x=alt.value(WIDTH + 10), y=y, text="text:N")
    return alt.layer(bars, text).properties(width=WIDTH, height={"step": STEP})
