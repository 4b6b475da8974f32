"""The lists of probes and paths as text."""

import pytest
from builders import make_catalog, make_probe_info, make_way

from dlprof.cli.listing import paths_text, probes_text
from dlprof.runner.pairing import paths


def listed(*ways, device="cpu"):
    probes = make_probe_info("torch"), make_probe_info("numpy", imports=list(ways))
    return paths_text("torch", "numpy", {device: paths(*probes, device)})


@pytest.mark.parametrize("columns", ["120", "40"])
def test_a_path_is_listed_with_code_protocol_name_and_promise(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    text = listed(make_way("in", code="numpy.from_dlpack({x}, '[red]:smile:')", promise="copy"))
    found = ["numpy.from_dlpack(x, '[red]:smile:')", "dlpack", "dlpack->in", "copy"]
    assert all(one in text for one in ("torch → numpy on cpu", *found))
    assert all(len(line) <= int(columns) for line in text.splitlines())


def test_a_device_without_paths_says_so():
    assert "no common protocol" in listed(device="cuda")


def test_a_framework_is_listed_with_aliases_and_version_and_a_broken_source_with_its_fault():
    probe = make_probe_info("tensorflow", aliases=("tf",), version="2.20")
    text = probes_text(make_catalog(probe, faults={"entry:mine": "ImportError: no"}), {})
    assert {"tensorflow/tf", "2.20", "cpu"} <= set(text.splitlines()[1].split())
    assert "entry:mine" in text
    assert "ImportError: no" in text
    assert "Nothing was imported" in text


def test_a_verified_framework_is_listed_as_it_was_found():
    verified = {"numpy": {"devices": {"cpu": "usable", "cuda": "no"}, "c_exchange_api": True}}
    text = probes_text(make_catalog(make_probe_info("numpy", devices=("cpu", "cuda"))), verified)
    row = text.splitlines()[1].split()
    assert {"cpu", "yes"} <= set(row)
    assert "cuda" not in row
    assert "Nothing was imported" not in text
