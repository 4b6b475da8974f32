"""The journal: every answer on disk, in order, and taken up again after a run was killed."""

import time
from contextlib import closing

import pytest
from builders import make_answer
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import Unsaved, UsageError
from dlprof.runner.journal import SPENT_EVERY_S, Journal
from dlprof.text.clean import sanitised


@pytest.fixture
def journal():
    with closing(Journal()) as journal:
        yield journal


@pytest.fixture
def path(tmp_path):
    """The journal of a run that was killed after two answers."""
    path = tmp_path / "s.json.journal"
    with closing(Journal(path, {"created": "today"})) as journal:
        journal.add(0, 0, make_answer(reason="first"))
        journal.add(5, 1, make_answer(reason="trip"))
    return path


def resumed(path, into=None):
    return closing(Journal.resume(path, into))


texts = st.text(max_size=30).map(sanitised)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), texts), max_size=20))
def test_every_answer_comes_back_as_it_was_in_order(entries):
    with closing(Journal()) as journal:
        for case, round_, text in entries:
            journal.add(case, round_, {"status": "ok", "reason": text})
        for case in range(4):
            assert journal.answers(case) == [
                (round_, {"status": "ok", "reason": text})
                for of, round_, text in entries
                if of == case
            ]


def test_a_run_that_is_taken_up_again_has_the_time_of_the_one_before(path):
    spent_s = 2 * SPENT_EVERY_S
    with resumed(path) as journal:
        journal.add(1, 0, make_answer())
        time.sleep(spent_s)
        journal.add(2, 0, make_answer())
    with resumed(path) as journal:
        assert journal.meter.read()[0] >= spent_s


def test_what_anybody_wrote_into_a_journal_steers_no_terminal(journal):
    journal.add(0, 0, {"status": "ok", "reason": "\x1b[2J"})
    assert journal.answers(0) == [(0, {"status": "ok", "reason": r"\x1b[2J"})]


def test_a_round_is_needed_until_it_was_measured_to_its_end(journal):
    journal.add(0, 1, make_answer("interrupted", "round 2 was interrupted during phases"))
    assert journal.needs(0, 1)
    assert not journal.settled(0)
    journal.add(0, 1, make_answer())
    assert not journal.needs(0, 1)
    assert journal.needs(0, 0)


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout", "skipped", "invalid"])
def test_a_case_that_did_not_work_is_needed_in_no_round(journal, status):
    journal.add(0, 0, make_answer(status, "no"))
    assert not any(journal.needs(0, round_) for round_ in range(3))
    assert journal.needs(1, 0)


class Full:
    """A file on a disk that takes only so many more bytes."""

    def __init__(self, file, room):
        self._file, self.room = file, room

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if not self.room:
            raise OSError(28, "No space left on device")
        taken, self.room = data[: self.room], max(self.room - len(data), 0)
        return self._file.write(taken)


def test_a_full_disk_loses_nothing_that_it_took(journal, monkeypatch):
    journal.add(0, 0, make_answer())
    kept = journal.answers(0)
    monkeypatch.setattr(journal, "_file", Full(journal._file, 7))
    with pytest.raises(Unsaved, match="No space left on device"):
        journal.add(0, 1, make_answer())
    assert journal.answers(0) == kept
    journal._file.room = 10**6
    journal.add(0, 1, make_answer())
    assert [round_ for round_, _ in journal.answers(0)] == [0, 1]


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_measured_again(path, cut):
    path.write_bytes(path.read_bytes()[:-cut])
    with resumed(path) as journal:
        assert journal.needs(5, 1)
        assert len(journal.answers(0)) == 1
        journal.add(5, 1, make_answer())
    with resumed(path) as journal:
        assert len(journal.answers(5)) == 1


@pytest.mark.parametrize("line", [b"", b"{", b"5", b'{"of": 0}', b"\0\0"])
def test_a_journal_that_is_damaged_in_the_middle_is_refused(path, line):
    first, _, *rest = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, line, *rest, b""]))
    with pytest.raises(UsageError, match="is damaged in line 2"):
        Journal.resume(path)


def test_a_new_run_keeps_the_journal_that_is_there_until_its_first_answer(path):
    before = path.read_bytes()
    with closing(Journal(path, {"created": "tomorrow"})) as journal:
        assert path.read_bytes() == before
        journal.delete()
        assert path.read_bytes() == before
        journal.add(0, 0, make_answer(reason="new"))
    with resumed(path) as journal:
        assert journal.header["created"] == "tomorrow"
        assert [answer["reason"] for _, answer in journal.answers(0)] == ["new"]


def test_two_runs_cannot_write_one_journal(path):
    with resumed(path), pytest.raises(UsageError, match="another run writes"):
        Journal(path)
