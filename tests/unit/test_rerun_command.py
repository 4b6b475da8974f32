"""The command that measures a finding again: it measures that finding and nothing else."""

import shlex

import pytest
from html_builders import alone, case
from repro_builders import finding_of

from dlprof.protocol.statement import Side, UserCode
from dlprof.ticket.reproducer import pair_command, rerun_command


def command_of(*results, against=None, request=None):
    session = alone(*results, request=request or {})
    places = [at for at in range(len(results)) if at != against]
    return rerun_command(session, finding_of("DLP018", results=places, against=against))


def test_it_names_the_path_the_array_and_the_device():
    assert command_of(case()) == (
        "dlprof run torch numpy --shape 4x4 --device cpu --path 'dlpack->numpy.from_dlpack'"
    )


def test_it_measures_the_case_that_the_finding_is_compared_with():
    results = case("numpy.array(x)"), case(case={"layout": "aligned"})
    words = shlex.split(command_of(*results, against=1))
    paths = [words[at + 1] for at, word in enumerate(words) if word == "--path"]
    assert paths == ["dlpack->numpy.array", "dlpack->numpy.from_dlpack"]
    assert words[words.index("--layout") + 1] == "C,aligned"


def test_it_repeats_placements_setup_and_probe_files():
    settings = {"placements": ["convert", "in-loop"], "setup": "torch.set_num_threads(1)"}
    request = {"settings": settings, "probe_files": ["/a b/probe.py"]}
    words = shlex.split(command_of(case(), request=request))
    assert words[words.index("--placement") + 1] == "convert,in-loop"
    assert words[words.index("--setup") + 1] == "torch.set_num_threads(1)"
    assert words[words.index("--probe") + 1] == "/a b/probe.py"


def test_the_users_own_conversion_leads_to_every_path_of_its_frameworks():
    sides = {"producer": Side("torch", "torch"), "consumer": Side("numpy", "numpy")}
    own = UserCode.reference([UserCode("import numpy", "x", "{x}", "y", "native", **sides)])
    session = alone(case(), request={"probe_files": [own]})
    assert pair_command(session) == "dlprof run torch numpy --shape 4x4 --device cpu"
    assert not rerun_command(session, finding_of("DLP018", results=[0]))


@pytest.mark.parametrize(
    "record", [{"dtype": "a\x1bb"}, {"layout": "-o"}, {"producer": "--python=/evil"}]
)
def test_text_unfit_for_a_command_gives_no_command(record):
    assert not command_of(case(case=record))
