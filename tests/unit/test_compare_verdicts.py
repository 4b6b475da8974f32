"""Changes of verdict: worse, better, no longer known, or none."""

import pytest
from builders import make_result
from rule_builders import verdict

from dlprof.compare.verdicts import RACE_LOOKS, changes
from dlprof.runner.evidence import Alignment, Verdict


def change(before, after):
    """Return the only change between two results: its words, direction and severity."""
    (found,) = changes(make_result(**before), make_result(**after))
    return (found.what, found.before, found.after), found.direction, found.severity


@pytest.mark.parametrize(
    ("what", "before", "after", "severity"),
    [
        ("ownership", "view", "copy", "warning"),
        ("values", "ok", "wrong", "error"),
        ("ordering", "stream-ordered", "host-sync", "warning"),
        ("ordering", "synchronous", "device-sync", "warning"),
        ("ordering", "host-sync", "unordered", "error"),
        ("lifetime", "safe", "retained", "error"),
        ("lifetime", "safe", "dangling", "error"),
    ],
)
def test_a_worse_verdict_is_a_regression_and_the_reverse_is_none(what, before, after, severity):
    old, new = {what: verdict(before)}, {what: verdict(after)}
    assert change(old, new) == ((what, before, after), "worse", severity)
    assert change(new, old) == ((what, after, before), "better", "info")


@pytest.mark.parametrize(
    ("looks", "directions"),
    [(1, ["lost", "other"]), (RACE_LOOKS, ["worse", "better"])],
    ids=["one", "enough"],
)
def test_a_race_is_new_or_gone_only_if_enough_processes_saw_no_race(looks, directions):
    calm, racy = (make_result(early_write=verdict(word)) for word in ("safe", "unsafe"))
    found = [
        change
        for sides in ((calm, racy), (racy, calm))
        for change in changes(*sides, race_looks=looks)
    ]
    assert [change.direction for change in found] == directions
    assert [change.severity for change in found] == ["info" if looks == 1 else "error", "info"]


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout"])
def test_a_conversion_that_no_longer_works_is_worse(status):
    assert change({}, {"status": status}) == (("status", "ok", status), "worse", "error")
    assert change({"status": status}, {})[1] == "better"


ALONE = {"status": "crashed", "reason": "killed by SIGSEGV", "rounds": [0, 2]}


def test_a_crash_next_to_other_conversions_is_worse_although_it_works_alone():
    (*what, after), *severity = change({}, {"in_company": ALONE})
    assert (what, after.split()[0], severity) == (["status", "ok"], "crashed", ["worse", "error"])
    assert changes(make_result(in_company=ALONE), make_result(in_company=ALONE)) == ()


@pytest.mark.parametrize("what", ["alignment", "peak_memory", "lifetime", "ordering"])
def test_a_crash_in_an_instrument_that_base_finished_is_worse(what):
    crash = {what: verdict("unknown", reason="killed by SIGSEGV", worker="crashed")}
    ended = {what: verdict("measured")}
    assert change(ended, crash) == ((what, "measured", "crashed"), "worse", "error")
    assert changes(make_result(**crash), make_result(**crash)) == ()


@pytest.mark.parametrize(
    ("what", "before", "after", "direction"),
    [
        ("peak_memory", verdict("ok", arrays=1.02), verdict("ok", arrays=2.01), "worse"),
        ("peak_memory", verdict("ok", arrays=2.01), verdict("ok", arrays=1.02), "better"),
        (
            "ownership",
            verdict("copy", result_device="cpu"),
            verdict("copy", result_device="cuda"),
            "worse",
        ),
        (
            "values",
            verdict("ok", writable={"source": False, "result": False}),
            verdict("ok", writable={"source": False, "result": True}),
            "worse",
        ),
    ],
    ids=["memory", "less memory", "device", "read-only flag"],
)
def test_retained_memory_is_compared_too(what, before, after, direction):
    assert change({what: before}, {what: after})[1] == direction


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"status": "skipped"}),
        ({}, {"status": "invalid"}),
        ({}, {"in_company": {**ALONE, "status": "timeout"}}),
        ({"lifetime": verdict("safe")}, {"lifetime": None}),
        ({"ownership": verdict("unknown")}, {}),
    ],
    ids=["not measured", "disturbed", "slow beside others", "not looked at", "now known"],
)
def test_results_missing_on_one_side_are_no_change(before, after):
    assert changes(make_result(**before), make_result(**after)) == ()


def test_a_verdict_that_is_no_longer_known_is_neither_worse_nor_fine():
    assert change({}, {"ownership": verdict("unknown", reason="no address")})[1] == "lost"


def test_a_documented_copy_that_became_a_view_is_an_error():
    old, new = (
        {"case": {"promise": "copy"}, "ownership": verdict(word)} for word in ("copy", "view")
    )
    assert change(old, new)[1:] == ("worse", "error")


BY_ADDRESS = verdict("dependent", aligned={"verdict": "view"}, sliced={"verdict": "copy"})


@pytest.mark.parametrize("shape", ["this one", "another one"])
def test_a_copy_that_depends_on_the_address_on_both_sides_is_no_change(shape):
    fields = {"alignment": BY_ADDRESS} if shape == "this one" else {}
    base = make_result(ownership=verdict("view"), **fields)
    head = make_result(ownership=verdict("copy"), **fields)
    tried = base.alignment or Verdict[Alignment].model_validate(BY_ADDRESS)
    assert changes(base, head, (tried, tried)) == ()


def test_a_copy_by_address_is_worse_if_base_never_copies():
    same = verdict("independent", aligned={"verdict": "view"}, sliced={"verdict": "view"})
    old = {"ownership": verdict("view"), "alignment": same}
    new = {"ownership": verdict("copy"), "alignment": BY_ADDRESS}
    assert change(old, new)[1] == "worse"
    assert change({**old, "alignment": None}, new)[1] == "worse"


def disagreeing(*words):
    return {"ownership": verdict("varies", processes=[verdict(word) for word in words])}


def test_the_worst_process_counts_if_processes_disagree():
    both = disagreeing("view", "copy")
    assert change({}, both)[1] == "worse"
    assert change(both, {"ownership": verdict("copy")})[1] == "other"


def looked(aligned, sliced, word=None):
    places = {"aligned": verdict(aligned), "sliced": verdict(sliced)}
    word = word or ("independent" if aligned == sliced else "dependent")
    return {"alignment": verdict(word, **places), "ownership": verdict("view")}


def test_a_view_that_is_now_limited_to_some_addresses_is_worse_in_any_process():
    (what, *_), *severity = change(looked("view", "view"), looked("view", "copy"))
    assert (what, severity) == ("alignment", ["worse", "warning"])
    assert change(looked("view", "copy"), looked("view", "view"))[1] == "better"
