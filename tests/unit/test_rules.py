"""All rules together: properties of every finding, and things that no rule may do."""

import re
from pathlib import Path

import pytest
from guilty import CUDA, FOUND, GUILTY
from repro_builders import with_case
from rule_builders import (
    MS,
    US,
    died,
    found,
    ordered,
    owned,
    path,
    rules,
    verdict,
    wrong,
)
from test_sentences import SAID, faults

from dlprof.judge import BY_ID, RULES, find, index
from dlprof.judge.evidence_text import observations
from dlprof.judge.rule import SEVERITIES

ALL = find(GUILTY)


def test_an_innocent_session_has_no_findings():
    views = [path(f"view{number}(x)", 5 * US + number) for number in range(9)]
    copies = [path("copy(x)", 500 * US, "copy", case={"promise": "copy"})]
    unknown = [path("f(x)", owner=owned("unknown")), path("g(x)", owner=None)]
    assert rules(*views, *copies, *unknown) == rules() == []


def test_the_worst_stands_first():
    order = [(SEVERITIES.index(one.severity), -one.evidence.get("cost_ns", 0)) for one in ALL]
    assert order == sorted(order)


def test_every_rule_finds_its_fault_and_names_the_clearest_case():
    assert {one.rule for one in ALL} == {rule.id for rule in RULES}
    for one in ALL:
        assert one.severity in SEVERITIES
        assert all(0 <= at < len(GUILTY) for at in one.results)
        case = GUILTY[one.results[0]].case
        assert case.code in one.summary or case.producer in one.summary


UNLOCKED = verdict("ok", writable={"source": False, "result": True})
SEALED = verdict("ok", writable={"source": False, "result": False})
OF_DEVICE, ON_DEVICE = owned("copy", "cuda"), owned("view", "cuda")
DIRECT = {"device": "cuda", "protocol": "dlpack"}
STATEMENT = {"import": "statement"}
ALONE = [
    [path("x.float()", owner="copy", case=STATEMENT, values=wrong(dtype=["float16", "float32"]))],
    [path("x.T", case=STATEMENT, values=wrong(shape=[[2, 3], [3, 2]]))],
    [path("wait(x)", ordering=ordered("host-sync"))],
    [path("leak(x)", lifetime=verdict("retained", objects_per_conversion=1.0))],
    [path("write(x)", values=UNLOCKED), path("keep(x)", values=SEALED)],
    [path("f(x)", case={"promise": "copy"}, values=SEALED)],
    [path("f(x)", owner="copy", case={"promise": "view"})],
    [path("f(x)", warnings=verdict("warns", texts=["FutureWarning: it will go"]))],
    [path("a(x)", 9 * US), path("b(x)", 2 * US)],
    [path("a(x)", 9 * US, "copy"), path("b(x)", 2 * US)],
    [path("a(x)", 9 * MS, owner=OF_DEVICE, case=CUDA), path("b(x)", owner=ON_DEVICE, case=DIRECT)],
]
"""Sessions in which rules of variable severity find faults that GUILTY lacks."""


def test_a_finding_has_a_severity_that_its_rule_declares_and_each_declared_one_occurs():
    sessions = [GUILTY, *ALONE]
    found = {(one.rule, one.severity) for results in sessions for one in find(results)}
    assert found == {(rule.id, severity) for rule in RULES for severity in rule.severities}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.rule)
def test_a_finding_is_written_in_short_sentences(one):
    assert len(one.headline.split()) <= 20
    is_named = one.headline.startswith(GUILTY[one.results[0]].case.code)
    assert is_named or re.search(r"\d", one.headline)
    for text in (one.headline, one.summary, one.advice):
        assert not text or text.endswith(".")
        assert "; " not in text
        assert not [*faults(text, SAID)]


