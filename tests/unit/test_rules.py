"""All rules together: what holds for every finding, and what no rule may do."""

import re

import pytest
from builders import make_header
from repro_builders import finding_of
from rule_builders import (
    MS,
    US,
    lost,
    ordered,
    owned,
    path,
    rules,
    spread,
    varying,
    verdict,
    wrong,
)
from test_sentences import SAID, faults

from dlprof.analysis import thresholds
from dlprof.rules import RULES, expected, find, observations, own_thresholds
from dlprof.rules.evidence_text import COMMON, NOT_TOLD, OF_INSTRUMENT, facts
from dlprof.rules.rule import SEVERITIES, worst_first
from dlprof.session.evidence import Evidence, Ownership


def test_an_innocent_session_has_no_findings():
    views = [path(f"view{number}(x)", 5 * US + number) for number in range(9)]
    copies = [path("copy(x)", 500 * US, "copy", case={"promise": "copy"})]
    unknown = [path("f(x)", owner=owned("unknown")), path("g(x)", owner=None)]
    assert rules(*views, *copies, *unknown) == rules() == []


def test_the_worst_stands_first():
    def made(severity, rule, cost_ns):
        changes = {"severity": severity, "results": [], "evidence": {"cost_ns": cost_ns}}
        return finding_of(rule, **changes)

    order = [
        made("error", "DLP018", 0.0),
        made("warning", "DLP012", 9.0),
        made("warning", "DLP004", 3.0),
        made("warning", "DLP012", 3.0),
        made("info", "DLP001", 99.0),
    ]
    assert worst_first(reversed(order)) == order


REFUSED = {"call": "__dlpack__", "outcome": "TypeError: no max_version", "ns": 900}
REFUSED_UNVERSIONED = {"call": "__dlpack__", "arguments": {}, "outcome": "BufferError: read-only"}
DELIVERED = {"call": "versioned export", "outcome": "returned"}
ANSWERED = {"call": "__dlpack__", "outcome": "returned", "ns": 500}
CUDA = {"device": "cuda", "protocol": "numpy"}
LOOP = {
    "use": "add(x, 1)",
    "share": {"median": 0.7, "ci95": (0.69, 0.71)},
    "in_loop": spread(350 * US),
    "hoisted": spread(110 * US),
}
SETTING = {"name": "grad mode of f", "code": "f.grad()", "before": "True", "after": "False"}
MOVED = verdict("copy", result_device="cpu", declared_device="cuda")
LOCKED = verdict("ok", writable={"source": True, "result": False})
GUILTY = [
    path("free(x)", 5 * US, ordering=ordered("stream-ordered", 9 * US)),
    path("wait(x)", 9 * US, ordering=ordered("host-sync")),
    path("all(x)", 9 * US, ordering=ordered("device-sync")),
    path("race(x)", 9 * US, ordering=ordered("unordered", values_right=False)),
    path("copy(x)", 500 * US, "copy", peak_memory=verdict("ok", arrays=2.0)),
    path("bounce(x)", 900 * US, "copy", case=CUDA),
    path("slow(x)", 900 * US),
    path("alias(x)", case={"promise": "copy"}),
    path("vary(x)", owner=varying(("copy", 16), ("view", 64))),
    path("torn(x)", 2 * MS, "copy", early_write=verdict("unsafe", sizes_bytes={"4096": "torn"})),
    path("leak(x)", lifetime=verdict("retained", bytes_per_conversion=9e4, conversions=200)),
    path("gone(x)", lifetime=verdict("dangling", changed_after_drop=True)),
    path("shape(x)", values=wrong(shape=[[4, 4], [16]])),
    path("dtype(x)", values=wrong(dtype=["float64", "float32"])),
    path("write(x)", values=verdict("ok", writable={"source": False, "result": True})),
    path("old(x)", status="unsupported", handshake=[REFUSED_UNVERSIONED, DELIVERED]),
    path("lock(x)", values=verdict("ok", writable={"source": True, "result": False})),
    path("open(x)", values=verdict("ok", writable={"source": True, "result": True})),
    path("mask(x)", values=verdict("ok", dropped=["mask"])),
    path("sets(x)", settings=verdict("changed", changed=[SETTING])),
    path("loop(x)", placement=LOOP),
    path("late(x)", 2 * MS, host=spread(100 * US), case={"promise": "view"}),
    path("asks(x)", handshake=[REFUSED, ANSWERED, {"call": "import", "outcome": "returned"}]),
    path("there(x)", 900 * US, "copy", case={"producer": "a", "consumer": "b"}),
    path("back(x)", case={"producer": "b", "consumer": "a"}),
    path("cuda(x)", refusal=verdict("unknown", error=["ValueError"], other_device=[2, 0])),
    path("jam(x)", status="unsupported", refusal=verdict("broken", error=["E"], after="E: no")),
    path("host(x)", owner=MOVED, case={"device": "cuda"}),
    path("rows(x)", kind="copy", values=verdict("ok", orders=["F", "C"])),
    path("columns(x)", values=verdict("ok", orders=["F", "F"])),
    path("fixed(x)", values=LOCKED, case={"consumer": "immutable"}),
    lost("crashed", "killed by SIGSEGV during values", "dead(x)"),
]
"""A session in which every rule finds something."""


