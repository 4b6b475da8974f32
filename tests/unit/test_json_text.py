"""Sessions are JSON as the standard has it, whatever was measured and whatever is read."""

import io
import json
import math

import pytest
from builders import make_result, make_session
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import SessionError
from dlprof.runner import session as sessions
from dlprof.text import json_text
from dlprof.text.clean import sanitised
from dlprof.text.json_text import DEEPEST, NotJson, Reader, dump

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def read(text):
    return dict(Reader(io.StringIO(text)).members(()))


@pytest.mark.parametrize("lists", [(), ("a",)], ids=["value", "entries"])
def test_a_value_has_only_so_many_parts(lists):
    text = '{"a": [\n{"b": [' + "1," * 300_000 + "1]}\n]}"
    with pytest.raises(NotJson, match="parts"):
        [[*found] for _, found in Reader(io.StringIO(text)).members(lists)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value):
    assert dump({"a": [value, 1.5], "b": (value,)}) == '{"a": [null, 1.5], "b": [null]}'


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "9" * 320 + ".0"]
)
def test_what_no_number_can_be_is_read_as_none(word):
    assert read(f'{{"a": [{word}, 2.5]}}') == {"a": [None, 2.5]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": %s}' % ("9" * 5000), "digits"),
        ('{"a": %s' % ("[" * 100_000), "nested too deeply"),
        ("{", "character 1$"),
        ('{"a": 1,}', "character 8$"),
        ('{"a": [1, 2', "character 11$"),
        ('{"a": 1} x', "character 9$"),
        ("[1]", "{.*character 0$"),
    ],
)
def test_a_text_that_is_none_is_refused_in_our_words(text, reason):
    with pytest.raises(NotJson, match=reason):
        read(text)


@given(values, st.integers(min_value=1, max_value=9))
def test_a_text_is_read_in_pieces_as_it_is_read_whole(value, size):
    text = json.dumps({"a": value, "b": [value, 12345], "c": 1.5e-7})
    expected = json.loads(dump(sanitised(json.loads(text, parse_constant=lambda _: None))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "BLOCK", size)
        found = {
            name: [*part] if name == "b" else part
            for name, part in Reader(io.StringIO(text)).members(("b",))
        }
    assert found == expected


@given(st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3), max_size=4))
def test_entries_are_read_alike_whether_each_has_a_line_or_not(entries):
    texts = [json.dumps(entries), json.dumps(entries, indent=1)]
    texts += [
        f"[{sep.join(map(json.dumps, entries))}{end}]" for sep, end in ((",\n", "\n"), ("\n,", ""))
    ]
    found = []
    for text in texts:
        for name, value in Reader(io.StringIO(f'{{"a": {text}\n}}')).members(("a",)):
            found.append((name, list(value)))
    assert [repr(one) for one in found] == [repr(found[0])] * len(texts)


def test_a_value_longer_than_any_that_was_measured_is_refused(monkeypatch):
    monkeypatch.setattr(json_text, "LONGEST", 1000)
    monkeypatch.setattr(json_text, "BLOCK", 100)
    with pytest.raises(NotJson, match="character 6 "):
        read('{"a": [' + "1," * 1000)


def nested(depth):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def test_evidence_that_is_nested_without_end_is_refused():
    evidence = {"points": nested(DEEPEST - 4)}
    session = make_session(make_result(ordering={"verdict": "unknown", "evidence": evidence}))
    text = "".join(sessions.chunks(session, session.results))
    assert sessions.parse(text, "s").results == session.results
    content = json.loads(text)
    content["results"][0]["newer"] = nested(DEEPEST + 1)
    with pytest.raises(SessionError, match="newer: nested too deeply"):
        sessions.parse(json.dumps(content), "s")
