"""Whether HEAD may be measured against a finished session: asked before anything is measured."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_catalog, make_probe_info, make_session, make_way
from scenario_builders import make_scenario

from dlprof.errors import Unsure
from dlprof.gate.baseline import check
from dlprof.measuring.measuring import Measurement
from dlprof.plan.settings import FEW_PATHS
from dlprof.scenario.request import sweep
from dlprof.scenario.settle import settle

pytestmark = pytest.mark.unit

FILE = Path("s.toml")


class Unwatched:
    def start(self, total): ...
    def case(self, case, round_, stage): ...
    def step(self): ...


def asked(paths, more=""):
    ways = [make_way(f"way{n}", code=f"numpy.way{n}({{x}})") for n in range(paths)]
    catalog = make_catalog(make_probe_info("numpy", imports=ways), make_probe_info("torch"))
    scenario, origins = settle(make_scenario(more), {}, str(FILE))
    return sweep(scenario, origins, FILE, "python", lambda *_: catalog)


def swept(found, rounds=10):
    """A session of it as ``dlprof sweep`` writes it, of which all was measured."""
    request = replace(found.request, settings=replace(found.request.settings, rounds=rounds))
    made = Measurement(request, found.catalog, Path("base.json"), Unwatched())
    with contextlib.closing(made.journal):
        results = [one.model_copy(update={"status": "ok"}) for one in made.results()]
        return make_session(
            *results, **made.header().model_dump(by_alias=True, exclude={"schema_"})
        )


@pytest.mark.parametrize("paths", [1, FEW_PATHS, FEW_PATHS + 1, 2 * FEW_PATHS])
def test_a_baseline_of_the_same_scenario_is_taken_however_many_paths_share_the_time(paths):
    found = asked(paths)
    check(swept(found), found)


def test_a_baseline_with_other_samples_is_refused():
    with pytest.raises(Unsure, match=r"measured in different ways: sample_ns 2000000 → 60000000"):
        check(swept(asked(1, "sample_ms = 2")), asked(1))
