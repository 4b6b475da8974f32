"""``--fail-on``: which findings end in exit code 1, and when nothing can tell."""

import pytest
from builders import make_result
from repro_builders import finding_of

from dlprof.errors import FindingsFailed, FindingsUnknown, UsageError
from dlprof.judge import NEED_SURVEY, NEED_TIMES, NEEDS
from dlprof.judge.fail_on import parse
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.schedule import ALIGNMENT


@pytest.mark.parametrize("text", ["DLP012", "dlp012", "slow-path", "DLP001,DLP012", "info"])
def test_a_finding_that_was_named_fails(text):
    with pytest.raises(FindingsFailed, match="DLP012 slow-path"):
        parse([text]).check([finding_of("DLP012", severity="info")])
    assert FindingsFailed.exit_code == 1


@pytest.mark.parametrize("text", ["DLP001", "warning", "error"])
def test_a_finding_that_was_not_named_passes(text):
    parse([text]).check([finding_of("DLP012", severity="info")])


def test_a_severity_means_all_that_are_worse():
    with pytest.raises(FindingsFailed):
        parse(["warning"]).check([finding_of("DLP012")])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["slow_path"], "did you mean 'slow-path'"),
        ([""], "--fail-on is empty"),
        ([","], "--fail-on is empty"),
        (["DLP001", ""], "--fail-on is empty"),
    ],
)
def test_an_unknown_or_empty_word_is_refused(texts, words):
    with pytest.raises(UsageError, match=words):
        parse(texts)


def test_every_instrument_that_a_rule_needs_is_left_out_with_the_diagnosis():
    assert set(NEEDS.values()) <= set(DIAGNOSIS) - set(ALIGNMENT)


def test_a_rule_that_needs_the_diagnosis_is_refused_where_it_is_left_out():
    for rule in NEEDS:
        with pytest.raises(UsageError, match=f"{rule} needs the diagnosis"):
            parse([rule, "error"]).check_asked(diagnosed=False, timed=True)
    parse(["DLP012,DLP018,warning"]).check_asked(diagnosed=False, timed=True)


def test_a_severity_without_the_diagnosis_tells_which_rules_nothing_looks_for():
    told = parse(["warning"]).unlooked(diagnosed=False, timed=True, surveyed=True)
    assert told.endswith(", ".join(NEEDS))
    assert parse(["DLP020"]).unlooked(diagnosed=False, timed=True, surveyed=True) == ""


@pytest.mark.parametrize(("severity", "rules"), [("error", ["DLP026"]), ("info", NEED_SURVEY)])
def test_a_severity_without_the_survey_tells_which_of_its_rules_nothing_looks_for(severity, rules):
    told = parse([severity]).unlooked(diagnosed=True, timed=True, surveyed=False)
    assert told == f"--fail-on: there is no survey, so nothing looks for {', '.join(rules)}"


def on_device(**fields):
    """A copy from the device to the device."""
    copy = {"verdict": "copy", "evidence": {"result_device": "cuda"}}
    return make_result(case={"device": "cuda"}, ownership=copy, **fields)


def test_a_bounce_inside_of_calls_that_nothing_traced_is_no_pass():
    no_trace = {"verdict": "no trace", "evidence": {"reason": "no cupti-python"}}
    with pytest.raises(FindingsUnknown, match=r"DLP006: not measured: .*cupti"):
        parse(["DLP006"]).check_looked_for([on_device(trace=no_trace)])
    traced = {"verdict": "traced", "evidence": {"events": []}}
    parse(["DLP006"]).check_looked_for([on_device(trace=traced), on_device(trace=no_trace)])
    parse(["DLP006"]).check_looked_for([make_result()])


@pytest.mark.parametrize("rule", NEED_TIMES)
def test_a_rule_on_times_never_passes_on_a_simulated_device(rule):
    untimed = make_result(median_ns=None, untimed=True)
    assert {"DLP004", "DLP012", "DLP019"} <= set(NEED_TIMES)
    with pytest.raises(UsageError, match=f"{rule} needs times"):
        parse([rule]).check_asked(diagnosed=True, timed=False)
    with pytest.raises(FindingsUnknown, match=r"times.* simulated"):
        parse([rule]).check_looked_for([untimed])
    assert rule in parse(["info"]).unlooked(diagnosed=True, timed=False, surveyed=True)


def unknown(**evidence):
    return {"verdict": "unknown", "evidence": {"reason": "it crashed", **evidence}}


def there(producer, consumer, **array):
    return make_result(case={"producer": producer, "consumer": consumer, **array})


