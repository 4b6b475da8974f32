"""The lists of probes and paths as text."""

from builders import make_catalog, make_probe_info

from dlprof.cli.listing import paths_text, probes_text
from dlprof.runner.pairing import paths


def listed(*ways, device="cpu"):
    probes = make_probe_info("torch"), make_probe_info("numpy", imports=list(ways))
    return paths_text("torch", "numpy", {device: paths(*probes, device)})


def test_a_device_without_paths_says_so():
    assert "no common protocol" in listed(device="cuda")


def test_a_framework_is_listed_with_aliases_and_version_and_a_broken_source_with_its_fault():
    probe = make_probe_info("tensorflow", aliases=("tf",), version="2.20")
    text = probes_text(make_catalog(probe, faults={"entry:mine": "ImportError: no"}), {})
    assert {"tensorflow/tf", "2.20", "cpu"} <= set(text.splitlines()[1].split())
    assert "entry:mine" in text
    assert "ImportError: no" in text
    assert "Nothing was imported" in text
