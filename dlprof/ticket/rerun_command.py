"""The shell command that measures the cases of a finding again."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterable, Sequence

from dlprof.judge.case_view import CaseView
from dlprof.probes.base import DTYPES, LAYOUTS
from dlprof.protocol.statement import UserCode
from dlprof.runner.axes import shape_text
from dlprof.runner.session import CaseRecord, Header

MOST_PATHS = 6

Words = list[tuple[str, str]]
"""Options with their values; an argument has no option."""


def rerun_command(
    cases: Sequence[CaseView], session: Header, against: CaseView | None = None
) -> str | None:
    """The command for the array of the first case, with the paths that ``cases`` convert it by.

    ``against`` is the case that they are compared with. The answer is None if the session holds
    text that is unfit for a command line.
    """
    if not cases:
        return None
    probes = session.request.probe_files
    is_own = any(one.startswith(UserCode.PREFIX) for one in probes)
    found = _time(session) if is_own else _run(_shown(cases, against), session)
    found += [("--probe", one) for one in probes if not one.startswith(UserCode.PREFIX)]
    found += _python(session)
    is_fit = all(
        name.startswith("/") for option, name in found if option in ("--probe", "--python")
    )
    if not found[0][1] or not is_fit or not all(map(_is_text, found)):
        return None
    options = [word for option, value in found if option for word in (option, value)]
    arguments = [value for option, value in found if not option]
    words = [*arguments, *options]
    if any(value.startswith("-") for value in arguments):
        words = [*options, "--", *arguments]
    return shlex.join(["dlprof", "time" if is_own else "run", *words])


def pair_command(session: Header, case: CaseRecord) -> str:
    """The command that measures every path between the frameworks of a user's own ``case``, for an
    array like it; empty if that is no such case, or if dlprof makes no such array.
    """
    found = _user_code(session)
    is_made = case.dtype in DTYPES and case.layout in LAYOUTS
    if found is None or not is_made or case.producer == case.consumer:
        return ""
    sides = found.producer.probe, found.consumer.probe
    if any(probe is None or probe[0] != "builtin" for probe in sides):
        return ""
    array = [
        ("--shape", shape_text(case.shape)),
        ("--dtype", case.dtype),
        ("--layout", case.layout),
        ("--device", device_word(session) or case.device),
        *_python(session),
    ]
    usual = {"float32", "C", "cpu"}
    options = [word for option, value in array if value not in usual for word in (option, value)]
    return shlex.join(["dlprof", "run", case.producer, case.consumer, *options])


def _user_code(session: Header) -> UserCode | None:
    """The user's own conversion that the session measured, if it did."""
    for one in session.request.probe_files:
        if one.startswith(UserCode.PREFIX):
            try:
                return UserCode.read(one)
            except (ValueError, TypeError, LookupError, AttributeError):
                return None
    return None


def _python(session: Header) -> Words:
    """The interpreter, if it was not dlprof's own."""
    own = session.environment.parent_python
    if own is None or own == session.environment.python:
        return []
    return [("--python", session.request.python)]


def _shown(cases: Sequence[CaseView], against: CaseView | None) -> list[CaseView]:
    """The first case, the other paths of its array, and the case that they are compared with."""
    paths: dict[str, CaseView] = {}
    for case in cases:
        if len(paths) < MOST_PATHS and case.array == cases[0].array:
            paths.setdefault(case.result.case.path, case)
    return [*paths.values(), *([against] if against is not None else [])]


def _run(shown: Sequence[CaseView], session: Header) -> Words:
    cases = [one.result.case for one in shown]
    settings, simulated = session.request.settings, device_word(session)
    placed = settings.placements
    found = [
        ("", _joined(case.producer for case in cases)),
        ("", _joined(case.consumer for case in cases)),
        ("--shape", _joined(shape_text(case.shape) for case in cases)),
        ("--dtype", _joined(case.dtype for case in cases)),
        ("--layout", _joined(case.layout for case in cases)),
        ("--device", simulated or cases[0].device),
        *(("--path", path) for path in dict.fromkeys(glob.escape(case.path) for case in cases)),
        ("--placement", "" if placed == ("convert",) else ",".join(placed)),
        ("--setup", settings.setup),
    ]
    return [(option, value) for option, value in found if value]


def _time(session: Header) -> Words:
    """``dlprof time`` with the user's own statement; one without text where that is not known."""
    found = _user_code(session)
    if found is None or session.command[:1] != ["time"]:
        return [("", "")]
    setup = [("-s", found.setup)] if found.setup else []
    simulated = [("--device", device_word(session))] if session.simulated else []
    return [("", session.command[-1]), *setup, ("--source", found.source), *simulated]


def device_word(session: Header) -> str:
    """``simulated`` or ``simulated:2``; empty for a real device."""
    count = session.simulated
    return "simulated" + (f":{count}" if count > 1 else "") if count else ""


def _joined(words: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(words))


def _is_text(word: tuple[str, str]) -> bool:
    """Whether a value can be typed, and is no option itself."""
    option, value = word
    is_option = value.startswith("-") and option != ""
    return not is_option and all(line.isprintable() for line in value.split("\n"))
