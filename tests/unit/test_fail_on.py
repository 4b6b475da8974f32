"""``--fail-on``: which findings end in exit code 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_result

from dlprof.errors import FindingsFailed, FindingsUnknown, UsageError
from dlprof.plan.instruments import ALIGNMENT
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.rules import NEEDS
from dlprof.rules.fail_on import parse
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.unit


def finding(rule="DLP012", name="slow-path", severity="info"):
    return FindingRecord(rule=rule, name=name, severity=severity, results=[0], summary="slow")


@pytest.mark.parametrize("text", ["DLP012", "dlp012", "slow-path", "DLP001,DLP012", "info"])
def test_a_finding_that_was_named_fails(text):
    with pytest.raises(FindingsFailed, match="DLP012 slow-path"):
        parse([text]).check([finding()])


@pytest.mark.parametrize("text", ["DLP001", "warning", "error"])
def test_a_finding_that_was_not_named_passes(text):
    parse([text]).check([finding()])


def test_a_severity_means_all_that_are_worse():
    with pytest.raises(FindingsFailed):
        parse(["warning"]).check([finding(severity="error")])


def test_no_finding_passes():
    parse(["info"]).check([])


def test_an_unknown_word_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'slow-path'"):
        parse(["slow_path"])


def test_the_exit_code_is_one():
    assert FindingsFailed.exit_code == 1


@pytest.mark.parametrize("texts", [[""], [" "], [","], ["DLP001", ""]])
def test_an_empty_word_is_refused_since_it_would_let_everything_pass(texts):
    with pytest.raises(UsageError, match="--fail-on is empty"):
        parse(texts)


UNDIAGNOSED = make_result(lifetime=None, early_write=None)


def test_every_instrument_that_a_rule_needs_is_left_out_with_the_diagnosis():
    assert NEEDS
    assert set(NEEDS.values()) <= set(DIAGNOSIS) - set(ALIGNMENT)


@pytest.mark.parametrize("rule", NEEDS)
def test_a_rule_that_needs_the_diagnosis_is_refused_where_it_is_left_out(rule):
    said = f"--fail-on {rule} needs the diagnosis, which --quick leaves out; add --diagnose"
    with pytest.raises(UsageError, match=said):
        parse([rule, "error"]).check_asked("--quick")


@pytest.mark.parametrize("text", ["DLP012", "DLP018", "warning"])
def test_what_is_found_without_the_diagnosis_is_not_refused(text):
    parse([text]).check_asked("--quick")
    parse([text]).check_looked_for([UNDIAGNOSED])


def test_a_severity_without_the_diagnosis_tells_which_rules_nothing_looks_for():
    assert parse(["warning"]).unlooked().endswith(", ".join(NEEDS))
    assert parse(["DLP020"]).unlooked() == ""


@pytest.mark.parametrize("results", [[], [UNDIAGNOSED]])
def test_a_session_in_which_nothing_looked_for_a_rule_cannot_tell(results):
    with pytest.raises(FindingsUnknown, match="nothing looked for DLP020: not measured: early"):
        parse(["DLP020", "DLP012"]).check_looked_for(results)
    assert FindingsUnknown.exit_code == 3


def test_one_result_that_was_looked_at_is_enough_to_tell():
    parse(["DLP020"]).check_looked_for([UNDIAGNOSED, make_result()])


@pytest.mark.parametrize(("moot", "tells"), [(True, True), (False, False), (None, False)])
def test_an_instrument_that_could_not_tell_has_not_looked(moot, tells):
    unknown = {"verdict": "unknown", "evidence": {"moot": moot, "reason": "it crashed"}}
    results = [make_result(early_write=unknown)]
    if tells:
        parse(["DLP020"]).check_looked_for(results)
    else:
        with pytest.raises(FindingsUnknown):
            parse(["DLP020"]).check_looked_for(results)


def there(producer, consumer, **changes):
    case = make_result().case.model_copy(update={"producer": producer, "consumer": consumer})
    return make_result(**changes).model_copy(update={"case": case})


def test_one_direction_alone_cannot_tell_that_directions_differ():
    with pytest.raises(FindingsUnknown, match=r"nothing looked for DLP013: .* both directions"):
        parse(["asymmetric"]).check_looked_for([there("a", "b"), there("a", "c")])
    parse(["asymmetric"]).check_looked_for([there("a", "b"), there("b", "a")])


@pytest.mark.parametrize(
    "other", [{"shape": (3,)}, {"dtype": "int8"}, {"layout": "F"}, {"device": "cuda"}]
)
def test_directions_of_different_arrays_cannot_tell_that_they_differ(other):
    back = there("b", "a")
    back = back.model_copy(update={"case": back.case.model_copy(update=other)})
    with pytest.raises(FindingsUnknown, match="DLP013"):
        parse(["DLP013"]).check_looked_for([there("a", "b"), back])


def test_directions_of_different_environments_cannot_tell_that_they_differ():
    back = there("b", "a").model_copy(update={"environment": "other"})
    with pytest.raises(FindingsUnknown, match="DLP013"):
        parse(["DLP013"]).check_looked_for([there("a", "b"), back])


def test_a_framework_with_itself_has_no_other_direction():
    with pytest.raises(FindingsUnknown, match="DLP013"):
        parse(["DLP013"]).check_looked_for([there("a", "a")])


def test_without_loops_nothing_tells_that_a_conversion_stands_in_one():
    with pytest.raises(FindingsUnknown, match=r"nothing looked for DLP014: .*--placement"):
        parse(["DLP014"]).check_looked_for([make_result()])


def test_of_several_rules_each_says_what_it_lacks():
    with pytest.raises(FindingsUnknown) as raised:
        parse(["DLP020,DLP010,DLP014"]).check_looked_for([UNDIAGNOSED])
    assert "DLP010, DLP014, DLP020" in str(raised.value)
    for lack in ("lifetime (see --diagnose)", "early write (see --diagnose)", "--placement"):
        assert lack in str(raised.value)


def test_the_documentation_names_every_rule_that_needs_the_diagnosis():
    text = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text()
    assert f"{', '.join([*NEEDS][:-1])} and {[*NEEDS][-1]} need the diagnosis" in text


STEP = make_result(case={"protocol": "step"})


@pytest.mark.parametrize("word", ["error", "info", "DLP008", "DLP016"])
def test_of_steps_no_rule_can_tell(word):
    with pytest.raises(FindingsUnknown, match="rules say nothing of steps"):
        parse([word]).check_looked_for([STEP])
    parse([word]).check_looked_for([STEP, make_result()])


@pytest.mark.parametrize("rule", ["DLP007", "DLP008"])
def test_values_that_nobody_could_read_tell_nothing(rule):
    blind = make_result(values={"verdict": "unknown", "evidence": {}})
    with pytest.raises(FindingsUnknown, match="the values of a result"):
        parse([rule]).check_looked_for([blind])
    parse([rule]).check_looked_for([blind, make_result()])
