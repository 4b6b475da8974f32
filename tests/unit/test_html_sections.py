"""Each section of the HTML report as a function of the session."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from builders import make_session
from html_builders import HANDSHAKE, US, alone, case, full_session, lost, timed
from rule_builders import owned, verdict

from dlprof.reports.cell_text import WHY_DISTURBED
from dlprof.reports.html import (
    brief,
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
from dlprof.reports.html.entry import choose, entries, label_lines, short
from dlprof.reports.html.headline import headline
from dlprof.reports.html.meaning import MEANINGS, meaning
from dlprof.reports.html.page import render
from dlprof.rules import RULES
from dlprof.session.model import FindingRecord, parse

pytestmark = pytest.mark.unit

FROM_TORCH = {"producer": "torch", "consumer": "numpy"}


def headline_of(session):
    return headline(session, entries(session))


def test_an_error_is_the_headline():
    broken = case(values=verdict("wrong", changed={"shape": [[4, 4], [16]]}))
    found = headline_of(alone(broken, case("numpy.asarray(x)")))
    assert found.verdict == "wrong"
    assert found.text == "torch → numpy: wrong in 1 of 2 cases"
    assert found.lead[0].startswith("Worst: numpy.from_dlpack(x)")


def test_a_slow_path_is_a_headline_that_says_that_nothing_is_wrong():
    found = headline_of(alone(case(), case("numpy.slow(x)", 900 * US)))
    assert found.verdict == "warned"
    assert "slow for no reason in 1 of 2 cases" in found.text
    assert "No rule found an error." in found.lead


def test_a_warning_that_has_nothing_to_do_with_time_is_not_called_slow():
    lost = verdict("ok", changed={}, writable={"source": False, "result": True})
    session = alone(case(values=lost, handshake=[]))
    assert headline_of(session).text == "torch → numpy: writable although read-only in 1 of 1 case"
    (card,) = cards.cards(session, entries(session))
    assert (card.rule, card.meaning) == ("DLP009", "writable although read-only")


def test_errors_are_counted_together_and_warnings_by_what_they_are_about():
    rules = [("DLP016", "error", [0]), ("DLP008", "error", [0, 1]), ("DLP003", "error", [2]),
             ("DLP012", "warning", [1, 2]), ("DLP009", "warning", [0]), ("DLP006", "warning", [1]),
             ("DLP016", "info", [1]), ("DLP007", "error", [])]  # fmt: skip
    found = [
        FindingRecord(rule=rule, name="", severity=severity, results=results, summary="")
        for rule, severity, results in rules
    ]
    session = alone(case(), case(), case()).model_copy(update={"findings": found})
    assert headline_of(session).text == (
        "torch → numpy: wrong, unsafe or not coming back in 3 of 3 cases,"
        " slow for no reason in 2, writable although read-only in 1"
    )


@pytest.mark.parametrize(
    ("severity", "words"),
    [("error", "wrong or unsafe"), ("warning", "worth mending"), ("<b>", "<b>")],
)
def test_a_rule_of_a_newer_dlprof_is_told_by_its_severity(severity, words):
    made = FindingRecord(rule="DLP999", name="", severity=severity, results=[0], summary="")
    assert meaning(made) == words


def test_every_rule_that_finds_more_than_what_is_worth_knowing_says_what_it_is_about():
    info_only = {"DLP013", "DLP015", "DLP019"}
    assert MEANINGS.keys() == {rule.id for rule in RULES} - info_only


def test_an_innocent_session_is_not_called_right():
    found = headline_of(alone(case()))
    assert found.verdict == "clear"
    assert "no rule found anything" in found.text


def test_findings_worth_knowing_are_told_in_the_headline():
    made = FindingRecord(rule="DLP018", name="", severity="info", results=[0], summary="")
    found = headline_of(alone(case()).model_copy(update={"findings": [made]}))
    assert found.verdict == "clear"
    assert found.text.endswith(
        "no rule found anything wrong or unsafe in 1 measured case; 1 finding worth knowing"
    )


def test_the_answer_stands_under_the_headline_of_one_array():
    lead = headline_of(alone(case())).lead
    assert lead == ("Cheapest that is safe: numpy.from_dlpack(x), a view, 2.00 ±0.04 µs.",)


def test_a_card_has_claim_evidence_advice_and_a_command():
    session = alone(case(handshake=[]), case("numpy.slow(x)", 900 * US, handshake=[]))
    (card,) = cards.cards(session, entries(session))
    assert (card.number, card.severity, card.rule) == (1, "warning", "DLP012")
    assert card.advice.startswith("<code>numpy.from_dlpack(x)</code> is a view too")
    assert "cost about the same" in card.expected
    assert ("what it costs per call", "900 µs") in card.evidence
    assert [one.entry.index for one in card.cases] == [1]
    assert card.against.entry.index == 0
    assert card.again == (
        "dlprof run torch numpy --shape 4x4 --dtype float32 --layout C --device cpu"
        " --path 'dlpack->numpy.slow' --path 'dlpack->numpy.from_dlpack'"
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
    assert "one process" in cards.timed_text(entries(session))


def test_a_finding_of_what_was_not_measured_claims_no_interval():
    session = alone(lost(status="crashed"))
    assert "No time was measured" in cards.timed_text(entries(session))


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


def many(count):
    """A session of one case and so many findings of it, with numbers in their summaries."""
    session = alone(case(), case("numpy.slow(x)", 900 * US))
    found = [
        session.findings[0].model_copy(update={"summary": f"claim {number}"})
        for number in range(1, count + 1)
    ]
    return session.model_copy(update={"findings": found})


def test_findings_beyond_the_cards_have_a_line_each_and_are_counted_beyond_these():
    session = many(cards.MOST_CARDS + brief.MOST_LINES + 7)
    everything = entries(session)
    assert len(cards.cards(session, everything)) == cards.MOST_CARDS
    found = brief.brief(session, everything)
    assert found.count == brief.MOST_LINES + 7
    assert found.lines[0].summary == f"claim {cards.MOST_CARDS + 1}"
    assert found.lines[0].entry.index == 1
    assert len(found.lines) == brief.MOST_LINES
    assert found.counted == (("warning", "DLP012 slow-path", 7),)


def test_a_card_says_between_which_frameworks():
    one = alone(case(), case("numpy.slow(x)", 900 * US))
    assert cards.cards(one, entries(one))[0].pairs == "torch → numpy"
    both = alone(
        *[
            case(
                case={"producer": name}, values=verdict("wrong", changed={"shape": [[4, 4], [16]]})
            )
            for name in ("a", "b", "c", "d", "e")
        ]
    )
    assert cards.cards(both, entries(both))[0].pairs == "a → numpy, b → numpy and 3 more"


def test_few_findings_are_all_cards():
    session = many(3)
    assert brief.brief(session, entries(session)).count == 0


def test_a_card_says_what_each_process_saw():
    seen = [owned("view", alignment=128), owned("copy", alignment=16)]
    varying_ = verdict("varies", reason="they disagree", processes=seen)
    session = alone(case(ownership=varying_, case={"promise": "copy"}))
    (card,) = [one for one in cards.cards(session, entries(session)) if one.rule == "DLP018"]
    assert card.witnesses == [
        "process 1 of 2: a view: the source began at a multiple of 128 bytes",
        "process 2 of 2: a copy: the source began at a multiple of 16 bytes",
    ]


def test_a_broken_promise_links_to_the_documentation_that_is_broken():
    promised = {"promise": "copy", "consumer": "jax", "import": "device_put_copy"}
    code = "jax.device_put(x, may_alias=False)"
    session = alone(case(code, case={**promised, "import": "device_put_copy"}))
    result = session.results[0]
    record = result.case.model_copy(update={"import_": "device_put_copy"})
    session = session.model_copy(update={"results": [result.model_copy(update={"case": record})]})
    card = cards.cards(session, entries(session))[0]
    assert "will be copied" in card.expected
    assert 'href="https://docs.jax.dev/' in card.expected


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
    found = [
        line.entry.index
        for table in cases.tables(everything)
        for grid in (table.measured, table.apart)
        for line in grid.lines
    ]
    assert sorted(found) == list(range(len(everything)))


def test_a_column_that_is_the_same_in_all_rows_is_lifted_out():
    (table,) = cases.tables(entries(alone(case(), case("numpy.array(x)", owner="copy"))))
    assert table.constant == "4x4 float32 C cpu"
    assert [column.title for column in table.measured.columns][:2] == ["path", "ready"]


def test_the_time_on_the_device_has_a_column_on_cuda():
    device = {"verdict": "ok", "warm": {"median_ns": 12_000.0}, "resolution_ns": 500.0}
    on_cuda = case(device_time=device, case={"device": "cuda"})
    (table,) = cases.tables(entries(alone(on_cuda)))
    place = [column.title for column in table.measured.columns].index("on device")
    assert table.measured.lines[0].cells[place].text == "12.0 µs"


def test_a_broken_promise_stands_in_the_status():
    session = alone(case(case={"promise": "copy"}))
    (table,) = cases.tables(entries(session))
    assert table.measured.lines[0].cells[-1].text == "DLP018: documented: copy"
    assert table.measured.lines[0].kind == "wrong"


def test_a_time_before_a_refusal_stands_apart_with_the_reason():
    refused = case("numpy.late(x)", status="unsupported", reason="TypeError: not twice")
    (table,) = cases.tables(entries(alone(case(), refused)))
    assert [line.entry.index for line in table.measured.lines] == [0]
    (line,) = table.apart.lines
    assert [cell.text for cell in line.cells[1:]] == [
        "unsupported",
        "2.00 ±0.04 µs",
        "TypeError: not twice",
    ]


def test_a_first_call_that_was_none_says_how_many_cases_had_run_before():
    fourth = case(first_call_cases_before=3)
    tables = cases.tables(entries(alone(fourth, case("numpy.first(x)", first_call_cases_before=0))))
    place = [column.title for column in tables[0].measured.columns].index("first call")
    lines = tables[0].measured.lines
    assert [line.cells[place].text for line in lines] == ["50 µs, after 3", "50 µs"]


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
    assert second.took == "1.5 µs"
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


def notes_of(session):
    return {
        one.why: [entry.row.code for entry in one.cases]
        for one in unmeasured.unmeasured(session, entries(session)).notes
    }


def test_the_marks_of_torn_copies_are_explained():
    torn = FindingRecord(
        rule="DLP020", name="unsafe-copy", severity="error", results=[0], summary="torn",
        evidence={"only_where": "the source is not aligned"},
    )  # fmt: skip
    session = alone(case("f(x)", owner="copy"), case("g(x)", owner="copy"), case("view(x)"))
    (one, other), codes = zip(
        *notes_of(session.model_copy(update={"findings": [torn]})).items(), strict=True
    )
    assert one == "DLP020 torn only where the source is not aligned"
    assert other.startswith("DLP020? not seen torn")
    assert codes == (["f(x)"], ["g(x)"])


def test_a_time_that_is_not_known_to_be_the_path_s_own_is_explained():
    stolen = timed(2 * US)
    for process in stolen["processes"]:
        process["disturbed"] = 1.0
    (why,) = notes_of(alone(case("f(x)", host_time=stolen, ready_time=stolen)))
    assert why == WHY_DISTURBED


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


def test_only_packages_that_were_measured_stand_under_the_headline():
    packages = {"torch": "2", "torchvision": "3", "numpy": "1", "jax": "4", "onnxruntime": "5"}
    session = make_session(
        case().model_dump(by_alias=True),
        request={"pairs": [["torch", "numpy"], ["jax", "onnxruntime"]]},
        environment={"python": "3.11.7", "packages": packages},
    )
    assert environment.versions(session) == "Python 3.11.7, torch 2, numpy 1"


def test_a_distribution_of_another_name_is_still_its_frameworks():
    session = make_session(
        case(case={"producer": "tensorflow"}).model_dump(by_alias=True),
        environment={"python": "3", "packages": {"tensorflow-cpu": "2", "tensorflowjs": "9"}},
    )
    assert environment.versions(session) == "Python 3, tensorflow-cpu 2"


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
    names, under = label_lines(everything)
    assert len({*zip(names, under, strict=True)} if under else {*names}) == len(everything)


def test_what_fits_one_line_stands_there():
    names, under = label_lines(entries(alone(case("f(x)"), case("g(x)", shape=(8,)))))
    assert names == ["#0 f(x) 4x4", "#1 g(x) 8"]
    assert under == []


def test_what_tells_arrays_apart_takes_no_room_from_the_code():
    code = "jax.dlpack.from_dlpack(x, copy=False)"
    name = "a-framework-of-a-long-name"
    session = alone(case(code, case={"producer": name}), case(code, shape=(4096, 4096)))
    names, under = label_lines(entries(session))
    assert names == [f"#0 {code}", f"#1 {code}"]
    assert under == [f"{name}→numpy 4x4", "torch→numpy 4096x4096"]


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


def test_the_map_of_cases_that_nobody_diagnosed_calls_them_right_and_not_safe():
    pairs = ({"producer": "torch", "consumer": "numpy"}, {"producer": "numpy", "consumer": "torch"})
    session = alone(*(case(case=pair, lifetime=None) for pair in pairs))
    assert "cheapest safe" not in render(session)
    assert pair_map.said(pair_map.maps(entries(session))) == (
        "right",
        " (nothing looked for races or lost memory)",
    )


def test_a_square_of_which_nothing_could_be_seen_says_so():
    unseen = case(ownership=verdict("unknown"), values=verdict("unknown"))
    found = pair_map.square(entries(alone(unseen)))
    assert (found.verdict, found.kind) == ("nothing to look at", "other")


def test_a_page_on_which_nothing_could_be_seen_calls_nothing_safe_or_clear():
    unseen = case(ownership=verdict("unknown"), values=verdict("unknown"))
    session = alone(unseen)
    found = headline_of(session)
    assert found.verdict == "nothing"
    assert found.lead[-1].endswith("none is called safe.")
    (table,) = cases.tables(entries(session))
    assert table.measured.lines[0].cells[-1].text == "ok: nothing to look at"


def test_the_status_of_a_case_with_an_error_is_the_rule_in_tables_and_on_cards():
    session = alone(case(lifetime=verdict("dangling", changed_after_drop=True)))
    (table,) = cases.tables(entries(session))
    assert table.measured.lines[0].cells[-1].text == "DLP011: not safe"
    assert cards.cards(session, entries(session))[0].cases[0].status == "DLP011"


def calls(*results):
    (table,) = cases.tables(entries(alone(*results)))
    at = [column.title for column in table.measured.columns].index("call")
    return [line.cells[at].text for line in table.measured.lines], table.note


@pytest.mark.parametrize(
    ("call", "ready", "marked"),
    [
        (timed(500 * US, 1), timed(140 * US, 1), True),
        (timed(150 * US, 1), timed(140 * US, 1), True),
        (timed(145 * US, 1), timed(140 * US, 1), False),
        (timed(150 * US), timed(140 * US), True),
        (timed(150 * US, share=0.1), timed(140 * US), False),
        (timed(142 * US, share=0.001), timed(140 * US, share=0.001), False),
        (timed(100 * US), timed(140 * US), False),
    ],
)
def test_a_call_that_takes_longer_than_its_values_is_marked_and_explained(call, ready, marked):
    (text,), note = calls(case(host_time=call, ready_time=ready))
    assert text.startswith("\u2260 ") is marked
    assert ("Trust ready." in note) is marked
