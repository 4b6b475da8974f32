"""What a report of many cases costs grows with their number, and not with its square."""

import cProfile
import gzip
import json
import pstats
from pathlib import Path

import pytest

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.reports import terminal
from dlprof.reports.session_document import session_document
from dlprof.rules import with_findings
from dlprof.session import model as sessions

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


def text_of(session, cases, changed):
    results = session["results"]
    found = [changed(results[at % len(results)], at // len(results)) for at in range(cases)]
    return json.dumps({**session, "findings": [], "results": found})


def calls(text):
    """How many calls of functions a report takes: that depends on no machine."""
    profile = cProfile.Profile()
    with profile:
        session = with_findings(sessions.parse(text, "s"))
        terminal.render(session_document(session))
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize("changed", [of_other_shapes, of_other_paths, repeated])
def test_eight_times_the_cases_take_at_most_ten_times_the_calls(changed):
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    few = calls(text_of(recorded, FEW, changed))
    assert calls(text_of(recorded, MANY, changed)) < 10 * few
