"""The session file: a round trip, other versions, and files that are no sessions."""

import gzip
import json
import lzma
import os

import pytest
from builders import make_header, make_result, make_session
from repro_builders import finding_of

from dlprof.errors import SessionError, UsageError
from dlprof.runner.files import begins_as
from dlprof.runner.session import SCHEMA, Note, chunks, load, parse, write


def text_of(header, results):
    return "".join(chunks(header, results))


def refusal(text):
    """The one sentence that a text is refused with."""
    with pytest.raises(SessionError) as caught:
        parse(text, "some.json")
    message = str(caught.value)
    assert message.startswith("some.json ")
    assert len(message.splitlines()) == 1
    return message


def test_unknown_keys_of_a_newer_minor_are_kept():
    content = json.loads(text_of(make_header(), [make_result()]))
    content["novelty"] = {"a": 1}
    content["results"][0]["novelty"] = [1]
    content["results"][0]["case"]["novelty"] = "x"
    content["results"][0]["host_time"]["novelty"] = 2.5
    session = parse(json.dumps(content), "some.json")
    assert json.loads(text_of(session, session.results)) == content


def content_with(schema):
    return json.dumps({**json.loads(text_of(make_header(), [])), "schema": schema})


@pytest.mark.parametrize("schema", ["dlprof.session/1", "dlprof.session/1.0", "dlprof.session/1.7"])
def test_a_newer_minor_version_is_read(schema):
    assert parse(content_with(schema), "some.json").schema_ == schema


@pytest.mark.parametrize("schema", ["dlprof.session/2", "dlprof.session/10.1"])
def test_a_newer_major_version_is_refused_by_name(schema):
    assert f"newer dlprof ({schema})" in refusal(content_with(schema))


@pytest.mark.parametrize(
    "schema", ["dlprof.session/1 ", "dlprof.session/one", "other/1", None, [], "x\ny"]
)
def test_a_foreign_schema_is_refused(schema):
    assert "not a dlprof session" in refusal(content_with(schema))


@pytest.mark.parametrize(
    "text", ["", " ", "hello", "\x00", "<html>", "{'schema': 1}", "[" * 100_000]
)
def test_a_text_that_is_not_json_is_refused(text):
    assert "is not JSON" in refusal(text)


def test_a_session_truncated_at_any_byte_is_refused_and_nothing_else():
    text = text_of(make_header(), [make_result(), make_result("b(x)")])
    assert text.isascii()
    for end in range(len(text.rstrip())):
        refusal(text[:end])


def test_an_invalid_session_is_refused_with_the_place():
    content = json.loads(text_of(make_header(), [make_result()]))
    content["results"][0]["status"] = "fine"
    assert "results.0.status: " in refusal(json.dumps(content))


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    path = tmp_path / "some.json"
    path.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(SessionError, match="UTF-8"):
        load(path)


@pytest.mark.parametrize(("end", "packed"), [(".gz", gzip), (".xz", lzma)])
def test_a_name_says_how_a_session_is_packed_and_its_content_how_it_is_read(tmp_path, end, packed):
    path, other = tmp_path / f"some.json{end}", tmp_path / "other.json"
    write(path, make_header(), [make_result()])
    other.write_bytes(path.read_bytes())
    assert packed.decompress(path.read_bytes()).startswith(b'{"schema"')
    assert load(path).results == load(other).results == [make_result()]
    assert begins_as(path, SCHEMA)


@pytest.mark.parametrize("packed", [gzip, lzma])
def test_a_packed_session_without_its_end_is_refused(tmp_path, packed):
    path = tmp_path / "some.json"
    path.write_bytes(packed.compress(text_of(make_header(), [make_result()]).encode())[:-20])
    with pytest.raises(SessionError, match="its end is missing"):
        load(path)


def test_a_packed_session_fills_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("dlprof.runner.files.MOST_BYTES", 1000)
    path = tmp_path / "some.json"
    path.write_bytes(gzip.compress(bytes(5000)))
    with pytest.raises(SessionError, match="unpacks"):
        load(path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_writing_that_fails_leaves_the_old_file_whole(tmp_path, error):
    def failing():
        yield make_result()
        raise error

    path = tmp_path / "some.json"
    write(path, make_header(), [make_result("old(x)")])
    with pytest.raises((KeyboardInterrupt, UsageError)):
        write(path, make_header(), failing())
    assert load(path).results == [make_result("old(x)")]
    assert [file.name for file in tmp_path.iterdir()] == ["some.json"]


def test_results_are_written_one_at_a_time():
    taken = []

    def results():
        for code in ("a", "b"):
            taken.append(code)
            yield make_result(code)

    pieces = chunks(make_header(), results())
    next(pieces)
    assert taken == []
    next(pieces)
    assert taken == ["a"]


def test_an_older_session_of_several_interpreters_is_refused(tmp_path):
    session = make_session(make_result(), environments=[{"name": "a"}, {"name": "b"}])
    write(tmp_path / "two.json", session, session.results)
    with pytest.raises(SessionError, match="2 interpreters"):
        load(tmp_path / "two.json")


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    write(target, make_header(), [])
    link.symlink_to(target)
    write(link, make_header(), [make_result()])
    assert link.is_symlink()
    assert load(target).results == [make_result()]


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "some.json"
    write(path, make_header(), [])
    path.chmod(0o600)
    write(path, make_header(), [make_result()])
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path):
    path = tmp_path / "some.json"
    before = os.umask(0o027)
    try:
        write(path, make_header(), [])
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_steers_a_terminal_is_escaped_when_a_session_is_read():
    odd = "a\x1b[31m\u202eb\ud800"
    session = make_session(make_result(notes=["NOTE"], reason="two\nlines"))
    text = "".join(chunks(session, session.results)).replace("NOTE", json.dumps(odd)[1:-1])
    (result,) = parse(text, "s").results
    assert result.notes == [Note("a\\x1b[31m\\u202eb\\ud800")]
    assert result.reason == "two\nlines"


def test_a_note_knows_its_instrument_and_is_written_as_it_was_read():
    texts = ["values: TypeError: no", "after others: no", "stopped"]
    result = make_result(notes=texts)
    assert [one.instrument for one in result.notes] == ["values", "", ""]
    assert result.model_dump(mode="json")["notes"] == texts


def test_a_finding_keeps_only_results_that_the_session_has():
    named = finding_of("DLP018", results=[0, 7, -1], against=9)
    (read,) = make_session(make_result(), findings=[named]).findings
    assert (read.results, read.against) == ([0], None)
