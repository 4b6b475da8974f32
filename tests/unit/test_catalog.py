"""The catalog: which frameworks there are, found by name."""

from __future__ import annotations

import re

import pytest
from builders import make_catalog, make_probe_info

from dlprof.errors import MissingFramework, UsageError
from dlprof.plan.catalog import Way, catalog_from, environment

pytestmark = pytest.mark.unit

TORCH = make_probe_info("torch", version="2.9.0", requirement="torch>=2.4")
TENSORFLOW = make_probe_info(
    "tensorflow", aliases=("tf",), distribution="tensorflow-cpu", version="2.20"
)
ABSENT = make_probe_info(
    "cupy", found=False, version=None, distribution=None, requirement="cupy-cuda12x"
)


@pytest.fixture
def catalog():
    return make_catalog(TORCH, TENSORFLOW, ABSENT)


def way(name, protocol="dlpack"):
    return {
        "name": name,
        "protocols": [protocol],
        "code": "{x}",
        "devices": ["cpu"],
        "promise": None,
        "note": "",
    }


def entry(name, **changes):
    """One probe in a worker's answer."""
    fields = {
        "source": "builtin",
        "name": name,
        "aliases": [],
        "module": name,
        "found": True,
        "version": "1.0",
        "distribution": name,
        "requirement": name,
        "variables": {},
        "devices": ["cpu"],
        "exports": [way("dlpack")],
        "imports": [{**way("from_dlpack"), "producers": []}],
    }
    return fields | changes


def answer(*entries, faults=None):
    return {"interpreter": {"python": "3.11.7"}, "probes": list(entries), "faults": faults or {}}


@pytest.mark.parametrize("word", ["tensorflow", "tf", "TF", "TensorFlow"])
def test_a_framework_is_found_by_name_or_alias_in_any_case(catalog, word):
    assert catalog.named(word) is TENSORFLOW


@pytest.mark.parametrize(
    ("word", "near"), [("tensorflwo", "tensorflow"), ("Trch", "torch"), ("numpy", "cupy")]
)
def test_an_unknown_framework_is_answered_with_the_nearest_one(catalog, word, near):
    with pytest.raises(
        UsageError, match=rf"^there is no framework '{word}': did you mean '{near}'\?$"
    ):
        catalog.named(word)


def test_a_framework_near_to_none_is_answered_with_all_names_and_aliases(catalog):
    with pytest.raises(UsageError, match=r"known are torch, tensorflow, tf, cupy$"):
        catalog.named("qqq")


def test_a_framework_that_is_installed_is_given(catalog):
    assert catalog.installed("torch") is TORCH


def test_a_framework_that_is_not_installed_is_answered_with_the_pip_command(catalog):
    with pytest.raises(
        MissingFramework, match=r"^cupy is not installed: pip install cupy-cuda12x$"
    ):
        catalog.installed("cupy")


def test_the_pip_command_is_that_of_the_measured_interpreter():
    foreign = make_catalog(ABSENT, python="/elsewhere/python")
    with pytest.raises(
        MissingFramework, match=r"^cupy is not installed: /elsewhere/python -m pip install cupy"
    ):
        foreign.installed("cupy")


def test_packages_are_the_versions_of_the_distributions_that_were_found(catalog):
    assert catalog.packages() == {"torch": "2.9.0", "tensorflow-cpu": "2.20"}


def test_a_workers_answer_becomes_a_catalog_with_its_ways():
    catalog = catalog_from("python3", answer(entry("numpy", aliases=["np"])))
    (probe,) = catalog.probes
    assert probe.aliases == ("np",)
    assert probe.exports == (Way("dlpack", ("dlpack",), "{x}", ("cpu",), None, ""),)
    assert probe.reference == ("builtin", "numpy")


def test_the_producers_of_a_native_import_are_kept():
    native = {**way("from_numpy", "native"), "producers": ["numpy"]}
    (probe,) = catalog_from("python3", answer(entry("torch", imports=[native]))).probes
    assert probe.imports[0].producers == ("numpy",)


def test_faults_of_sources_are_kept():
    catalog = catalog_from("python3", answer(faults={"entry:mine": "ImportError: no"}))
    assert catalog.faults == {"entry:mine": "ImportError: no"}


def test_a_probe_file_stands_before_an_installed_probe_of_its_name():
    mine = entry("torch", source="file:/p.py")
    (probe,) = catalog_from("python3", answer(entry("torch"), mine)).probes
    assert probe.source == "file:/p.py"


@pytest.mark.parametrize(
    "clash",
    [
        (entry("torch"), entry("torch", source="entry:mine")),
        (entry("torch"), entry("mine", source="entry:mine", aliases=["torch"])),
        (entry("torch"), entry("mine", source="file:/p.py", aliases=["torch"])),
        (entry("torch", source="file:/p.py"), entry("torch", source="file:/q.py")),
    ],
)
def test_two_probes_of_one_name_are_refused_with_both_sources(clash):
    first, second = (re.escape(probe["source"]) for probe in clash)
    with pytest.raises(UsageError, match=rf"^two probes are named 'torch': {first} and {second}$"):
        catalog_from("python3", answer(*clash))


def test_the_libraries_that_do_a_frameworks_work_are_told_with_whose_they_are():
    entries = (entry("jax", also={"jaxlib": "0.9"}), entry("b", version=None, also={"c": "1"}))
    found = environment(catalog_from("python", answer(*entries)), {})
    assert found["packages"] == {"jax": "1.0", "jaxlib": "0.9"}
    assert found["libraries"] == {"jaxlib": "jax"}


def test_the_environment_tells_of_the_interpreter_its_packages_and_variables(catalog):
    found = environment(catalog, {"A": "1"})
    assert found["python"] == "3.11.7"
    assert found["packages"] == catalog.packages()
    assert found["variables"] == {"A": "1"}
    assert found["gpus"] == []
