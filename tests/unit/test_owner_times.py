"""Where processes disagree on view or copy, the times of both are told apart."""

from __future__ import annotations

import pytest
from builders import make_measure
from html_builders import alone
from rule_builders import path, varying, verdict

from dlprof.analysis.owner_times import by_process, owner_times_text
from dlprof.rules import observations

pytestmark = pytest.mark.unit

LOOKS = varying(("copy", 16), ("view", 64), ("view", 64))
TEXT = "as a view 14-16 µs in 2 processes, as a copy 44 µs in 1"


def differing(ownership=LOOKS, rounds=(0, 1, 2), medians_ns=(44e3, 14e3, 16e3), **changes):
    processes = [
        {"round": round_, "loops": 1, "samples_ns": [ns, ns, ns]}
        for round_, ns in enumerate(medians_ns)
    ]
    ready = make_measure(16e3, (14e3, 44e3), processes=processes)
    return path(
        "f(x)", ready, owner=ownership, rounds=list(rounds), case={"promise": "copy"}, **changes
    )


def test_the_time_of_views_and_that_of_copies_are_told_apart():
    assert owner_times_text(differing()) == TEXT


@pytest.mark.parametrize(
    "changes",
    [
        {"ownership": verdict("view")},
        {"ownership": verdict("varies", processes="many")},
        {"ownership": varying(("view", 64), ("unknown", 64), ("view", 64))},
        {"rounds": (0, 1)},
        {"medians_ns": ()},
    ],
    ids=["they agree", "no processes", "no copy", "whose look is unknown", "no times"],
)
def test_nothing_is_told_where_it_cannot_be_known(changes):
    assert owner_times_text(differing(**changes)) == ""


def test_a_process_without_a_time_is_told_without():
    found = differing(medians_ns=(44e3,))
    assert by_process(found) == [("copy", 44e3), ("view", None), ("view", None)]


def test_the_evidence_tells_the_time_of_each_process():
    session = alone(differing())
    (finding,) = (one for one in session.findings if one.rule == "DLP018")
    told = observations(finding, session.results)
    assert told[0].startswith("process 1 of 3: a copy")
    assert told[0].endswith("; 44 µs per call")