UNDIAGNOSED = make_result(lifetime=None, early_write=None)
STEP = make_result(case={"protocol": "step"})
BLIND = make_result(values={"verdict": "unknown", "evidence": {}})


@pytest.mark.parametrize(
    ("rule", "results", "lack"),
    [
        ("DLP020", [], "early write"),
        ("DLP020", [UNDIAGNOSED], "early write"),
        ("DLP020", [make_result(early_write=unknown())], "early write"),
        ("DLP013", [there("a", "b"), there("a", "c")], "both directions"),
        ("DLP013", [there("a", "a")], "both directions"),
        ("DLP013", [there("a", "b"), there("b", "a", shape=(3,))], "both directions"),
        ("DLP013", [there("a", "b"), there("b", "a", dtype="int8")], "both directions"),
        ("DLP014", [make_result()], "--placement"),
        ("DLP007", [BLIND], "values"),
        ("DLP008", [BLIND], "values"),
        ("DLP008", [STEP], "steps"),
        ("error", [STEP], "steps"),
        ("DLP010,DLP014", [UNDIAGNOSED], r"lifetime .*; .*--placement"),
    ],
)
def test_a_session_in_which_nothing_looked_for_a_rule_cannot_tell(rule, results, lack):
    with pytest.raises(FindingsUnknown, match=f"nothing looked for .*{lack}"):
        parse([rule]).check_looked_for(results)
    assert FindingsUnknown.exit_code == 3


@pytest.mark.parametrize(
    ("rule", "results"),
    [
        ("DLP020", [UNDIAGNOSED, make_result()]),
        ("DLP020", [make_result(early_write=unknown(moot=True))]),
        ("DLP013", [there("a", "b"), there("b", "a")]),
        ("DLP008", [STEP, BLIND, make_result()]),
        ("error", [STEP, make_result()]),
        ("DLP012,DLP018,warning", [UNDIAGNOSED]),
    ],
)
def test_one_result_that_was_looked_at_is_enough_to_tell(rule, results):
    parse([rule]).check_looked_for(results)


def told(layout="C", source=None, result=None, **values):
    """A view, with what was seen besides its values."""
    writable = {"source": source, "result": result, "immutable": False}
    evidence = {"writable": writable, **values}
    return make_result(
        case={"layout": layout, "shape": (6, 10)},
        values={"verdict": "ok", "evidence": evidence},
        ownership={"verdict": "view", "evidence": {}},
    )


ASKED = [{"call": "__dlpack__", "outcome": "returned"}, {"call": "import", "outcome": "returned"}]
UNASKED = ASKED[1:]
DEAF = [{"call": "import", "outcome": "TypeError: no array"}]


@pytest.mark.parametrize(
    ("rule", "results", "lack"),
    [
        ("DLP009", [told(source=True, result=True)], "read-only array"),
        ("DLP009", [told("readonly")], "result can be written"),
        ("DLP009", [told("readonly", result=True)], "source and result can be written"),
        ("DLP015", [make_result(case={"protocol": "array-interface"})], "handshake of a path"),
        ("DLP015", [make_result()], "no handshake was recorded"),
        ("DLP015", [make_result(notes=["handshake: it broke"])], "it broke"),
        ("DLP015", [make_result(handshake=UNASKED)], "asked nothing"),
        ("DLP015", [make_result(handshake=DEAF)], "TypeError: no array"),
        ("DLP021", [told()], "mask"),
        ("DLP022", [told(source=None, result=True)], "whether it can be written"),
        ("DLP022", [told(source=True)], "result can be written"),
        ("DLP023", [make_result(case={"protocol": "numpy"})], "a path by DLPack"),
        ("DLP023", [make_result(status="unsupported", reason="no")], "no handshake was recorded"),
        ("DLP028", [told()], "column-major"),
        ("DLP029", [make_result()], "whether it can be written"),
        ("DLP028", [told("F")], "the order of source and result"),
    ],
)
def test_without_an_array_or_a_record_that_could_show_it_a_rule_does_not_pass(rule, results, lack):
    with pytest.raises(FindingsUnknown, match=f"nothing looked for {rule}: .*{lack}"):
        parse([rule]).check_looked_for(results)


@pytest.mark.parametrize(
    ("rule", "results"),
    [
        ("DLP009", [told(), told("readonly", source=False, result=False)]),
        (
            "DLP009",
            [make_result(case={"layout": "readonly"}, status="unsupported", reason="no")],
        ),
        ("DLP015", [make_result(handshake=ASKED)]),
        ("DLP021", [told("masked")]),
        ("DLP022", [told(source=True, result=True)]),
        ("DLP023", [make_result()]),
        ("DLP028", [told("F", orders=["F", "F"])]),
    ],
)
def test_an_array_or_a_record_that_could_show_it_is_enough(rule, results):
    parse([rule]).check_looked_for(results)
    assert parse([rule]).unknown(results) == ""


