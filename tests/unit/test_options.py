"""Options: each has one name, default and check on the command line, in a file and in Python."""

import json
import math
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scenario_builders import make_scenario

from dlprof import api
from dlprof.cli.listing import json_schema, page
from dlprof.errors import UsageError
from dlprof.runner.axes import parse_shape, parse_shapes, shape_text
from dlprof.runner.options import MEASURED, OPTIONS, RUN, read, settle

DOCS = Path(__file__).parents[2] / "docs"


def typed(**options):
    return settle(read(options, typed=True))


def called(**options):
    return api.read(options, MEASURED)


def refusal(make, *arguments, **options) -> str:
    with pytest.raises(UsageError) as caught:
        make(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "python", "value"),
    [
        ("shapes", ["4x4,8", "scalar"], [(4, 4), 8, "scalar"], ((4, 4), (8,), ())),
        ("shapes", ["4x4"], (4, 4), ((4, 4),)),
        ("shapes", ["1Ki..4Ki"], "1Ki..4Ki", ((1024,), (2048,), (4096,))),
        ("dtypes", ["Float32", "int8,float32"], ["float32", "int8"], ("float32", "int8")),
        ("layouts", ["c"], "C", ("C",)),
        ("devices", ["cpu,cuda"], ["cpu", "cuda"], ("cpu", "cuda")),
        ("paths", ["f(x, y)"], ["f(x, y)"], ("f(x, y)",)),
        ("placements", ["Hoisted"], "hoisted", ("hoisted",)),
        ("setup", ["a = 1", "b = 2"], "a = 1\nb = 2", "a = 1\nb = 2"),
        ("rounds", "5", 5, 5),
        ("timeout", "1.5", 1.5, 1.5),
        ("diagnose", False, False, False),
        ("together", True, True, True),
        ("python", sys.executable, Path(sys.executable), sys.executable),
        ("probes", [__file__, __file__], [Path(__file__)], (__file__,)),
    ],
    ids=str,
)
def test_a_value_is_the_same_from_every_source(key, text, python, value):
    assert typed(**{key: text})[key] == value
    assert called(**{key: python})[key] == value


@pytest.mark.parametrize(
    ("line", "key", "text", "python", "words"),
    [
        ('shapes = "40y"', "shapes", ["40y"], "40y", "expected lengths joined by"),
        ('dtypes = ["flot32"]', "dtypes", ["flot32"], ["flot32"], "did you mean 'float32'?"),
        (
            'dtypes = ["float8"]',
            "dtypes",
            ["float8"],
            ["float8"],
            "did you mean 'float8_e4m3fn', 'float8_e5m2'",
        ),
        ('layouts = "x"', "layouts", ["x"], "x", "C, aligned, F"),
        ('devices = "gpu"', "devices", ["gpu"], "gpu", "did you mean 'cuda'"),
        ('placements = "x"', "placements", ["x"], "x", "convert, in-loop"),
        ("rounds = 0", "rounds", "0", 0, "1 to 1,000"),
        ("rounds = 1.5", "rounds", "1.5", 1.5, "1 to 1,000"),
        ("timeout = nan", "timeout", "nan", math.nan, "from 0.1 to"),
        ('probes = "no.py"', "probes", ["no.py"], "no.py", "no.py"),
        ('setup = "a ="', "setup", ["a ="], "a =", "is not Python"),
        ("dtypes = []", "dtypes", [","], [], "leave it out"),
    ],
)
def test_a_wrong_value_gets_the_same_message_everywhere(line, key, text, python, words):
    by_command = refusal(typed, **{key: text})
    by_call = refusal(called, **{key: python})
    by_file = refusal(make_scenario, line)
    assert by_command.startswith(OPTIONS[key].name)
    assert by_call.startswith(key)
    assert by_file.startswith(f"s.toml: {key}")
    assert all(words in one for one in (by_command, by_call, by_file))


def test_a_default_is_declared_once():
    assert typed() == called() == settle(make_scenario().options)


def test_the_last_layer_that_gives_a_value_counts():
    file = make_scenario('shape = "4"\nrounds = 5').options
    values = settle({"sample_ms": 20.0}, file, read({"rounds": "2"}))
    assert (values["shapes"], values["rounds"], values["sample_ms"]) == (((4,),), 2, 20.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (3, True)),
        ({"devices": "simulated"}, (1, False)),
        ({"devices": "simulated", "rounds": 2, "survey": True}, (2, True)),
        ({"quick": True}, (1, False)),
    ],
    ids=["run", "simulated", "simulated, given", "quick"],
)
def test_defaults_depend_on_the_verb_and_the_device(given, expected):
    values = settle(read(given), known=RUN)
    assert (values["rounds"], values["survey"]) == expected


def test_an_unknown_option_is_a_type_error_with_the_nearest_name():
    with pytest.raises(TypeError, match=r"'shap'.*'shape'"):
        called(shap="4")


def test_the_page_of_options_is_current():
    assert (DOCS / "options.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", ["session", "trace"])
def test_the_schemas_of_the_documents_are_current(name):
    kept = (DOCS / "schema" / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(kept) == json.loads(json_schema(name)), "make options"


@given(st.lists(st.integers(min_value=0, max_value=2**20), max_size=32))
def test_every_shape_survives_being_written_and_read(shape):
    assume(math.prod(max(length, 1) for length in shape) < 2**50)
    assert parse_shape(shape_text(shape)) == tuple(shape)


@given(st.text(max_size=40) | st.text(alphabet="0123456789KiMGx. by"))
def test_any_text_gives_shapes_or_is_refused_in_one_sentence(text):
    with suppress(UsageError):
        assert parse_shapes(text)
