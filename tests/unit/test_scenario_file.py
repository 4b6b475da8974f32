"""A scenario file is read, or refused in one sentence that names the line and the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_builders import LEAST, make_scenario

from dlprof.errors import ScenarioError
from dlprof.plan.settings import Settings
from dlprof.scenario.model import Scenario
from dlprof.scenario.read import line_of, parse, read

pytestmark = pytest.mark.unit

READY = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))


def refused(text: str) -> str:
    with pytest.raises(ScenarioError) as error:
        parse(text, "s.toml")
    assert "\n" not in str(error.value)
    return str(error.value)


def said(text: str) -> str:
    """Why a text is refused; empty where it is not."""
    try:
        parse(text, "s.toml")
    except ScenarioError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_every_ready_scenario_can_be_read(path):
    assert read(path).question


def test_what_is_not_said_is_as_on_the_command_line():
    scenario, settings = make_scenario(), Settings()
    assert (scenario.rounds, scenario.seed, scenario.timeout, scenario.diagnose) == (
        settings.rounds,
        settings.seed,
        settings.limit_s,
        settings.diagnose,
    )


def test_an_unknown_key_is_named_with_the_nearest_one():
    assert refused(LEAST + 'shape = ["4"]') == (
        "s.toml, line 4: unknown key 'shape': did you mean 'shapes'?"
    )


def test_several_interpreters_are_refused_with_what_to_do_instead():
    text = LEAST + '[[environment]]\nname = "a"\npython = "p"\n'
    assert refused(text).startswith("s.toml, line 4: environment was removed: a session holds one;")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shapes = []", "line 4: shapes is empty: it names nothing to measure"),
        ('rounds = "3"', "line 4: rounds: found '3', expected a whole number"),
        ("rounds = 0", "line 4: rounds: found 0, expected greater than or equal to 1"),
        ("shapes = [true]", "line 4: shapes 1: found true, expected a whole number"),
        ('dtypes = "float32"', "line 4: dtypes: found 'float32', expected a list"),
        ("thresholds = 3", "line 4: thresholds: found 3, expected a table"),
        ('devices = ["gpu"]', "line 4: devices 1: found 'gpu', expected 'auto', 'cpu' or 'cuda'"),
        ('\n\ndtypes = ["float23"]', "line 6: dtypes 1: there is no dtype 'float23'"),
        ('layouts = ["c", "strided", "x"]', "line 4: layouts 3: there is no layout 'x'"),
        ('expect = ["DLP001 tf"]', "line 4: expect 1: expectation 'DLP001 tf' is not like"),
        ("[thresholds]\nslow = 3", "line 5: thresholds, slow: there is no threshold 'slow'"),
        ('[thresholds]\nslow_ratio = "3"', "line 5: thresholds, slow_ratio: found '3', expected"),
        ('paths = ["\\u001b[2J"]', "line 4: paths 1: '\\x1b' cannot be shown in a line"),
        ("paths = []", "line 4: paths is empty: it names nothing to measure"),
        ("[thresholds]\nslow_ratio = -3", "line 5: thresholds, slow_ratio: found -3"),
        (
            'diagnose = false\nexpect = ["DLP001 on tf->*"]',
            "line 5: expect 1: 'DLP001 on tf->*' needs the ordering, which diagnose = false leaves",
        ),
        ("timeout = nan", "line 4: timeout: found nan, expected a finite number"),
    ],
)
def test_a_fault_names_line_key_what_was_found_and_what_was_expected(text, sentence):
    assert sentence in refused(LEAST + text)


def test_a_missing_key_is_named():
    assert refused('title = "t"\npairs = ["a->b"]') == "s.toml: question is missing"


def test_a_syntax_error_names_its_line():
    assert "line 2" in refused('title = "t"\nquestion = \n')


def test_a_number_of_many_digits_is_refused_in_our_words():
    text = f"rounds = {'9' * 5000}"
    assert refused(text) == "s.toml holds a whole number of too many digits"


def test_a_text_that_is_nested_without_end_is_refused_in_our_words():
    assert refused(f"a = {'[' * 20_000}") == "s.toml is nested too deeply for a scenario"


def test_a_byte_order_mark_is_no_part_of_a_scenario(tmp_path):
    path = tmp_path / "marked.toml"
    path.write_bytes(b"\xef\xbb\xbf" + LEAST.encode())
    assert read(path) == parse(LEAST, "a.toml")


def test_several_faults_are_counted():
    assert refused("a = 1\n").endswith("(and 2 more)")


# Contradictions


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('devices = ["auto", "cpu"]', "auto chooses one device: it cannot stand beside others"),
        ('shapes = ["4", "4"]', "'4' stands there twice"),
    ],
)
def test_a_contradiction_is_refused(text, sentence):
    assert sentence in refused(LEAST + text)


def test_round_trips_that_no_report_tells_are_refused():
    assert "told by report 'round trip' alone" in refused(LEAST + "round_trips = 9")


@pytest.mark.parametrize("key", ['placement = ["hoisted"]', 'report = "matrix"', "[thresholds]"])
def test_what_is_about_conversions_is_refused_beside_steps(key):
    text = f'title = "t"\nquestion = "q"\nshapes = ["4x4"]\n{key}\n[[step]]\nframework = "torch"\n'
    assert "is about conversions, and steps are none" in refused(text)


# Files


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ScenarioError, match=r"cannot read the scenario .*: No such file"):
        read(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        read(path)


def test_a_folder_is_told(tmp_path):
    with pytest.raises(ScenarioError, match="Is a directory"):
        read(tmp_path)


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text):
    assert "\n" not in said(text)


@given(
    st.dictionaries(
        st.sampled_from([*Scenario.model_fields, "else"]),
        st.sampled_from(["1", '"a"', "[]", '["a->b"]', "true", "1e400", "{a = 1}", "[[1]]"]),
    )
)
def test_any_content_is_read_or_refused_in_words(content):
    text = "\n".join(f"{key} = {value}" for key, value in content.items())
    assert "\n" not in said(text)


# Lines


def test_a_key_in_a_long_text_is_not_taken_for_one():
    text = 'title = """\nrounds = 1\n"""\nrounds = "x"\n'
    assert line_of(text, ("rounds",)) == 4


def test_the_table_stands_for_a_key_that_is_missing_in_it():
    assert line_of("[a]\n[[b]]\nc = 1\n[[b]]\nd = 1", ("b", 1, "c")) == 4


def test_placements_are_checked_as_on_the_command_line():
    with pytest.raises(ScenarioError, match="line 4: placement 1: there is no placement 'inloop'"):
        make_scenario('placement = ["inloop"]')
    with pytest.raises(ScenarioError, match="line 4: placement is empty"):
        make_scenario("placement = []")
    assert make_scenario('placement = ["hoisted"]').placement == ["hoisted"]


def test_no_round_trips_are_not_asked_for_by_a_zero():
    with pytest.raises(ScenarioError, match="line 4: round_trips: found 0"):
        make_scenario("round_trips = 0")
