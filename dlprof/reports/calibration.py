"""What a machine can tell of each case, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time
from dlprof.compare.sequential import LOOKS
from dlprof.gate.calibrate import Calibrated
from dlprof.gate.noise import LARGEST_FLOOR, CaseNoise, Noise
from dlprof.gate.power import SIZES
from dlprof.plan.axes import shape_text
from dlprof.plan.floors import Floor
from dlprof.reports.comparison_text import floor_text
from dlprof.reports.terminal import printed
from dlprof.scenario.estimate import duration_text
from dlprof.session.model import CaseRecord, Mode
from dlprof.text.clean import clean
from dlprof.text.lists import listed


def render(
    found: Calibrated, floors: Sequence[Floor], width: int = 80, colour: bool = False
) -> str:
    """The report as text of ``width`` columns, with ANSI colours if ``colour``."""
    return printed(Group(*_compose(found, floors)), width, colour)


def _compose(found: Calibrated, floors: Sequence[Floor]) -> Iterator[RenderableType]:
    cases = sorted(found.noise.cases, key=lambda case: (-(case.caught or 1e9), -case.spread))
    yield Text(
        f"This machine against itself: {found.noise.rounds} rounds in turns, one of "
        f"{found.round_s:.1f} s.\n"
    )
    yield _table(cases)
    yield from _modes(cases)
    yield Text()
    for sentence in answers(found, floors):
        yield Text(sentence, style="bold")


def _table(cases: Sequence[CaseNoise]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    for title in ("time", "spread", "catches", "tells"):
        table.add_column(title, justify="right", no_wrap=True)
    several = len({case.measure for case in cases}) > 1
    for case in cases:
        path = clean(case.case.code) + (f" [{clean(case.measure)}]" if several else "")
        table.add_row(
            Text(f"{path}\n  {_array(case.case)}"),
            plain_time(case.median_ns, 3),
            f"{100 * case.spread:.1f} %",
            _size(case.caught),
            _size(case.floor),
            style="yellow" if case.gated_floor is None else "",
        )
    return table


def _array(case: CaseRecord) -> str:
    words = (f"{case.producer} → {case.consumer}", shape_text(case.shape), case.dtype, case.layout)
    return clean("  ".join((*words, case.device)))


def _size(size: float | None) -> str:
    return "-" if size is None else f"{100 * size:g} %"


def _modes(cases: Sequence[CaseNoise]) -> Iterator[RenderableType]:
    moded = [case for case in cases if case.modes]
    if moded:
        yield Text("\nprocesses in modes:", style="dim")
    for case in moded:
        said = listed([_mode(mode) for mode in case.modes])
        yield Text(f"{clean(case.case.code)}: {said}")


def _mode(mode: Mode) -> str:
    count = len(mode.rounds)
    faults = mode.page_faults_per_call
    why = "" if faults is None else f" with {faults:.0f} page faults per call"
    return f"{plain_time(mode.median_ns, 3)} in {count} process{'es' if count > 1 else ''}{why}"


def answers(found: Calibrated, floors: Sequence[Floor]) -> list[str]:
    """What a gate can tell here in the given time."""
    noise = found.noise
    asked = "; ".join(f"{floor.measure} {floor_text(floor)}" for floor in floors)
    floors_told = [case.gated_floor for case in noise.cases if case.gated_floor is not None]
    noisy = [case for case in noise.cases if case.gated_floor is None]
    text = [f"{_rounds_text(found)} {_columns_text(asked)}", _unseen_text(noise)]
    if floors_told:
        most = _size(max(floors_told))
        text.append(
            f"{len(floors_told)} of {len(noise.cases)} can be gated with a floor of {most}."
        )
    if noisy:
        text.append(
            f"Too noisy to gate in this time, since no floor up to {_size(LARGEST_FLOOR)} tells: "
            f"{listed([_noisy(case) for case in noisy])}."
        )
    if found.unmeasured:
        text.append(f"Not measured: {listed([clean(case.code) for case in found.unmeasured])}.")
    return text


RULE_OF_THREE = 3
"""What nobody of n has shown is, at 95 %, no more frequent than three in n (Hanley 1983)."""


def _unseen_text(noise: Noise) -> str:
    """What so few processes say nothing of."""
    processes = 2 * noise.rounds
    return (
        f"It says what was found in rounds like these {noise.rounds}: a state that fewer than one "
        f"process in {max(processes // RULE_OF_THREE, 1)} is in may be missing from them."
    )


def _noisy(case: CaseNoise) -> str:
    """A case with the size of regression that would be caught all the same."""
    if case.caught is None:
        return f"{clean(case.case.code)} (no slowdown up to {_size(SIZES[-1])} would be caught)"
    return f"{clean(case.case.code)} (a slowdown of {_size(case.caught)} would be caught)"


def _rounds_text(found: Calibrated) -> str:
    """The rounds of a gate, or that it is over before it has looked at all."""
    time_text = duration_text(found.noise.budget_s)
    needed_s = LOOKS[0] * found.round_s
    if needed_s <= found.noise.budget_s:
        return (
            f"In {time_text} a gate has time for {found.noise.gate_rounds} rounds, "
            "the later ones of what is not decided by then."
        )
    return (
        f"{time_text} are too little: a gate has no time for the {LOOKS[0]} rounds before its "
        f"first look, and would call nothing the same. Give it {duration_text(needed_s)} with "
        f"--budget, or fewer cases. What follows is of {LOOKS[0]} rounds."
    )


def _columns_text(asked: str) -> str:
    return (
        f"catches: the least slowdown that it finds in 95 of 100 gates, with a floor of {asked}. "
        "tells: the least floor at which it finds a slowdown by the floor, and calls equal code "
        "the same."
    )
