"""DLP020: of which sources a copy is torn, and what to do there and elsewhere."""

import pytest
from rule_builders import US, found, path, spread, tried, varying, verdict

COPIED = verdict(
    "unsafe",
    sizes_bytes={"4096": "view", "65536": "view"},
    unaligned_bytes={"4096": "whole", "65536": "torn"},
    torn_layout="sliced",
)
UNALIGNED = verdict(
    "unsafe",
    sizes_bytes={"4096": "whole", "65536": "whole"},
    unaligned_bytes={"4096": "whole", "65536": "torn"},
    torn_layout="sliced",
)
TORN = verdict("unsafe", sizes_bytes={"4096": "whole", "65536": "torn"}, torn_layout="C")


def at_16(aligned):
    """A copy is torn of a source at 16 bytes; ``aligned`` is what became of one at 64."""
    torn = {"torn_layout": "C", "torn_alignment_bytes": 16, "aligned": aligned}
    return verdict("unsafe", sizes_bytes={"4096": "torn"}, **torn)


WHOLE = verdict("safe", sizes_bytes={"65536": "whole"})
WAIT = "Wait for the result before you write x."
DO_NOT_WRITE = "Do not write x while you use the result"
ASKED = {"promise": "copy"}
ENDS_WHOLE = spread(9 * US, same_as="host_time")
"""The time of a call whose consumer has nothing to wait for."""


def torn(code="f(x)", early_write=TORN, owner="copy", **changes):
    return path(code, changes.pop("ready", 5 * US), owner, early_write=early_write, **changes)


def whole(ready=1 * US, **changes):
    return path("g(x)", ready, "copy", early_write=WHOLE, **changes)


def test_a_torn_copy_is_an_error_that_names_a_whole_one():
    (finding,) = found("DLP020", torn(), whole(ENDS_WHOLE))
    assert finding.severity == "error"
    assert finding.evidence["size_bytes"] == 65536
    assert finding.advice.startswith(WAIT)
    assert "g(x) is not torn" in finding.advice


def test_a_view_that_should_be_a_copy_is_replaced_by_one_that_is_waited_for():
    (finding,) = found("DLP018", torn("f(x)", None, "view", case=ASKED), torn("g(x)", case=ASKED))
    assert "g(x) is a copy" in finding.advice
    assert "wait for it" in finding.advice


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([torn(), whole()], "it returns early, as the torn copy does"),
        ([torn(ready=ENDS_WHOLE), whole(ENDS_WHOLE)], "a call that ends whole was torn"),
        ([torn(), path("g(x)")], "it is a view"),
    ],
)
def test_a_path_that_may_be_torn_or_is_no_copy_is_not_advised(results, why):
    assert "g(x)" not in found("DLP020", *results)[0].advice, why


@pytest.mark.parametrize(
    ("parts", "only_where", "begins"),
    [
        ({"early_write": COPIED, "owner": "view", "alignment": tried()}, "x is copied", DO_NOT_WRITE),
        ({"owner": varying(("view", 64), ("copy", 16))}, "x is copied", DO_NOT_WRITE),
        ({"alignment": tried()}, "x is copied", DO_NOT_WRITE),
        ({"early_write": UNALIGNED}, None, WAIT),
        ({"early_write": at_16(aligned=None)}, None, WAIT),
        ({"early_write": at_16(aligned="whole")}, "x is not aligned", WAIT),
        ({"early_write": at_16(aligned="view")}, "x is copied", DO_NOT_WRITE),
        ({"early_write": at_16(aligned="torn")}, None, WAIT),
        ({}, None, WAIT),
    ],
    ids=["a view of aligned memory", "a view in some processes", "a view elsewhere", "unaligned, and aligned ones of other sizes", "aligned ones not tried", "whole if aligned", "a view if aligned", "torn if aligned", "any"],
)  # fmt: skip
def test_where_a_copy_is_torn_decides_whether_a_wait_helps(parts, only_where, begins):
    (finding,) = found("DLP020", torn(**parts))
    assert finding.evidence.get("only_where") == only_where
    # Aligned copies that were whole when tried prove nothing: it is a race.
    assert ("seen only" in finding.headline) is (only_where == "x is not aligned")
    assert finding.advice.startswith(begins)


def test_copies_torn_of_other_sources_are_other_findings():
    results = (
        torn(early_write=COPIED, owner="view", alignment=tried()),
        torn("g(x)", at_16("whole")),
    )
    assert len(found("DLP020", *results, torn("h(x)"))) == 3


def test_the_copy_that_was_torn_at_its_first_try_leads():
    sizes = (4 << 10, 1 << 20, 256 << 20, 16 << 20)
    results = [
        torn(f"f{place}(x)", verdict("unsafe", sizes_bytes={str(size): "torn"}))
        for place, size in enumerate(sizes)
    ]
    (finding,) = found("DLP020", *results, torn("u(x)", verdict("unsafe")))
    assert finding.results == [3, 2, 1, 0, 4]
    assert finding.evidence == {"size_bytes": 16 << 20}


def sometimes_a_view(code="f(x)", **changes):
    return torn(code, COPIED, "view", alignment=tried(), **changes)


def test_a_copy_that_is_safe_everywhere_is_named_where_a_copy_is_asked_for():
    (finding,) = found("DLP020", sometimes_a_view(case=ASKED), whole(ENDS_WHOLE, case=ASKED))
    assert "g(x) is not torn" in finding.advice


@pytest.mark.parametrize(
    ("ready", "early_write", "is_told"),
    [(9 * US, None, True), (9 * US, WHOLE, False), (ENDS_WHOLE, None, False)],
    ids=["not looked at", "looked at", "nothing to wait for"],
)
def test_a_copy_that_is_advised_says_that_nobody_looked_whether_it_is_torn(
    ready, early_write, is_told
):
    copy = path("g(x)", ready, "copy", early_write=early_write, case=ASKED)
    (finding,) = found("DLP018", path("alias(x)", case=ASKED), copy)
    assert "g(x) is a copy" in finding.advice
    assert ("not looked at" in finding.advice) is is_told


@pytest.mark.parametrize("producer", ["torch", "numpy"])
@pytest.mark.parametrize(("ready", "must_wait"), [(1 * US, True), (ENDS_WHOLE, False)])
def test_a_copy_that_may_be_torn_is_advised_only_with_a_wait(ready, producer, must_wait):
    asked = {"producer": producer, **ASKED}
    (finding,) = found("DLP018", path("alias(x)", case=asked), whole(ready, case=asked), torn())
    assert "g(x) is a copy" in finding.advice
    assert ("wait for it" in finding.advice) is must_wait


@pytest.mark.parametrize(("sliced", "is_advised"), [("copy", False), ("refused", True)])
def test_a_view_that_copies_other_memory_is_no_advice_where_such_copies_are_torn(
    sliced, is_advised
):
    view = path("g(x)", 1 * US, alignment=tried(sliced=sliced))
    dear = path("f(x)", spread(900 * US, same_as="host_time"), "copy")
    findings = found("DLP004", view, torn("h(x)", case={"producer": "cupy"}), dear)
    assert bool(findings) is is_advised


def test_a_copy_that_may_be_torn_is_replaced_by_a_view_that_is_no_worse():
    (finding,) = found("DLP004", sometimes_a_view("g(x)", ready=US), torn(ready=900 * US))
    assert "g(x) is a view" in finding.advice
