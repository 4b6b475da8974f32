"""All rules together: what holds for every finding, and what no rule may do."""

from __future__ import annotations

import json
import re
import time

import pytest
from builders import make_record
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_builders import MS, US, ordered, owned, path, rules, varying, verdict

from dlprof.errors import UsageError
from dlprof.rules import RULES, findings
from dlprof.rules.pages import index, page
from dlprof.rules.rule import SEVERITIES, Finding, worst_first
from dlprof.scenario.expectation import TIMED
from dlprof.session.model import Result
from dlprof.session.slim import slim

pytestmark = pytest.mark.unit


def test_the_ids_are_in_order_and_each_stands_once():
    assert [rule.id for rule in RULES] == [f"DLP{number:03}" for number in range(1, 21)]
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_an_empty_session_has_no_findings():
    assert findings([]) == []


def test_an_innocent_session_has_no_findings():
    views = [path(f"view{number}(x)", 5 * US + number) for number in range(9)]
    copies = [path("copy(x)", 500 * US, "copy", case={"promise": "copy"})]
    assert rules(*views, *copies) == []


def test_the_worst_stands_first():
    def made(severity, rule, cost_ns):
        return Finding(rule, "name", severity, (0,), "", {"cost_ns": cost_ns})

    order = [
        made("error", "DLP018", 0.0),
        made("warning", "DLP012", 9.0),
        made("warning", "DLP004", 3.0),
        made("warning", "DLP012", 3.0),
        made("info", "DLP001", 99.0),
    ]
    assert worst_first(reversed(order)) == order


# A session in which most rules find something.
GUILTY = [
    path("free(x)", 5 * US, ordering=ordered("stream-ordered", 9 * US)),
    path("wait(x)", 9 * US, ordering=ordered("host-sync")),
    path("all(x)", 9 * US, ordering=ordered("device-sync")),
    path("race(x)", 9 * US, ordering=ordered("unordered", values_right=False)),
    path("copy(x)", 500 * US, "copy", peak_memory=verdict("ok", arrays=2.0)),
    path("slow(x)", 900 * US),
    path("alias(x)", case={"promise": "copy"}),
    path("vary(x)", owner=varying(("copy", 16), ("view", 64))),
    path("torn(x)", 2 * MS, "copy", early_write=verdict("unsafe", sizes_bytes={"4096": "torn"})),
    path("leak(x)", lifetime=verdict("retained", bytes_per_conversion=9e4)),
    path("gone(x)", lifetime=verdict("dangling", changed_after_drop=True)),
    path("shape(x)", values=verdict("wrong", changed={"shape": [[4, 4], [16]]})),
    path("dtype(x)", values=verdict("wrong", changed={"dtype": ["float64", "float32"]})),
    path("write(x)", values=verdict("ok", writable={"source": False, "result": True})),
    path(
        "dead(x)",
        None,
        None,
        values=None,
        status="crashed",
        reason="killed by SIGSEGV during values",
    ),
]


def test_a_guilty_session_has_findings_of_every_severity_and_each_finding_has_its_cases():
    found = findings(GUILTY)
    assert {finding.severity for finding in found} <= set(SEVERITIES)
    assert len({finding.rule for finding in found}) >= 12
    for finding in found:
        assert finding.results
        assert all(0 <= index < len(GUILTY) for index in finding.results)
        assert GUILTY[finding.results[0]].case.code in finding.summary


def test_findings_are_told_in_the_session_file_as_json():
    for finding in findings(GUILTY):
        content = json.loads(json.dumps(finding.as_dict(), allow_nan=False))
        assert content["results"] == list(finding.results)


def test_advice_names_measured_paths_only_and_none_that_is_unsafe():
    codes = {result.case.code for result in GUILTY}
    for finding in findings(GUILTY):
        named = set(re.findall(r"\w+\(x\)", finding.advice))
        assert named <= codes
        assert not named & {"race(x)", "torn(x)", "leak(x)", "gone(x)", "shape(x)", "alias(x)"}


def test_slim_results_have_the_same_findings():
    assert findings(map(slim, GUILTY)) == findings(GUILTY)


def test_a_finding_holds_any_number_of_cases():
    results = [
        path(f"f{number}(x)", case={"promise": "copy", "import": "f"}) for number in range(500)
    ]
    (finding,) = findings(results)
    assert len(finding.results) == 500
    assert len(finding.summary) < 300


