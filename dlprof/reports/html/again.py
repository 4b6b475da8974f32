"""The command that measures a finding's cases again, and the one that they are compared with."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dlprof.analysis.case_view import mapping, seen
from dlprof.analysis.thresholds import ALIGNED_BYTES
from dlprof.protocol import own_code
from dlprof.reports.html.entry import Entry
from dlprof.session.model import CaseRecord, Session

WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*")
"""Names of frameworks, dtypes and layouts; a session from anywhere may hold anything."""
DEVICES = ("cpu", "cuda")
MOST_PATHS = 6
LONGEST = 4000
OF_VIEWS = ("DLP004", "DLP009", "DLP012", "DLP013", "DLP017", "DLP018")
"""Rules whose claims depend on what is a view."""
ALONE = "convert"
"""The placement that is measured anyway."""


def command(
    cases: Sequence[Entry], session: Session, against: Entry | None = None, rule: str = ""
) -> str | None:
    """What to paste into a shell: the first case's array, the ways that ``cases`` have of it.

    ``against`` is what they are compared with, ``rule`` what was found. None where the session's
    words are not such as a command line takes.
    """
    if not cases:
        return None
    probes = session.request.get("probe_files") or []
    if not isinstance(probes, list | tuple) or not all(isinstance(one, str) for one in probes):
        return None
    own = [one for one in probes if one.startswith(own_code.PREFIX)]
    files = [one for one in probes if one not in own]
    if not all(map(_is_file, files)):
        return None
    if own:
        words = _time(own[0], session)
    else:
        words = _run(_shown(cases, against), session, rule in OF_VIEWS)
    if words is None or sum(map(len, words)) > LONGEST:
        return None
    return shlex.join(["dlprof", words[0], *_options("--probe", files), *words[1:]])


def _shown(cases: Sequence[Entry], against: Entry | None) -> list[Entry]:
    """The clearest case, others of its array, and what they are compared with."""
    array = _array(cases[0])
    alike: dict[str, Entry] = {}
    for entry in cases:
        if len(alike) < MOST_PATHS and _array(entry) == array:
            alike.setdefault(entry.result.case.path, entry)
    return [*alike.values(), *([against] if against is not None else [])]


def _array(entry: Entry) -> tuple[Any, ...]:
    case = entry.result.case
    return case.producer, case.consumer, entry.row.array


def _run(shown: Sequence[Entry], session: Session, of_views: bool) -> list[str] | None:
    """``dlprof run`` with only the ways that are shown."""
    cases = [entry.result.case for entry in shown]
    python = _python(shown[0], session)
    if python is None or not all(map(_is_plain, cases)):
        return None
    words = ["run", _each(cases, lambda case: case.producer), _each(cases, lambda c: c.consumer)]
    words += ["--shape", ",".join(_distinct(entry.row.shape for entry in shown))]
    words += ["--dtype", _each(cases, lambda case: case.dtype)]
    words += ["--layout", ",".join(_layouts(shown, of_views)), "--device", cases[0].device]
    for path in _distinct(case.path for case in cases):
        words += ["--path", glob.escape(path)]
    return [*words, *_placements(session), *_setup(session), *python]


def _layouts(shown: Sequence[Entry], of_views: bool) -> list[str]:
    """Those of the cases, and ``aligned`` where a view began at an address that is.

    Where a contiguous array begins differs from run to run, and some conversions are views of
    aligned arrays only: a few ways alone may meet none.
    """
    layouts = _distinct(entry.result.case.layout for entry in shown)
    at = [
        size
        for entry in shown
        for word, evidence in seen(entry.result.ownership)
        if word == "view"
        for size in evidence.alignments
    ]
    aligned = any(size >= ALIGNED_BYTES for size in at)
    return ["C", "aligned"] if of_views and aligned and layouts == ["C"] else layouts


def _is_plain(case: CaseRecord) -> bool:
    words = (case.producer, case.consumer, case.dtype, case.layout)
    return (
        all(WORD.fullmatch(word) for word in words)
        and case.device in DEVICES
        and case.path.isprintable()
        and not case.path.startswith("-")
    )


def _each(cases: Sequence[CaseRecord], word: Callable[[CaseRecord], str]) -> str:
    return ",".join(_distinct(map(word, cases)))


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _options(name: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (name, value)]


def _is_file(name: str) -> bool:
    return name.startswith("/") and name.isprintable()


def _placements(session: Session) -> list[str]:
    asked = mapping(session.request.get("settings")).get("placements")
    words = [str(word) for word in asked] if isinstance(asked, list | tuple) else []
    known = [word for word in words if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
    return ["--placement", ",".join(known)] if known and known != [ALONE] else []


def _setup(session: Session) -> list[str]:
    """What was run after the imports."""
    said = mapping(session.request.get("settings")).get("setup")
    return ["--setup", said] if said and _is_text(said) else []


def _python(entry: Entry, session: Session) -> list[str] | None:
    """The interpreter, where there are several or it is another Python than dlprof's own.

    None where its name is no file's.
    """
    name = entry.result.environment
    if not name:
        return _other_python(session)
    known = [one for one in session.environments if mapping(one).get("name") == name]
    path = str(mapping(known[0]).get("executable")) if known else ""
    return ["--python", path] if _is_file(path) else None


def _other_python(session: Session) -> list[str]:
    own = session.environment.get("parent_python")
    path = str(session.request.get("python") or "")
    is_other = own is not None and own != session.environment.get("python")
    return ["--python", path] if is_other and _is_file(path) else []


def _time(reference: str, session: Session) -> list[str] | None:
    """``dlprof time`` with the user's own text."""
    try:
        found = own_code.read(reference)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    statement = session.command[-1] if session.command[:1] == ["time"] else ""
    texts = (found.setup, found.source, statement)
    if not statement or not all(map(_is_text, texts)):
        return None
    setup = ["-s", found.setup] if found.setup else []
    # Without the dashes more options can be added at the end.
    dashes = ["--"] if statement.startswith("-") else []
    python = _other_python(session)
    return ["time", *setup, "--source", found.source, *python, *dashes, statement]


def _is_text(text: object) -> bool:
    return isinstance(text, str) and all(line.isprintable() for line in text.split("\n"))
