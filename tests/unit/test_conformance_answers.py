"""Answers of conformance: a check that fails as an instrument never passes."""

from types import SimpleNamespace

import pytest
from command_line import dlprof

from dlprof.conformance import CHECKS
from dlprof.errors import Unmeasured
from dlprof.runner import conformance as runner
from dlprof.runner import worker_client
from dlprof.runner.evidence import Lost
from dlprof.runner.worker_client import Outcome

PROBE = SimpleNamespace(name="x", version="1", devices=("cpu",), variables={}, reference=("", "x"))
CATALOG = SimpleNamespace(
    python="python", variables={}, interpreter={"python": "3"}, installed=lambda _: PROBE
)
KILLED = Lost(how="killed by SIGSEGV (Segmentation fault)", signal="SIGSEGV")
HUNG = Lost(how="no answer within 60 s", limit_s=60)
FIRST, SECOND, *_ = CHECKS


def conforms():
    return Outcome("ok", None, {"verdict": "holds", "observation": ""}, stage="check")


class Worker:
    """Answers by the name of the check."""

    def __init__(self, answers):
        self.answers = answers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, request, limit_s):
        if request.get("script"):
            return Outcome("ok", None, {"script": "text"}, stage="import")
        return self.answers.get(request["check"], conforms())

    def close(self):
        pass


@pytest.fixture
def found(monkeypatch):
    def found(outcome):
        started = []
        monkeypatch.setattr(
            worker_client, "start", lambda *_: started.append(1) or Worker({SECOND: outcome})
        )
        verdicts = {one.check.name: one for one in runner.conformance(CATALOG, PROBE, "cpu")}
        assert len(verdicts) == len(CHECKS)
        assert {one.verdict for name, one in verdicts.items() if name != SECOND} == {"holds"}
        return verdicts[SECOND].verdict, verdicts[SECOND].observation, len(started)

    return found


@pytest.mark.parametrize("lost", [KILLED, HUNG], ids=["killed", "hung"])
def test_a_crash_is_named_and_retried_in_a_separate_worker(lost, found):
    outcome = Outcome("crashed", "", stage="check", alive=False, lost=lost)
    assert found(outcome) == ("crashed", lost.how, 3)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("failed", "KeyError: 'C'", stage="check"),
        Outcome("failed", "out of memory", stage="check", alive=False),
        Outcome("failed", "a broken pipe", {"verdict": "holds", "observation": ""}, stage="check"),
    ],
    ids=["raises", "no memory", "half"],
)
def test_an_invalid_answer_is_unknown(outcome, found):
    assert found(outcome)[0] == "unknown"


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [("must", "must", 3), ("may", "must", 0), ("may", "may", 3)],
)
def test_an_unknown_clause_is_a_row_of_the_table_and_no_pass(severity, fail_on, code, monkeypatch):
    name = next(one.name for one in CHECKS.values() if one.severity == severity)
    lost = Outcome("failed", "TimeoutError: no answer", stage="check")
    monkeypatch.setattr("dlprof.runner.catalog.inspect_interpreter", lambda *_: CATALOG)
    monkeypatch.setattr(worker_client, "start", lambda *_: Worker({name: lost}))
    ended = dlprof("conformance", "x", "--fail-on", fail_on, COLUMNS=80)
    assert ended.code == code
    assert "1 could not be checked" in ended.said
    (row,) = (line for line in ended.out.splitlines() if line.split()[1:2] == [name])
    assert row.split()[0] == severity


@pytest.mark.parametrize(
    ("severity", "words"),
    [("must", "1 requirement (MUST) not met"), ("should", "1 recommendation (SHOULD) not met")],
)
def test_violated_clauses_are_counted_in_the_words_of_the_standard(severity, words, monkeypatch):
    name = next(one.name for one in CHECKS.values() if one.severity == severity)
    violated = Outcome("ok", None, {"verdict": "violated", "observation": ""}, stage="check")
    monkeypatch.setattr("dlprof.runner.catalog.inspect_interpreter", lambda *_: CATALOG)
    monkeypatch.setattr(worker_client, "start", lambda *_: Worker({name: violated}))
    assert f"x: {words}" in dlprof("conformance", "x", COLUMNS=80).out


def test_a_framework_that_cannot_be_imported_is_not_measured(monkeypatch):
    lost = Outcome("failed", "ImportError: no x", stage="import")
    monkeypatch.setattr(worker_client, "start", lambda *_: Worker({FIRST: lost}))
    with pytest.raises(Unmeasured, match="no x"):
        list(runner.conformance(CATALOG, PROBE, "cpu"))
