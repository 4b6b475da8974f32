"""A trace reports waits on a real device as the program's own clock does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dlprof.device.cuda import CudaUnavailable, open_gpu

try:
    open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

for name in ("torch", "cupy", "jax", "numba.cuda"):
    pytest.importorskip(name)

PROGRAM = Path(__file__).parents[1] / "programs" / "waits_on_device.py"
CALLS = 5


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Return the truth and the rows of the trace for each line."""
    folder = tmp_path_factory.mktemp("trace")
    trace, truth = folder / "trace.json", folder / "truth.json"
    command = [sys.executable, "-m", "dlprof", "trace", "-o", str(trace), str(PROGRAM), str(truth)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    rows = json.loads(trace.read_text(encoding="utf-8"))["rows"]
    found = []
    for one in json.loads(truth.read_text(encoding="utf-8")):
        of_line = [
            row for row in rows if row["line"] == one["line"] and row["file"] == str(PROGRAM)
        ]
        found.append((one, of_line))
        told = [
            (r["conversion"], r["result"], r["calls"], r["waits"], r["maybe_waits"])
            for r in of_line
        ]
        print(
            f"{one['idle_s'] * 1e6:9.1f} µs idle {one['busy_s'] * 1e6:9.1f} behind "
            f"{one['queued_s'] * 1e6:8.0f}, {one['waits']} wait  {one['text']}  {told}"
        )
    return found


def test_each_conversion_of_a_line_is_a_row_with_all_its_calls(lines):
    assert all(rows for _, rows in lines)
    assert {row["calls"] for _, rows in lines for row in rows} == {2 * CALLS + 1}


def test_as_many_calls_wait_as_the_clock_says(lines):
    waiting = {one["text"]: one["waits"] for one, _ in lines}
    assert any(waiting.values())
    assert waiting == {one["text"]: sum(row["waits"] for row in rows) for one, rows in lines}