def test_advice_names_only_measured_paths_and_none_that_is_unsafe():
    codes = {result.case.code for result in GUILTY}
    for one in ALL:
        named = set(re.findall(r"\w+\(x\)", one.advice))
        assert named <= codes
        assert not named & {"race(x)", "torn(x)", "leak(x)", "gone(x)", "shape(x)", "alias(x)"}


@pytest.mark.parametrize("rule", ["DLP007", "DLP008", "DLP018", "DLP020"])
def test_the_same_fault_of_an_import_for_every_producer_is_one_finding(rule):
    shown = GUILTY[FOUND[rule].results[0]]
    results = [with_case(shown, producer=name) for name in "abc"]
    assert [one.rule for one in find(results)].count(rule) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_an_expectation_cites_dlpack_only_if_dlpack_was_used(rule):
    told = rule.expectation(GUILTY[0])
    assert told.endswith((".", ")"))
    native = path("f(x)", case={"protocol": "native"})
    # DLPack's own handshake, a function's page, and the standard's rules for any call
    quotes_any = rule.id in ("DLP015", "DLP018", "DLP024")
    assert quotes_any or "dlpack" not in rule.expectation(native).lower()


WITHOUT_AN_INSTRUMENT = {f"DLP0{at:02}" for at in (6, 12, 13, 14, 15, 16, 19, 23, 33)}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.rule)
def test_a_finding_reports_its_instruments_evidence(one):
    told = observations(GUILTY[one.results[0]], BY_ID[one.rule].instrument)
    assert bool(told) is (one.rule not in WITHOUT_AN_INSTRUMENT)


RACED = ordered("unordered", values_right=False)
LEAKED = verdict("retained", bytes_per_conversion=9e4, conversions=200)
LEAKED_BY_REFUSAL = verdict("retained", error=["TypeError"], bytes_per_conversion=16384)
BROKEN_AFTER = verdict("broken", error=["TypeError"], after="TypeError: no")
SETS = verdict("changed", changed=[{"name": "locale", "before": "'C'", "after": "'de'"}])
SEEN_BY_ONE = [
    ("DLP003", {"ordering": [ordered("stream-ordered"), RACED]}),
    (
        "DLP007",
        {"values": [verdict("ok"), verdict("wrong", changed={"dtype": ["int64", "int32"]})]},
    ),
    ("DLP008", {"values": [verdict("ok"), verdict("wrong", changed={"shape": [[2], [1]]})]}),
    ("DLP010", {"lifetime": [verdict("safe", conversions=200), LEAKED]}),
    ("DLP010", {"refusal": [verdict("clean"), LEAKED_BY_REFUSAL], "status": "unsupported"}),
    ("DLP011", {"lifetime": [verdict("safe"), verdict("dangling", changed_after_drop=True)]}),
    ("DLP025", {"settings": [verdict("kept"), SETS]}),
    ("DLP026", {"refusal": [verdict("clean"), BROKEN_AFTER], "status": "unsupported"}),
]


@pytest.mark.parametrize(("rule", "parts"), SEEN_BY_ONE)
def test_a_finding_from_one_process_is_marked(rule, parts):
    def of(looks):
        return verdict("varies", processes=looks) if isinstance(looks, list) else looks

    (finding,) = found(rule, path("f(x)", **{name: of(looks) for name, looks in parts.items()}))
    for text in (finding.headline, finding.said, finding.summary):
        assert text.endswith("Seen in 1 of 2 processes.")


def test_a_death_in_an_instrument_is_a_crash_although_another_process_survived():
    looks = [verdict("safe"), died("unknown", "killed by SIGSEGV during early_write")]
    varying_looks = verdict("varies", processes=looks)
    assert found("DLP016", path("f(x)", early_write=varying_looks))


def test_the_table_of_the_documentation_has_every_rule():
    table = (Path(__file__).parents[2] / "docs" / "rules" / "index.md").read_text("utf-8")
    for rule in RULES:
        cells = rule.id, f"{rule.id}.md", rule.name, rule.severity_text, index(rule.id)
        assert all(cell in table for cell in cells), rule.id
