"""The safety of a path: safe, right, unchecked, unsafe, or unmeasured."""

import pytest
from rule_builders import LOOKED, died, end_of, owned, path, spread, verdict

from dlprof.judge import cases_in

UNKNOWN = verdict("unknown", reason="it has no address")
SOME_UNKNOWN = verdict("varies", processes=[verdict("ok"), UNKNOWN])
OWN_STREAMS_RAISED = verdict(
    "stream-ordered",
    streams="default",
    by_streams={"default": verdict("stream-ordered"), "own streams": UNKNOWN},
    reason="tried on default streams only; on other streams: no",
)
COPIES_ELSEWHERE = verdict("dependent", aligned={"verdict": "view"}, sliced={"verdict": "copy"})
TIMEOUT = died("unknown", "no answer within 60 s during alignment")
DIED = died("unknown", "killed by SIGSEGV during early_write")


def safety(result, *others):
    cases = cases_in([result, *others])
    return cases.safety(cases.cases[0])


def test_a_fully_checked_path_is_safe():
    assert safety(path("f(x)", **LOOKED)).level == "safe"


@pytest.mark.parametrize(
    ("changes", "level", "rules"),
    [
        ({"lifetime": None, "early_write": None}, "right", ()),
        ({"lifetime": UNKNOWN}, "right", ()),
        ({"ordering": UNKNOWN}, "right", ()),
        ({"ordering": None, "notes": [{"instrument": "ordering", "reason": "RuntimeError: no"}]}, "right", ()),
        ({"owner": "copy", "early_write": UNKNOWN}, "right", ()),
        ({"early_write": verdict("unknown", moot=True)}, "safe", ()),
        ({"owner": UNKNOWN}, "right", ()),
        ({"values": UNKNOWN}, "unchecked", ()),
        ({"values": UNKNOWN, "owner": UNKNOWN}, "unmeasured", ()),
        ({"lifetime": verdict("varies", processes=[verdict("safe"), verdict("retained")])}, "unsafe", ("DLP010",)),
        ({"ordering": verdict("varies", processes=[verdict("host-sync"), UNKNOWN])}, "right", ()),
        ({"values": SOME_UNKNOWN}, "right", ()),
        ({"owner": SOME_UNKNOWN}, "right", ()),
        ({"ordering": OWN_STREAMS_RAISED}, "right", ()),
        ({"alignment": TIMEOUT}, "right", ()),
        ({"alignment": COPIES_ELSEWHERE, "early_write": UNKNOWN}, "right", ()),
        ({"alignment": UNKNOWN}, "safe", ()),
        ({"ordering": None, "notes": [{"instrument": "diagnosis", "reason": "no device"}]}, "right", ()),
        ({"ready": None}, "unmeasured", ()),
        ({"status": "unsupported", "reason": "TypeError"}, "unmeasured", ()),
        ({"status": "crashed", "lost": end_of("killed by SIGSEGV during convert")}, "unmeasured", ("DLP016",)),
        ({"values": verdict("wrong", changed={"dtype": ["int64", "int32"]})}, "unsafe", ("DLP007",)),
        ({"values": verdict("wrong")}, "unsafe", ("DLP008",)),
        ({"ordering": verdict("unordered")}, "unsafe", ("DLP003",)),
        ({"lifetime": verdict("retained")}, "unsafe", ("DLP010",)),
        ({"settings": verdict("changed", changed=[{"name": "locale"}])}, "unsafe", ("DLP025",)),
        ({"lifetime": verdict("dangling", changed_after_drop=True)}, "unsafe", ("DLP011",)),
        ({"early_write": DIED}, "unsafe", ("DLP016",)),
        ({"case": {"promise": "copy"}}, "unsafe", ("DLP018",)),
        ({"owner": "copy", "early_write": verdict("unsafe")}, "unsafe", ("DLP020",)),
    ],
)  # fmt: skip
def test_a_path_gets_no_better_word_than_its_evidence_supports(changes, level, rules):
    found = safety(path("f(x)", **{"host": spread(1000.0), **LOOKED, **changes}))
    assert (found.level, found.rules) == (level, rules)


@pytest.mark.parametrize(("lifetime", "known"), [(verdict("safe"), True), (UNKNOWN, False)])
def test_a_path_is_known_to_leave_nothing_behind_only_if_that_was_checked(lifetime, known):
    cases = cases_in([path("f(x)", **LOOKED | {"lifetime": lifetime})])
    assert cases.outlasts(cases.cases[0]) == known


