"""``--setup``: switches of a framework, set after its import, in every process."""

import pytest
from command_line import QUICK, content, dlprof

RUN = ("run", "numpy", "numpy", "--path", "*->asarray", *QUICK)


def test_its_lines_are_run_in_order_and_kept_in_session_and_recipes(tmp_path):
    session = tmp_path / "s.json"
    lines = ("--setup", "a = 1", "--setup", "assert a == 1")
    assert dlprof(*RUN, *lines, "-o", session).code == 0
    kept = content(session)
    assert kept["request"]["settings"]["setup"] == "a = 1\nassert a == 1"
    assert all(
        result["recipe"]["setup"][-1] == "a = 1\nassert a == 1" for result in kept["results"]
    )


@pytest.mark.parametrize(
    ("setup", "code", "said"),
    [
        ("a = (", 2, "--setup is not Python"),
        ("nobody", 4, "NameError: name 'nobody' is not defined"),
        ("import sys; sys.exit(3)", 4, "SystemExit: 3"),
        ("import os; os.abort()", 4, "killed by SIGABRT"),
    ],
)
def test_text_that_fails_is_told_and_blamed_on_no_framework(tmp_path, setup, code, said):
    session = tmp_path / "s.json"
    run = dlprof(*RUN, "--setup", setup, "-o", session)
    assert (run.code, said in run.err) == (code, True)
    assert session.exists() == (code == 4), "what was refused is kept"
