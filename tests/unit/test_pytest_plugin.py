"""The pytest plugin, in a pytest of its own: what passes, fails and skips, and what it costs."""

import re
import subprocess
import sys

import pytest
from builders import make_result, make_session
from repro_builders import finding_of
from rule_builders import MS, ordered, path, varying, verdict

from dlprof import api
from dlprof.claims.assertions import Assertions
from dlprof.errors import MissingDevice, MissingFramework, Unmeasured

pytest_plugins = ["pytester"]

COPYING = {"promise": "copy"}
UNKNOWN = verdict("unknown", reason="zero-size arrays have no address\nand more")
SAFE = {"lifetime": verdict("safe"), "ordering": verdict("synchronous")}
REFUSED = path("h(x)", status="unsupported", reason="TypeError: no", owner=None)
VIEW, COPY = 'assert_view("a", "b")', 'assert_copy("a", "b")'


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


@pytest.fixture
def failure(measured, tmp_path):
    """The message with which an assertion fails on these results; None if it passes."""

    def judge(name, *results, findings=(), **options):
        measured.answer = make_session(*results, findings=list(findings))
        try:
            getattr(Assertions(tmp_path, missing=pytest.skip), name)("a", "b", **options)
        except AssertionError as error:
            return str(error)
        return None

    return judge


def finding(*indices, **changes):
    told = {"summary": "f(x) takes 20 ms", "advice": "g(x) is a view too.", **changes}
    return finding_of("DLP012", severity="warning", results=list(indices), **told)


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("assert_view", [path("f(x)"), path("g(x)", owner="copy", case=COPYING)]),
        ("assert_view", [path("f(x)"), REFUSED]),
        ("assert_copy", [path("f(x)"), path("g(x)", owner="copy", case=COPYING)]),
        ("assert_no_host_sync", [path("f(x)", ordering=ordered("synchronous"))]),
        ("assert_no_host_sync", [path("f(x)", ordering=ordered("stream-ordered"))]),
        ("assert_no_host_sync", [path("f(x)", ordering=ordered("unordered"))]),
        ("assert_safe", [path("f(x)", **SAFE)]),
    ],
)
def test_what_holds_passes(failure, name, results):
    assert failure(name, *results) is None


@pytest.mark.parametrize(
    ("name", "result", "said"),
    [
        ("assert_view", path("f(x)", owner="copy"), "a copy"),
        ("assert_view", path("f(x)", owner="copy", case=COPYING), "a copy"),
        ("assert_view", path("f(x)", owner=varying(("view", 64), ("copy", 16))), "some processes"),
        ("assert_view", path("f(x)", owner=UNKNOWN), "zero-size arrays have no address"),
        ("assert_view", path("f(x)", owner=None), "not measured"),
        ("assert_copy", path("f(x)", owner="view", case=COPYING), "a view"),
        ("assert_no_host_sync", path("f(x)", ordering=ordered("host-sync", 45 * MS, 47 * MS)),
         "host-sync: takes 45 ms behind 47 ms"),
        ("assert_no_host_sync", path("f(x)", ordering=ordered("unordered", waits="device-sync")),
         "device-sync"),
        ("assert_no_host_sync", path("f(x)", ordering=UNKNOWN), "zero-size"),
        ("assert_no_host_sync", path("f(x)", ordering=verdict("a word of tomorrow")), "unknown"),
        ("assert_safe", path("f(x)", **SAFE, values=verdict("wrong", changed={"dtype": ["int64", "int32"]})),
         "DLP007 dtype-changed"),
        ("assert_safe", path("f(x)", **SAFE, case=COPYING), "DLP018"),
        ("assert_safe", path("f(x)"), "unknown"),
        ("assert_safe", path("f(x)", **SAFE, values=UNKNOWN), "zero-size"),
        ("assert_safe", path("f(x)", **SAFE, status="invalid", reason="throttled"), "throttled"),
    ],
)  # fmt: skip
def test_what_does_not_hold_or_is_unknown_says_why(failure, name, result, said):
    assert said in failure(name, result)


BY_ADDRESS = verdict("dependent", aligned=verdict("view"), sliced=verdict("copy"))
ANYWHERE = {"create": {"C": "x = 1", "aligned": "x = 2", "sliced": "x = 3"}}


@pytest.mark.parametrize(("name", "seen"), [("assert_view", "view"), ("assert_copy", "copy")])
def test_what_the_address_decides_is_no_proof_for_the_next_array(failure, name, seen):
    fields = {"ownership": verdict(seen), "alignment": BY_ADDRESS}
    assert failure(name, make_result(**fields)) is None
    assert failure(name, make_result(**fields, recipe=ANYWHERE))
    begun = {"recipe": ANYWHERE, "case": {"layout": "aligned"}}
    assert failure(name, make_result(**fields, **begun)) is None


@pytest.mark.parametrize(
    ("options", "fails"),
    [
        ({"severity": "error"}, False),
        ({"severity": "warning"}, True),
        ({}, True),
        ({"rules": "DLP012"}, True),
        ({"rules": ["DLP018"]}, False),
    ],
)
def test_a_finding_is_looked_for_by_rule_or_severity(failure, options, fails):
    results = [path("f(x)", **SAFE), path("g(x)", **SAFE)]
    said = failure("assert_no_finding", *results, findings=[finding(1)], **options)
    assert bool(said) == fails
    if fails:
        assert "g(x): warning DLP012 slow-path" in said
        assert "f(x):" not in said


