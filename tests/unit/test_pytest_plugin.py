"""The pytest plugin, in a pytest of its own: what passes, fails and skips, and what it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_session
from rule_builders import path, verdict

from dlprof import api
from dlprof.errors import MissingDevice, MissingFramework, Unmeasured, UsageError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

pytestmark = pytest.mark.unit
pytest_plugins = ["pytester"]

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def measured(monkeypatch):
    """What was asked for; set ``.answer`` to a session or an error."""

    class Measured(list):
        answer = make_session(path("f(x)"))

        def run(self, producer, consumer, **asked):
            self.append({"pair": (producer, consumer), **asked})
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    found = Measured()
    monkeypatch.setattr(api, "run", found.run)
    return found


@pytest.fixture
def run(pytester, monkeypatch, measured):
    """Run tests of one line each; plugins of this environment are left out."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def go(*calls, options=(), ini=""):
        tests = (f"def test_{n}(dlprof):\n    dlprof.{call}\n" for n, call in enumerate(calls))
        pytester.makepyfile("".join(tests))
        pytester.makeini(f"[pytest]\n{ini}")
        # The pytest that runs these tests may have loaded the plugin already, by its entry point.
        again = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        plugin = ("-p", "dlprof.pytest_plugin", "-W", "error", *again)
        return pytester.runpytest_inprocess(*plugin, *options)

    return go


def test_a_view_passes(run, measured):
    run('assert_view("torch", "numpy")').assert_outcomes(passed=1)
    assert measured[0]["pair"] == ("torch", "numpy")


def test_a_copy_fails_at_the_line_of_the_test_and_shows_why(run, measured):
    measured.answer = make_session(path("f(x)", owner="copy"))
    done = run('assert_view("torch", "numpy")')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            '>       dlprof.assert_view("torch", "numpy")',
            "E       AssertionError: torch -> numpy, 4x4 float32 C on cpu: Every way is a view? *",
            "E         f(x): a copy",
            "E       session: */0.json (dlprof report prints it)",
            "test_*.py:2: AssertionError",
        ]
    )
    done.stdout.no_fnmatch_line("*assertions.py*")


@pytest.mark.parametrize(
    "call",
    [
        'assert_copy("torch", "numpy")',
        'assert_no_host_sync("torch", "numpy")',
        'assert_safe("torch", "numpy")',
    ],
)
def test_each_assertion_can_fail(run, call):
    run(call).assert_outcomes(failed=1)


def test_each_assertion_can_pass(run, measured):
    seen = {
        "lifetime": verdict("safe"),
        "ordering": verdict("synchronous"),
        "early_write": verdict("safe"),
    }
    copy = path("g(x)", owner="copy", case={"promise": "copy"}, **seen)
    measured.answer = make_session(path("f(x)", **seen), copy)
    run(
        'assert_view("a", "b")',
        'assert_copy("a", "b")',
        'assert_no_host_sync("a", "b")',
        'assert_safe("a", "b")',
        'assert_no_finding("a", "b")',
        'assert_no_finding("a", "b", rules="DLP001", severity="error")',
    ).assert_outcomes(passed=6)


@pytest.mark.parametrize("rule", ["DLP001", "asymmetric", "DLP014"])
def test_a_rule_that_could_look_at_nothing_is_no_pass(run, rule):
    done = run(f'assert_no_finding("a", "b", rules="{rule}")')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E       AssertionError: nothing looked for DLP0*: not measured: *"])
    done.stdout.no_fnmatch_line("*assertions.py*")


def test_the_same_request_is_measured_once(run, measured):
    run(
        'assert_view("torch", "numpy", shape="64x32", path="f*")',
        'assert_view("torch", "numpy", shape=(64, 32), path=["f*"])',
        'assert_copy("torch", "numpy", shapes=["64x32"], path="f*")',
        'assert_view("torch", "numpy", shape=(64, 32), path="f*", dtype="int8")',
    )
    assert [(asked["shape"], asked.get("dtype")) for asked in measured] == [
        ("64x32", None),
        ((64, 32), "int8"),
    ]


def test_what_was_diagnosed_serves_for_less(run, measured):
    run(
        'assert_safe("torch", "numpy")',
        'assert_view("torch", "numpy")',
        'assert_view("numpy", "torch")',
        'assert_safe("numpy", "torch")',
    )
    assert [asked["diagnose"] for asked in measured] == [True, False, True]


def test_an_error_is_kept_too(run, measured):
    measured.answer = Unmeasured("nothing could be measured: no")
    call = 'assert_view("torch", "numpy")'
    run(call, call).assert_outcomes(failed=2)
    assert len(measured) == 1


