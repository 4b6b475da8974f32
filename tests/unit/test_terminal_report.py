"""The report for a terminal: whatever it is given, it is a readable table of the asked width."""

from __future__ import annotations

import re

import pytest
from builders import lost_row, make_header, make_measure, make_result, make_row
from rich.cells import cell_len

from dlprof.reports.result_row import row_of
from dlprof.reports.terminal import render, unmeasured_text
from dlprof.session.model import ProcessSamples

pytestmark = pytest.mark.unit

WIDTHS = (60, 80, 120)
SGR = re.compile(r"\x1b\[[\d;]*m")
LARGE = 2**20


VIEW = make_row("numpy.from_dlpack(x)", 1000.0, (950.0, 1050.0), size_bytes=LARGE)
COPY = make_row(
    "numpy.array(x)", 50_000.0, (48_000.0, 52_000.0), owner="copy", gb_per_s=21.4, size_bytes=LARGE
)
REFUSED = lost_row("numpy.asarray(x, copy=False)", reason="ValueError: Unable to avoid copy")
PLAIN = [COPY, REFUSED, VIEW]

AXES = {
    "pair": "onnxruntime → tensorflow",
    "shape": "1024x1024x1024",
    "dtype": "float8_e4m3fn",
    "layout": "broadcast",
    "device": "cuda",
}


def lines(rows, width=120, colour=False, **header):
    return SGR.sub("", render(make_header(**header), rows, width, colour)).splitlines()


def text(rows, width=120, **header):
    return "\n".join(lines(rows, width, **header))


def flat(rows, width=120, **header):
    """The report with its line breaks taken out, for sentences."""
    return " ".join(text(rows, width, **header).split())


def table(rows, width=120, **header):
    """The lines of the table, without its titles, as far as the first empty line."""
    found = lines(rows, width, **header)
    begin = next(index for index, line in enumerate(found) if line.startswith("path"))
    end = next(index for index, line in enumerate(found) if index > begin and not line)
    return found[begin + 1 : end]


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "rows",
    [
        [],
        PLAIN,
        [REFUSED],
        [VIEW, make_row(**AXES)],
        [make_row("f(" * 200 + "x" + ")" * 200), lost_row("g" * 500, reason="r" * 500)],
        [make_row("f(x)", changed=("float64 to float32",), notes=("n" * 500,))],
    ],
    ids=["nothing", "plain", "refused", "every axis", "long", "wrong"],
)
def test_no_line_is_wider_than_the_terminal(rows, width, colour):
    assert max(cell_len(line) for line in lines(rows, width, colour)) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_in_colours_says_the_same_as_one_without(width):
    assert [line.rstrip() for line in lines(PLAIN, width, colour=True)] == lines(PLAIN, width)


def test_a_report_without_colours_has_no_escape_codes():
    assert "\x1b" not in render(make_header(), PLAIN)


def test_no_line_ends_in_blanks_and_the_report_ends_in_one_line_break():
    report = render(make_header(), PLAIN)
    assert not re.search(r"[ \t]\n", report)
    assert report.endswith("\n")
    assert not report.endswith("\n\n")


def test_paths_are_sorted_by_cost():
    rows = [make_row(f"f{cost}(x)", float(cost)) for cost in (300, 100, 200)]
    assert [line.split()[0] for line in table(rows)] == ["f100(x)", "f200(x)", "f300(x)"]


def test_paths_of_each_array_stand_together_with_an_empty_line_between():
    rows = [make_row("a(x)", 300.0), make_row("b(x)", 1.0, shape="8x8"), make_row("c(x)", 100.0)]
    found = lines(rows)
    begin = next(index for index, line in enumerate(found) if line.startswith("path"))
    assert [line.split()[:1] for line in found[begin + 1 : begin + 5]] == [
        ["c(x)"],
        ["a(x)"],
        [],
        ["b(x)"],
    ]


