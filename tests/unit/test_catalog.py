"""The catalog: frameworks, found by name."""

import json
import re
import sys
from dataclasses import asdict

import pytest
from builders import make_catalog, make_probe_info

from dlprof.errors import MissingFramework, UsageError
from dlprof.runner.catalog import catalog_from, environment

TORCH = make_probe_info("torch", version="2.9.0", requirement="torch>=2.4")
TENSORFLOW = make_probe_info("tensorflow", aliases=("tf",), version="2.20")
ABSENT = make_probe_info("cupy", found=False, version=None, requirement="cupy-cuda12x")


@pytest.fixture
def catalog():
    return make_catalog(TORCH, TENSORFLOW, ABSENT)


def entry(name, **changes):
    """A probe in a worker's answer."""
    return json.loads(json.dumps(asdict(make_probe_info(name)))) | changes


def answer(*entries):
    return {"interpreter": {"python": "3.11.7"}, "probes": list(entries), "faults": {}}


@pytest.mark.parametrize("word", ["tensorflow", "tf", "TF", "TensorFlow"])
def test_a_framework_is_found_by_name_or_alias_in_any_case(catalog, word):
    assert catalog.find(word) is TENSORFLOW


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tensorflwo", "did you mean 'tensorflow'?"),
        ("qqq", "dlprof time"),
        ("temper", "dlprof time"),
    ],
)
def test_an_unknown_framework_is_answered_with_the_nearest_one_or_other_ways(catalog, word, hint):
    with pytest.raises(UsageError, match=f"{word}.*{re.escape(hint)}"):
        catalog.find(word)


@pytest.mark.parametrize(
    ("python", "pip"), [(sys.executable, "pip"), ("/elsewhere/python", "/elsewhere/python -m pip")]
)
def test_a_framework_that_is_not_installed_is_answered_with_the_pip_command(python, pip):
    found = make_catalog(TORCH, ABSENT, python=python)
    assert found.installed("torch") is TORCH
    with pytest.raises(MissingFramework, match=f"{pip} install cupy-cuda"):
        found.installed("cupy")


def test_the_environment_lists_the_interpreter_its_packages_and_variables():
    entries = (entry("jax", also={"jaxlib": "0.9"}), entry("b", version=None, also={"c": "1"}))
    found = environment(catalog_from("python", answer(*entries)), {"A": "1"})
    assert (found["python"], found["variables"], found["gpus"]) == ("3.11.7", {"A": "1"}, [])
    assert found["packages"] == {"jax": "1.0", "jaxlib": "0.9"}
    assert found["libraries"] == {"jaxlib": "jax"}
