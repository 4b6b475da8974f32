"""The search for the release that changed an answer, on made-up cells."""

import re
from contextlib import nullcontext

import pytest
from grid_builders import cell

from dlprof.atlas.bisect import Trial, Tried, between, bisect
from dlprof.errors import Unmeasured, Unsure, UsageError
from dlprof.jobs.environments import Unmade
from dlprof.report.grid_document import bisect_document
from dlprof.report.terminal import render

VERSIONS = [f"1.{minor}" for minor in range(9)]


VIEW, COPY = cell("view"), cell("copy")


def search(changed_at, broken=(), before=VIEW, after=COPY):
    """What is found if the answer changed at that place, and which releases were measured."""
    measured = []

    def measure(version):
        measured.append(version)
        at = VERSIONS.index(version)
        found = None if at in broken else before if at < changed_at else after
        return Tried(version, found, "not installed" if found is None else "")

    return bisect(VERSIONS, measure), measured


@pytest.mark.parametrize("changed_at", range(1, 9))
def test_the_first_changed_release_is_found_in_few_steps(changed_at):
    found, measured = search(changed_at)
    assert (found.last_good, found.first_bad) == (VERSIONS[changed_at - 1], VERSIONS[changed_at])
    assert len(measured) <= 2 + 3
    assert not found.untold


def test_the_report_names_the_release_and_what_each_gave():
    found, _ = search(5, broken={4})
    text = render(bisect_document(found, "numpy", "torch.from_dlpack(x)", ("numpy", "torch")))
    assert "numpy 1.5" in text
    assert "or with 1.4" in text
    for row in (
        "numpy 1.0 +view +good",
        "numpy 1.4 +not installed +not known",
        "numpy 1.8 +copy +changed",
    ):
        assert re.search(row, text), row


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (Unmade(["looking", "no such version", ""]), "not installed: no such version"),
        (Unmeasured("every path is refused"), "every path is refused"),
    ],
    ids=["installing", "measuring"],
)
def test_a_release_without_a_cell_says_why(monkeypatch, tmp_path, refused, reason):
    def run(*_):
        raise refused

    monkeypatch.setattr("dlprof.atlas.bisect.resolved", lambda written, _: written)
    monkeypatch.setattr("dlprof.atlas.bisect.made", lambda *_: nullcontext("python"))
    asked = Trial("f(x)", "numpy", ("torch==2.9.1",), tmp_path, run)
    assert asked.measure("2.1.0") == Tried("2.1.0", None, reason)


def test_a_release_that_cannot_be_measured_is_passed_over():
    found, _ = search(5, broken={4, 5})
    assert (found.last_good, found.first_bad) == ("1.3", "1.6")
    assert found.untold == ["1.4", "1.5"]


def test_a_time_that_changed_is_found_by_the_nearer_end():
    found, _ = search(3, before=cell(ns=100.0), after=cell(ns=400.0))
    assert (found.question, found.first_bad) == ("time", "1.3")


def test_ends_that_give_the_same_or_nothing_are_no_search():
    with pytest.raises(Unsure, match="give the same: view"):
        search(3, after=cell("view"))
    with pytest.raises(Unsure, match=r"1\.8 .*not installed"):
        search(3, broken={8})


def test_releases_are_those_between_good_and_bad_in_order():
    known = ["2.10.0", "2.9.1", "2.9.0", "2.8.0", "2.11.0"]
    assert between(known, "2.9.0", "2.10.0") == ["2.9.0", "2.9.1", "2.10.0"]
    assert between(known, "2.9.1", "2.8.0") == ["2.9.1", "2.9.0", "2.8.0"]
    with pytest.raises(UsageError, match=r"no release 2\.9 .*2\.9\.0, 2\.9\.1"):
        between(known, "2.9", "2.11.0")