def test_a_row_shows_time_ownership_bandwidth_and_status():
    first, second = table(PLAIN)
    assert first.split() == ["numpy.from_dlpack(x)", "1.00", "±0.05", "us", "view", "-", "ok"]
    assert second.split() == ["numpy.array(x)", "50", "±2", "us", "copy", "21", "ok"]


def test_the_bandwidth_of_a_small_array_is_not_shown():
    assert "GB/s" not in text([make_row(gb_per_s=3.0, size_bytes=64)])


def test_a_copy_whose_time_is_a_range_has_a_range_of_bandwidths():
    medians = (1e5, 2e5, 4e5)
    ready = make_measure(2e5, (1e4, 4e6))
    row = make_row(
        ready=ready, owner="copy", gb_per_s=21.0, size_bytes=LARGE, process_medians_ns=medians
    )
    assert "100-400 us copy 11-42" in " ".join(text([row]).split())


def test_a_copy_in_modes_has_a_bandwidth_for_each():
    modes = [{"median_ns": 1e5, "rounds": [0]}, {"median_ns": 4e5, "rounds": [1]}]
    ready = make_measure(2e5, None, modes=modes)
    row = make_row(ready=ready, owner="copy", gb_per_s=21.0, size_bytes=LARGE)
    assert "100 | 400 us copy   42 | 11" in text([row])


def test_what_is_the_same_in_every_row_stands_in_the_heading_only():
    found = lines(PLAIN)
    assert found[0] == "torch → numpy  4x4  float32  C  cpu"
    assert not {"pair", "shape", "dtype", "layout", "device"} & set(found[2].split())


def test_the_heading_shows_the_size_that_all_arrays_have():
    assert lines([VIEW])[0].endswith("cpu (1 MiB)")


@pytest.mark.parametrize("axis", AXES)
def test_what_differs_between_rows_is_a_column(axis):
    rows = [VIEW, make_row("f(x)", **{axis: AXES[axis]})]
    found = lines(rows)
    titles = next(line for line in found if line.startswith("path"))
    assert axis in titles.split()
    assert AXES[axis] not in found[0]


def test_the_heading_starts_with_no_blank_where_everything_differs():
    assert not lines([VIEW, make_row(**AXES, size_bytes=LARGE)])[0].startswith(" ")


def test_the_heading_tells_the_rounds_and_the_versions():
    assert lines(PLAIN)[1] == "3 fresh processes; Python 3.11.7, torch 2.9.0, numpy 2.4.0"
    assert lines(PLAIN, rounds=1)[1].startswith("1 fresh process;")


def test_the_heading_tells_versions_of_the_frameworks_concerned_only():
    packages = {"torch": "2.9.0", "numpy": "2.4.0", "jax": "0.9"}
    assert "jax" not in text(PLAIN, environment={"python": "3.11", "packages": packages})


def test_the_heading_tells_which_device_was_chosen_and_why():
    assert "cpu: no driver" in lines(PLAIN, device_choice="cpu: no driver")


@pytest.mark.parametrize(("rounds", "told"), [(1, False), (3, True)])
def test_of_one_process_nothing_is_said_about_intervals(rounds, told):
    report = flat(PLAIN, rounds=rounds, foreign_cores=1.5)
    assert "Other processes kept 1.5 of ? cores busy: times may be too high" in report
    assert ("their intervals do not cover it" in report) is told


def test_a_stopped_run_is_told():
    assert "The run was stopped: what follows is what was measured until then." in text(
        PLAIN, complete=False
    )
    assert "The run was stopped" not in text(PLAIN)


def test_a_reason_of_several_paths_is_told_once():
    rows = [lost_row(f"f{index}(x)", reason="TypeError: no") for index in range(5)]
    assert "f0(x), f1(x), f2(x) and 2 more: unsupported: TypeError: no" in text(rows)
    assert text(rows).count("TypeError: no") == 1


def test_a_reason_of_several_lines_is_told_by_its_first():
    assert "unsupported: first …" in text([lost_row(reason="first\nsecond\nthird")])


