"""The table of a terminal and the findings below it: which rule found an error, and in which pair."""

from __future__ import annotations

import pytest
from builders import make_header, make_row

from dlprof.reports.terminal import render

pytestmark = pytest.mark.unit

VIEW = make_row("numpy.from_dlpack(x)", 1000.0, (950.0, 1050.0))


def lines(rows, width=120, **header):
    return render(make_header(**header), rows, width).splitlines()


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


def finding(severity="error", results=(0,), **changes):
    fields = {"rule": "DLP018", "name": "promise-broken", "summary": "f(x) is a view"}
    return {**fields, "severity": severity, "results": list(results), **changes}


def status_of(row_index, *rows, findings):
    return table(rows, findings=findings)[row_index].split()[-1]


def test_a_path_of_which_an_error_was_found_has_the_rule_in_its_row():
    rows = [make_row("f(x)", 10.0, form="f"), VIEW]
    assert status_of(0, *rows, findings=[finding(results=[0])]) == "DLP018"
    assert status_of(1, *rows, findings=[finding(results=[0])]) == "ok"
    assert status_of(0, *rows, findings=[finding("warning", results=[0])]) == "ok"


def test_of_several_rules_the_worst_stands_in_the_row():
    findings = [finding(results=[0]), finding(results=[0], rule="DLP011"), finding(results=[0])]
    row = table([make_row("f(x)", 10.0, form="f"), VIEW], findings=findings)[0]
    assert row.endswith("DLP018 +1")


def test_a_copy_like_one_that_was_seen_torn_is_marked_with_doubt():
    torn, whole = (make_row(f"{name}(x)", 10.0, owner="copy", form=name) for name in "fg")
    found = [finding(results=[0], rule="DLP020")]
    assert [line.split()[-1] for line in table([torn, whole, VIEW], findings=found)] == [
        "DLP020",
        "DLP020?",
        "ok",
    ]


def test_the_marks_of_torn_copies_are_explained_below_the_table():
    torn, whole = (make_row(f"{name}(x)", 10.0, owner="copy", form=name) for name in "fg")
    where = {"only_where": "the source is not aligned"}
    told = flat([torn, whole, VIEW], findings=[finding(rule="DLP020", evidence=where)])
    assert "DLP020 torn only where the source is not aligned: f(x)" in told
    doubt = "DLP020? not seen torn, but others into the framework were, and copies that were whole"
    assert f"{doubt} prove nothing: g(x)" in told
    everywhere = flat([torn, VIEW], findings=[finding(rule="DLP020")])
    assert "DLP020?" not in everywhere
    assert "torn only" not in everywhere


def test_what_was_not_measured_to_the_end_keeps_its_status():
    row = make_row("f(x)", 10.0, status="unsupported", reason="no")
    assert status_of(0, row, VIEW, findings=[finding(results=[0])]) == "unsupported"
    wrong = make_row("f(x)", 10.0, changed=("shape",))
    assert status_of(0, wrong, VIEW, findings=[finding(results=[0])]) == "wrong"


def of_pair(pair, code="f(x)", **changes):
    return make_row(code, pair=pair, frameworks=pair, **changes)


@pytest.mark.parametrize(
    ("results", "pairs"),
    [
        ([0], "numpy → jax: "),
        ([0, 1], "numpy, torch → jax: "),
        ([0, 2], "numpy → jax, cupy: "),
        ([1, 2], "torch → jax, numpy → cupy: "),
        ([99], ""),
    ],
)
def test_a_finding_is_told_with_its_pairs_where_there_are_several(results, pairs):
    rows = [of_pair(pair) for pair in ("numpy → jax", "torch → jax", "numpy → cupy")]
    told = flat(rows, findings=[finding(results=results)])
    assert f"promise-broken {pairs}f(x) is a view" in told


def test_of_one_pair_the_pair_is_not_told():
    assert "promise-broken f(x) is a view" in flat(
        [of_pair("numpy → jax")] * 2, findings=[finding()]
    )


def test_what_differs_stands_above_the_paths_of_each_array():
    rows = [of_pair(pair, code) for pair in ("a → b", "a → c") for code in ("f(x)", "g(x)")]
    assert [line.split("  ")[0] for line in table(rows)] == ["a → b", "f(x)", "g(x)"]
    assert "\n\na → c\nf(x)" in text(rows)
    assert " pair " not in text(rows)


def test_advice_that_stands_above_is_not_repeated():
    findings = [finding(results=[index], advice="Do this.") for index in (0, 1)]
    told = flat([make_row("f(x)", 10.0), make_row("g(x)", 10.0)], findings=findings)
    assert told.count("Do this.") == 1
    assert "What to do: as for 1." in told


@pytest.mark.parametrize(("rule", "condition"), [("DLP009", True), ("DLP012", False)])
def test_a_safe_view_that_loses_the_read_only_flag_is_told_with_the_condition(rule, condition):
    told = flat([VIEW], findings=[finding("warning", rule=rule)])
    assert ("that is safe if nobody writes to the result (DLP009):" in told) is condition
    assert ("cheapest that is safe:" in told) is not condition


def test_a_path_that_leaks_is_not_called_safe_however_little_stays_behind():
    told = flat([VIEW], findings=[finding("warning", rule="DLP010")])
    assert "no path is called safe" in told
    assert "not safe: DLP010" in told
