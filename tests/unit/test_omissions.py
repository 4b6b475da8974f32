"""What was not measured although somebody may look for it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dlprof.plan.plan import not_paired, not_run, without_path
from dlprof.plan.settings import Settings

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class CaseView:
    name: str
    found: bool


@dataclass(frozen=True)
class Frameworks:
    probes: tuple[CaseView, ...] = (
        CaseView("here", True),
        CaseView("gpu", True),
        CaseView("away", False),
    )


@dataclass(frozen=True)
class Measured:
    pair: tuple[str, str]


def test_frameworks_in_no_pair_are_named_with_the_reason():
    pairs = [("here", "here"), ("here", "other")]
    assert not_paired(Frameworks(), pairs) == [
        "gpu, which owns no arrays there",
        "away, which is not installed",
    ]


def test_who_names_one_pair_misses_no_other_framework():
    assert not_paired(Frameworks(), [("here", "here")]) == []


def test_pairs_without_a_path_are_named():
    pairs = [("a", "b"), ("b", "a"), ("a", "c")]
    assert without_path(pairs, [Measured(("b", "a"))]) == [
        "a → b, a → c, which have no path that was asked for"
    ]


def test_where_every_pair_has_a_path_nothing_is_named():
    assert without_path([("a", "b")], [Measured(("a", "b"))]) == []


def test_a_whole_run_leaves_nothing_out():
    assert not_run(Settings(rounds=3), 3) == []


@pytest.mark.parametrize(
    ("settings", "done", "undiagnosed", "words"),
    [
        (Settings(rounds=3), 2, None, "the budget ended after 2 of 3 rounds"),
        (Settings(rounds=1), 1, None, "one process per path"),
        (Settings(diagnose=False), 3, None, "no diagnosis of waiting"),
        (Settings(rounds=3), 3, (4, 4), "no diagnosis of waiting"),
        (Settings(rounds=3), 3, (3, 4), "no diagnosis of 3 of 4 paths: waiting"),
        (Settings(rounds=3), 2, None, "no diagnosis of waiting"),
    ],
)
def test_what_the_settings_or_the_budget_left_out_is_said(settings, done, undiagnosed, words):
    assert any(text.startswith(words) for text in not_run(settings, done, undiagnosed))


def test_a_diagnosis_that_was_over_with_the_time_is_not_left_out():
    assert not_run(Settings(rounds=3), 3, (0, 4), out_of_time=True) == []


def test_alignment_is_looked_at_without_a_diagnosis_and_so_not_left_out():
    assert not_run(Settings(diagnose=False), 3) == [
        "no diagnosis of waiting, peak memory, early writes and lifetime"
    ]


@pytest.mark.parametrize(
    ("settings", "done"), [(Settings(diagnose=False, alignment=False), 3), (Settings(), 2)]
)
def test_alignment_that_was_not_looked_at_is_left_out(settings, done):
    assert "alignment" in not_run(settings, done)[-1]
