"""Each check of ``dlprof conformance`` passes a framework that conforms, and finds one that does not."""

import importlib.util
import sys
from pathlib import Path

import pytest

from dlprof.conformance import consumer, exchange, producer  # noqa: F401 - they declare the checks
from dlprof.conformance.binding import binding
from dlprof.conformance.check import CHECKS, answer

PLAIN = Path(__file__).parents[1] / "probe_files" / "plain.py"
REFUSED = {"lanes-4", "padded-differs"}
"""What the framework refuses, as the standards let it."""
CRASHES = {"deleter-in-thread"}
"""Their faults end the process; see tests/integration/test_conformance_cli.py."""


@pytest.fixture(scope="module")
def plain():
    spec = importlib.util.spec_from_file_location("plain", PLAIN)
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["plain"]


@pytest.fixture
def verdict(plain, monkeypatch):
    def verdict(name, fault=""):
        monkeypatch.setattr(plain, "fault", fault)
        monkeypatch.setattr(consumer, "PATIENCE_S", 0.0)
        namespace = {}
        exec(binding(plain.Plain()), namespace)
        return answer(CHECKS[name].run, namespace["framework"])

    return verdict


@pytest.mark.parametrize("name", CHECKS)
def test_a_framework_that_follows_the_standards_passes(name, verdict):
    expected = "refused" if name in REFUSED else "conforms"
    expected = "not applicable" if name == "immutable-flag" else expected
    assert verdict(name) == (expected, verdict(name)[1])


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CRASHES])
def test_a_framework_that_violates_a_clause_is_found(name, verdict):
    assert verdict(name, name)[0] == "deviates", verdict(name, name)


def test_a_clause_is_a_short_sentence_with_a_source():
    for check in CHECKS.values():
        assert len(check.clause.split()) <= 20
        assert check.clause.endswith(".")
        assert check.severity in ("must", "should", "may")
        assert check.source