def test_ten_thousand_results_take_seconds_at_most():
    results = [
        path(f"f{number % 20}(x)", (1 + number % 20) * 9 * US, case={"shape": [number // 20]})
        for number in range(10_000)
    ]
    began = time.process_time()
    found = findings(results)
    assert time.process_time() - began < 20
    assert len(found) == 1


# From here on results as no instrument writes them: parts missing, evidence of any form.

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**12)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = (
    "loaded", "queued_ns", "host_ns", "values_right", "changed", "writable", "processes", "reason",
    "result_device", "source_alignment_bytes", "source_alignments_bytes", "sizes_bytes", "arrays", "changed_after_drop",
    "bytes_per_conversion", "dtype", "shape", "values", "source", "result", "verdict", "evidence",
    "events", "streams", "in_loop_ns", "hoisted_ns",
)  # fmt: skip
EVIDENCE = st.dictionaries(
    st.sampled_from(NAMES),
    ANYTHING | st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=4),
    max_size=5,
)
WORDS = (
    "ok", "wrong", "view", "copy", "varies", "unknown", "host-sync", "device-sync", "unordered",
    "stream-ordered", "safe", "unsafe", "dangling", "retained", "kept", "traced", "",
)  # fmt: skip
VERDICTS = st.none() | st.builds(
    lambda word, evidence: verdict(word, **evidence), st.sampled_from(WORDS), EVIDENCE
)
TIMES = st.none() | st.builds(
    lambda median, ratio: {
        "median_ns": median,
        "ci95_ns": ratio and [median / ratio, median * ratio],
        "min_ns": median / 2,
    },
    st.floats(0, 1e9),
    st.none() | st.floats(1, 9),
)
PLACEMENTS = st.none() | st.builds(
    lambda in_loop, hoisted, share, reach: {
        "use": "add(x, 1)",
        "in_loop": in_loop,
        "hoisted": hoisted,
        "share": None if share is None else {"median": share, "ci95": reach and [share - reach, 1]},
    },
    TIMES, TIMES, st.none() | st.floats(-5, 1), st.none() | st.floats(0.1, 2),
)  # fmt: skip
PARTS = (
    "ownership",
    "ordering",
    "values",
    "fresh_source",
    "lifetime",
    "early_write",
    "peak_memory",
    "trace",
)


@st.composite
def odd_results(draw):
    case = {
        "code": draw(st.sampled_from(["f(x)", "g(x)", "h" * 500])),
        "shape": draw(st.sampled_from([(), (0,), (4, 4)])),
        "dtype": draw(st.sampled_from(["float32", "odd"])),
        "layout": draw(st.sampled_from(["C", "aligned", "F", "odd"])),
        "device": draw(st.sampled_from(["cpu", "cuda"])),
        "protocol": draw(st.sampled_from(["dlpack", "numpy"])),
        "promise": draw(st.sampled_from([None, "copy", "view", "odd"])),
        "producer": draw(st.sampled_from("ab")),
        "consumer": draw(st.sampled_from("ab")),
    }
    return {
        "case": make_record(**case),
        "status": draw(st.sampled_from(["ok", "crashed", "timeout", "invalid", "skipped"])),
        "reason": draw(st.none() | st.text(max_size=20) | st.just("killed by SIGSEGV during values")),
        "host_time": draw(TIMES),
        "ready_time": draw(TIMES),
        **{name: draw(VERDICTS) for name in PARTS},
        "handshake": draw(st.lists(st.dictionaries(st.sampled_from(["call", "outcome"]), ANYTHING), max_size=3)),
        "placement": draw(PLACEMENTS),
    }  # fmt: skip


@settings(max_examples=150)
@given(st.lists(odd_results(), max_size=6))
def test_no_rule_fails_on_any_combination_of_what_is_missing_or_odd(contents):
    found = findings([Result.model_validate(content) for content in contents])
    assert worst_first(found) == found
    assert not {finding.rule for finding in found if finding.severity == "error"} & TIMED
    json.dumps([finding.as_dict() for finding in found])


def test_owned_by_nobody_is_no_finding():
    assert rules(path("f(x)", owner=owned("unknown")), path("g(x)", owner=None)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_page_with_all_it_must_say(rule):
    text = page(rule.name.upper())
    assert text.startswith(f"# {rule.id} {rule.name}\n\n{index(rule.id)}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
        "Why it matters",
        "How dlprof knows",
        "When it cannot tell",
        "What to do",
        "A real issue",
    ]
    assert re.search(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", text)


def test_a_page_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'host-sync'"):
        page("hostsync")
