"""The benchmark of the first screen asks questions with one truth."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reading"))

import read


def test_a_question_takes_its_answer_and_refuses_wrong_ones():
    for question in [question for sheet in read.sheets() for question in sheet.questions]:
        assert question.is_right(question.answer), question
        assert question.is_right(f" `{question.answer}` "), question
        assert question.wrong, question
        assert not any(map(question.is_right, (*question.wrong, ""))), question


def test_a_time_is_right_in_any_unit_and_with_its_spread():
    question = read.Question("?", "1.5 ms", ("15 ms",), within_ns=(1.4e6, 1.6e6))
    assert question.is_right("~1500 us")
    assert question.is_right("1.45 ms")
    assert question.is_right("1.5 ±0.2 ms")
    assert question.is_right("1.5 | 2.3 ms")
    assert not question.is_right("2.3 | 1.5 ms")
    assert not question.is_right("1.5 us")
    assert not question.is_right("1.5")
