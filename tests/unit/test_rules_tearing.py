"""DLP020: sources whose copy is torn, and advice for them and for others."""

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
    """A copy of a source at 16 bytes is torn; ``aligned`` is the result of one at 64."""
    torn = {"torn_layout": "C", "aligned": aligned}
    return verdict("unsafe", sizes_bytes={"4096": "torn"}, **torn)


WHOLE = verdict("safe", sizes_bytes={"65536": "whole"})
WAIT = "Wait for the result before you write x."
DO_NOT_WRITE = "Do not write x while you use the result"
ASKED = {"promise": "copy"}
ENDS_WHOLE = spread(9 * US, same_as="host_time")
"""The time of a call after which the consumer has nothing to wait for."""


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
        ({"early_write": at_16(aligned="whole")}, None, WAIT),
        ({"early_write": at_16(aligned="view")}, "x is copied", DO_NOT_WRITE),
        ({}, None, WAIT),
    ],
    ids=["a view of aligned memory", "a view in some processes", "a view elsewhere", "unaligned, and aligned ones of other sizes", "aligned ones not tried", "whole if aligned", "a view if aligned", "any"],
)  # fmt: skip
def test_the_place_of_a_torn_copy_decides_whether_a_wait_helps(parts, only_where, begins):
    (finding,) = found("DLP020", torn(**parts))
    assert finding.evidence.get("only_where") == only_where
    assert finding.advice.startswith(begins)


def sometimes_a_view(code="f(x)", **changes):
    return torn(code, COPIED, "view", alignment=tried(), **changes)


@pytest.mark.parametrize("producer", ["torch", "numpy"])
@pytest.mark.parametrize(("ready", "must_wait"), [(1 * US, True), (ENDS_WHOLE, False)])
def test_a_copy_that_may_be_torn_is_advised_only_with_a_wait(ready, producer, must_wait):
    asked = {"producer": producer, **ASKED}
    (finding,) = found("DLP018", path("alias(x)", case=asked), whole(ready, case=asked), torn())
    assert "g(x) is a copy" in finding.advice
    assert ("wait for it" in finding.advice) is must_wait
