"""What there is to measure in an interpreter: several pairs may lack some, one pair must be whole."""

from __future__ import annotations

import pytest
from builders import make_catalog, make_probe_info

from dlprof.errors import MissingFramework, Unmeasured
from dlprof.plan.pairing import Axes, count, targets
from dlprof.runner.place import place_of

pytestmark = pytest.mark.unit

BOTH = ("cpu", "cuda")
CATALOG = make_catalog(
    make_probe_info("numpy", variables={"N": "1"}),
    make_probe_info("torch", devices=BOTH),
    make_probe_info("cupy", devices=("cuda",), variables={"C": "1"}),
    make_probe_info("jax", found=False),
)


def place(*pairs, axes=None):
    return place_of(pairs, axes or Axes(), (), CATALOG)


def test_a_pair_that_is_there_has_cases():
    found = place(("torch", "numpy"))
    assert [case.pair for case in found.cases] == [("torch", "numpy")]
    assert found.interpreter.variables == {"N": "1"}


def test_the_only_pair_must_be_there():
    with pytest.raises(MissingFramework, match="jax is not installed"):
        place(("jax", "numpy"))


def test_of_several_pairs_what_is_missing_is_left_out_and_said():
    found = place(("jax", "numpy"), ("torch", "numpy"))
    assert {case.pair for case in found.cases} == {("torch", "numpy")}
    assert found.left_out == ("jax is not installed: pip install jax",)


def test_of_several_pairs_what_has_no_device_is_left_out_and_said():
    found = place(("cupy", "torch"), ("torch", "numpy"))
    assert {case.pair for case in found.cases} == {("torch", "numpy")}
    assert found.left_out == ("cupy → torch: cupy has arrays on cuda only, and no driver",)


def test_a_pair_is_measured_on_each_device_that_it_has():
    catalog = make_catalog(*CATALOG.probes, no_cuda=None)
    pairs = [(catalog.named("torch"), catalog.named("torch")), (catalog.named("numpy"),) * 2]
    found = targets(pairs, catalog, Axes(devices=BOTH))
    assert [(target.producer.name, target.device) for target in found.found] == [
        ("torch", "cpu"),
        ("torch", "cuda"),
        ("numpy", "cpu"),
    ]
    assert found.refused == ("numpy → numpy: numpy has no arrays on cuda",)
    assert count(found, Axes(dtypes=("int8", "bool")), ()) == 3 * 2


def test_where_no_device_can_be_had_the_reason_is_raised():
    with pytest.raises(Unmeasured, match="cuda cannot be measured: no driver"):
        place(("torch", "torch"), axes=Axes(devices=("cuda",)))


def test_a_glob_that_matches_nothing_is_left_out_and_said():
    globs = ("*from_dlpack*", "*nothing*")
    found = place_of((("torch", "numpy"),), Axes(), globs, CATALOG)
    assert len(found.cases) == 1
    assert found.left_out == ("no path matches '*nothing*'",)
