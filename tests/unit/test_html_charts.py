"""The charts of the HTML report: what they show, what they say, and what they leave to the table."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from html_builders import MS, US, alone, case, full_session, lost, timed
from rule_builders import ordered, verdict

from dlprof.reports.html import cost, interval, loaded, phases, shares, size, svg
from dlprof.reports.html.entry import entries
from dlprof.reports.html.rows import MARKS, NAME
from dlprof.reports.html.theme import spaced, span, ticks

pytestmark = pytest.mark.unit

MODULES = (size, cost, phases, loaded)


def figures(module, session):
    return module.figures(entries(session), session.findings)


def cell(figure, title, line=0):
    return figure.lines[line].cells[figure.titles.index(title)]


def wide(median_ns, low_ns, high_ns):
    """A time of two processes: they know little of the next one."""
    return {**timed(median_ns, rounds=2), "ci95_ns": (low_ns, high_ns)}


def in_modes(*medians_ns):
    modes = [{"median_ns": ns, "rounds": [at]} for at, ns in enumerate(medians_ns)]
    return {**timed(medians_ns[0]), "ci95_ns": None, "modes": modes}


@pytest.mark.parametrize("module", MODULES)
def test_nothing_measured_is_no_chart(module):
    assert figures(module, alone(lost())) == []


@pytest.mark.parametrize("module", MODULES)
def test_a_chart_has_as_many_cells_as_titles(module):
    for figure in figures(module, full_session()):
        assert all(len(line.cells) == len(figure.titles) for line in figure.lines)
        assert figure.lines


def test_one_size_is_no_line():
    assert figures(size, alone(case(), case("numpy.array(x)"))) == []


def test_each_pair_with_sizes_has_a_chart_and_findings_come_first():
    first, second = figures(size, full_session())
    assert "torch → numpy" in first.title
    assert "numpy → torch" in second.title


def test_the_memcpy_of_the_machine_is_a_line_where_a_copy_was_measured():
    first, second = figures(size, full_session())
    assert "memcpy of this machine" in str(first.picture)
    assert "6.7 ms for 64 MiB" in first.caption
    assert "There is no memcpy line" in second.caption


def test_charts_left_out_are_said():
    pairs = [
        case(shape=shape, case={"producer": f"p{number}", "consumer": "numpy"})
        for number in range(size.MOST_FIGURES + 2)
        for shape in ((4,), (400,))
    ]
    found = figures(size, alone(*pairs))
    assert len(found) == size.MOST_FIGURES
    assert f"{size.MOST_FIGURES} of {size.MOST_FIGURES + 2} charts" in found[0].caption


def test_paths_left_out_of_a_chart_are_said():
    many = [case(f"numpy.way{number}(x)", shape=(side,)) for number in range(20) for side in (4, 8)]
    (found,) = figures(size, alone(*many))
    assert f"{size.MOST_PATHS} of 20 paths are drawn" in found.caption


def test_cases_left_out_of_a_chart_are_said():
    many = [case(f"numpy.way{number}(x)") for number in range(cost.MOST + 3)]
    (found,) = figures(cost, alone(*many))
    assert f"Shown are {cost.MOST} of {cost.MOST + 3} cases" in found.caption


def test_one_memcpy_is_a_line_across_the_costs_of_one_size():
    (found,) = figures(cost, alone(case(), case("numpy.array(x)", 9 * US, "copy")))
    assert "a plain memcpy of 64 B" in found.caption


def test_the_line_of_the_memcpy_keeps_out_of_the_names():
    codes = ["numpy.from_dlpack(x)", "numpy.array(x)", "numpy.asarray(x)"]
    (found,) = figures(cost, alone(*[case(code, 9 * US, "copy") for code in codes]))
    dashes = re.findall(r'<line[^>]*translate\([\d.]+,([\d.]+)\)[^>]*y2="(-?[\d.]+)"[^>]*dash',
                        str(found.picture))  # fmt: skip
    spans = sorted(sorted((float(y), float(y) + float(by))) for y, by in dashes)
    assert len(spans) == len(codes)
    for row, (top, bottom) in enumerate(spans):
        assert row * (NAME + MARKS) + NAME <= top < bottom <= (row + 1) * (NAME + MARKS)


def test_an_interval_does_not_choose_the_axis():
    estimates = [
        interval.Estimate(2 * US, -90 * US, 94 * US),
        interval.Estimate(4 * US, 3.9 * US, 4.1 * US),
    ]
    low, high = interval.domain(estimates)
    assert 0.5 * US < low < 2 * US
    assert 4 * US < high < 16 * US
    assert interval.bar(estimates[0], (low, high)) == {"low": low, "high": high}
    assert [arrow["beyond"] for arrow in interval.arrows(estimates[0], (low, high))] == [
        "low",
        "high",
    ]
    assert interval.arrows(estimates[1], (low, high)) == []


def test_an_interval_that_fits_is_drawn_whole():
    one = interval.Estimate(2 * US, 1.5 * US, 2.6 * US)
    axis = interval.domain([one])
    assert axis[0] < 1.5 * US
    assert axis[1] > 2.6 * US
    assert interval.arrows(one, axis) == []


@pytest.mark.parametrize("module", [cost, size])
def test_an_interval_that_is_cut_is_said(module):
    shapes = [(4,), (400,)] if module is size else [(4,)]
    unsure = [case(shape=shape, ready_time=wide(2 * US, -90 * US, 94 * US)) for shape in shapes]
    (found,) = figures(module, alone(*unsure))
    count = "2 intervals reach" if module is size else "One interval reaches"
    assert f"{count} beyond the axis" in found.caption
    calm = [case(shape=shape) for shape in shapes]
    assert "beyond the axis" not in figures(module, alone(*calm))[0].caption


def test_modes_are_drawn_and_said():
    (found,) = figures(cost, alone(case(ready_time=in_modes(100 * US, 700 * US))))
    assert "each mode is a hollow mark" in found.caption
    assert cell(found, "ready") == "100 | 700 µs"


def test_a_path_with_the_shape_in_its_code_is_one_line():
    shaped = [
        case(f"numpy.frombuffer(x).reshape({shape})", shape=shape, case={"import": "frombuffer"})
        for shape in ((4,), (400,))
    ]
    (found,) = figures(size, alone(*shaped))
    assert "paths are drawn" not in found.caption
    assert str(found.picture).count("frombuffer") == 1


@pytest.mark.parametrize("shapes", [[(2**power,) for power in range(24)], [(4,), (5,), (900,)]])
def test_labels_of_sizes_keep_clear_of_each_other(shapes):
    (found,) = figures(size, alone(*[case(shape=shape) for shape in shapes]))
    axis = r"translate\(([\d.]+),[\d.]+\)[^>]*>([\d.]+ (?:B|KiB|MiB))<"
    places = [(float(at), len(text)) for at, text in re.findall(axis, str(found.picture))]
    assert len(places) >= 2
    for (left, _), (right, length) in itertools.pairwise(sorted(places)):
        assert right - left > 7 * length


def test_labels_that_are_kept_are_the_largest_and_others_far_from_it():
    assert spaced([1.0, 10.0, 90.0, 100.0], (1.0, 100.0), 200) == [1.0, 10.0, 100.0]
    assert spaced([7.0], (7.0, 7.0), 200) == [7.0]


def test_phases_of_another_mode_than_the_reported_one_are_marked_and_explained():
    odd = case(median_ns=4 * US, ready_time=in_modes(100 * US, 700 * US))
    (found,) = figures(phases, alone(odd))
    assert "One sum is marked \u2260" in found.caption
    assert "\u2260 4.0 µs" in str(found.picture)
    assert cell(found, "sum") == "4.0 µs"
    assert cell(found, "ready") == "100 | 700 µs"
    assert cell(found, "waiting") == "-"


def test_phases_that_add_up_are_not_marked():
    (found,) = figures(phases, alone(case(median_ns=4 * US)))
    assert "\u2260" not in found.caption + str(found.picture)


def in_one_piece(release_ns=1 * US, **changes):
    """A conversion of which nobody can say where the export ends."""
    return case(phases={"export_ns": None, "import_ns": None, "release_ns": release_ns}, **changes)


def test_what_is_not_known_of_a_call_is_shown_as_unknown():
    (found,) = figures(phases, alone(in_one_piece(median_ns=4 * US, ready_time=timed(10 * US))))
    assert [cell(found, part) for part in (*shares.PARTS, "unknown", "sum")] == [
        "unknown", "unknown", "1.0 µs", "6.0 µs", "3.0 µs", "10 µs",
    ]  # fmt: skip
    assert "Unknown is the rest of the call's time" in found.caption
    assert "var(--unknown)" in str(found.picture)


def test_where_every_phase_is_known_nothing_is_called_unknown():
    (found,) = figures(phases, alone(case()))
    assert "unknown" not in found.titles
    assert "nknown" not in found.caption + str(found.picture)


@pytest.mark.parametrize("changes", [{"release_ns": None}, {"release_ns": 9 * US}])
def test_a_case_of_whose_call_nothing_is_known_is_left_out_and_said(changes):
    odd = in_one_piece(median_ns=4 * US, **changes)
    assert figures(phases, alone(odd)) == []
    (found,) = figures(phases, alone(case(), odd, case(phases=None)))
    assert "Left out are 2 cases: no phase of the call is known" in found.caption
    assert len(found.lines) == 1


def test_what_was_refused_after_its_time_is_in_no_chart():
    refused = case(status="unsupported", reason="TypeError: not twice")
    for module in MODULES:
        assert figures(module, alone(refused)) == []


def test_phases_are_shares_of_what_was_measured():
    entry = entries(alone(case(median_ns=4 * US)))[0]
    assert shares.parts(entry) == {
        "export": 1 * US,
        "import": 2 * US,
        "release": 1 * US,
        "waiting": 0.0,
    }


def test_waiting_is_from_the_return_until_the_values_are_there():
    entry = entries(alone(case(median_ns=4 * US, ready_time=timed(10 * US))))[0]
    assert shares.waiting_ns(entry) == 6 * US


def test_waiting_within_the_intervals_is_not_told():
    noisy = case(median_ns=4 * US, ready_time=timed(5 * US, share=0.4))
    (found,) = figures(phases, alone(noisy))
    assert cell(found, "waiting") == "not told"


def test_waiting_in_a_single_process_needs_twice_the_time():
    def waiting_of(ready_us):
        once = case(host_time=timed(4 * US, 1), ready_time=timed(ready_us * US, 1))
        return shares.waiting_ns(entries(alone(once))[0])

    assert waiting_of(7) == 0.0
    assert waiting_of(9) == 5 * US


def test_a_phase_below_the_resolution_is_shown_as_less():
    session = alone(case(median_ns=100.0))
    (found,) = figures(phases, session)
    assert found.lines[0].cells[2] == "<40 ns"


def test_idle_stands_beside_loaded():
    waiting = case(ordering=ordered("host-sync", 45 * MS, 44 * MS))
    (found,) = figures(loaded, alone(waiting))
    assert found.lines[0].cells[2:] == ("2.0 µs", "45 ms", "44 ms", "waits all 44 ms")


def test_a_producer_that_cannot_be_loaded_has_no_place_there():
    idle = case(ordering=verdict("synchronous", reason="it finishes before it returns"))
    assert figures(loaded, alone(idle)) == []


@pytest.mark.parametrize("values", [[], [0.0], [5.0], [1.0, 1e12], [math.inf, 3.0, -1.0]])
def test_an_axis_holds_its_values(values):
    low, high = span(values)
    assert 0 < low < high < math.inf
    assert all(low <= value <= high for value in values if 0 < value < math.inf)


@pytest.mark.parametrize(("low", "high"), [(1.0, 3.0), (90.0, 110.0), (1.0, 1e9)])
def test_an_axis_has_ticks_within_its_ends(low, high):
    found = ticks(low, high)
    assert found
    assert all(low <= tick <= high for tick in found)


def test_names_at_line_ends_do_not_overlap_and_stay_inside():
    ends = [1.0, 1.01, 1.02, 500.0, 1000.0, 1000.0]
    places = size.spread_out(ends, (1.0, 1000.0), height=300, gap=15)
    pixels = [math.log(place) / math.log(1000) * 300 for place in places]
    assert all(b - a >= 15 - 1e-9 for a, b in itertools.pairwise(pixels))
    assert max(pixels) <= 300 + 1e-9


def test_the_picture_holds_nothing_but_shapes_and_text():
    wild = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        '<script>x</script><a xlink:href="http://evil"><text>a</text></a>'
        '<g onclick="x" role="y"><text fill="#0a0b01">b &lt;b&gt;</text></g></svg>'
    )
    found = str(svg.themed(wild, "n", 'says "so"'))
    assert "script" not in found
    assert "evil" not in found
    assert "onclick" not in found
    assert '<text fill="var(--ink)">b &lt;b&gt;</text>' in found
    assert 'aria-label="says &quot;so&quot;"' in found


def test_ids_in_pictures_are_their_own():
    pictures = [figure.picture for module in MODULES for figure in figures(module, full_session())]
    ids = [name for picture in pictures for name in re.findall(r'\bid="([^"]+)"', picture)]
    assert len(ids) == len(set(ids))


def test_a_path_whose_processes_disagree_is_not_called_unknown():
    (figure,) = figures(cost, alone(case(ownership=verdict("varies"))))
    assert "view or copy" in str(figure.picture)
    assert "not known" not in str(figure.picture)
