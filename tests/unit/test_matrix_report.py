"""The matrix: one cell per pair, with its cheapest safe path."""

from __future__ import annotations

import pytest
from builders import lost_row, make_row

from dlprof.reports.matrix import Cell, cell, cells

pytestmark = pytest.mark.unit


def test_a_cell_is_the_cheapest_safe_path():
    rows = [make_row("copy(x)", 5000.0, owner="copy"), make_row("view(x)", 200.0), lost_row()]
    assert cell(rows) == Cell("view", "200 ns", "view(x)")


def test_a_cheaper_path_that_changes_values_is_not_the_cell():
    rows = [
        make_row("wrong(x)", 1.0, changed=("values",)),
        make_row("copy(x)", 5000.0, owner="copy"),
    ]
    assert cell(rows) == Cell("copy", "5.0 us", "copy(x)")


def test_a_pair_with_wrong_paths_only_is_called_wrong():
    assert cell([make_row("wrong(x)", 10.0, changed=("values",)), lost_row()]) == Cell(
        "wrong", "10 ns", "wrong(x)"
    )


@pytest.mark.parametrize("status", ["crashed", "timeout", "invalid"])
def test_a_pair_whose_only_path_broke_later_has_its_status(status):
    assert cell([make_row("f(x)", 10.0, status=status)]) == Cell(status, "10 ns", "f(x)")


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout", "skipped"])
def test_a_pair_without_a_time_has_the_status_of_its_paths(status):
    assert cell([lost_row(status=status)] * 2) == Cell(status, "-", "")


def test_a_pair_without_a_time_and_with_several_statuses_has_none():
    assert cell([lost_row(status="unsupported"), lost_row(status="crashed")]) == Cell(
        "none", "-", ""
    )


def test_every_pair_has_its_cell():
    rows = [
        make_row("a", 1.0, pair="a → b"),
        make_row("b", 2.0, pair="b → a"),
        make_row("c", 0.5, pair="a → b"),
    ]
    assert {pair: found.code for pair, found in cells(rows).items()} == {"a → b": "c", "b → a": "b"}


def test_no_rows_have_no_cells():
    assert cells([]) == {}
