"""Claims on conversions: what speaks against them, and that what was not seen does."""

from __future__ import annotations

import pytest
from builders import make_session
from rule_builders import MS, ordered, path, varying, verdict

from dlprof.claims import assertions
from dlprof.claims.claim import are_copies, are_safe, are_views, do_not_wait, without_findings
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.unit

SAFE = verdict("safe")
COPYING = {"promise": "copy"}
UNKNOWN = verdict("unknown", reason="zero-size arrays have no address\nand more")


def said(judged):
    return {complaint.code: complaint.said for complaint in judged.complaints}


def views(*results):
    return are_views(make_session(*results))


def refused(code="h(x)"):
    return path(code, status="unsupported", reason="TypeError: no", owner=None)


def finding(*indices, **changes):
    fields = {
        "rule": "DLP012",
        "name": "slow-path",
        "severity": "warning",
        "summary": "f(x) takes 20 ms",
        "advice": "g(x) is a view too.",
        "evidence": {"slow_ns": 2157.24, "cause": "alignment"},
    }
    return FindingRecord(results=list(indices), **(fields | changes))


def test_views_are_views():
    judged = views(path("f(x)"), path("g(x)"))
    assert judged.holds
    assert judged.ways == 2


def test_a_copy_is_no_view():
    judged = views(path("f(x)"), path("g(x)", owner="copy"))
    assert not judged.holds
    assert said(judged) == {"g(x)": "a copy"}


def test_what_is_documented_to_copy_may():
    assert views(path("f(x)"), path("g(x)", owner="copy", case=COPYING)).ways == 1


def test_what_is_documented_to_copy_is_judged_where_nothing_else_was_asked_for():
    assert said(views(path("g(x)", owner="copy", case=COPYING))) == {"g(x)": "a copy"}


def test_what_cannot_be_told_is_no_view():
    assert said(views(path("f(x)", owner=UNKNOWN))) == {
        "f(x)": "not known whether view or copy: zero-size arrays have no address …"
    }
    assert said(views(path("f(x)", owner=None))) == {
        "f(x)": "not known whether view or copy: it was not measured"
    }


def test_a_view_in_some_processes_is_no_view():
    judged = views(path("f(x)", owner=varying(("view", 64), ("copy", 16))))
    assert said(judged) == {"f(x)": "a view in some processes only: they disagree"}


@pytest.mark.parametrize("status", ["crashed", "timeout", "skipped"])
@pytest.mark.parametrize("claim", [are_views, are_copies, do_not_wait, are_safe])
def test_what_does_not_come_back_speaks_against_every_claim(claim, status):
    judged = claim(make_session(path("f(x)", owner=None, status=status, reason="SIGSEGV\nat 0")))
    assert said(judged) == {"f(x)": f"{status}: SIGSEGV …"}


def test_what_is_refused_is_not_judged_beside_others():
    assert views(path("f(x)"), refused()).holds


@pytest.mark.parametrize("results", [(), (refused(),)], ids=["nothing", "refused"])
def test_a_claim_on_nothing_does_not_hold(results):
    session = make_session(*results)
    claims = [are_views, are_copies, do_not_wait, are_safe]
    judged = [claim(session) for claim in claims]
    judged.append(without_findings(session, (), ("error",)))
    assert not any(one.holds for one in judged)
    assert "No way could be measured" in assertions.text("f", judged[0], session, "s.json")


def test_copies_are_asked_of_what_is_documented_to_copy():
    results = [path("f(x)"), path("g(x)", owner="view", case=COPYING)]
    assert said(are_copies(make_session(*results))) == {"g(x)": "a view"}


@pytest.mark.parametrize("word", ["synchronous", "stream-ordered", "unordered"])
def test_what_does_not_wait_does_not_wait(word):
    assert do_not_wait(make_session(path("f(x)", ordering=ordered(word)))).holds


@pytest.mark.parametrize("word", ["host-sync", "device-sync"])
def test_a_wait_is_told_with_its_times(word):
    judged = do_not_wait(make_session(path("f(x)", ordering=ordered(word, 45 * MS, 47 * MS))))
    assert said(judged) == {"f(x)": f"{word}: takes 45 ms behind 47 ms of queued work"}


