"""What a machine can tell of each case, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.gate.noise import LARGEST_FLOOR, Calibrated, CaseNoise
from dlprof.reports.comparison_answers import array_texts, case_name, code_cells
from dlprof.reports.document import Answer, Cell, Column, Document, Table
from dlprof.text.clean import listed


def calibration_document(found: Calibrated) -> Document:
    """The floor of each case: the least slowdown that a gate of as many rounds can tell."""
    cases = sorted(found.noise.cases, key=lambda case: (-(case.floor or 1e9), -case.spread))
    return Document(
        title="This machine against itself",
        scope=array_texts(one.case for one in cases)[0],
        context=f"{found.noise.rounds} rounds in turns",
        answers=tuple(_answers(found, cases)),
        tables=(_table(cases),),
        marks=("floor: the least slowdown that a gate of as many rounds tells from noise",),
    )


def _answers(found: Calibrated, cases: Sequence[CaseNoise]) -> Iterator[Answer]:
    floors = [case.gated_floor for case in cases if case.gated_floor is not None]
    every = [case.case for case in cases]
    noisy = [case_name(case.case, every) for case in cases if case.gated_floor is None]
    if floors:
        note = f"{len(floors)} of {len(cases)} cases, with a floor of {_percent(max(floors))}"
        yield Answer("can be gated", "", note=note)
    if noisy:
        why = f"a floor above {_percent(LARGEST_FLOOR)}, or modes"
        yield Answer("too noisy", "", note=f"{listed(noisy)}: {why}")
    if found.unmeasured:
        codes = listed(case.code for case in found.unmeasured)
        yield Answer("not measured", "", note=codes)


def _table(cases: Sequence[CaseNoise]) -> Table:
    codes, measures = code_cells(one.case for one in cases), {one.measure for one in cases}
    columns = (
        Column("time", right=True),
        Column("spread", right=True),
        Column("floor", right=True),
        *([Column("measure")] if len(measures) > 1 else []),
        Column("path"),
    )
    rows = tuple(
        (
            Cell(plain_time(case.median_ns, 3)),
            Cell(f"{100 * case.spread:.1f} %"),
            Cell(
                "modes" if case.floor is None else _percent(case.floor),
                "bad" if case.gated_floor is None else "",
            ),
            *([Cell(case.measure)] if len(measures) > 1 else []),
            codes[case.case],
        )
        for case in cases
    )
    return Table(columns, rows)


def _percent(floor: float) -> str:
    return f"{100 * floor:.3g} %"
