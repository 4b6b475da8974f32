"""The matrix on a terminal: one table of verdicts with costs, then the code of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlprof.cli.listing import plain_table, text_of
from dlprof.cli.show import say, width
from dlprof.reports.matrix import Cell, cells
from dlprof.reports.row import Row, suspected
from dlprof.reports.terminal import circumstances_text, findings_text, unmeasured_text
from dlprof.session import Header


def show_matrix(header: Header, rows: Sequence[Row]) -> None:
    """One table per array that was converted, producers down and consumers across."""
    arrays: dict[tuple[str, ...], list[Row]] = {}
    for row in suspected(rows, header.findings):
        arrays.setdefault(row.array[1:], []).append(row)
    pairs = header.request.get("pairs", [])
    for (shape, dtype, layout, device), group in arrays.items():
        say(f"{shape} {dtype} {layout} on {device}: the cheapest safe path of each pair\n")
        say(f"{_grid(pairs, cells(group))}\n")
        say(f"{_codes(cells(group))}\n")
    say(circumstances_text(header, width()))
    say(unmeasured_text(rows))
    say(findings_text(header, width()))


def _grid(pairs: Sequence[tuple[str, str]], found: Mapping[str, Cell]) -> str:
    consumers = list(dict.fromkeys(consumer for _, consumer in pairs))
    table = plain_table("from \\ to", *consumers)
    for producer in dict.fromkeys(producer for producer, _ in pairs):
        cells_of = [found.get(f"{producer} → {consumer}") for consumer in consumers]
        table.add_row(
            producer, *(f"{cell.verdict}\n{cell.cost}" if cell else "-" for cell in cells_of)
        )
    return text_of(table)


def _codes(found: Mapping[str, Cell]) -> str:
    lines = []
    for pair, cell in found.items():
        lines.append(f"{pair}: {cell.verdict}, {cell.cost}")
        lines += [f"    {cell.code}"] if cell.code else []
    return "\n".join(lines) + "\n"
