"""A scenario file: read, merged with the command line, and turned into a request."""

import email
import json
from pathlib import Path

import pytest
from builders import make_catalog, make_probe_info
from hypothesis import given
from hypothesis import strategies as st
from scenario_builders import LEAST, make_scenario, make_sweep

from dlprof.errors import UsageError
from dlprof.measuring.judged import in_catalog, pairs, parse_pair
from dlprof.measuring.scenario import Problem, parse, read
from dlprof.runner.options import IN_FILE

ROOT = Path(__file__).parents[2]
READY = sorted((ROOT / "scenarios").glob("*.toml"))
CATALOG = make_catalog(
    make_probe_info("numpy", aliases=("np",)),
    make_probe_info("torch"),
    make_probe_info("jax", found=False),
)
ALIKE = json.__file__, email.__file__  # two files named __init__.py
SHARED = "two steps of one framework"
STEPS = 'title = "t"\nquestion = "q"\n[[step]]\nframework = "torch"\n'


def refused(text: str, least: str = LEAST) -> str:
    with pytest.raises(UsageError) as error:
        make_scenario(text, least)
    assert "\n" not in str(error.value)
    return str(error.value)


def said(text: str) -> str:
    """Return the reason why a text is refused; empty if it is accepted."""
    try:
        parse(text, Path("s.toml"))
    except UsageError as error:
        return str(error)
    return ""


# Reading


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_every_ready_scenario_can_be_read(path):
    assert read(path).problem.question


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shap = 3", "unknown key 'shap': did you mean 'shape"),
        ("\n\nrounds = 0", "rounds 0: "),
        ("shape = 3\nshapes = 4", "shapes is given twice"),
        ('expect = ["DLP001 tf"]', "expectation 'DLP001 tf'"),
        (f"rounds = {'9' * 5000}", "is not TOML: "),
        (f"a = {'[' * 10_000}", "is not TOML: "),
        ("question = ", "is not TOML: "),
    ],
)
def test_a_fault_names_the_file_the_key_and_the_expected_value(text, sentence):
    assert sentence in refused(text)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"\xff\xfe", "can't decode")],
)
def test_a_file_that_is_no_scenario_is_reported(tmp_path, content, reason):
    path = tmp_path / "s.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=reason):
        read(path)


def test_a_probe_file_is_looked_up_next_to_the_scenario(tmp_path):
    (tmp_path / "probe.py").touch()
    found = parse(f'{LEAST}probes = ["probe.py"]', tmp_path / "s.toml")
    assert found.options["probes"] == (str(tmp_path / "probe.py"),)


@given(
    st.dictionaries(
        st.sampled_from([*Problem.model_fields, *(option.key for option in IN_FILE), "else"]),
        st.sampled_from(["1", '"a"', "[]", '["a->b"]', "true", "1e400", "{a = 1}", "[[1]]"]),
    )
)
def test_any_content_is_read_or_refused_with_a_message(content):
    assert "\n" not in said("\n".join(f"{key} = {value}" for key, value in content.items()))


# Contradictions


@pytest.mark.parametrize(
    ("text", "least", "sentence"),
    [
        ("", STEPS, "shapes of the model"),
        ("", f'placement = "hoisted"\nshape = "4"\n{STEPS}', "placements are not for steps"),
        ("", f'pairs = ["a->b"]\n{STEPS}', "it must name one of pairs, step and program"),
        ('pairs = ["torch->nunpy"]', 'title = "t"\nquestion = "q"\n', "did you mean 'numpy'"),
    ],
)
def test_a_contradiction_is_refused(text, least, sentence):
    with pytest.raises(UsageError) as error:
        make_sweep(CATALOG, text, least)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            'framework = "jax"',
            "known are torch, torch.compile, torch.aoti, onnxruntime, torch_tensorrt",
        ),
        ('framework = "onnxruntim"', "did you mean 'onnxruntime'?"),
        ('framework = "torch"\nmodel = "nowhere.py"', "nowhere.py"),
        ('framework = "torch"\nmodel = "/dev/null"', "no model file"),
        ('framework = "torch"\n[[step]]\nframework = "torch"\nthreads = 2', SHARED),
        ("\n[[step]]\n".join(f"framework = 'torch'\nmodel = '{file}'" for file in ALIKE), SHARED),
    ],
)
def test_a_step_that_cannot_be_run_is_refused(step, sentence):
    least = f'title = "t"\nquestion = "q"\nshape = "4"\n[[step]]\n{step}'
    with pytest.raises(UsageError) as error:
        make_sweep(CATALOG, least=least)
    assert sentence in str(error.value)


# Pairs


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["torch->numpy"], [("torch", "numpy")]),
        (["torch->np", "torch->numpy"], [("torch", "numpy")]),
        (["torch<->numpy"], [("torch", "numpy"), ("numpy", "torch")]),
        (["t*->*"], [("torch", "numpy"), ("torch", "torch")]),
        (["jax->numpy"], [("jax", "numpy")]),
        (["j*->numpy"], []),
    ],
    ids=str,
)
def test_a_pair_is_named_by_names_aliases_and_globs(texts, found):
    patterns = [in_catalog(parse_pair(one), CATALOG) for one in texts]
    assert pairs(patterns, ["numpy", "torch"]) == tuple(found)


# The request


def test_the_session_keeps_expectations_in_names_of_the_catalog():
    request = make_sweep(CATALOG, 'expect = ["DLP001 on *->np"]').request
    assert request.scenario.expect == ("DLP001 on *->numpy",)


def test_the_command_line_overrides_the_file():
    found = make_sweep(CATALOG, "rounds = 5\nshape = 8", rounds="2").request
    assert (found.settings.rounds, found.axes.shapes) == (2, ((8,),))
