"""The session file: answers in, results out, and files that are not sessions."""

import json
import lzma
from contextlib import closing
from pathlib import Path

import pytest
from builders import make_answer, make_record, make_result, make_session

from dlprof.errors import SessionError, Unsaved
from dlprof.runner.session_file import SessionFile, document, load, parse

HEADER = {
    "schema": "dlprof.session/1",
    "created": "2026-01-01T00:00:00+00:00",
    "command": ["run", "torch", "numpy"],
    "request": {"settings": {"rounds": 3}},
    "environment": {"python": "3.11.7"},
    "cases": [make_record(), make_record()],
}
END = {"complete": True, "rounds": 3}


@pytest.fixture
def path(tmp_path):
    """A session with two answers."""
    path = tmp_path / "s.json"
    with closing(SessionFile(path, HEADER)) as file:
        file.add(0, 0, make_answer())
        file.add(1, 0, make_answer("unsupported", "TypeError: no"))
        file.finish(END)
    return path


@pytest.fixture
def file(tmp_path):
    with closing(SessionFile(tmp_path / "new.json", HEADER)) as file:
        yield file


def refusal(text):
    """Return the one-sentence message that a text is refused with."""
    with pytest.raises(SessionError) as caught:
        parse(text, "some.json")
    message = str(caught.value)
    assert message.startswith("some.json ")
    assert len(message.splitlines()) == 1
    return message


def test_results_are_merged_when_a_file_is_read(path):
    session = load(path)
    assert [result.status for result in session.results] == ["ok", "unsupported"]
    assert session.complete


def test_a_file_without_an_end_is_a_killed_run(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert not load(path).complete


def test_a_case_without_an_answer_was_not_measured(path):
    header, first, *_ = path.read_text().splitlines()
    session = parse(f"{header}\n{first}\n", "s")
    assert [result.status for result in session.results] == ["ok", "skipped"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda head, first, second, end: (head, first, end),
        lambda head, first, second, end: (head, first, first, second, end),
        lambda head, first, second, end: (head, first, end, second),
        lambda head, first, second, end: (head, first, second.replace('"of": 1', '"of": 2'), end),
        lambda head, first, second, end: (head, first, second.replace('"round": 0', '"round": -1')),
        lambda head, first, second, end: (head, first, head, second, end),
        lambda head, first, second, end: (head, first, "# a comment", second, end),
    ],
    ids=[
        "lost",
        "repeated",
        "after the end",
        "of another run",
        "no round",
        "two headers",
        "foreign",
    ],
)
def test_a_line_that_is_lost_or_of_another_file_is_damage(path, damage):
    lines = damage(*path.read_text().splitlines())
    message = refusal("\n".join((*lines, path.read_text().splitlines()[-1], "")))
    assert "is damaged" in message or "an answer is of no case" in message


def test_the_order_of_answers_does_not_matter(path):
    head, first, second, end = path.read_text().splitlines()
    assert parse(f"{head}\n{second}\n{first}\n{end}\n", "s") == load(path)


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_dropped(path, cut):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1])[:-cut])
    assert [result.status for result in load(path).results] == ["ok", "skipped"]
    with closing(SessionFile(path, HEADER)) as file:
        assert file.needs(1, 0)
        assert not file.needs(0, 0)
        file.add(1, 0, make_answer())
    assert [result.status for result in load(path).results] == ["ok", "ok"]


def test_a_round_is_needed_until_it_was_measured(file):
    assert file.needs(0, 1)
    file.add(0, 1, make_answer())
    assert not file.needs(0, 1)
    assert file.needs(0, 0)


@pytest.mark.parametrize("status", ["unsupported", "crashed", "timeout", "skipped", "invalid"])
def test_a_case_that_did_not_work_is_needed_in_no_round(file, status):
    file.add(0, 0, make_answer(status, "no"))
    assert not any(file.needs(0, round_) for round_ in range(3))


def test_a_full_disk_is_reported_in_one_sentence(file):
    with Path("/dev/full").open("wb", buffering=0) as full:
        file._file.close()
        file._file = full
        with pytest.raises(Unsaved, match="No space left on device"):
            file.add(0, 0, make_answer())
    assert file.is_empty


@pytest.mark.parametrize("schema", ["dlprof.session/2", "other/1", None, [], "x\ny"])
def test_a_foreign_schema_is_refused(schema):
    assert "not a dlprof session" in refusal(json.dumps({**HEADER, "schema": schema}))


@pytest.mark.parametrize("text", ["", " ", "hello", "\x00", "[1]", "{'schema': 1}", "[" * 100_000])
def test_a_text_that_is_not_a_json_object_is_refused(text):
    assert "not a dlprof session" in refusal(text)


@pytest.mark.parametrize("line", ["", "{", "5", '{"of": 0}', "\0\0", '{"end": 5}', "[" * 100_000])
def test_a_damaged_line_is_refused_by_its_number(path, line):
    header, *rest = path.read_text().splitlines(keepends=True)
    assert "damaged in line 2" in refusal(f"{header}{line}\n{''.join(rest)}")


def test_a_broken_answer_is_a_crash_of_its_case(path):
    text = path.read_text().replace('"samples_ns"', '"other"')
    assert parse(text, "s").results[0].status == "crashed"


@pytest.mark.parametrize("cases", [5, [5], [{}], None])
def test_a_header_without_its_cases_is_refused(path, cases):
    text = path.read_text().split("\n", 1)[1]
    assert "is not a valid session" in refusal(f"{json.dumps({**HEADER, 'cases': cases})}\n{text}")


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    path = tmp_path / "some.json"
    path.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(SessionError, match="UTF-8"):
        load(path)


def test_printed_json_is_read_too_even_packed_as_a_page_saves_it(tmp_path):
    session, path = make_session(make_result()), tmp_path / "some.json"
    path.write_text(document(session))
    assert load(path) == session
    path.write_bytes(lzma.compress(document(session).encode()))
    assert load(path) == session
    path.write_bytes(lzma.compress(b"")[:-9])
    with pytest.raises(SessionError):
        load(path)


def test_an_invalid_result_is_refused_with_its_place():
    content = json.loads(document(make_session(make_result())))
    content["results"][0]["status"] = "fine"
    assert "results.0.status: " in refusal(json.dumps(content))


def test_terminal_control_sequences_are_escaped_when_a_session_is_read():
    odd = "a\x1b[31m\u202eb\ud800"
    session = make_session(
        make_result(notes=[{"instrument": "values", "reason": "NOTE"}], reason="two\nlines")
    )
    (result,) = parse(document(session).replace("NOTE", json.dumps(odd)[1:-1]), "s").results
    assert result.notes[0].reason == "a\\x1b[31m\\u202eb\\ud800"
    assert result.reason == "two\nlines"
