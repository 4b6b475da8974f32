"""Environments side by side: the same path, in each of them."""

from __future__ import annotations

import pytest
from builders import lost_row, make_header, make_measure, make_row

from dlprof.cli.scenario_report import show_side_by_side
from dlprof.reports.side_by_side import answer, cell, described, lines, names
from dlprof.session.model import Placement

pytestmark = pytest.mark.unit


def seen(code, environment, ns, **changes):
    interval = (0.99 * ns, 1.01 * ns)
    fields = {"process_medians_ns": (ns, *interval), "environment": environment}
    return make_row(code, ns, interval, **({**fields, "frameworks": "a → b"} | changes))


def test_a_path_is_one_line_with_a_cell_for_each_environment():
    rows = [seen("f(x)", "old", 100.0), seen("f(x)", "new", 200.0), seen("g(x)", "new", 50.0)]
    found = lines(rows)
    assert [(line.code, sorted(line.rows)) for line in found] == [
        ("g(x)", ["new"]),
        ("f(x)", ["new", "old"]),
    ]
    assert names(rows) == ["old", "new"]


def test_a_cell_holds_time_and_verdict_or_why_there_is_none():
    assert cell(seen("f(x)", "old", 100.0)) == "100.0 ±1.0 ns view"
    assert cell(seen("f(x)", "old", 100.0, changed=("values",))).endswith("wrong")
    assert cell(lost_row()) == "unsupported"
    assert cell(None) == "-"


def test_the_answer_names_the_path_that_differs_most():
    rows = [
        seen("f(x)", "old", 1000.0),
        seen("f(x)", "new", 100.0),
        seen("g(x)", "old", 100.0, owner="copy"),
        seen("g(x)", "new", 100.0),
        seen("h(x)", "new", 1.0),
    ]
    assert answer(rows) == (
        "Of 2 paths measured in all of old, new, other times: 1, view in one and copy in another: 1."
        " Most of all f(x): 1.0 us in old, 100 ns in new, 10 times."
    )


def test_two_processes_must_differ_by_far_to_be_called_other_times():
    def twice(environment, ns):
        return seen("f(x)", environment, ns, process_medians_ns=(0.99 * ns, 1.01 * ns))

    near = answer([twice("old", 150.0), twice("new", 100.0)])
    assert "other times: 0" in near
    assert (
        "Of 1 of them no other time can be told: an environment has fewer than 3 processes." in near
    )
    far = answer([twice("old", 300.0), twice("new", 100.0)])
    assert "other times: 1" in far
    assert "can be told" not in far


def test_an_owner_that_is_not_known_is_no_other_kind():
    rows = [seen("f(x)", "old", 100.0, owner="?"), seen("f(x)", "new", 100.0)]
    assert "view in one and copy in another: 0" in answer(rows)


def test_loops_stand_below_the_table(capsys):
    loop = make_measure(350_000.0, (349_000.0, 351_000.0))
    use = Placement(use="add(x, 1)", in_loop=loop, hoisted=loop)
    rows = [seen("f(x)", name, 1.0, pair=f"a → b in {name}", placement=use) for name in "cd"]
    show_side_by_side(make_header(), rows)
    shown = capsys.readouterr().out
    assert "per iteration of a loop with add(x, 1) (a → b in c " in shown
    assert "(a → b in d " in shown


def test_nothing_in_common_is_said():
    rows = [seen("f(x)", "old", 1.0), seen("g(x)", "new", 1.0)]
    assert answer(rows) == "No path was measured in all of old, new."


def test_each_environment_is_described():
    entry = {"name": "old", "python": "3.10.1", "packages": {"numpy": "1.23.5"}}
    assert described(make_header(environments=[entry])) == ["old: Python 3.10.1, numpy 1.23.5"]


def test_an_environment_that_says_nothing_is_described():
    assert described(make_header(environments=[{"packages": 3}])) == ["None: Python None"]


def test_times_that_other_programs_may_have_made_are_not_compared():
    rows = [
        seen("f(x)", "old", 1000.0, process_medians_ns=(990.0, 1000.0, 1010.0)),
        seen("f(x)", "new", 5000.0, process_medians_ns=(4990.0, 5000.0, 5010.0), disturbed=True),
    ]
    assert "times" not in answer(rows).partition("other times: ")[2].partition(".")[2]
    assert "other times: 0" in answer(rows)