def test_evidence_at_one_shape_holds_for_the_path():
    torn = path("f(x)", owner="copy", case={"shape": (2, 2)}, early_write=verdict("unsafe"))
    assert safety(path("f(x)", owner="copy", **LOOKED), torn).rules == ("DLP020",)
    undiagnosed = path("f(x)", case={"shape": (2, 2)})
    assert safety(undiagnosed, path("f(x)", **LOOKED)).level == "safe"


VIEWS = verdict("unknown", moot=True, sizes_bytes={"4096": "view"})
IMMUTABLE = verdict("unknown", moot=True, sizes_bytes={"4096": "immutable"})


@pytest.mark.parametrize(("early_write", "level"), [(VIEWS, "right"), (IMMUTABLE, "safe")])
def test_a_view_at_one_shape_proves_nothing_about_a_late_copy_at_another(early_write, level):
    view = path("f(x)", host=spread(10.0), lifetime=verdict("safe"), early_write=early_write)
    copy = path("f(x)", owner="copy", host=spread(10.0), case={"shape": (2, 2)})
    assert safety(view, copy).level == "safe"
    assert safety(copy, view).level == level


@pytest.mark.parametrize(("shape", "level"), [((2, 2), "right"), ((0, 2), "safe")])
def test_a_path_that_is_neither_a_known_view_nor_copy_at_a_shape_is_not_safe_there(shape, level):
    other = path("f(x)", owner=UNKNOWN, case={"shape": shape})
    assert safety(other, path("f(x)", **LOOKED)).level == level


def test_a_copy_into_a_framework_that_tears_others_is_suspected():
    torn = path("g(x)", owner="copy", host=spread(10.0), early_write=verdict("unsafe"))
    copy, view = (
        path("f(x)", owner=owner, host=spread(10.0), **LOOKED) for owner in ("copy", "view")
    )
    assert safety(copy, torn).suspected == ("DLP020",)
    assert safety(copy, torn).needs_wait
    assert safety(view, torn).level == "safe"


def test_a_lost_read_only_flag_that_no_view_keeps_is_a_condition():
    writable = verdict("ok", writable={"source": False, "result": True})
    kept = verdict("ok", writable={"source": False, "result": False})
    losing = path("f(x)", values=writable, **LOOKED)
    assert safety(losing).level == "safe"
    assert safety(losing).conditions == ("DLP009",)
    assert safety(losing, path("g(x)", values=kept, **LOOKED)).rules == ("DLP009",)


def test_a_faulty_probe_is_neither_a_refusal_nor_a_crash_of_its_framework():
    reason = "the probe is faulty: odd's create raises KeyError: 'int4'"
    (case,) = cases_in([path("f(x)", status="crashed", reason=reason)]).cases
    assert (case.outcome, case.failure) == ("?", "")
    assert safety(case.result).level == "unmeasured"
    (case,) = cases_in([path("f(x)", status="crashed", reason="killed by SIGSEGV")]).cases
    assert (case.outcome, case.failure) == ("crash", "crash")


def test_a_copy_through_the_host_is_not_suspected_for_a_torn_copy_on_the_device():
    def copying(code, crosses, **parts):
        owner = verdict("copy", result_device="cuda", crosses_twice=crosses)
        return path(code, owner=owner, case={"device": "cuda"}, **parts)

    torn = copying("torn(x)", False, early_write=verdict("unsafe"))
    assert safety(copying("near(x)", False), torn).suspected == ("DLP020",)
    assert safety(copying("far(x.get())", True), torn).suspected == ()


@pytest.mark.parametrize(("code", "device", "suspected"), [
    ("g(x, non_blocking=True)", "cuda", ("DLP020",)),
    ("g(x, non_blocking=False)", "cuda", ()),
    ("g(x)", "cuda", ()),
    ("g(x, non_blocking=True)", "cpu", ()),
])  # fmt: skip
def test_only_a_copy_to_the_same_device_that_may_block_as_much_is_suspected(
    code, device, suspected
):
    def copying(code, device, **parts):
        return path(code, owner=owned("copy", device), host=spread(10.0), **parts)

    torn = copying("f(x, non_blocking=True)", "cuda", early_write=verdict("unsafe"))
    assert safety(copying(code, device, **LOOKED), torn).suspected == suspected
