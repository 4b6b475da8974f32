"""The lists of probes and paths as text."""

from __future__ import annotations

import pytest
from builders import make_catalog, make_probe_info, make_way

from dlprof.cli.listing import paths_text, probes_text
from dlprof.plan.pairing import paths

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _a_pipe_of_120_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def found(code="numpy.from_dlpack({x})", **changes):
    probes = (
        make_probe_info("torch"),
        make_probe_info("numpy", imports=[make_way("in", code=code, **changes)]),
    )
    return paths(*probes, "cpu")


def test_a_path_is_listed_with_code_protocol_name_and_promise():
    text = paths_text("torch", "numpy", {"cpu": found(promise="copy")})
    title, row = text.splitlines()
    assert title.startswith("torch → numpy on cpu")
    assert row.split() == ["numpy.from_dlpack(x)", "dlpack", "dlpack->in", "copy"]


def test_code_that_is_too_long_for_a_table_has_a_line_of_its_own(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = paths_text("torch", "numpy", {"cpu": found(promise="copy")})
    assert text.splitlines() == [
        "torch → numpy on cpu",
        "numpy.from_dlpack(x)",
        "    dlpack, dlpack->in, copy",
    ]


def test_a_device_without_paths_says_so():
    assert "torch → numpy on cuda: no common protocol" in paths_text("torch", "numpy", {"cuda": []})


def test_markup_and_emoji_names_in_code_are_shown_as_they_are():
    code = "f({x}, '[red]:smile:[/red]')"
    assert code.format(x="x") in paths_text("torch", "numpy", {"cpu": found(code)})


def test_a_framework_is_listed_with_aliases_and_version():
    text = probes_text(
        make_catalog(make_probe_info("tensorflow", aliases=("tf",), version="2.20")), {}
    )
    assert text.splitlines()[1].split()[:3] == ["tensorflow/tf", "2.20", "cpu"]


def test_a_source_that_cannot_be_used_is_told_with_its_fault():
    text = probes_text(make_catalog(faults={"entry:mine": "ImportError: no"}), {})
    assert "entry:mine cannot be used: ImportError: no" in text


def test_a_listing_says_that_nothing_was_imported():
    assert "Nothing was imported" in probes_text(make_catalog(make_probe_info()), {})
    verified = {"numpy": {"devices": {"cpu": "usable"}, "c_exchange_api": True}}
    assert "Nothing was imported" not in probes_text(make_catalog(make_probe_info()), verified)


def test_dtype_and_shape_stand_in_the_code_as_of_an_array():
    text = paths_text("torch", "numpy", {"cpu": found("numpy.f({x}, '{dtype}', {shape})")})
    assert "numpy.f(x, 'float32', (1024, 1024))" in text
    assert "dtype and shape are those of an array" in text


def test_what_a_path_needs_is_told_once():
    ways = [make_way(name, code=f"model.{name}({{x}})", setup="model = 1") for name in ("a", "b")]
    every = paths(make_probe_info("torch"), make_probe_info("numpy", imports=ways), "cpu")
    text = paths_text("torch", "numpy", {"cpu": every})
    assert text.count("model = 1") == 1
    assert "model.a(x) needs:" in text
