"""The matrix: one cell per pair, with its cheapest safe path."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import lost_row, make_measure, make_row

from dlprof.reports.matrix import Cell, called, cell, cells, cost, footnotes, grids, reasons, word
from dlprof.reports.tour import answer

pytestmark = pytest.mark.unit


def test_a_cell_is_the_cheapest_safe_path():
    rows = [make_row("copy(x)", 5000.0, owner="copy"), make_row("view(x)", 200.0), lost_row()]
    assert cell(rows) == Cell("view", "200 ns", "view(x)", cost_ns=200.0, right=True)


def test_a_cheaper_path_that_changes_values_is_not_the_cell():
    rows = [
        make_row("wrong(x)", 1.0, changed=("values",)),
        make_row("copy(x)", 5000.0, owner="copy"),
    ]
    assert cell(rows) == Cell("copy", "5.0 us", "copy(x)", cost_ns=5000.0, right=True)


def test_a_cheaper_path_whose_values_nobody_could_check_is_not_the_cell():
    rows = [
        make_row("view(x)", 1.0, unchecked="all values are equal"),
        make_row("copy(x)", 5000.0, owner="copy"),
    ]
    assert cell(rows) == Cell("copy", "5.0 us", "copy(x)", cost_ns=5000.0, right=True)
    found = cell(rows[:1])
    assert (found.verdict, found.right) == ("unchecked", False)
    assert found.reason == "its values could not be checked: all values are equal"


def test_a_pair_with_wrong_paths_only_is_called_wrong():
    assert cell([make_row("wrong(x)", 10.0, changed=("values",)), lost_row()]) == Cell(
        "wrong", "10 ns", "wrong(x)", "values", 10.0
    )


@pytest.mark.parametrize("status", ["crashed", "timeout", "invalid"])
def test_a_pair_whose_only_path_broke_later_has_its_status(status):
    found = cell([make_row("f(x)", 10.0, status=status)])
    assert (found.verdict, found.cost, found.code) == (status, "10 ns", "f(x)")


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout", "skipped"])
def test_a_pair_without_a_time_has_the_status_of_its_paths(status):
    assert cell([lost_row(status=status)] * 2) == Cell(status, "-", "", "TypeError: no")


def test_a_pair_without_a_time_and_with_several_statuses_has_none():
    assert cell([lost_row(status="unsupported"), lost_row(status="crashed")]) == Cell(
        "none", "-", "", "TypeError: no"
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


# Grids


def test_one_array_has_producers_down_and_consumers_across():
    rows = [make_row(frameworks="a → b"), make_row(frameworks="b → a")]
    (grid,) = grids(rows)
    assert (grid.corner, grid.rows, grid.columns) == ("from \\ to", ("a", "b"), ("b", "a"))
    assert set(grid.cells) == {("a", "b"), ("b", "a")}


def test_several_layouts_stand_side_by_side_and_dtypes_one_below_the_other():
    rows = [
        make_row(frameworks="a → b", layout=layout, dtype=dtype)
        for layout in ("C", "strided")
        for dtype in ("float32", "int64")
    ]
    found = grids(rows)
    assert [grid.title for grid in found] == ["4x4 float32 on cpu", "4x4 int64 on cpu"]
    assert {grid.columns for grid in found} == {("C", "strided")}
    assert {grid.rows for grid in found} == {("a → b",)}


def test_environments_stand_side_by_side_first_of_all():
    rows = [
        make_row(frameworks="a → b", environment=name, layout=layout)
        for name in ("old", "new")
        for layout in ("C", "F")
    ]
    assert [grid.columns for grid in grids(rows)] == [("old", "new")] * 2


def test_nothing_has_no_grid():
    assert grids([]) == []


def test_what_is_refused_is_told_with_the_reason_of_most_paths_and_where():
    rows = [
        make_row(frameworks="a → b"),
        lost_row(frameworks="a → c", reason="TypeError: another"),
        lost_row(frameworks="a → c", reason="ValueError: no strides"),
        lost_row(frameworks="a → c", reason="ValueError: no strides"),
    ]
    assert reasons(grids(rows)) == {"no: ValueError: no strides": ["a → c"]}


def test_what_was_changed_is_told():
    rows = [make_row(frameworks="a → b", changed=("int64 to int32",))]
    assert reasons(grids(rows)) == {"wrong: int64 to int32": ["a → b"]}


def test_the_answer_counts_and_names_the_costliest():
    rows = [
        make_row("v(x)", 100.0, frameworks="a → b"),
        make_row("c(x)", 5e6, frameworks="b → a", owner="copy"),
        lost_row(frameworks="a → a"),
    ]
    assert answer(grids(rows)) == (
        "Of 3 pairs, 1 has a view and 1 a copy as the cheapest safe path;"
        " 1 has no path that is not refused."
        " The costliest of them is b → a: 5.0 ms for c(x), a copy."
    )


def test_a_time_that_is_not_known_to_be_the_paths_own_has_a_question_mark_and_a_note():
    found = grids([make_row("d(x)", 100.0, frameworks="a → b", disturbed=True)])
    (only,) = found[0].cells.values()
    assert cost(only) == "100 ns?"
    (note,) = footnotes(found)
    assert note.startswith("? disturbed: ")
    assert note.endswith("a → b")


def test_the_costliest_is_one_whose_time_is_known_where_there_is_one():
    disturbed = make_row("d(x)", 5e6, frameworks="a → b", disturbed=True)
    known = make_row("v(x)", 100.0, frameworks="b → a")
    assert "The costliest of them is b → a: 100 ns for v(x)" in answer(grids([disturbed, known]))
    assert "is a → b: 5.0 ms (disturbed) for d(x)" in answer(grids([disturbed]))


def test_nothing_measured_is_the_answer_to_nothing():
    assert answer([]) == "Nothing was measured."


# What was not looked at is not called safe


def test_paths_that_nobody_diagnosed_are_called_right_and_not_safe():
    rows = [
        make_row("v(x)", 100.0, frameworks="a → b", unlooked="nothing looked for races"),
        make_row(
            "c(x)", 5e6, frameworks="b → a", owner="copy", unlooked="nothing looked for races"
        ),
    ]
    assert answer(grids(rows)).startswith(
        "Of 2 pairs, 1 has a view and 1 a copy as the cheapest right path"
        " (nothing looked for races). "
    )


def test_one_path_that_was_not_looked_at_keeps_all_from_being_called_safe():
    assert called(["", "nothing looked for races", "it could not be seen"]) == (
        "right",
        " (not everything was looked at)",
    )


def test_a_path_that_a_rule_calls_unsafe_is_no_view():
    rows = [make_row("v(x)", 100.0, frameworks="a → b", suspect=True, faults=("DLP011",))]
    assert cell(rows) == Cell("unsafe", "100 ns", "v(x)", "DLP011", 100.0)
    assert answer(grids(rows)) == (
        "Of 1 pairs, 0 have a view and 0 a copy as the cheapest safe path;"
        " 1 has only paths that a rule calls wrong or unsafe."
    )


def test_a_path_that_leaves_nothing_to_look_at_is_no_view_and_not_safe():
    rows = [make_row("bind(x)", 100.0, frameworks="a → b", owner="?", unseen=True)]
    assert cell(rows).verdict == "unseen"
    assert "1 has only paths that leave nothing behind to look at" in answer(grids(rows))


# Views of aligned memory only

ALIGNED = "a view of a source at a multiple of 64 bytes, a copy one element further"
LARGE = 4 << 20


def depends(owner, median_ns=20_000.0, **changes):
    return make_row("d(x)", median_ns, frameworks="a → b", owner=owner, depends=ALIGNED, **changes)


@pytest.mark.parametrize("owner", ["view", "copy", "varies"])
def test_a_path_that_depends_on_alignment_is_a_starred_view_whatever_the_processes_got(owner):
    assert word(cell([depends(owner)])) == "view*"


def test_one_note_says_what_the_star_means_whichever_path_was_cheapest():
    copied, refused = depends("copy"), replace(depends("view"), frameworks="a → c")
    refused = replace(refused, depends=ALIGNED.replace("a copy", "refused"))
    (note,) = footnotes(grids([copied, refused]))
    assert note.startswith("* a view where the source begins at a multiple of 64 bytes; elsewhere")


def test_where_nothing_depends_there_is_no_note():
    assert footnotes(grids([make_row(frameworks="a → b")])) == []


@pytest.mark.parametrize(("size_bytes", "code"), [(LARGE, "d(x)"), (64, "c(x)")])
def test_a_large_copy_gives_way_to_what_copied_for_lack_of_alignment_only(size_bytes, code):
    copy = make_row("c(x)", 90_000.0, frameworks="a → b", owner="copy", size_bytes=size_bytes)
    assert cell([copy, depends("varies", 100_000.0, size_bytes=size_bytes)]).code == code


def test_a_copy_that_is_cheaper_than_a_view_stays_the_cell():
    copy = make_row("c(x)", 10_000.0, frameworks="a → b", owner="copy", size_bytes=LARGE)
    assert cell([copy, depends("view", size_bytes=LARGE)]).code == "c(x)"


def test_what_is_documented_to_copy_and_a_view_of_aligned_memory_is_not_right():
    assert cell([depends("copy", promise="copy")]).verdict == "unsafe"


def test_the_answer_counts_views_of_aligned_memory_as_views_that_depend():
    rows = [depends("copy"), make_row("v(x)", 100.0, frameworks="b → a")]
    assert answer(grids(rows)) == (
        "Of 2 pairs, 2 have a view (1 of them, with a star, only where the source is aligned) and"
        " 0 a copy as the cheapest safe path. The costliest of them is a → b: 20 us for d(x), a"
        " view where the source is aligned."
    )


def test_the_costliest_is_looked_for_among_those_that_vary_too():
    rows = [
        make_row("v(x)", 20_000.0, frameworks="a → b"),
        make_row("w(x)", 150_000.0, frameworks="b → a", owner="varies"),
    ]
    assert answer(grids(rows)).endswith(
        "The costliest of them is b → a: 150 us for w(x), a view in some processes and a copy in"
        " others."
    )


def test_the_costliest_is_the_one_with_the_slowest_mode():
    modes = [{"median_ns": ns, "rounds": [at]} for at, ns in enumerate((19_000.0, 150_000.0))]
    row = make_row("m(x)", 19_000.0, frameworks="b → a")
    bimodal = replace(row, ready=make_measure(19_000.0, None, modes=modes))
    rows = [make_row("v(x)", 20_000.0, frameworks="a → b"), bimodal]
    assert "The costliest of them is b → a: 19 | 150 us for m(x)" in answer(grids(rows))


def test_a_pair_of_which_only_the_hosts_time_is_known_says_so():
    note = "ready_time: nothing says when a Thing is ready"
    found = cell([make_row("f(x)", None, ready=None, notes=(note,))])
    assert (found.verdict, found.cost, found.reason) == ("ok", "-", note)
    assert word(found) == "no time"
