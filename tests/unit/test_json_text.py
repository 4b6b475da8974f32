"""What is written is JSON as the standard has it, and what is read steers nothing."""

import math

import pytest

from dlprof.text.json_text import DEEPEST, dump, finite, loads


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value):
    assert dump({"a": [value, 1.5], "b": (value,)}) == '{"a": [null, 1.5], "b": [null]}'


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_word_that_json_does_not_know_is_read_as_none(word):
    assert loads(f'{{"a": [{word}, 2.5]}}') == {"a": [None, 2.5]}


def test_hidden_characters_are_escaped_when_they_are_read():
    assert loads('{"\\u001b[2J": "\\u202e"}') == {r"\x1b[2J": r"\u202e"}


def test_what_is_nested_without_end_is_refused():
    value: list = []
    for _ in range(DEEPEST + 1):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        finite(value, DEEPEST)
