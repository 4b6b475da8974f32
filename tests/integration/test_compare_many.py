"""``dlprof compare`` of more than two sessions, on recorded ones of four environments."""

from pathlib import Path

import pytest
from command_line import dlprof

VERSIONS = Path(__file__).parents[1] / "recorded" / "versions"
"""NumPy to two versions of ONNX Runtime and of safetensors, measured on one machine."""


@pytest.mark.parametrize("columns", [80, 100])
def test_a_folder_gives_what_differs_between_versions(columns):
    done = dlprof("compare", VERSIONS, COLUMNS=columns)
    assert (done.code, done.err) == (0, "")
    words = " ".join(done.out.split())
    assert "6 of 20 cases" in words
    assert "onnxruntime 1.21.0 onnxruntime 1.32.0" in words
    assert max(map(len, done.out.splitlines())) <= columns


def test_a_file_that_is_no_session_is_left_out_of_a_folder_and_refused_by_name(tmp_path):
    for file in VERSIONS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    foreign = tmp_path / "foreign.json"
    foreign.write_text("[]", encoding="utf-8")
    done = dlprof("compare", tmp_path)
    assert done.code == 0
    assert done.err.count("left out") == 1
    assert dlprof("compare", *VERSIONS.iterdir(), foreign).code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((VERSIONS / "safetensors-0.7.0.json",), "one session"),
        ((VERSIONS, "--fail-on", "copy"), "--fail-on compares two sessions"),
        ((VERSIONS / "safetensors-0.7.0.json",) * 3, "one environment"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(words, said):
    done = dlprof("compare", *words)
    assert done.code == 2
    assert said in done.sentence()
