"""Sentences that are true only of some sessions are said of those alone."""

from __future__ import annotations

import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.reports import markdown, notebook, placement
from dlprof.reports.html import pair_map
from dlprof.reports.result_row import rows_of
from dlprof.reports.terminal import render
from dlprof.session.model import Share

pytestmark = pytest.mark.unit

PLACES = {"aligned": verdict("view"), "sliced": verdict("copy")}
BY_ADDRESS = verdict("dependent", **PLACES)


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