@pytest.mark.parametrize("reason", [None, "", " ", "\n \n"])
def test_a_reason_that_is_missing_is_told(reason):
    assert "crashed: no reason given" in text([lost_row(status="crashed", reason=reason)])


def test_many_reasons_are_folded():
    rows = [lost_row(reason=f"reason {index}") for index in range(40)]
    assert text(rows).count("reason ") == 12
    assert "… and 28 more reasons in the session file" in text(rows)


def test_nothing_measured_has_no_table():
    report = lines([REFUSED])
    assert not any(line.startswith("path ") for line in report)
    assert report[-1] == "no path could be measured."


def test_no_rows_are_a_report_too():
    assert "3 fresh processes" in text([])


def test_the_answer_names_the_cheapest_safe_path_and_the_ratio():
    assert (
        "cheapest that is safe: numpy.from_dlpack(x), a view, 1.00 ±0.05 us. "
        "The slowest, numpy.array(x), takes 50 us: 50 times as long."
    ) in flat(PLAIN)


def test_wrong_values_are_shown_in_the_row_and_in_words():
    wrong = make_row("f(x)", 10.0, changed=("float64 to float32", "3 of 16 values"))
    report = [wrong, VIEW]
    assert table(report)[0].split()[-1] == "wrong"
    assert "cheapest that is safe: numpy.from_dlpack(x)" in flat(report)


def finding(severity="error", results=(0,), **changes):
    fields = {"rule": "DLP018", "name": "promise-broken", "summary": "f(x) is a view"}
    return {**fields, "severity": severity, "results": list(results), **changes}


def test_findings_stand_before_the_answer_with_their_advice():
    found = finding("warning", advice="g(x) is a copy")
    report = text(PLAIN, findings=[found])
    assert "warning DLP018 promise-broken  f(x) is a view\n    g(x) is a copy" in report
    assert report.index("DLP018") < report.index("cheapest that is safe")


def test_a_report_without_findings_says_so():
    assert "no findings" in text(PLAIN)


def test_many_findings_are_folded():
    report = text(PLAIN, findings=[finding(summary=f"path {index}") for index in range(40)])
    assert report.count("error DLP018") == 12
    assert "… and 28 more in the session file" in report


def test_a_path_of_which_an_error_was_found_is_not_called_safe():
    cheap = make_row("cheap(x)", 10.0)
    report = flat([cheap, VIEW], findings=[finding(results=[0])])
    assert "cheapest that is safe: numpy.from_dlpack(x)" in report


def test_an_error_found_at_one_shape_holds_for_every_shape():
    cheap = [make_row("cheap(x)", 10.0, shape=shape) for shape in ("1", "2")]
    report = flat(cheap, findings=[finding(results=[0])])
    assert "cheapest that is safe" not in report


@pytest.mark.parametrize("severity", ["warning", "info"])
def test_a_slow_path_is_safe(severity):
    assert "cheapest that is safe: f(x)" in flat(
        [make_row("f(x)", 10.0)], findings=[finding(severity, [0, 7, -3])]
    )


@pytest.mark.parametrize(("promise", "owner"), [("copy", "view"), ("view", "copy")])
def test_a_path_that_breaks_its_promise_is_not_called_safe(promise, owner):
    rows = [make_row("f(x)", 10.0, promise=promise, owner=owner), VIEW]
    assert "cheapest that is safe: numpy.from_dlpack(x)" in flat(rows)


def test_a_path_that_broke_later_is_shown_with_its_time_and_reason():
    crashed = make_row(
        "f(x)", status="crashed", reason="killed by SIGSEGV (round 2 of 3; 1 before it worked)"
    )
    assert table([crashed])[0].split()[-1] == "crashed"
    assert "f(x): crashed: killed by SIGSEGV (round 2 of 3; 1 before it worked)" in lines([crashed])


