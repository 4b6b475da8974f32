"""Conversions in loops in the terminal report: the table, and the sentences that answer."""

from __future__ import annotations

import pytest
from builders import make_header, make_measure, make_row

from dlprof.reports.placement import share_text
from dlprof.reports.terminal import render
from dlprof.session import Placement, Share

pytestmark = pytest.mark.unit

US = 1_000.0


def looped(code, in_loop=350 * US, hoisted=110 * US, ci95=(0.66, 0.71), pays_from=2, **changes):
    measures = {
        name: None if ns is None else make_measure(ns, (ns * 0.99, ns * 1.01))
        for name, ns in {"in_loop": in_loop, "hoisted": hoisted}.items()
    }
    placement = {
        "use": "torch.add(x, 1)",
        **measures,
        "share": Share(median=0.69, ci95=ci95),
        "break_even_iterations": pays_from,
    }
    return make_row(code, 240 * US, placement=Placement(**(placement | changes)))


def text(*rows):
    return " ".join(render(make_header(), rows).split())


def test_the_costliest_path_answers_with_its_share_and_what_hoisting_pays():
    assert (
        "torch.tensor(x) takes 69 % of the loop: 350 us per iteration with it inside, 110 us with"
        " it before. Hoisting pays from 2 iterations on; 1,000 take 110 ms instead of 350 ms."
    ) in text(looped("torch.tensor(x)"))


def test_a_loop_has_a_table_of_its_own_with_the_operation():
    shown = render(make_header(), [looped("torch.tensor(x)")])
    assert "per iteration of a loop with torch.add(x, 1):" in shown
    assert "69 ±3 %" in shown


def test_paths_that_may_stay_inside_are_named():
    rows = [looped("torch.tensor(x)"), looped("torch.asarray(x)", pays_from=None)]
    assert "Not told apart, inside the loop and before it: torch.asarray(x)." in text(*rows)


def test_without_an_interval_nothing_is_said_of_what_hoisting_pays():
    one = make_measure(350 * US, None, processes=[{"round": 0, "loops": 1, "samples_ns": [1.0]}])
    shown = text(looped("f(x)", in_loop=None, pays_from=None, share=Share(median=0.5)))
    assert "Hoisting pays" not in shown
    row = looped("f(x)", pays_from=None, share=Share(median=0.5))
    row = make_row("f(x)", placement=row.placement.model_copy(update={"in_loop": one}))
    assert "One process has no interval" in text(row)


def test_a_share_of_which_processes_do_not_agree_is_no_number():
    row = looped("f(x)", ci95=(0.2, 0.9))
    assert share_text(row.placement.share) == "?"
    assert "f(x) makes the loop longer: 350 us per iteration" in text(row)


def test_what_the_operation_makes_of_the_foreign_array_is_told_once():
    implicit = make_measure(220 * US, (219 * US, 221 * US))
    rows = [looped("f(x)", implicit=implicit), looped("g(x)", implicit=implicit)]
    shown = text(*rows)
    assert shown.count("Handed x itself, numpy takes 220.0 ±1.0 us per iteration") == 1
    assert "2.0 times the best hoisted loop" in shown


def test_an_operation_that_refuses_the_foreign_array_is_quoted():
    rows = [looped("f(x)", refused={"implicit": "TypeError: must be Tensor\nmore"})]
    assert "Handed x itself, numpy refuses: TypeError: must be Tensor" in text(*rows)


def test_where_no_loop_ran_the_reason_is_told():
    row = looped("f(x)", in_loop=None, hoisted=None, use=None, share=None, pays_from=None)
    row.placement.refused["add(x, 1), hoisted"] = "NameError: no add"
    assert "no loop could be measured: NameError: no add" in text(row)


def test_without_placements_there_is_no_table():
    assert "per iteration" not in text(make_row())


def test_control_characters_of_a_session_do_not_reach_the_terminal():
    row = looped("f(x)", use="add\x1b[31m(x)", refused={"implicit": "\x1b[2Jgone"})
    assert "\x1b" not in render(make_header(), [row])


def test_the_table_fits_eighty_columns():
    rows = [looped("torch.asarray(x.numpy(force=True), copy=False)" * 2), looped("f(x)")]
    assert max(len(line) for line in render(make_header(), rows).splitlines()) <= 80
