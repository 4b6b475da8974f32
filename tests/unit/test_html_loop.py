"""The chart of loops: what it shows, and what it says."""

from __future__ import annotations

import pytest
from builders import make_measure
from html_builders import US, alone, case

from dlprof.reports.html import loop
from dlprof.reports.html.entry import entries
from dlprof.session.model import Placement, Share

pytestmark = pytest.mark.unit


def looped(code="torch.tensor(x)", **changes):
    placement = {
        "use": "torch.add(x, 1)",
        "in_loop": make_measure(350 * US, (340 * US, 360 * US)),
        "hoisted": make_measure(110 * US, (100 * US, 120 * US)),
        "share": Share(median=0.69, ci95=(0.66, 0.71)),
        "break_even_iterations": 2,
    }
    return case(code, placement=Placement(**(placement | changes)))


def figures(*results):
    session = alone(*results)
    return loop.figures(entries(session), session.findings)


def test_without_a_loop_there_is_no_chart():
    assert figures(case()) == []
    assert figures(case(placement=Placement(use=None, refused={"in-loop": "no"}))) == []


def test_each_path_has_its_times_its_share_and_its_break_even():
    (figure,) = figures(looped(), looped("torch.asarray(x)", break_even_iterations=None))
    assert figure.titles[3:] == ("alone", "in-loop", "hoisted", "implicit", "share", "pays from")
    found = {line.cells[0]: line.cells[4:] for line in figure.lines}
    assert found["torch.tensor(x)"] == ("350 ±10 µs", "110 ±10 µs", "-", "69 ±3 %", "2")
    assert found["torch.asarray(x)"][-1] == "-"


def test_the_caption_answers():
    (figure,) = figures(looped())
    assert "Hoisting pays from 2 iterations on" in figure.caption


def test_the_picture_names_what_it_shows():
    (figure,) = figures(looped())
    assert "in-loop" in figure.picture
    assert "hoisted" in figure.picture
    assert "implicit" not in figure.picture


def test_an_interval_does_not_choose_the_axis():
    wide = looped(in_loop=make_measure(350 * US, (1 * US, 9e6 * US)))
    (figure,) = figures(looped(), wide)
    assert "One interval reaches beyond the axis" in figure.caption
    assert loop.Picture(entries(alone(looped(), wide))).axis[1] < 9e5 * US
