"""Conversions in loops in the terminal report: the table, and the sentences that answer."""

from __future__ import annotations

import pytest
from builders import make_header, make_measure, make_row

from dlprof.reports import markdown
from dlprof.reports.placement import answers, part_text, share_text
from dlprof.reports.terminal import render
from dlprof.session.model import Placement, ProcessSamples, Share

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
    ready = 240 * US, (239 * US, 241 * US)
    return make_row(code, *ready, placement=Placement(**(placement | changes)))


def text(*rows):
    return " ".join(render(make_header(), rows).split())


def test_the_costliest_path_answers_with_its_share_and_what_hoisting_pays():
    assert (
        "torch.tensor(x) takes 69 % of the loop: 350 ±4 us per iteration with it inside,"
        " 110.0 ±1.1 us with it before. Hoisting pays from 2 iterations on; 1,000 take 110 ms instead"
        " of 350 ms."
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


def test_a_share_of_which_processes_do_not_agree_is_no_number_and_pays_from_nowhere():
    row = looped("f(x)", share=Share(median=0.69, ci95=(0.2, 0.9)))
    assert share_text(row.placement.share) == "?"
    shown = text(row)
    assert "The processes do not agree on its part of the loop: f(x)." in shown
    assert "Not told apart" not in shown
    assert "Hoisting pays" not in shown
    assert "the processes do not agree, so whether hoisting pays is not known" in told(row)[0]


def test_a_range_in_the_table_is_a_range_in_the_sentence():
    processes = [
        {"round": at, "loops": 1, "samples_ns": [ns]} for at, ns in enumerate((6_500.0, 26_000.0))
    ]
    wide = make_measure(18_000.0, (2_000.0, 60_000.0), processes=processes)
    row = looped("f(x)", in_loop=None, hoisted=2 * US, pays_from=2)
    found = row.placement.model_copy(update={"in_loop": wide})
    (answer,) = told(make_row("f(x)", placement=found))
    assert "6.5-26 us per iteration with it inside" in answer
    assert "1,000 take" not in answer


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Share(median=-0.91), "?"),
        (Share(median=-0.03), "~-3 %"),
        (Share(median=-0.2, ci95=(-0.3, -0.1)), "?"),
        (Share(median=-0.1, ci95=(-0.2, 0.01)), "-10 ±11 %"),
    ],
)
def test_a_part_below_nothing_is_not_known(share, shown):
    assert part_text(share) == shown


def test_an_environment_is_named_in_the_answer_and_is_not_the_consumer():
    found = looped("f(x)", refused={"implicit": "TypeError: no"}).placement
    row = make_row("f(x)", placement=found, pair="torch → numpy in old", environment="old")
    (answer,) = told(row)
    assert answer.startswith("With torch.add(x, 1) (in old): f(x) takes 69 %")
    assert "Handed x itself, numpy refuses" in answer


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


def told(*rows):
    return [" ".join(answer.split()) for answer in answers(rows)]


def test_the_answer_names_operation_path_share_and_break_even():
    (answer,) = told(looped("torch.tensor(x)"))
    assert answer.startswith("With torch.add(x, 1): torch.tensor(x) takes 69 % of the loop")
    assert "Hoisting pays from 2 iterations on" in answer


def test_what_cannot_be_told_from_the_loop_costs_nothing_that_can_be_told():
    (answer,) = told(looped("torch.asarray(x)", pays_from=None))
    assert (
        "costs nothing that can be told from the rest: torch.asarray(x) takes 240.0 ±1.0 us"
        in answer
    )


def test_one_process_answers_nothing():
    process = {"round": 0, "loops": 1, "samples_ns": [1.0]}
    one = make_measure(350 * US, None, processes=[process])
    row = looped("f(x)", pays_from=None, share=Share(median=0.5))
    row = make_row("f(x)", placement=row.placement.model_copy(update={"in_loop": one}))
    assert "one process has no interval" in told(row)[0]


def test_each_array_has_an_answer_and_a_name():
    first, second = told(
        looped("f(x)"), make_row("f(x)", placement=looped("f(x)").placement, shape="8")
    )
    assert "torch → numpy 4x4 float32 C cpu" in first
    assert "torch → numpy 8 float32 C cpu" in second


def test_what_was_not_looped_has_no_answer():
    assert answers([make_row(), looped("f(x)", in_loop=None, hoisted=None)]) == []


def test_markdown_has_the_loops_in_a_table():
    shown = markdown.render(make_header(), [looped("torch.tensor(x)"), make_row()])
    assert "### In a loop" in shown
    assert "| `torch.tensor(x)` | 350 ±4 us | 110.0 ±1.1 us | 69 ±3 % | 2 |" in shown


def test_markdown_without_loops_has_no_such_table():
    assert "In a loop" not in markdown.render(make_header(), [make_row()])


def test_what_was_not_compared_with_another_loop_costs_nobody_knows_what():
    alone = {"hoisted": None, "share": None, "pays_from": None}
    (answer,) = told(looped("torch.tensor(x)", **alone))
    assert "costs nothing" not in answer
    assert "no loop with the conversion in it was compared" in answer


def test_a_part_of_a_loop_is_told_without_a_time_of_the_conversion_alone():
    placement = looped("f(x)", pays_from=None).placement
    row = make_row("f(x)", None, placement=placement, ready=None)
    sentence = "f(x) takes 69 ±3 % of the loop; from where on hoisting pays is not known"
    assert sentence in told(row)[0]
    assert sentence in text(row)


def test_a_path_of_one_process_does_not_silence_those_of_three():
    single = looped("g(x)", pays_from=None, share=Share(median=0.5))
    rows = [single, looped("f(x)")]
    assert "f(x) takes 69 % of the loop" in told(*rows)[0]
    shown = text(*rows)
    assert "Hoisting pays from 2 iterations on" in shown
    assert "One process has no interval, so that from where on hoisting pays is unknown: g(x)" in (
        shown
    )


def disturbed(row):
    """The same loops, with half of each sample in the hands of other programs."""
    process = {"round": 0, "loops": 1, "samples_ns": [1.0], "disturbed": 1.0}
    found = row.placement
    loud = found.in_loop.model_copy(update={"processes": [ProcessSamples(**process)]})
    return make_row(row.code, placement=found.model_copy(update={"in_loop": loud}))


def test_loops_that_other_programs_may_have_made_are_marked_and_claim_nothing():
    row = disturbed(looped("f(x)"))
    (answer,) = told(row)
    assert "other programs may have made the times of these loops" in answer
    assert " us? " in text(row)
    assert "? Other programs may have made these times: f(x)." in " ".join(text(row).split())
    assert "Hoisting pays" not in text(row)


def test_what_cannot_be_told_from_the_best_hoisted_loop_has_no_ratio():
    alike = make_measure(111 * US, ci95_ns=(100 * US, 120 * US))
    assert "which cannot be told from the best hoisted loop" in text(looped("f(x)", implicit=alike))
