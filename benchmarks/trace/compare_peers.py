"""Print what other tools report of ``peers.py``: lines, functions or messages.

    python benchmarks/trace/compare_peers.py torch|pyinstrument|transfer_guard|dlprof

It needs pyinstrument. Each tool gets the unchanged program.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("peers.py"))


def dlprof() -> None:
    trace = str(Path(tempfile.mkdtemp(), "trace.json"))
    command = [sys.executable, "-m", "dlprof", "trace", "-o", trace, PROGRAM]
    subprocess.run(command, check=True)


def torch() -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as found:
        runpy.run_path(PROGRAM, run_name="__main__")
    path = Path(tempfile.mkdtemp(), "events.json")
    found.export_chrome_trace(str(path))
    events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    names = {str(event.get("name")) for event in events}
    print("operators:", ", ".join(sorted(name for name in names if name.startswith("aten::"))))
    print("functions:", ", ".join(sorted(name for name in names if "peers.py(" in name)) or "none")


def pyinstrument() -> None:
    path = str(Path(tempfile.mkdtemp(), "session.json"))
    command = [sys.executable, "-m", "pyinstrument", "-r", "json", "-o", path, PROGRAM]
    subprocess.run(command, check=True)
    root = json.loads(Path(path).read_text(encoding="utf-8"))["root_frame"]
    print("functions:", ", ".join(sorted(set(_frames(root)))))


def _frames(frame: dict) -> list[str]:
    own = [f"{frame['function']}:{frame['line_no']} {frame['time'] * 1e3:.0f} ms"]
    below = [name for child in frame["children"] for name in _frames(child)]
    return (own if frame["file_path"].endswith("peers.py") else []) + below


def transfer_guard() -> None:
    environment = {**os.environ, "JAX_TRANSFER_GUARD": "log"}
    command = [sys.executable, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    said = [line for line in done.stderr.splitlines() if "transfer" in line.lower()]
    print(len(said), "messages,", sum("peers.py" in line for line in said), "name the program")
    print(*dict.fromkeys(re.sub(r"^.*?\] ", "", line)[:200] for line in said[:200]), sep="\n")


if __name__ == "__main__":
    {one.__name__: one for one in (dlprof, torch, pyinstrument, transfer_guard)}[sys.argv[1]]()
