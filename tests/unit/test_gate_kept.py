"""Where a gate keeps its sessions, and what it says of how it measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from comparison_builders import compared, references, suite, timed

from dlprof.compare.sequential import Plan, begin
from dlprof.compare.speed import Speed
from dlprof.errors import UsageError
from dlprof.gate.kept import NAMES, Kept, kept_in, set_aside
from dlprof.gate.loop import BUDGET, DECIDED, Ran
from dlprof.gate.words import columns_text, imports_text, measured_text, speed_text

pytestmark = pytest.mark.unit


def test_a_folder_is_made_and_what_an_earlier_gate_left_is_set_aside(tmp_path):
    folder = tmp_path / "a" / "b"
    kept = kept_in(folder)
    assert set_aside(kept) is None
    (folder / "mine.json").write_text("mine", encoding="utf-8")
    for number in ("1", "2"):
        for name in NAMES:
            kept.path(name).write_text(number, encoding="utf-8")
        assert len(kept.written()) == 4
        assert set_aside(kept_in(folder)) == folder / number
        assert kept.written() == []
    for number in ("1", "2"):
        for path in Kept(folder / number).written():
            assert path.read_text(encoding="utf-8") == number
    assert len(Kept(folder / "1").written()) == len(NAMES)
    assert (folder / "mine.json").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_set_aside_is_told_and_stays(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    kept = kept_in(tmp_path)
    kept.path("head").write_text("old", encoding="utf-8")
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UsageError, match="aside: Permission denied"):
        set_aside(kept)
    assert kept.path("head").read_text(encoding="utf-8") == "old"


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "a"
    file.write_text("", encoding="utf-8")
    for path in (file, tmp_path / "new.json"):
        with pytest.raises(UsageError, match="name a folder"):
            kept_in(path)
    with pytest.raises(UsageError, match="cannot make the folder"):
        kept_in(file / "below")


def test_without_a_folder_no_two_gates_share_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, other = kept_in(None), kept_in(None)
    assert one.folder == other.folder == tmp_path / "dlprof"
    assert one.path("base") != other.path("base")


def ran(rounds, stopped):
    return Ran(begin(Plan(), 1), rounds, stopped)


def test_it_says_how_many_rounds_and_why_it_stopped():
    text = measured_text(ran(1, BUDGET), None, 12.0, baseline=False)
    assert text == "Measured in turns, 1 round: the time is used up. 12 s in all."
    text = measured_text(ran(8, DECIDED), ran(12, DECIDED), 12.0, baseline=True)
    assert text.startswith("Measured HEAD alone, 8 rounds: every case is decided. What was flagged")
    assert "12 rounds" in text


@pytest.mark.parametrize(
    ("importing", "said"),
    [
        ([(1.0, 9.0), (6.0, 14.2), (6.1, 14.0), (5.9, 14.4)], "imports of HEAD took 14.2 s"),
        ([(1.0, 9.0), (9.0, 6.0), (9.0, 6.0), (9.0, 6.0)], "those of HEAD 6.0 s"),
    ],
)
def test_imports_that_differ_are_told_with_what_to_do(importing, said):
    (text,) = imports_text(importing)
    assert said in text
    assert "run python -m compileall there" in text


@pytest.mark.parametrize(
    "importing",
    [
        [(1.0, 9.0), (6.0, 7.0), (6.0, 7.0), (6.0, 7.0)],
        [(6.0, 14.0)] * 3,
        [(None, 14.0)] * 9,
        [],
    ],
)
def test_imports_that_are_alike_or_few_or_unknown_need_no_word(importing):
    assert not list(imports_text(importing))


def test_a_ratio_that_is_not_that_of_the_columns_is_explained():
    """Rounds that take very different times have a ratio of their own."""
    walk = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    base = timed(ns=[1000.0 * factor for factor in walk])
    head = timed(ns=[1000.0 * factor for factor in (*walk[:-1], 1.0)])
    found, _ = compared([base], [head], in_turns=True)
    (text,) = columns_text(found)
    assert "for 1 of the times" in text
    alike, _ = compared([base], [base.model_copy()], in_turns=True)
    assert not list(columns_text(alike))


@pytest.mark.parametrize(
    ("speed", "held", "said"),
    [
        (None, [], "has no reference costs, so nothing was normalised"),
        (None, references(count=1), "BASE has reference costs of 1 round, and 3 are needed"),
        (Speed(1.0, 1.01, 1.0), references(), "Nothing was normalised"),
        (
            Speed(1.1, 1.1, 1.2),
            references(),
            "divided by 1.10, those of copies from 64 KiB on by 1.20",
        ),
    ],
)
def test_it_says_what_was_normalised(speed, held, said):
    headers = {"base_header": {"references": held}, "head_header": {"references": references()}}
    found, _ = compared(suite(), suite(seed=9), speed=speed, **headers)
    (text,) = speed_text(found)
    assert said in text