@pytest.mark.parametrize("word", ["host-sync", "device-sync"])
def test_a_race_that_waits_besides_waits(word):
    judged = do_not_wait(make_session(path("f(x)", ordering=ordered("unordered", waits=word))))
    assert said(judged) == {"f(x)": f"{word}: takes 45 ms behind 45 ms of queued work"}


@pytest.mark.parametrize("ordering", [None, UNKNOWN, verdict("a word of tomorrow")])
def test_whether_it_waits_must_be_known(ordering):
    (words,) = said(do_not_wait(make_session(path("f(x)", ordering=ordering)))).values()
    assert words.startswith("not known whether it waits: ")


def test_what_is_right_as_documented_and_looked_at_is_safe():
    assert are_safe(make_session(path("f(x)", lifetime=SAFE))).holds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values": verdict("wrong", changed={"dtype": ["int64", "int32"]})}, "unsafe: DLP007 dtype-changed"),
        ({"case": COPYING}, "unsafe: DLP018 promise-broken"),
        ({"lifetime": None}, "not known whether it is safe: nothing looked for races or lost memory"),
        ({"status": "invalid", "reason": "throttled"}, "invalid: throttled"),
        ({"ready": None}, "not known whether it is safe: it has no time"),
        ({"values": UNKNOWN}, "not known whether its values survive: zero-size arrays have no address …"),
        (
            {"values": UNKNOWN, "owner": None, "ownership": UNKNOWN},
            "not known whether it is safe: nothing of the result could be looked at",
        ),
    ],
    ids=["values", "promise", "not looked at", "invalid", "no time", "unchecked", "unseen"],
)  # fmt: skip
def test_what_is_not_safe_says_why(changes, words):
    result = path("f(x)", **{"lifetime": SAFE, "host": path("f(x)").host_time} | changes)
    assert said(are_safe(make_session(result))) == {"f(x)": words}


def test_an_error_makes_its_way_unsafe():
    session = make_session(path("f(x)", lifetime=SAFE), findings=[finding(0, severity="error")])
    assert said(are_safe(session)) == {"f(x)": "unsafe: DLP012 slow-path"}


@pytest.mark.parametrize(
    ("rules", "severities", "holds"),
    [
        ((), ("error",), True),
        ((), ("error", "warning"), False),
        (("DLP012",), (), False),
        (("DLP001",), (), True),
    ],
)
def test_a_finding_is_looked_for_by_rule_or_severity(rules, severities, holds):
    session = make_session(path("f(x)"), path("g(x)"), findings=[finding(1)])
    judged = without_findings(session, rules, severities)
    assert judged.holds == holds
    if not holds:
        assert said(judged) == {"g(x)": "warning DLP012 slow-path"}


def test_a_failure_shows_the_ways_the_findings_and_the_file():
    results = [path("f(x)"), path("g(x)", owner="copy")]
    session = make_session(*results, findings=[finding(0, summary="other"), finding(1)])
    assert assertions.text("Every way is a view", are_views(session), session, "/tmp/s.json") == (
        "torch -> numpy, 4x4 float32 C on cpu: Every way is a view? Not so for 1 of 2\n"
        "  g(x): a copy\n"
        "warning DLP012 slow-path: f(x) takes 20 ms\n"
        "    evidence: slow_ns 2157, cause alignment\n"
        "    g(x) is a view too.\n"
        "    dlprof explain DLP012 explains it\n"
        "session: /tmp/s.json (dlprof report prints it)"
    )


def test_a_failure_with_hostile_text_keeps_to_its_lines():
    evil = "\x1b[31m\nE   fake\u2028line\ud800"
    results = [path(evil, owner="copy")]
    found = finding(0, summary=evil, advice=evil, evidence={evil: evil}, rule=evil)
    session = make_session(*results, findings=[found])
    text = assertions.text("It is so", are_views(session), session, evil)
    assert len(text.splitlines()) == 7
    assert all(line.isprintable() for line in text.splitlines())


def test_long_failures_are_cut():
    results = [path(f"f{n}(x)", owner="copy") for n in range(40)]
    session = make_session(*results, findings=[finding(n) for n in range(40)])
    text = assertions.text("Every way is a view", are_views(session), session, "s.json")
    assert "… and 28 more ways" in text
    assert "… and 34 more findings" in text