@pytest.mark.parametrize(
    "error",
    [MissingFramework("cupy is not installed: pip install cupy"), MissingDevice("no CUDA driver")],
)
@pytest.mark.parametrize(
    ("options", "ini", "outcome"),
    [
        ((), "", {"failed": 1}),
        (("--dlprof-missing=skip",), "", {"skipped": 1}),
        ((), "dlprof_missing = skip", {"skipped": 1}),
        (("--dlprof-missing=fail",), "dlprof_missing = skip", {"failed": 1}),
    ],
)
def test_what_is_not_there_fails_unless_it_may_be_skipped(
    run, measured, error, options, ini, outcome
):
    measured.answer = error
    done = run('assert_no_host_sync("torch", "cupy")', options=("-rs", *options), ini=ini)
    done.assert_outcomes(**outcome)
    done.stdout.fnmatch_lines([f"*{error}*"])


def test_what_was_refused_is_never_skipped(run, measured):
    measured.answer = Unmeasured("nothing could be measured: ValueError: no")
    done = run('assert_view("torch", "numpy")', options=("--dlprof-missing=skip",))
    done.assert_outcomes(failed=1)


def test_a_word_that_is_neither_is_refused(run):
    done = run('assert_view("torch", "numpy")', ini="dlprof_missing = maybe")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*dlprof_missing is fail or skip, not 'maybe'*"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('assert_view("a", "b", shape="1..4")', "an assertion is on one array, and shapes has 3"),
        ('assert_view("a", "b", shape="x")', "shapes 'x': expected lengths joined *"),
        ('assert_view("a", "b", path=5)', "paths 5: expected text*"),
        ('measure("a", "b", shape="x")', "shapes 'x': expected lengths joined *"),
        ('assert_view("a", "b", shap="4")', "there is no option 'shap': did you mean 'shape'?"),
        ('assert_no_finding("a", "b", severity=5)', "rules and severity are text, not [5]"),
        (
            'assert_no_finding("a", "b", rules="DLP0012")',
            "assert_no_finding knows no 'DLP0012': did you mean 'dlp012'?",
        ),
    ],
)
def test_what_makes_no_sense_is_told_at_the_line_of_the_test(run, measured, call, words):
    done = run(call)
    done.assert_outcomes(failed=1)
    call, words = (text.replace("[", "[[]") for text in (call, words))
    done.stdout.fnmatch_lines([f">       dlprof.{call}", f"E  *{words}"])
    places = [line for line in done.outlines if re.match(r"\S+\.py:\d+: ", line)]
    assert [place.partition(":")[0] for place in places] == [
        "test_what_makes_no_sense_is_told_at_the_line_of_the_test.py"
    ]
    assert not measured


def test_a_path_that_no_way_matches_fails_beside_others_that_do(run, measured):
    session = make_session(path("f(x)"))
    measured.answer = session.model_copy(update={"left_out": ["no path matches 'g(x)'"]})
    done = run('assert_view("a", "b", path=["f(x)", "g(x)"])')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E  *no path matches 'g(x)'"])


def test_a_mistake_in_the_request_is_an_error_and_no_skip(run, measured):
    measured.answer = UsageError("there is no framework 'nunpy': did you mean 'numpy'?")
    done = run('assert_view("torch", "nunpy")', options=("--dlprof-missing=skip",))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E  *there is no framework 'nunpy': did you mean 'numpy'?"])


def test_a_session_can_be_had_for_claims_of_ones_own(run):
    run('measure("torch", "numpy").results[0].ownership.verdict').assert_outcomes(passed=1)


def test_the_plugin_loads_no_dependency():
    """It is loaded by every pytest of the environment, whether or not a test asks for it."""
    code = "import pytest, sys; known = set(sys.modules); import dlprof.pytest_plugin; print(*(set(sys.modules) - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} == {"dlprof"}


def test_the_package_names_the_plugin():
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"dlprof": "dlprof.pytest_plugin"}


def test_the_entry_point_brings_the_fixture(pytester, monkeypatch):
    """As an installed package does: metadata on the path, and no option on the command line."""
    info = pytester.mkdir("other-1.dist-info")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pytest11]\ndlprof = dlprof.pytest_plugin\n")
    root = str(PYPROJECT.parent)
    monkeypatch.setenv("PYTHONPATH", f"{pytester.path}:{root}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    pytester.makepyfile("def test_it(dlprof):\n    assert dlprof.assert_view")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
