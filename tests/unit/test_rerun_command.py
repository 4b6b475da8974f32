"""The command that measures a finding again measures that, and nothing else."""

import shlex

import pytest
from html_builders import alone, case

from dlprof.judge.case_view import CaseView
from dlprof.protocol.statement import Side, UserCode
from dlprof.ticket.rerun_command import rerun_command


def command_of(*results, against=None, request=None, **changes):
    session = alone(*results, request=request or {}, **changes)
    cases = [CaseView(index, result) for index, result in enumerate(session.results)]
    compared = cases[against] if against is not None else None
    return rerun_command(cases, session, compared)


def paths_of(command):
    words = shlex.split(command)
    return [words[at + 1] for at, word in enumerate(words) if word == "--path"]


def test_it_names_the_path_the_array_and_the_device():
    assert command_of(case()) == (
        "dlprof run torch numpy --shape 4x4 --dtype float32 --layout C --device cpu"
        " --path 'dlpack->numpy.from_dlpack'"
    )


def test_it_measures_the_case_that_the_finding_is_compared_with():
    results = case("numpy.array(x)"), case(case={"layout": "aligned"})
    command = command_of(*results, against=1)
    assert paths_of(command) == ["dlpack->numpy.array", "dlpack->numpy.from_dlpack"]
    assert "--layout C,aligned" in command


def test_it_repeats_placements_setup_and_probe_files():
    settings = {"placements": ["convert", "in-loop"], "setup": "torch.set_num_threads(1)"}
    request = {"settings": settings, "probe_files": ["/a b/probe.py"]}
    words = shlex.split(command_of(case(), request=request))
    assert words[words.index("--placement") + 1] == "convert,in-loop"
    assert words[words.index("--setup") + 1] == "torch.set_num_threads(1)"
    assert words[words.index("--probe") + 1] == "/a b/probe.py"


def own(**changes):
    fields = {"setup": "import numpy\nx = 'it''s'", "source": "x", "export": "{x}", "import_": "y"}
    sides = {"producer": Side("torch", "torch"), "consumer": Side("numpy", "numpy")}
    return UserCode(**{**fields, "protocol": "native", **sides, **changes}).reference()


def test_it_times_the_users_own_statement_with_its_setup():
    request = {"probe_files": [own()]}
    command = command_of(case(), request=request, command=["time", "numpy.asarray(x)"])
    assert shlex.split(command) == [
        *("dlprof", "time", "numpy.asarray(x)", "-s", "import numpy\nx = 'it''s'"),
        *("--source", "x"),
    ]


@pytest.mark.parametrize(
    ("record", "files"),
    [
        ({"dtype": "a\x1bb"}, []),
        ({"layout": "-o"}, []),
        ({}, ["relative.py"]),
        ({}, ["code:{}"]),
    ],
)
def test_there_is_no_command_for_text_that_is_unfit_for_one(record, files):
    words = ["time", "numpy.asarray(x)"]
    assert command_of(case(case=record), request={"probe_files": files}, command=words) is None


def test_a_name_is_never_an_option():
    words = shlex.split(command_of(case(case={"producer": "--python=/evil"})))
    assert words.index("--") < words.index("--python=/evil")
