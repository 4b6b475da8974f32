"""What a report of many cases costs grows with their number, and not with its square."""

import cProfile
import gzip
import json
import pstats
import tracemalloc
from pathlib import Path

import pytest

from dlprof.errors import SessionError
from dlprof.judge import with_findings
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.report import terminal
from dlprof.report.session_document import session_document
from dlprof.runner import session as sessions

FEW, MANY = 58, 58 * 8
RECORDED = Path(__file__).parents[1] / "recorded" / "first_edition" / "torch-jax.json.gz"
ONCE = (*DIAGNOSIS, "handshake")


def of_other_shapes(result, turn):
    once = {name: [] if name == "handshake" else None for name in ONCE if turn}
    return {**result, **once, "case": {**result["case"], "shape": [64 + turn, 64]}}


def of_other_paths(result, turn):
    case = result["case"]
    return {
        **result,
        "case": {**case, "code": f"{case['code']}#{turn}", "import": f"{case['import']}{turn}"},
    }


def repeated(result, _):
    return result


def of_slower_copies(result, turn):
    """Each of them costs more than the cheapest, and asks for a view that does not exist."""
    return {
        **of_other_paths(result, turn),
        "ownership": {"verdict": "copy", "evidence": {}},
        "ready_time": {**(result["ready_time"] or {}), "median_ns": 1e6 * (turn + 1)},
    }


def text_of(session, cases, changed):
    results = session["results"]
    found = [changed(results[at % len(results)], at // len(results)) for at in range(cases)]
    return json.dumps({**session, "findings": [], "results": found})


def calls(text):
    """How many calls of functions each part of a report takes: that depends on no machine."""
    read, session = counted(lambda: sessions.parse(text, "s"))
    judge, judged = counted(lambda: with_findings(session))
    show, _ = counted(lambda: terminal.render(session_document(judged)))
    return {"read": read, "judge": judge, "show": show}


def counted(work):
    profile = cProfile.Profile()
    with profile:
        done = work()
    return pstats.Stats(profile).total_calls, done


def recorded():
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


AT_NIGHT = (of_other_shapes, of_slower_copies, repeated)


@pytest.mark.parametrize(
    "changed",
    [of_other_paths, *(pytest.param(one, marks=pytest.mark.nightly) for one in AT_NIGHT)],
)
def test_eight_times_the_cases_take_at_most_ten_times_the_calls(changed):
    few = calls(text_of(recorded(), FEW, changed))
    many = calls(text_of(recorded(), MANY, changed))
    assert {part: many[part] / few[part] for part in few if many[part] >= 10 * few[part]} == {}


@pytest.mark.parametrize("changed", [of_other_paths, repeated])
def test_what_entries_repeat_is_kept_once(changed):
    results = sessions.parse(text_of(recorded(), MANY, changed), "s").results
    for part in ("values", "ownership", "model_fields_set"):
        assert len({id(getattr(one, part)) for one in results}) < FEW
    assert len({id(one.case.model_fields_set) for one in results}) < FEW


def test_many_values_of_another_form_are_not_all_put_into_words():
    text = json.dumps({**recorded(), "left_out": [1] * 200_000})
    tracemalloc.start()
    try:
        with pytest.raises(SessionError):
            sessions.parse(text, "s")
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
