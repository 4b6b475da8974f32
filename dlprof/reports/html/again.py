"""The command that measures a finding's cases again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from dlprof.reports.html.entry import Entry

WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*")
"""Names of frameworks, dtypes and layouts; a session from anywhere may hold anything."""
DEVICES = ("cpu", "cuda")


def command(cases: Sequence[Entry], request: dict[str, Any]) -> str | None:
    """``dlprof run`` with all ways of the first case's pair, on the first case's array.

    None where the session's words are not such as a command line takes.
    """
    if not cases:
        return None
    case = cases[0].result.case
    words = (case.producer, case.consumer, case.dtype, case.layout)
    if not all(WORD.fullmatch(word) for word in words) or case.device not in DEVICES:
        return None
    probes = _probe_files(request)
    if probes is None:
        return None
    parts = ["dlprof", "run", case.producer, case.consumer, "--shape", cases[0].row.shape]
    parts += ["--dtype", case.dtype, "--layout", case.layout, "--device", case.device]
    return shlex.join([*parts, *probes])


def _probe_files(request: dict[str, Any]) -> list[str] | None:
    """Options for the probe files; None where one is not a file's name."""
    files = request.get("probe_files") or []
    if not isinstance(files, list | tuple):
        return None
    named = [name for name in files if isinstance(name, str) and name.startswith("/")]
    if len(named) != len(files) or not all(name.isprintable() for name in named):
        return None
    return [word for name in named for word in ("--probe", name)]
