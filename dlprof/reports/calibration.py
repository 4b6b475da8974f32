"""What a machine can tell of each case, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time
from dlprof.gate.noise import LARGEST_FLOOR, Calibrated, CaseNoise
from dlprof.plan.axes import shape_text
from dlprof.reports.terminal import printed
from dlprof.session.model import CaseRecord
from dlprof.text.clean import clean
from dlprof.text.lists import listed


def render(found: Calibrated, width: int = 80, colour: bool = False) -> str:
    """The report as text of ``width`` columns, with ANSI colours if ``colour``."""
    return printed(Group(*_compose(found)), width, colour)


def _compose(found: Calibrated) -> Iterator[RenderableType]:
    cases = sorted(found.noise.cases, key=lambda case: (-(case.floor or 1e9), -case.spread))
    yield Text(f"This machine against itself: {found.noise.rounds} rounds in turns.\n")
    yield _table(cases)
    yield Text()
    for sentence in sentences(found):
        yield Text(sentence, style="bold")


def _table(cases: Sequence[CaseNoise]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    for title in ("time", "spread", "floor"):
        table.add_column(title, justify="right", no_wrap=True)
    several = len({case.measure for case in cases}) > 1
    for case in cases:
        path = clean(case.case.code) + (f" [{clean(case.measure)}]" if several else "")
        table.add_row(
            Text(f"{path}\n  {_array(case.case)}"),
            plain_time(case.median_ns, 3),
            f"{100 * case.spread:.1f} %",
            "modes" if case.floor is None else _percent(case.floor),
            style="yellow" if case.gated_floor is None else "",
        )
    return table


def _array(case: CaseRecord) -> str:
    words = (f"{case.producer} → {case.consumer}", shape_text(case.shape), case.dtype, case.layout)
    return clean("  ".join((*words, case.device)))


def _percent(floor: float) -> str:
    return f"{100 * floor:.3g} %"


def sentences(found: Calibrated) -> list[str]:
    """What a gate can tell here."""
    cases = found.noise.cases
    floors = [case.gated_floor for case in cases if case.gated_floor is not None]
    noisy = [clean(case.case.code) for case in cases if case.gated_floor is None]
    text = [
        "floor: the least slowdown that as many rounds tell from noise, where equal code is SAME."
    ]
    if floors:
        most = _percent(max(floors))
        text.append(f"{len(floors)} of {len(cases)} can be gated with a floor of {most}.")
    if noisy:
        text.append(
            f"Too noisy to gate in this time, with a floor above {_percent(LARGEST_FLOOR)} or in "
            f"modes: {listed(noisy)}."
        )
    if found.unmeasured:
        text.append(f"Not measured: {listed([clean(case.code) for case in found.unmeasured])}.")
    return text
