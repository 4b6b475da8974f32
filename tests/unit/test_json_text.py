"""Sessions are JSON as the standard has it, whatever was measured and whatever is read."""

import json
import math

import pytest
from builders import make_result, make_session
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import SessionError
from dlprof.session import model as sessions
from dlprof.text.json_text import DEEPEST, NotJson, dump, read

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


@given(values)
def test_whatever_is_written_is_json(value):
    read = json.loads(dump(value), parse_constant=refuse)
    assert dump(read) == dump(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value):
    assert (
        dump({"a": [value, 1.5], "b": {"c": (value,)}}) == '{"a": [null, 1.5], "b": {"c": [null]}}'
    )


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "9" * 320 + ".0"]
)
def test_what_no_number_can_be_is_read_as_none(word):
    assert read(f'{{"a": [{word}, 2.5]}}') == {"a": [None, 2.5]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9" * 5000, "more digits than anything measured has"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ],
)
def test_a_text_that_is_none_is_refused_in_our_words(text, reason):
    with pytest.raises(NotJson, match=reason):
        read(text)


def evidence_of(value):
    result = make_result(ordering={"verdict": "unknown", "evidence": {"points": value}})
    return make_session(result)


def nested(depth):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def test_evidence_that_is_nested_without_end_is_refused():
    session = evidence_of(nested(DEEPEST - 4))
    text = "".join(sessions.chunks(session, session.results))
    assert sessions.parse(text, "s").results == session.results
    content = json.loads(text)
    content["results"][0]["newer"] = nested(DEEPEST + 1)
    with pytest.raises(SessionError, match="newer: nested too deeply"):
        sessions.parse(json.dumps(content), "s")
