"""The journal: every answer on disk, in order, and what is still to be measured."""

from __future__ import annotations

import pytest
from builders import make_answer
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import UsageError
from dlprof.session.journal import Journal

pytestmark = pytest.mark.unit


@pytest.fixture
def journal():
    journal = Journal()
    yield journal
    journal.close()


def test_an_empty_journal_has_no_answers_and_needs_all(journal):
    assert journal.answers(0) == []
    assert journal.needs(0, 0)


def test_answers_come_back_with_their_rounds_in_order(journal):
    first, second = make_answer(host_ns=1.0), make_answer(host_ns=2.0)
    journal.add(3, 0, first)
    journal.add(3, 1, second)
    assert journal.answers(3) == [(0, first), (1, second)]


def test_cases_do_not_mix(journal):
    for case in (0, 1, 0):
        journal.add(case, 0, make_answer(reason=f"case {case}"))
    assert [answer["reason"] for _, answer in journal.answers(0)] == ["case 0", "case 0"]
    assert [answer["reason"] for _, answer in journal.answers(1)] == ["case 1"]


def test_an_answer_added_after_a_reading_stands_at_the_end(journal):
    journal.add(0, 0, make_answer(reason="first"))
    journal.add(1, 0, make_answer(reason="other"))
    journal.answers(0)
    journal.add(0, 1, make_answer(reason="second"))
    assert [answer["reason"] for _, answer in journal.answers(0)] == ["first", "second"]
    assert [answer["reason"] for _, answer in journal.answers(1)] == ["other"]


def test_a_round_that_was_measured_is_needed_no_more(journal):
    journal.add(0, 1, make_answer())
    assert not journal.needs(0, 1)
    assert journal.needs(0, 0)
    assert journal.needs(0, 2)


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout", "skipped", "invalid"])
def test_a_case_that_did_not_work_is_needed_in_no_round(journal, status):
    journal.add(0, 0, make_answer(status, "no"))
    assert not any(journal.needs(0, round_) for round_ in range(3))


def test_a_case_that_did_not_work_settles_no_other(journal):
    journal.add(0, 0, make_answer("crashed", "no"))
    assert journal.needs(1, 0)


texts = st.text(max_size=30)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), texts), max_size=20))
def test_every_answer_comes_back_as_it_was(entries):
    journal = Journal()
    try:
        for case, round_, text in entries:
            journal.add(case, round_, {"status": "ok", "reason": text})
        for case in range(4):
            expected = [
                (round_, {"status": "ok", "reason": text})
                for of, round_, text in entries
                if of == case
            ]
            assert journal.answers(case) == expected
    finally:
        journal.close()


def test_line_breaks_and_lone_surrogates_in_an_answer_break_nothing(journal):
    odd = {"status": "ok", "reason": "a\nb\r\u2028\udc80"}
    journal.add(0, 0, odd)
    journal.add(1, 0, make_answer())
    assert journal.answers(0) == [(0, odd)]


def test_a_case_has_grown_if_answers_came_after_the_mark(journal):
    journal.add(0, 0, make_answer())
    journal.mark()
    journal.add(1, 0, make_answer())
    assert not journal.grown(0)
    assert journal.grown(1)
    journal.add(0, 1, make_answer())
    assert journal.grown(0)


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


def test_a_full_disk_is_told_in_words_and_what_it_took_can_be_read(journal, monkeypatch):
    journal.add(0, 0, make_answer())
    kept = journal.answers(0)
    monkeypatch.setattr(journal, "_file", Full(journal._file, 7))
    with pytest.raises(
        UsageError, match=r"^cannot keep what is measured in .*: No space left on device$"
    ):
        journal.add(0, 1, make_answer())
    assert journal.answers(0) == kept
    journal._file.room = 10**6
    journal.add(0, 1, make_answer())
    assert [round_ for round_, _ in journal.answers(0)] == [0, 1]


def test_a_round_that_was_interrupted_is_still_needed(journal):
    journal.add(0, 1, make_answer("interrupted", "round 2 was interrupted during phases"))
    assert journal.needs(0, 1)
    assert not journal.settled(0)
    assert len(journal.answers(0)) == 1