def test_modes_are_shown_with_their_page_faults():
    modes = [
        {"median_ns": 100.0, "rounds": [0], "page_faults_per_call": 0.0},
        {"median_ns": 400.0, "rounds": [1, 2], "page_faults_per_call": 1024.0},
    ]
    row = make_row("f(x)", ready=make_measure(400.0, None, modes=modes))
    assert "f(x) runs in 2 modes: 100 ns with 0 page faults, 400 ns with 1024 page faults" in lines(
        [row]
    )


def test_a_framework_that_keeps_what_it_made_is_told():
    row = make_row("f(x)", kept_ns=(90_000.0, 400.0))
    assert "f(x): the first conversion of a new array takes 90 us, the next 400 ns" in lines([row])


def test_the_size_of_new_arrays_stands_in_the_note():
    row = make_row("f(x)", kept_ns=(90_000.0, 400.0), kept_bytes=float(1 << 18))
    assert "f(x): the first conversion of a new array of 256 KiB takes 90 us, the next 400 ns" in (
        lines([row])
    )


def test_the_same_note_of_several_rows_is_told_once():
    rows = [
        make_row("f(x)", notes=("values: no",)),
        make_row("f(x)", shape="8x8", notes=("values: no",)),
    ]
    assert text(rows).count("f(x): values: no") == 1


def test_ten_thousand_rows_are_folded():
    rows = [make_row(f"f{index}(x)", 100.0 + index) for index in range(10_000)]
    found = lines(rows)
    assert len(found) < 100
    assert "… and 9,940 more in the session file" in found


def test_ten_thousand_arrays_are_folded():
    rows = [make_row("f(x)", shape=str(index)) for index in range(10_000)]
    found = lines(rows)
    assert len(found) < 200
    assert "… and 9,992 more arrays in the session file" in found


def test_ten_thousand_unmeasured_are_folded():
    found = lines([lost_row(f"f{index}(x)", reason=f"reason {index}") for index in range(10_000)])
    assert len(found) < 50


def test_the_cases_are_counted_by_status():
    rows = [VIEW, COPY, REFUSED, lost_row(status="crashed")]
    assert unmeasured_text(rows) == "4 cases: 2 ok, 1 unsupported, 1 crashed\n"


def test_rich_markup_and_emoji_names_are_shown_as_they_are():
    odd = "x[red][/red][bold]:smile:[link=http://a]"
    rows = [make_row(f"f({odd})"), lost_row("g(x)", reason=odd), make_row("h(x)", notes=(odd,))]
    report = text(rows, device_choice=odd)
    assert report.count(odd) == 5


# From here on texts that somebody else wrote: a framework's message, a probe from outside, a
# session file that came by mail.

HOSTILE = "evil\x1b[2J\x1b]0;title\x07\x08\x9b31m\r\nnext: ok\u2028third"


def hostile_rows(odd):
    """The text in every place where a session holds one."""
    case = {"producer": odd, "consumer": odd, "dtype": odd, "layout": odd}
    verdict = {"verdict": "wrong", "evidence": {"changed": {"dtype": [odd, odd]}}}
    return [
        row_of(make_result(odd, case=case, notes=[odd])),
        row_of(make_result(odd + "2", case=case, values=verdict, ownership={"verdict": odd})),
        row_of(make_result(odd + "3", None, case=case, status="crashed", reason=odd)),
        row_of(make_result(odd + "4", None, status="unsupported", reason=odd)),
    ]


def hostile_header(odd):
    return make_header(
        device_choice=odd,
        request={"pairs": [[odd, odd]]},
        environment={"python": odd, "packages": {odd: odd}},
    )


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_control_characters_in_a_session_do_not_reach_the_terminal(width, colour):
    report = SGR.sub("", render(hostile_header(HOSTILE), hostile_rows(HOSTILE), width, colour))
    assert [sign for sign in report if not sign.isprintable() and sign != "\n"] == []


def test_a_colour_code_in_a_session_does_not_colour_the_terminal():
    assert "\x1b" not in render(make_header(), hostile_rows("f(x)\x1b[31m"))


