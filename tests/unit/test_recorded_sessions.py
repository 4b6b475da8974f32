"""Sessions that the first edition wrote still load, and mean what they meant.

They were recorded at 1024x1024 float32 with numpy 2.4.6, torch 2.13.0+cpu, tensorflow-cpu 2.21.0 and
jax 0.10.2. ``safe.json`` holds the paths that the first edition called safe.
"""

import gzip
import json
from pathlib import Path

import pytest

from dlprof.judge import cases_in, find
from dlprof.runner.session import chunks, parse

FOLDER = Path(__file__).parents[1] / "recorded" / "first_edition"
LAST_RULE = "DLP020"
SAFE = json.loads((FOLDER / "safe.json").read_text())


def recorded(name):
    return parse(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()).decode(), name)


def told(findings):
    return sorted((one.rule, one.severity, tuple(one.results)) for one in findings)


@pytest.mark.parametrize("name", SAFE)
def test_the_rules_of_the_first_edition_find_the_same_cases(name):
    session = recorded(name)
    found = [one for one in find(session.results) if one.rule <= LAST_RULE]
    assert told(found) == told(session.findings)


@pytest.mark.parametrize("name", SAFE)
def test_the_same_paths_are_safe(name):
    cases = cases_in(recorded(name).results)
    safe = [case.code for case in cases.cases if cases.safety(case).level == "safe"]
    assert safe == SAFE[name]


@pytest.mark.parametrize("name", SAFE)
def test_a_session_is_the_same_when_it_is_written_again(name):
    session = recorded(name)
    assert parse("".join(chunks(session, session.results)), name) == session
