"""Whether HEAD may be measured against a finished session: asked before anything is measured."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_catalog, make_probe_info, make_session, make_way
from scenario_builders import make_sweep

from dlprof.compare.gate import check_baseline, has_large_arrays
from dlprof.errors import Unmeasured, Unsure
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.schedule import FEW_PATHS


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a measurement keeps its journal beside its session


def asked(paths, more=""):
    ways = [make_way(f"way{n}", code=f"numpy.way{n}({{x}})") for n in range(paths)]
    catalog = make_catalog(make_probe_info("numpy", imports=ways), make_probe_info("torch"))
    return make_sweep(catalog, more)


def swept(found, status="ok"):
    """A session of it as ``dlprof sweep`` writes it."""
    request = replace(found.request, settings=replace(found.request.settings, rounds=10))
    made = Measurement(request, found.catalog, Path("base.json"), Watcher())
    with contextlib.closing(made):
        results = [one.model_copy(update={"status": status}) for one in made.results()]
        return make_session(
            *results, **made.header().model_dump(by_alias=True, exclude={"schema_"})
        )


@pytest.mark.parametrize("paths", [1, FEW_PATHS + 1])
def test_a_baseline_of_the_same_scenario_is_taken_however_many_paths_share_the_time(paths):
    found = asked(paths)
    check_baseline(swept(found), found)


def test_a_baseline_of_another_day_takes_a_calibration():
    found = asked(1)
    old = swept(found).model_copy(update={"created": "2026-01-01T00:00:00+00:00"})
    with pytest.raises(Unsure, match=r"days apart.*--noise"):
        check_baseline(old, found)
    check_baseline(old, found, calibrated=True)


def test_a_baseline_with_other_samples_is_refused():
    with pytest.raises(Unsure, match=r"2\.0 ms → 60 ms"):
        check_baseline(swept(asked(1, "sample_ms = 2")), asked(1))


@pytest.mark.parametrize("allocator", ["system", "steady"])
def test_a_baseline_is_compared_only_with_what_glibc_was_told_when_it_was_measured(
    allocator, monkeypatch
):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    found = asked(1, f'allocator = "{allocator}"')
    baseline = swept(found)
    check_baseline(baseline, found)
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    with pytest.raises(Unsure, match="arena_max=1"):
        check_baseline(baseline, found)


@pytest.mark.parametrize(
    ("baseline", "reason"),
    [(lambda: swept(asked(1), "crashed"), "no case"),
     (lambda: swept(asked(1, 'shapes = ["7"]')), "another one")],
)  # fmt: skip
def test_a_baseline_without_a_case_of_the_scenario_is_refused(baseline, reason):
    with pytest.raises(Unmeasured, match=reason):
        check_baseline(baseline(), asked(1))


@pytest.mark.parametrize(("shape", "large"), [("16383x16384", False), ("16384x16384", True)])
def test_arrays_from_one_gibibyte_on_take_no_turns(shape, large):
    assert has_large_arrays(asked(1, f'shapes = ["{shape}"]')) == large