def test_a_severity_names_its_rules_for_which_no_array_was_there_and_does_not_fail():
    results = [told(source=True, result=True)]
    said = parse(["error"]).lacking(results)
    assert said.startswith("nothing looked for DLP009: not measured: a read-only array")
    assert "DLP028" not in said
    assert "DLP028" in parse(["info"]).lacking(results)
    parse(["error"]).check_looked_for(results)


@pytest.mark.parametrize(
    ("words", "results"),
    [
        (["error"], [told("readonly", source=False, result=False)]),
        (["DLP009"], [told(source=True, result=True)]),
        (["error"], [STEP]),
    ],
    ids=["a read-only array", "a rule that was named", "steps alone"],
)
def test_a_severity_does_not_name_what_was_looked_for_or_fails_by_itself(words, results):
    assert parse(words).lacking(results) == ""


def at(path, **fields):
    return make_result(case={"import": path}, **fields)


LOST = at("lost", lifetime=unknown(), early_write=unknown())
SURVEYED = make_result(case={"survey": True}, lifetime=None, early_write=None)


@pytest.mark.parametrize(
    ("rule", "results", "said"),
    [
        ("DLP011", [at("f"), LOST, at("g")], "DLP011 unknown for 1 of 3 conversions (it crashed)"),
        ("DLP010,DLP011", [at("f"), LOST], "DLP010, DLP011 unknown for 1 of 2 conversions"),
        ("error", [at("f"), LOST], "DLP010, DLP011, DLP020 unknown for 1 of 2 conversions"),
        ("DLP011", [at("f"), at("g", lifetime=None, notes=["lifetime: no"])], "(no)"),
        (
            "DLP011",
            [at("f"), at("g", lifetime=None, status="skipped", reason="stopped")],
            "stopped",
        ),
        ("DLP008", [at("f"), BLIND], "DLP008 unknown for 1 of 2 conversions"),
    ],
)
def test_a_rule_that_could_not_tell_for_each_conversion_says_for_how_many_and_why(
    rule, results, said
):
    parse([rule]).check_looked_for(results)
    assert said in parse([rule]).unknown(results)


@pytest.mark.parametrize(
    ("rule", "results"),
    [
        ("DLP012", [at("f"), LOST]),
        ("DLP020", [at("f"), at("g", early_write=unknown(moot=True))]),
        ("DLP011", [at("f"), at("f", lifetime=None)]),
        ("DLP011", [at("f"), SURVEYED]),
        ("DLP011", [at("f"), at("g", lifetime=None, status="unsupported", reason="no")]),
        ("DLP026", [at("f", refusal={"verdict": "clean"}), at("g", refusal=None)]),
        ("DLP024", [at("f", refusal=unknown(error=["TypeError"]))]),
        ("DLP014", [at("f")]),
    ],
    ids=[
        "another rule",
        "nothing to look at",
        "another shape",
        "a survey",
        "refused",
        "not refused",
        "its error is known",
        "nothing looked for it",
    ],
)
def test_what_a_rule_need_not_look_at_is_not_unknown(rule, results):
    assert parse([rule]).unknown(results) == ""


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("skipped", "dlprof or a probe failed in values.py, line 3: TypeError: no"),
        ("crashed", "the probe is faulty: no name"),
    ],
)
def test_a_conversion_for_which_an_instrument_failed_passes_nothing(status, reason):
    lost = make_result("g", None, status=status, reason=reason)
    with pytest.raises(FindingsUnknown, match=f"1 of 2 conversions not wholly looked at: {reason}"):
        parse(["DLP016"]).check_looked_for([make_result("f"), lost])


@pytest.mark.parametrize("reason", ["not tried: its array cannot be made", "too large"])
def test_a_conversion_that_could_not_be_tried_fails_nothing(reason):
    skipped = make_result("g", None, status="skipped", reason=reason)
    parse(["DLP016"]).check_looked_for([make_result("f"), skipped])


def test_an_instrument_that_a_probe_failed_passes_nothing():
    note = "ownership: the probe is faulty: what x's pointer returns must be an address, not -1"
    with pytest.raises(FindingsUnknown, match="1 of 1 conversion not wholly looked at: the probe"):
        parse(["DLP016"]).check_looked_for([make_result("f", notes=[note])])
