"""Does a framework's array type have the C exchange API of DLPack 1.3?

Without an import: the attribute's name is looked for in the files that define the type. With one:
the type is asked.
"""

from __future__ import annotations

import importlib.util
import mmap
from pathlib import Path
from typing import Any

from dlprof.probes.base import Probe

ATTRIBUTE = "__dlpack_c_exchange_api__"
SIBLING = b"__dlpack__"
"""What stands in a file that defines the type, whether it has the attribute or not."""


def declared(probe: Probe) -> bool | None:
    """As the installed files say; None where they are not what the probe takes them for."""
    try:
        found = [file for folder in _folders(probe) for file in _files(folder, probe)]
        holds = [_holds(file) for file in found]
    except (OSError, ImportError, ValueError, NotImplementedError):
        return None
    if any(attribute for attribute, _ in holds):
        return True
    return False if any(sibling for _, sibling in holds) else None


def verified(probe: Probe, namespace: dict[str, Any]) -> bool | None:
    """As the type says, in a ``namespace`` where the probe's setup has run."""
    if not probe.c_exchange_type:
        return None
    kind = eval(probe.c_exchange_type, namespace)  # noqa: S307 - the probe's own text
    return hasattr(kind, ATTRIBUTE)


def _folders(probe: Probe) -> list[Path]:
    spec = importlib.util.find_spec(probe.module)
    locations = spec.submodule_search_locations if spec is not None else None
    return [Path(location).parent for location in locations or ()]


def _files(folder: Path, probe: Probe) -> list[Path]:
    return [file for pattern in probe.c_exchange_files for file in folder.glob(pattern)]


def _holds(file: Path) -> tuple[bool, bool]:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(ATTRIBUTE.encode()) >= 0, text.find(SIBLING) >= 0
