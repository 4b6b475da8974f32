"""The command on a card of the HTML report: it measures this finding again, and nothing else."""

from __future__ import annotations

import json
import shlex

import pytest
from builders import make_record
from html_builders import US, alone, case
from rule_builders import owned

from dlprof.plan.pairing import choose
from dlprof.protocol.own_code import OwnCode, Side
from dlprof.reports.html import again
from dlprof.reports.html.entry import entries

pytestmark = pytest.mark.unit


def command_of(*results, against=None, rule="DLP018", request=None, **changes):
    session = alone(*results, request=request or {}, **changes)
    found = entries(session)
    return again.command(found, session, found[against] if against else None, rule)


def paths_of(command):
    words = shlex.split(command)
    return [words[at + 1] for at, word in enumerate(words) if word == "--path"]


def test_it_names_the_path_the_array_and_the_device():
    assert command_of(case()) == (
        "dlprof run torch numpy --shape 4x4 --dtype float32 --layout C --device cpu"
        " --path 'dlpack->numpy.from_dlpack'"
    )


def test_a_path_matches_itself_whatever_its_name_holds():
    record = make_record(export="a[0]*", **{"import": "what?"})
    command = command_of(case(case={"export": "a[0]*", "import": "what?"}))
    (glob,) = paths_of(command)

    class Path:
        name, code = f"{record['export']}->{record['import']}", ""

    class Other:
        name, code = "a0b->whats", ""

    assert choose([Path, Other], [glob]) == [Path]


def test_what_it_is_compared_with_is_measured_too():
    results = case("numpy.array(x)"), case(case={"layout": "aligned"})
    command = command_of(*results, against=1)
    assert paths_of(command) == ["dlpack->numpy.array", "dlpack->numpy.from_dlpack"]
    assert "--layout C,aligned" in command


def test_both_directions_are_measured_where_they_are_compared():
    back = case(case={"producer": "numpy", "consumer": "torch"})
    assert command_of(case(), back, against=1).startswith("dlprof run torch,numpy numpy,torch ")


def test_many_paths_make_no_endless_command():
    many = [case(f"numpy.way{number}(x)") for number in range(30)]
    assert len(paths_of(command_of(*many))) == again.MOST_PATHS


def test_other_arrays_of_the_finding_are_not_measured_again():
    assert "--shape 4x4 " in command_of(case(), case(shape=(8,)))


def test_a_view_of_an_aligned_source_is_looked_for_at_an_aligned_address():
    assert "--layout C,aligned" in command_of(case(ownership=owned("view", alignment=64)))
    assert "--layout C --" in command_of(case(ownership=owned("view", alignment=64)), rule="DLP008")
    assert "--layout C --" in command_of(case(ownership=owned("view", alignment=16)))
    copy = case(ownership=owned("copy", alignment=64))
    assert "--layout C --" in command_of(copy)
    view = case("numpy.asarray(x)", ownership=owned("view", alignment=64))
    assert "--layout C,aligned" in command_of(copy, view, against=1)


def test_a_finding_on_loops_is_measured_in_loops():
    request = {"settings": {"placements": ["convert", "in-loop", "hoisted"]}}
    assert "--placement convert,in-loop,hoisted" in command_of(case(), request=request)


def test_the_interpreter_is_named_where_there_are_several():
    environments = [{"name": "a", "executable": "/a b/python"}, {"name": "b"}]
    command = command_of(case(environment="a"), environments=environments)
    assert command.endswith("--python '/a b/python'")
    assert command_of(case(environment="b"), environments=environments) is None


@pytest.mark.parametrize(("parent", "named"), [("3.12.1", True), ("3.11.7", False), (None, False)])
def test_another_python_than_dlprofs_own_is_named(parent, named):
    environment = {"python": "3.11.7", "parent_python": parent}
    request = {"python": "/other/python"}
    command = command_of(case(), request=request, environment=environment)
    assert command.endswith(" --python /other/python") == named


def own(**changes):
    fields = {"setup": "import numpy\nx = 'it''s'", "source": "x", "export": "{x}", "import_": "y"}
    sides = {"producer": Side("torch", "torch"), "consumer": Side("numpy", "numpy")}
    return OwnCode(**{**fields, "protocol": "native", **sides, **changes}).reference()


def test_a_conversion_of_ones_own_is_timed_again_with_its_setup():
    request = {"probe_files": [own()]}
    command = command_of(case(), request=request, command=["time", "numpy.asarray(x)"])
    assert shlex.split(command) == [
        *("dlprof", "time", "-s", "import numpy\nx = 'it''s'"),
        *("--source", "x", "numpy.asarray(x)"),
    ]


@pytest.mark.parametrize("text", ["code:", "code:[]", "code:{}", own(setup="a\x1bb")])
def test_no_command_is_made_of_code_that_is_none(text):
    request = {"probe_files": [text]}
    assert command_of(case(), request=request, command=["time", "numpy.asarray(x)"]) is None


@pytest.mark.parametrize(
    "words",
    [
        {"producer": "--python=/evil"},
        {"consumer": "a;rm -rf"},
        {"dtype": "$(x)"},
        {"layout": "-o"},
        {"device": "tpu"},
        {"export": "-o"},
        {"import": "a\nb"},
        {"import": "x" * 9000},
    ],
)
def test_no_command_is_made_of_words_that_are_no_names(words):
    assert command_of(case(case=words)) is None


def test_probe_files_are_part_of_the_command():
    found = command_of(case(), request={"probe_files": ["/a b/probe.py"]})
    assert " --probe '/a b/probe.py' " in found


@pytest.mark.parametrize("files", ["text", [3], ["relative.py"], ["/a\nb"], ["synthetic"]])
def test_no_command_is_made_of_probe_files_that_are_none(files):
    assert command_of(case(), request={"probe_files": files}) is None


@pytest.mark.parametrize("word", ["'", '"', "$(touch x)", "`x`", "!!", "a b", "\\", "#", "~"])
def test_a_shell_reads_each_word_as_it_was(word):
    command = command_of(case("numpy.slow(x)", 2 * US, case={"import": word}))
    assert paths_of(command) == [f"dlpack->{word}"]
    assert json.dumps(shlex.split(command))


def test_what_was_run_after_the_imports_is_run_again():
    setup = "torch.set_num_threads(1)"
    command = command_of(case(), request={"settings": {"setup": setup}})
    words = shlex.split(command)
    assert words[words.index("--setup") + 1] == setup