def test_a_failure_shows_the_paths_the_findings_about_them_and_the_file(failure, tmp_path):
    said = failure(
        "assert_view",
        path("f(x)"),
        path("g(x)", owner="copy"),
        findings=[finding(0, summary="other"), finding(1)],
    )
    assert "g(x): a copy" in said
    assert "DLP012 slow-path: f(x) takes 20 ms" in said
    assert "other" not in said
    assert str(tmp_path / "0.json") in said


def test_a_failure_stands_at_the_line_of_the_test(run, measured):
    measured.answer = make_session(path("f(x)", owner="copy"))
    done = run(VIEW)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f">       dlprof.{VIEW}", "E  *a copy*", "test_*.py:2: *"])
    done.stdout.no_fnmatch_line("*assertions.py*")


def test_a_bug_of_dlprof_is_shown_where_it_is(run, measured):
    measured.answer = make_session(path("f(x)")).model_copy(update={"findings": None})
    done = run(VIEW)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*assertions.py*", "E  *TypeError*"])


def test_a_failure_is_not_endless_and_steers_no_terminal(failure):
    evil = "\x1b[31m\nE   fake\u2028line"
    results = [path(f"{evil}{n}", owner="copy") for n in range(40)]
    findings = [finding(n, summary=evil, advice=evil) for n in range(40)]
    said = failure("assert_view", *results, findings=findings)
    assert len(said.splitlines()) < 50
    assert all(line.isprintable() for line in said.splitlines())


ASSERTIONS = [f"assert_{name}" for name in ("view", "copy", "no_host_sync", "safe", "no_finding")]


@pytest.mark.parametrize("name", ASSERTIONS)
def test_what_does_not_come_back_or_was_not_measured_fails_every_assertion(failure, name):
    result = path("f(x)", owner=None, status="crashed", reason="SIGSEGV\nat 0")
    assert "crashed: SIGSEGV" in failure(name, result)
    assert failure(name, REFUSED)
    assert failure(name)


@pytest.mark.parametrize("name", ASSERTIONS)
def test_a_faulty_probe_fails_every_assertion_and_is_no_crash(failure, name):
    reason = "the probe is faulty: odd's create raises KeyError: 'int4'"
    said = failure(name, path("f(x)", owner=None, status="crashed", reason=reason))
    assert f"f(x): could not be checked: {reason}" in said
    assert "crashed" not in said


def test_the_same_request_is_measured_once_and_a_diagnosis_serves_for_less(run, measured):
    run(
        'assert_safe("torch", "numpy", shape="64x32", path="f*")',
        'assert_view("torch", "numpy", shape=(64, 32), path=["f*"])',
        'assert_view("torch", "numpy", shape=(64, 32), path="f*", dtype="int8")',
        'measure("torch", "numpy", shape=(64, 32), path="f*", dtype="int8").results[0].case',
    )
    asked = [(one.get("dtype"), one["diagnose"]) for one in measured]
    assert asked == [(None, True), ("int8", False), ("int8", True)]


@pytest.mark.parametrize(
    ("error", "options", "ini", "outcome"),
    [
        (MissingFramework("no cupy"), (), "", {"failed": 2}),
        (MissingFramework("no cupy"), ("--dlprof-missing=skip",), "", {"skipped": 2}),
        (MissingDevice("no driver"), (), "dlprof_missing = skip", {"skipped": 2}),
        (MissingDevice("no driver"), ("--dlprof-missing=fail",), "dlprof_missing = skip", {"failed": 2}),
        (Unmeasured("ValueError: no"), ("--dlprof-missing=skip",), "", {"failed": 2}),
        (MissingDevice("no driver"), (), "dlprof_missing = maybe", {"errors": 2}),
    ],
)  # fmt: skip
def test_what_is_not_there_fails_unless_it_may_be_skipped(
    run, measured, error, options, ini, outcome
):
    measured.answer = error
    run(VIEW, VIEW, options=options, ini=ini).assert_outcomes(**outcome)
    assert len(measured) == (0 if "errors" in outcome else 1)  # an error is kept, too


@pytest.mark.parametrize(
    "call",
    [
        'assert_view("a", "b", shape="1..4")',
        'assert_view("a", "b", shap="4")',
        'assert_no_finding("a", "b", rules="DLP0012")',
    ],
)
def test_what_makes_no_sense_is_refused_at_the_line_of_the_test(run, measured, call):
    done = run(call)
    done.assert_outcomes(failed=1)
    (place,) = [line for line in done.outlines if re.match(r"\S+\.py:\d+: ", line)]
    assert place.startswith("test_what_makes_no_sense")
    assert not measured


def test_a_path_that_nothing_matches_fails_beside_others_that_do(run, measured):
    session = make_session(path("f(x)"))
    measured.answer = session.model_copy(update={"unmatched": ["g(x)"]})
    done = run('assert_view("a", "b", path=["f(x)", "g(x)"])')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E  *no path matches 'g(x)'"])


def test_the_plugin_loads_no_dependency():
    """It is loaded by every pytest of the environment, whether or not a test asks for it."""
    code = (
        "import pytest, sys; known = set(sys.modules); import dlprof.pytest_plugin;"
        "print(*(set(sys.modules) - known))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} == {"dlprof"}
