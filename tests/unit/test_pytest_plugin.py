"""The fixture ``dlprof``: true assertions pass, false and unknown ones fail."""

import subprocess
import sys

import pytest
from builders import make_session
from repro_builders import finding_of
from rule_builders import MS, ordered, path, varying, verdict

from dlprof import api
from dlprof.pytest_plugin import Conversions

UNKNOWN = verdict("unknown", reason="zero-size arrays have no address")
COPYING = {"promise": "copy"}
REFUSED = path("h(x)", status="unsupported", reason="TypeError: no", owner=None)
CRASHED = path("f(x)", status="crashed", reason="SIGSEGV", owner=None)
ASSERTIONS = ("assert_view", "assert_no_wait", "assert_no_finding")


@pytest.fixture
def failure(monkeypatch):
    """Return the message of an assertion about these results; None if it passes."""

    def judge(name, *results, findings=(), words=(), left_out=()):
        session = make_session(*results, findings=list(findings))
        session = session.model_copy(update={"left_out": list(left_out)})
        monkeypatch.setattr(api, "run", lambda *_, **__: session)
        try:
            getattr(Conversions(), name)("a", "b", *words)
        except AssertionError as error:
            return str(error)
        return None

    return judge


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("assert_view", [path("f(x)"), path("g(x)", owner="copy", case=COPYING), REFUSED]),
        ("assert_no_wait", [path("f(x)", ordering=ordered("synchronous"))]),
        ("assert_no_wait", [path("f(x)", ordering=ordered("stream-ordered"))]),
        ("assert_no_finding", [path("f(x)")]),
    ],
)
def test_true_assertions_pass(failure, name, results):
    assert failure(name, *results) is None


@pytest.mark.parametrize(
    ("name", "result", "said"),
    [
        ("assert_view", path("f(x)", owner="copy"), "f(x): copy"),
        ("assert_view", path("f(x)", owner="copy", case=COPYING), "f(x): copy"),
        ("assert_view", path("f(x)", owner=varying(("view", 64), ("copy", 16))), "varies"),
        ("assert_view", path("f(x)", owner=UNKNOWN), "f(x)"),
        ("assert_no_wait", path("f(x)", ordering=ordered("host-sync", 45 * MS, 47 * MS)), "host-sync"),
        ("assert_no_wait", path("f(x)", ordering=ordered("unordered", waits="device-sync")), "device-sync"),
        ("assert_no_wait", path("f(x)", ordering=UNKNOWN), "unknown"),
        ("assert_no_wait", path("f(x)", ordering=None), "unknown"),
    ],
)  # fmt: skip
def test_false_and_unknown_answers_fail(failure, name, result, said):
    assert said in failure(name, result)


@pytest.mark.parametrize(
    ("words", "fails"), [((), True), (("error",), False), (("DLP012",), True), (("DLP018",), False)]
)
def test_a_finding_is_chosen_by_rule_or_severity(failure, words, fails):
    found = finding_of("DLP012", severity="warning", results=[0])
    paths = path("f(x)"), path("g(x)")
    said = failure("assert_no_finding", *paths, findings=[found], words=words)
    assert bool(said) == fails


@pytest.mark.parametrize("name", ASSERTIONS)
def test_an_unmeasured_case_fails(failure, name):
    assert failure(name, CRASHED)
    assert failure(name, REFUSED)
    assert failure(name)
    assert "g(x)" in failure(name, path("f(x)"), left_out=["no path matches 'g(x)'"])


def test_the_plugin_loads_no_dependency():
    """Every pytest of the environment loads the plugin."""
    code = (
        "import pytest, sys; known = set(sys.modules); import dlprof.pytest_plugin;"
        "print(*(set(sys.modules) - known))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} == {"dlprof"}
