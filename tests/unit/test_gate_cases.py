"""What a gate says of cases that cannot take turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_catalog, make_probe_info
from scenario_builders import make_scenario

from dlprof.gate.cases import without_turns
from dlprof.scenario.request import sweep
from dlprof.scenario.settle import settle

pytestmark = pytest.mark.unit

CATALOG = make_catalog(make_probe_info("numpy"), make_probe_info("torch"))


def of_shape(shape):
    scenario, origins = settle(make_scenario(f'shapes = ["{shape}"]'), {}, "s.toml")
    return sweep(scenario, origins, Path("s.toml"), "python", lambda *_: CATALOG)


@pytest.mark.parametrize(("shape", "said"), [("16383x16384", False), ("16384x16384", True)])
def test_it_is_said_that_the_largest_arrays_take_no_turns(shape, said):
    found = without_turns(of_shape(shape))
    assert bool(found) == said
    assert not found or "1 GiB or more took no turns" in found[0]
