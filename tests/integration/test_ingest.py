"""Plain host memory into real frameworks."""

from command_line import content, dlprof

PRODUCERS = ("bytes", "bytearray", "array", "mmap", "pyarrow-buffer")
SCENARIO = f"""
title = "Ingest"
question = "Which ways in copy?"
pairs = {[f"{producer}->torch" for producer in PRODUCERS]}
shapes = ["3x4"]
dtypes = ["float64"]
rounds = 1
sample_ms = 1.0
diagnose = false
together = true
"""


def test_plain_memory_of_every_kind_reaches_torch_with_every_value(tmp_path):
    path, scenario = tmp_path / "s.json", tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    done = dlprof("run", scenario, "-o", path)
    assert done.code == 0, done.err
    results = content(path)["results"]
    for producer in PRODUCERS:
        found = {r["case"]["import"]: r for r in results if r["case"]["producer"] == producer}
        verdicts = {name: result["ownership"]["verdict"] for name, result in found.items()}
        assert verdicts["frombuffer"] == verdicts["from_numpy"] == "view"
        assert verdicts["tensor"] == verdicts["asarray_buffer_copy"] == "copy"
    assert {result["values"]["verdict"] for result in results} == {"ok"}