def test_a_line_break_in_a_name_makes_no_line_of_its_own():
    odd = "f(x)\n                     1 us view ok"
    assert not any(line.strip() == "1 us view ok" for line in lines([row_of(make_result(odd))]))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_very_long_text_does_not_flood_the_terminal(width):
    report = render(hostile_header("y" * 2**16), hostile_rows("x" * 2**16), width)
    assert len(report.splitlines()) < 200


@pytest.mark.parametrize(
    "width",
    [
        80,
        120,
    ],
)
def test_the_path_and_its_time_can_be_read_where_everything_differs(width):
    rows = [
        VIEW,
        make_row(
            "tensorflow.experimental.dlpack.from_dlpack(x)", **AXES, device_ns=3000.0, gb_per_s=1.0
        ),
    ]
    shown = "\n".join(table(rows, width))
    assert "1.00 ±0.05 us" in shown
    assert "numpy.from" in shown


def test_a_view_that_depends_on_alignment_has_a_star_and_a_footnote():
    row = make_row(
        "jnp.from_dlpack(x)", 1000.0, (950.0, 1050.0), depends="a view at 64, else a copy"
    )
    assert "view*" in text([row])
    assert "* a view at 64, else a copy" in text([row])


def test_footnotes_of_several_kinds_name_their_paths():
    rows = [
        make_row(code, 1000.0, (950.0, 1050.0), depends=depends)
        for code, depends in (("a(x)", "a copy else"), ("b(x)", "refused else"))
    ]
    assert "* a copy else: a(x)" in text(rows)
    assert "* refused else: b(x)" in text(rows)


def test_paths_that_need_the_same_say_so_once():
    rows = [make_row(code, 1000.0, (950.0, 1050.0), setup="model = 1") for code in ("a(x)", "b(x)")]
    assert "a(x) and 1 more need: model = 1" in flat(rows)
    assert flat(rows).count("model = 1") == 1


def test_the_longest_first_calls_are_told():
    rows = [
        make_row("a(x)", 1000.0, (950.0, 1050.0), first_ns=2e6),
        make_row("b(x)", 1000.0, (950.0, 1050.0), first_ns=41e6),
    ]
    assert "first call of a process: 41 ms b(x), 2.0 ms a(x)" in flat(rows)


def test_it_is_told_how_to_learn_the_first_calls_that_are_unknown():
    rows = [
        make_row("a(x)", 1000.0, (950.0, 1050.0), first_ns=2e6),
        make_row("b(x)", 1000.0, (950.0, 1050.0)),
    ]
    assert "(1 path was first in no process; see --first-calls)" in flat(rows)


def test_a_time_that_is_that_of_other_programs_is_called_disturbed():
    process = ProcessSamples(round=0, loops=1, samples_ns=[8e6] * 5, disturbed=0.6)
    measure = make_measure(8e6, None).model_copy(update={"processes": [process]})
    row = row_of(make_result("copy(x)", host_time=measure, ready_time=measure))
    text = render(make_header(), [row])
    assert "~8.0 ms view   disturbed" in text
    assert "other programs had the processor" in " ".join(text.split())


def test_a_reason_that_is_not_for_every_array_says_for_which():
    rows = [
        make_row(layout="C"),
        lost_row(layout="C", reason="TypeError: never"),
        lost_row(layout="reversed", reason="TypeError: never"),
        lost_row("x.numpy()", layout="reversed", reason="ValueError: step"),
    ]
    text = render(make_header(), rows)
    assert "x.numpy() (reversed): unsupported: ValueError: step" in text
    assert "numpy.asarray(x): unsupported: TypeError: never" in text


def test_a_line_that_only_announces_the_next_is_told_with_it():
    reason = "CudaSupportError: Error at driver init:\n\nlibcuda is missing:\nfind it"
    text = render(make_header(), [lost_row(reason=reason)])
    assert "Error at driver init: libcuda is missing: find it" in " ".join(text.split())