def test_every_rule_finds_what_it_is_for_and_names_the_clearest_case():
    found = find(GUILTY)
    assert {one.rule for one in found} == {rule.id for rule in RULES}
    for one in found:
        assert one.severity in SEVERITIES
        assert all(0 <= at < len(GUILTY) for at in one.results)
        case = GUILTY[one.results[0]].case
        assert case.code in one.summary or case.producer in one.summary


@pytest.mark.parametrize("one", find(GUILTY), ids=lambda one: one.rule)
def test_a_finding_is_told_in_short_sentences(one):
    assert len(one.headline.split()) <= 20
    assert re.search(r"\d", one.headline)
    for text in (one.headline, one.summary, one.advice):
        assert not text or text.endswith(".")
        assert "; " not in text
        assert not [*faults(text, SAID)]


def test_advice_names_measured_paths_only_and_none_that_is_unsafe():
    codes = {result.case.code for result in GUILTY}
    for one in find(GUILTY):
        named = set(re.findall(r"\w+\(x\)", one.advice))
        assert named <= codes
        assert not named & {"race(x)", "torn(x)", "leak(x)", "gone(x)", "shape(x)", "alias(x)"}


def test_a_finding_holds_any_number_of_cases_in_few_words():
    results = [
        path(f"f{number}(x)", case={"promise": "copy", "import": "f"}) for number in range(500)
    ]
    (one,) = find(results)
    assert len(one.results) == 500
    assert len(one.summary) < 300


def slow_and_fast(**changes):
    return [path("slow(x)", 2 * MS, **changes), path("fast(x)", **changes)]


def test_a_scenario_may_decide_on_other_numbers_and_leaves_them_as_they_were():
    before = thresholds.named()
    header = make_header(request={"scenario": {"thresholds": {"slow_ratio": 500.0, "none": 1}}})
    assert own_thresholds(header) == {"slow_ratio": 500.0}
    assert find(slow_and_fast(), own_thresholds(header)) == []
    with pytest.raises(RuntimeError), thresholds.replaced({"slow_ratio": 50.0}):
        raise RuntimeError
    assert thresholds.named() == before


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_is_expected_cites_dlpack_only_where_dlpack_was_used(rule):
    told = expected(finding_of(rule.id), GUILTY[0])
    assert told.endswith((".", ")"))
    native = path("f(x)", case={"protocol": "native"})
    # DLPack's own handshake, a function's page, and what the standard prescribes of any call
    quotes_any = rule.id in ("DLP015", "DLP018", "DLP024")
    assert quotes_any or "dlpack" not in expected(finding_of(rule.id), native).lower()


WITHOUT_AN_INSTRUMENT = {f"DLP0{at:02}" for at in (6, 12, 13, 14, 15, 16, 19, 23)}


@pytest.mark.parametrize("one", find(GUILTY), ids=lambda one: one.rule)
def test_a_finding_tells_what_its_instrument_saw(one):
    told = observations(one, [GUILTY[at] for at in one.results])
    assert bool(told) is (one.rule not in WITHOUT_AN_INSTRUMENT)


@pytest.mark.parametrize("evidence", Evidence.__subclasses__(), ids=lambda one: one.__name__)
def test_each_value_of_an_evidence_has_words(evidence):
    phrases = COMMON | OF_INSTRUMENT.get(evidence.__name__, {})
    told = {place.partition(".")[0] for place in phrases}
    assert not evidence.model_fields.keys() - told - NOT_TOLD


def test_a_value_that_a_newer_version_wrote_is_told_by_its_name():
    line = facts(
        Ownership.model_validate({"same_address": False, "huge_pages": {"held_bytes": 64}})
    )
    assert line == "they begin at different addresses; huge pages held 64 B"


def test_processes_that_agree_are_counted_and_processes_that_disagree_are_told_one_by_one():
    shared = verdict("view", same_address=True, source_alignments_bytes=[16, 64])
    (line,) = observations(finding_of("DLP018"), [path("f(x)", owner=shared, rounds=[0, 1, 2])])
    assert "the same in 3 processes" in line
    assert "the source begins at multiples of 16 B, 64 B" in line
    lines = observations(finding_of("DLP018"), [path("f(x)", owner=varying(*[("view", 64)] * 500))])
    assert lines[0].startswith("process 1 of 500: view")
    assert len(lines) < 20
