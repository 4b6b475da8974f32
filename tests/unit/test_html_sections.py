"""Each section of the HTML report as a function of the session."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from builders import make_session
from html_builders import HANDSHAKE, US, alone, case, full_session, lost, timed
from rule_builders import verdict

from dlprof.reports.html import (
    again,
    cards,
    cases,
    embedded,
    environment,
    evidence,
    pair_map,
    rule_page,
    transcript,
    unmeasured,
)
from dlprof.reports.html.entry import choose, entries, labels, short
from dlprof.reports.html.headline import headline
from dlprof.rules import RULES
from dlprof.session import parse

pytestmark = pytest.mark.unit

FROM_TORCH = {"producer": "torch", "consumer": "numpy"}


def headline_of(session):
    return headline(session, entries(session))


def test_an_error_is_the_headline():
    broken = case(values=verdict("wrong", changed={"shape": [[4, 4], [16]]}))
    found = headline_of(alone(broken, case("numpy.asarray(x)")))
    assert found.verdict == "wrong"
    assert found.text == "torch → numpy: wrong or unsafe in 1 of 2 cases"
    assert found.lead[0].startswith("Worst: numpy.from_dlpack(x)")


def test_a_slow_path_is_a_headline_that_says_that_nothing_is_wrong():
    found = headline_of(alone(case(), case("numpy.slow(x)", 900 * US)))
    assert found.verdict == "slow"
    assert "slow for no reason in 1 of 2 cases" in found.text
    assert "No rule found anything wrong or unsafe." in found.lead


def test_an_innocent_session_is_not_called_right():
    found = headline_of(alone(case()))
    assert found.verdict == "clear"
    assert "no rule found anything" in found.text


def test_the_answer_stands_under_the_headline_of_one_array():
    lead = headline_of(alone(case())).lead
    assert lead == ("Cheapest that is safe: numpy.from_dlpack(x), a view, 2.00 ±0.04 us.",)


def test_a_card_has_claim_evidence_advice_and_a_command():
    session = alone(case(handshake=[]), case("numpy.slow(x)", 900 * US, handshake=[]))
    (card,) = cards.cards(session, entries(session))
    assert (card.number, card.severity, card.rule) == (1, "warning", "DLP012")
    assert card.advice.startswith("numpy.from_dlpack(x) is a view too")
    assert ("cost per call", "900 us") in card.evidence
    assert [one.entry.index for one in card.cases] == [1]
    assert card.again == (
        "dlprof run torch numpy --shape 4x4 --dtype float32 --layout C --device cpu"
    )


def test_a_rule_is_explained_at_its_first_finding_only():
    session = full_session()
    found = cards.cards(session, entries(session))
    explained = [card.rule for card in found if card.about]
    assert sorted(explained) == sorted({card.rule for card in found})


def test_cases_beyond_the_first_are_folded_and_not_cut():
    slow = [case(f"numpy.slow{number}(x)", 900 * US) for number in range(9)]
    session = alone(case(), *slow)
    card = cards.cards(session, entries(session))[0]
    assert len(card.cases) + len(card.more) == 9


def test_one_process_is_said_to_be_one():
    once = case(rounds=[0], host_time=timed(US, rounds=1))
    session = alone(once)
    assert "one process" in cards.sure_text(entries(session), "DLP012")


def test_what_the_diagnosis_saw_is_not_said_to_be_repeated():
    found = cards.sure_text(entries(alone(case())), "DLP001")
    assert found.startswith("The verdict was seen once")
    assert "Timed in 3 fresh processes" in found


def test_a_finding_of_what_was_not_measured_claims_no_interval():
    session = alone(lost(status="crashed"))
    assert "No time was measured" in cards.sure_text(entries(session), "DLP016")


@pytest.mark.parametrize(
    "words",
    [
        {"producer": "--python=/evil"},
        {"consumer": "a;rm -rf"},
        {"dtype": "$(x)"},
        {"layout": "-o"},
        {"device": "tpu"},
    ],
)
def test_no_command_is_made_of_words_that_are_no_names(words):
    assert again.command(entries(alone(case(case=words))), {}) is None


def test_probe_files_are_part_of_the_command():
    found = again.command(entries(alone(case())), {"probe_files": ["/a b/probe.py"]})
    assert found.endswith("--probe '/a b/probe.py'")


@pytest.mark.parametrize("files", ["text", [3], ["relative.py"], ["/a\nb"], ["synthetic"]])
def test_no_command_is_made_of_probe_files_that_are_none(files):
    assert again.command(entries(alone(case())), {"probe_files": files}) is None


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("cost_ns", 63_950_123.0, "64 ms"),
        ("size_bytes", 2**22, "4 MiB"),
        ("broken", 2, "2"),
        ("ratio", 2.34567, "2.35"),
        ("wrong_values", True, "yes"),
        ("streams", None, "-"),
        ("changed", ["shape", "dtype"], "shape, dtype"),
        ("changed", {}, "-"),
        ("deep", [[[[[1]]]]], "((…))"),
        ("limit_s", 60.0, "60 s"),
        ("shapes", [[1024, 1024], [1]], "(1024, 1024), (1)"),
        ("settings", {"sample_ns": 6e7, "budget_s": None}, "sample: 60 ms; budget: -"),
        ("nan_ns", float("nan"), "nan"),
        ("many", list(range(20)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"),
    ],
)
def test_evidence_is_shown_with_its_unit(key, value, text):
    assert evidence.value_text(key, value) == text


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_page_is_shown_without_markdown(rule):
    parts = rule_page.parts(rule)
    assert [part.title for part in parts][1] == "Why it matters"
    text = "".join(str(paragraph) for part in parts for paragraph in part.paragraphs)
    assert "`" not in text
    assert "](" not in text


def test_an_unknown_rule_has_no_page():
    assert rule_page.parts("DLP999") == ()


def test_the_map_has_a_square_for_each_pair():
    session = full_session()
    largest = pair_map.maps(entries(session))[2]
    assert largest.consumers == ("numpy", "torch")
    squares = dict(largest.lines)
    assert squares["torch"][0].verdict == "view"
    assert squares["torch"][1] is None


def test_a_square_without_a_safe_case_says_so():
    broken = case(values=verdict("wrong", changed={}))
    assert pair_map.square(entries(alone(broken))).kind == "wrong"


def test_a_square_that_a_finding_calls_unsafe_says_so():
    session = alone(case(lifetime=verdict("dangling", changed_after_drop=True)))
    assert pair_map.square(entries(session)).verdict == "view, not safe"


def test_a_square_of_what_was_not_measured_says_why():
    found = pair_map.square(entries(alone(lost(status="timeout"))))
    assert (found.verdict, found.entry) == ("timeout", None)


def test_a_single_pair_needs_no_map():
    assert pair_map.maps(entries(alone(case()))) == []


def test_tables_hold_every_case_once():
    everything = entries(full_session())
    found = [line.entry.index for table in cases.tables(everything) for line in table.lines]
    assert sorted(found) == list(range(len(everything)))


def test_a_column_that_is_the_same_in_all_rows_is_lifted_out():
    (table,) = cases.tables(entries(alone(case(), case("numpy.array(x)", owner="copy"))))
    assert table.constant == "4x4 float32 C cpu"
    assert [column.title for column in table.columns][:2] == ["path", "ready"]


def test_the_time_on_the_device_has_a_column_on_cuda():
    device = {"verdict": "ok", "warm": {"median_ns": 12_000.0}, "resolution_ns": 500.0}
    on_cuda = case(device_time=device, case={"device": "cuda"})
    (table,) = cases.tables(entries(alone(on_cuda)))
    place = [column.title for column in table.columns].index("on device")
    assert table.lines[0].cells[place].text == "12.0 us"


def test_a_broken_promise_stands_in_the_status():
    session = alone(case(case={"promise": "copy"}))
    (table,) = cases.tables(entries(session))
    assert table.lines[0].cells[-1].text == "ok: documented: copy"
    assert table.lines[0].kind == "wrong"


def test_many_cases_are_folded():
    session = alone(*[case(f"numpy.way{number}(x)") for number in range(cases.OPEN_ROWS + 1)])
    assert not cases.tables(entries(session))[0].open


def test_a_transcript_tells_who_asked_and_what_came():
    (found,) = transcript.transcripts(entries(alone(case(case=FROM_TORCH))))
    first, second, whole = found.steps
    assert first.asked == "numpy asks torch: __dlpack__(stream=None, max_version=(1, 0))"
    assert first.failed
    assert first.answer == "TypeError: no max_version"
    assert second.capsule.startswith("capsule dltensor, dtype float32, shape (1024, 1024)")
    assert "flags read-only, aligned to 64 B" in second.capsule
    assert second.took == "1.5 us"
    assert whole.asked == "numpy: the import as a whole"
    assert found.retried


def test_ways_with_the_same_transcript_stand_together():
    slower = [{**event, "ns": 12345} for event in HANDSHAKE]
    session = alone(case(), case("numpy.array(x)", handshake=slower))
    (found,) = transcript.transcripts(entries(session))
    assert found.codes == ("numpy.from_dlpack(x)", "numpy.array(x)")


def test_a_way_that_is_asked_otherwise_stands_apart():
    session = alone(case(), case("numpy.array(x)", handshake=HANDSHAKE[1:]))
    assert len(transcript.transcripts(entries(session))) == 2


def test_every_reason_is_told_once_with_all_its_cases():
    session = full_session()
    found = unmeasured.unmeasured(session, entries(session))
    assert {(one.what, one.why) for one in found.lost} == {
        ("unsupported", "ValueError: no view …"),
        ("crashed", "SIGSEGV during timing"),
    }
    assert found.left_out == ["no diagnosis of waiting"]
    (unknown,) = found.unknown
    assert (unknown.what, unknown.why, len(unknown.cases)) == (
        "early write",
        "no size was copied",
        3,
    )


def test_a_reason_of_several_lines_is_kept_whole():
    session = full_session()
    found = unmeasured.unmeasured(session, entries(session)).lost
    refusal = next(one for one in found if one.what == "unsupported")
    assert refusal.whole == ("ValueError: no view", "of this array")


def test_the_output_of_a_crash_stands_beside_it():
    session = full_session()
    found = unmeasured.unmeasured(session, entries(session)).lost
    crash = next(one for one in found if one.what == "crashed")
    assert crash.whole[-2:] == ("a", "b")


def test_command_and_seed_stand_in_the_environment():
    blocks = environment.blocks(make_session(seed=11))
    assert {("command", "dlprof run torch numpy"), ("seed", "11")} <= set(blocks[0].lines)


def test_a_quiet_machine_is_not_mentioned():
    assert environment.busy(make_session(foreign_cores=0.1)) == ""


def test_the_embedded_session_can_be_read_again():
    session = full_session()
    found = embedded.embed(session)
    text = gzip.decompress(base64.b64decode(found.packed)).decode()
    assert parse(text, "embedded") == session
    assert parse(str(found.plain).replace("\\u003c", "<"), "plain") == session
    assert found.left_out == ""


def test_a_session_too_large_keeps_five_samples_of_each_process(monkeypatch):
    monkeypatch.setattr(embedded, "PACKED_PER_CASE", 0)
    found = embedded.embed(alone(case()))
    text = gzip.decompress(base64.b64decode(found.packed)).decode()
    result = json.loads(text)["results"][0]
    assert [len(one["samples_ns"]) for one in result["host_time"]["processes"]] == [5, 5, 5]
    assert result["host_time"]["median_ns"] == 2 * US
    assert "5 of its samples" in found.left_out


def test_nothing_in_the_embedded_json_can_end_its_element():
    text = embedded.in_script('{"a": "</script><!-- & -->"}')
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & -->"}


def test_a_chart_of_few_shows_what_findings_name_and_then_the_largest():
    session = full_session()
    everything = [entry for entry in entries(session) if entry.measured]
    chosen = choose(everything, session.findings, 3)
    named = {index for found in session.findings for index in found.results}
    assert {entry.index for entry in chosen} <= named
    by_size = choose(everything, [], 4)
    assert {entry.row.shape for entry in by_size} == {"4096x4096"}


def test_labels_tell_cases_apart():
    everything = [entry for entry in entries(full_session()) if entry.measured]
    found = labels(everything)
    assert len(set(found)) == len(found)


def test_the_middle_of_a_long_call_is_left_out():
    assert short("numpy.from_dlpack(x, device='cpu')", 24) == "numpy.from_dlpa…e='cpu')"


def test_a_large_session_is_thinned_at_once_as_far_as_some_of_it_says(monkeypatch):
    packed = []
    real = embedded._packed
    monkeypatch.setattr(
        embedded, "_packed", lambda content: packed.append(len(content["results"])) or real(content)
    )
    monkeypatch.setattr(embedded, "MANY", 10)
    monkeypatch.setattr(embedded, "PICKED", 5)
    monkeypatch.setattr(embedded, "LEAST_CASES", 1)
    monkeypatch.setattr(embedded, "PACKED_PER_CASE", 1)
    found = embedded.embed(alone(*[case() for _ in range(20)]))
    assert found.left_out == embedded.FIVE
    assert packed.count(20) == 1
    assert set(packed) == {5, 20}
