"""The shell command that measures the cases of a finding again."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from dlprof.analysis.case_view import CaseView, seen
from dlprof.analysis.thresholds import ALIGNED_BYTES
from dlprof.plan.axes import shape_text
from dlprof.protocol.statement import OwnCode
from dlprof.session.model import CaseRecord, Header

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*")
"""A framework, dtype or layout. A session file may hold anything in their place."""
PLACEMENT = re.compile(r"[a-z][a-z-]*")
DEVICES = ("cpu", "cuda")
MOST_PATHS = 6
LONGEST = 4000
OF_VIEWS = ("DLP004", "DLP009", "DLP012", "DLP013", "DLP017", "DLP018")
"""Rules whose claims depend on what is a view."""


def rerun_command(
    cases: Sequence[CaseView], session: Header, against: CaseView | None = None, rule: str = ""
) -> str | None:
    """The command for the array of the first case, with the paths that ``cases`` convert it by.

    ``against`` is the case that they are compared with, ``rule`` the id of the finding. The answer
    is None where the session holds text that is unfit for a command line.
    """
    probes = session.request.get("probe_files") or []
    if not cases or not _is_texts(probes):
        return None
    own = [one for one in probes if one.startswith(OwnCode.PREFIX)]
    files = [one for one in probes if one not in own]
    words = _time(own[0], session) if own else _run(_shown(cases, against), session, rule)
    if words is None or not all(map(_is_file, files)) or sum(map(len, words)) > LONGEST:
        return None
    return shlex.join(["dlprof", words[0], *_each("--probe", files), *words[1:]])


def _shown(cases: Sequence[CaseView], against: CaseView | None) -> list[CaseView]:
    """The first case, the other paths of its array, and the case that they are compared with."""
    paths: dict[str, CaseView] = {}
    for case in cases:
        if len(paths) < MOST_PATHS and case.array == cases[0].array:
            paths.setdefault(case.result.case.path, case)
    return [*paths.values(), *([against] if against is not None else [])]


def _run(shown: Sequence[CaseView], session: Header, rule: str) -> list[str] | None:
    cases = [one.result.case for one in shown]
    if not all(map(_is_plain, cases)) or any(one.result.environment for one in shown):
        return None
    layouts = _distinct(case.layout for case in cases)
    if rule in OF_VIEWS and layouts == ["C"] and any(map(_is_aligned_view, shown)):
        # Where a contiguous array begins differs from run to run. Some paths are views of aligned
        # arrays only, and a few paths alone may meet no aligned array.
        layouts.append("aligned")
    settings = session.request.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    placements, setup = settings.get("placements"), settings.get("setup")
    placed = [*placements] if _is_texts(placements) else []
    return [
        "run",
        ",".join(_distinct(case.producer for case in cases)),
        ",".join(_distinct(case.consumer for case in cases)),
        *("--shape", ",".join(_distinct(shape_text(case.shape) for case in cases))),
        *("--dtype", ",".join(_distinct(case.dtype for case in cases))),
        *("--layout", ",".join(layouts)),
        *("--device", cases[0].device),
        *_each("--path", (glob.escape(path) for path in _distinct(case.path for case in cases))),
        *(["--placement", ",".join(placed)] if _is_placement(placed) else []),
        *(["--setup", setup] if setup and _is_text(setup) else []),
        *_python(session),
    ]


def _is_aligned_view(case: CaseView) -> bool:
    return any(
        word == "view" and any(size >= ALIGNED_BYTES for size in evidence.alignments)
        for word, evidence in seen(case.result.ownership)
    )


def _is_placement(words: Sequence[str]) -> bool:
    """Whether a conversion was measured in a loop too."""
    return bool(words) and words != ["convert"] and all(map(PLACEMENT.fullmatch, words))


def _is_plain(case: CaseRecord) -> bool:
    words = (case.producer, case.consumer, case.dtype, case.layout)
    return (
        all(NAME.fullmatch(word) for word in words)
        and case.device in DEVICES
        and case.path.isprintable()
        and not case.path.startswith("-")
    )


def _time(reference: str, session: Header) -> list[str] | None:
    """``dlprof time`` with the user's own statement."""
    try:
        found = OwnCode.read(reference)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    statement = session.command[-1] if session.command[:1] == ["time"] else ""
    if not statement or not all(map(_is_text, (found.setup, found.source, statement))):
        return None
    setup = ["-s", found.setup] if found.setup else []
    # Without the dashes more options can be added at the end.
    dashes = ["--"] if statement.startswith("-") else []
    return ["time", *setup, "--source", found.source, *_python(session), *dashes, statement]


def _python(session: Header) -> list[str]:
    """The interpreter, where it is another Python than that of dlprof."""
    own = session.environment.get("parent_python")
    path = str(session.request.get("python") or "")
    is_other = own is not None and own != session.environment.get("python")
    return ["--python", path] if is_other and _is_file(path) else []


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _is_file(name: str) -> bool:
    return name.startswith("/") and name.isprintable()


def _is_texts(content: object) -> TypeGuard[Sequence[str]]:
    return isinstance(content, list | tuple) and all(isinstance(one, str) for one in content)


def _is_text(text: object) -> bool:
    return isinstance(text, str) and all(line.isprintable() for line in text.split("\n"))
