"""What a request comes to: several pairs may lack some, the only pair must be whole."""

from __future__ import annotations

import pytest
from builders import make_case, make_catalog, make_probe_info

from dlprof.errors import MissingFramework, Unmeasured
from dlprof.plan.pairing import Axes, count, targets
from dlprof.plan.plan import plan
from dlprof.plan.request import Request
from dlprof.plan.schedule import OWN_PROCESS_BYTES, process_of, sample_ns_for
from dlprof.plan.settings import Settings

pytestmark = pytest.mark.unit

BOTH = ("cpu", "cuda")
CATALOG = make_catalog(
    make_probe_info("numpy", variables={"N": "1"}),
    make_probe_info("torch", devices=BOTH),
    make_probe_info("cupy", devices=("cuda",), variables={"C": "1"}),
    make_probe_info("jax", found=False),
)


def planned(*pairs, axes=None, globs=()):
    return plan(Request(pairs, axes or Axes(), globs), CATALOG)


def test_a_pair_that_is_there_has_cases():
    found = planned(("torch", "numpy"))
    assert [case.pair for case in found.cases] == [("torch", "numpy")]
    assert found.variables == {"N": "1"}


def test_the_only_pair_must_be_there():
    with pytest.raises(MissingFramework, match="jax is not installed"):
        planned(("jax", "numpy"))


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("jax", "numpy"), "jax is not installed: pip install jax"),
        (("cupy", "torch"), "cupy → torch: cupy has arrays on cuda only, and no driver"),
    ],
)
def test_of_several_pairs_what_cannot_be_measured_is_left_out_and_said(pair, reason):
    found = planned(pair, ("torch", "numpy"))
    assert {case.pair for case in found.cases} == {("torch", "numpy")}
    assert found.left_out == (reason,)


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


def test_if_no_device_can_be_had_the_reason_is_raised():
    with pytest.raises(Unmeasured, match="cuda cannot be measured: no driver"):
        planned(("torch", "torch"), axes=Axes(devices=("cuda",)))


def test_a_glob_that_matches_nothing_is_left_out_and_said():
    found = planned(("torch", "numpy"), globs=("*from_dlpack*", "*nothing*"))
    assert len(found.cases) == 1
    assert found.left_out == ("no path matches '*nothing*'",)


@pytest.mark.parametrize(
    ("sample_ns", "paths", "each_ns"),
    [
        (60_000_000, 1, 60_000_000),
        (60_000_000, 12, 60_000_000),
        (60_000_000, 24, 30_000_000),
        (60_000_000, 500, 20_000_000),
        (5, 500, 5),
    ],
)
def test_a_pair_of_many_paths_gets_less_time_for_each(sample_ns, paths, each_ns):
    cases = [make_case(name=f"import{number}") for number in range(paths)]
    more_shapes = [make_case(name="import0", shape=(size,)) for size in range(100)]
    assert sample_ns_for(Settings(sample_ns=sample_ns), [*cases, *more_shapes]) == each_ns


def test_a_large_case_has_a_process_of_its_own():
    large, small = make_case(shape=(OWN_PROCESS_BYTES // 4,)), make_case()
    for settings in (Settings(), Settings(together=True)):
        assert process_of(1, large, settings) != process_of(2, large, settings)
        assert process_of(1, small, settings) == process_of(2, small, settings)


def test_cases_of_two_pairs_share_a_process_only_if_they_are_together():
    one, other = make_case("torch"), make_case("jax")
    assert process_of(1, one, Settings()) != process_of(2, other, Settings())
    together = Settings(together=True)
    assert process_of(1, one, together) == process_of(2, other, together)
