"""Odd input gets one sentence, and steers nobody."""

from __future__ import annotations

import time

import pytest
from builders import make_result, make_session

from dlprof.cli import _shown
from dlprof.cli.comparison import rules_of
from dlprof.cli.files import are_one
from dlprof.errors import UsageError
from dlprof.gate import noise
from dlprof.reports import table_files
from dlprof.scenario.model import _distinct
from dlprof.scenario.read import line_of
from dlprof.session.files import at_home, temporary_folder
from dlprof.text.clean import obeyed_by_nobody

pytestmark = pytest.mark.unit

NEVER_ENDING = 10**400


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("a\n::add-mask::true", "a ::add-mask::true"),
        ("::error::b", ": :error::b"),
        ("  ::error::b", "  : :error::b"),
        ("a ##[add-mask]b", "a ## [add-mask]b"),
        ("std::vector::at", "std::vector::at"),
    ],
)
def test_a_message_is_one_line_that_no_runner_obeys(said, told):
    assert _shown(UsageError(said)) == told
    assert obeyed_by_nobody(told) == told


def test_a_scenario_of_blanks_is_read_at_once():
    text = f'title = "t"\nnonsense = [\n[{" " * 50_000}\n]]\n[[floor]]\ncase = "x"\n'
    begun = time.process_time()
    assert line_of(text, ("floor", 0, "case")) == 6
    _distinct([(number,) for number in range(50_000)])
    assert time.process_time() - begun < 10  # it was hours


def test_a_home_of_nobody_is_a_path_like_any_other(tmp_path):
    assert str(at_home(tmp_path / "~x")) == str(tmp_path / "~x")
    assert str(at_home(type(tmp_path)("~no-such-user/bin/python"))) == "~no-such-user/bin/python"


def test_a_link_to_itself_is_no_other_file(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert are_one(loop, loop)
    assert not are_one(loop, tmp_path / "other")


def test_gpus_that_are_no_list_are_none():
    session = make_session(make_result(), environment={"gpus": 5})
    assert "".join(table_files.csv_lines(session, session.results)).count("\n") > 1


@pytest.mark.parametrize("floor", [{"relative": -5.0}, {"absolute_ns": -1e12}])
def test_floors_below_nothing_are_none(floor):
    written = {"floors": [{"case": "*", **floor}]}
    assert rules_of(make_session(request={"scenario": written})) == ()
    right = {"floors": [{"case": "*", "relative": 0.2}]}
    assert len(rules_of(make_session(request={"scenario": right}))) == 1


def test_a_noise_file_that_never_ends_is_not_read(tmp_path):
    with pytest.raises(UsageError, match="it is a device"):
        noise.load(type(tmp_path)("/dev/zero"))


def test_without_a_temporary_folder_it_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    with pytest.raises(UsageError, match="no folder in which it is done: No space left"):
        temporary_folder("it is done").__enter__()


def refuse(*_, **__):
    raise OSError(28, "No space left on device")
