"""Sentences that are true only of some sessions are said of those alone."""

from __future__ import annotations

import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.claims.claim import are_copies, are_safe, are_views
from dlprof.reports import markdown, notebook, placement
from dlprof.reports.html import pair_map
from dlprof.reports.result_row import rows_of
from dlprof.reports.terminal import render
from dlprof.session.model import Share

pytestmark = pytest.mark.unit

PLACES = {"aligned": verdict("view"), "sliced": verdict("copy")}
BY_ADDRESS = verdict("dependent", **PLACES)


@pytest.mark.parametrize(("seen", "judge"), [("view", are_views), ("copy", are_copies)])
def test_what_the_address_decides_is_no_proof_of_an_assertion(seen, judge):
    owned = verdict(seen)
    assert judge(make_session(make_result(ownership=owned))).holds
    anywhere = {"create": {"C": "x = 1", "aligned": "x = 2", "sliced": "x = 3"}}
    found = judge(make_session(make_result(ownership=owned, alignment=BY_ADDRESS, recipe=anywhere)))
    other = {"view": "copy", "copy": "view"}[seen]
    assert [one.said for one in found.complaints] == [
        f"a {other} where the source begins elsewhere, as the next one may"
    ]


@pytest.mark.parametrize("layout", ["C", "aligned", "sliced"])
def test_arrays_that_begin_where_they_are_known_to_begin_are_judged_as_they_are(layout):
    always = {"create": {layout: "x = 1", "sliced": "x = 3"}}
    seen = make_result(
        ownership=verdict("view"), alignment=BY_ADDRESS, recipe=always, case={"layout": layout}
    )
    assert are_views(make_session(seen)).holds


def test_processes_that_disagree_are_told_in_words():
    owned = verdict("varies", processes=[verdict("view"), verdict("copy")])
    case = {"promise": "copy"}
    found = are_safe(make_session(make_result(ownership=owned, alignment=BY_ADDRESS, case=case)))
    assert "is a varies" not in found.complaints[0].said


def shares(median):
    return Share.model_validate({"median": median, "ci95": (median - 0.04, median + 0.04)})


@pytest.mark.parametrize("median", [-0.003, -0.0, 0.003])
def test_a_share_of_nothing_has_no_sign(median):
    assert placement.share_text(shares(median)).startswith("0 ±")


def test_markdown_and_notebook_explain_the_star_of_a_table():
    session = make_session(make_result(alignment=BY_ADDRESS))
    note = "* a view of a source at a multiple of 64 bytes"
    assert note in notebook.render(session)
    assert note.lstrip("* ") in " ".join(
        markdown.render(session, rows_of(session.results)).split()
    ).replace("\\", "")


def test_an_array_whose_dtype_nobody_knows_has_no_size():
    unknown = make_session(make_result(case={"dtype": "longdouble"}))
    empty = make_session(make_result(case={"shape": (0, 4)}))
    assert "(0 B)" not in render(unknown, rows_of(unknown.results))
    assert "(0 B)" in render(empty, rows_of(empty.results))


def test_a_map_without_a_safe_square_promises_none():
    assert pair_map.said([]) == ("measured", "")
