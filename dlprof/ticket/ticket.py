"""One finding as a bug report in Markdown: what is wrong, how to see it, what was expected."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence

from dlprof._version import __version__
from dlprof.errors import NoReproducer
from dlprof.judge import expected
from dlprof.runner.axes import shape_text
from dlprof.runner.session import SIMULATED, FindingRecord, Result, Session
from dlprof.text import markdown
from dlprof.text.clean import clean, counted, sanitised
from dlprof.ticket.reproducer import Reproducer, reproducer
from dlprof.ticket.script_run import Ran, run

KEPT = frozenset(("root", "user", "ubuntu", "runner", "localhost"))
"""Names of users and hosts that are the same everywhere."""
LEAST_LETTERS = 3
NOT_RUN = "add --run to include its output"
MOST_CALLS = 8
MOST_VARIABLES = 12
LONGEST, LONGEST_CODE = 1500, 300
ENDINGS = {
    "there": "Exit code 1: the problem is there.",
    "gone": "**Not reproduced.** Exit code 0: the problem is gone.",
    "cannot tell": "**Not reproduced.** Exit code 2: the script cannot tell.",
}

TIMES = re.compile(r"\d (s|us)\b")


def written(session: Session, finding: FindingRecord, python: str | None) -> str:
    """The ticket of a finding, with what its reproducer prints under ``python``.

    Source text of a session may be hostile: without ``python`` it is not run.
    """
    try:
        script = reproducer(session, finding)
    except NoReproducer as reason:
        return ticket(session, finding, str(reason), "")
    if python is None:
        return ticket(session, finding, script, NOT_RUN)
    return ticket(session, finding, script, run(script.text, python, session.simulated))


def ticket(
    session: Session,
    finding: FindingRecord,
    script: Reproducer | str,
    ran: Ran | str,
) -> str:
    """Markdown to paste.

    ``script`` is the reproducer, or why there is none; ``ran`` how it ended, or why it was not run.
    """
    results = [session.results[index] for index in finding.results]
    calls = _other_calls(session, finding)
    title = _prose(finding.summary)
    if isinstance(script, Reproducer):
        title = f"{_code(script.call)} {_prose(script.does)}"
    and_more = f" (and {counted(len(calls), 'more path')})" if calls else ""
    parts = [
        f"# {title}{and_more}",
        _facts(finding, results),
        _alike(calls),
        "## Reproducer",
        _block(script.text.rstrip("\n"), "python")
        if isinstance(script, Reproducer)
        else f"**Not reproduced:** no script can be made: {_prose(script)}.",
        *(["## Output", _output(ran, session.simulated > 0)] if ran else []),
        "## Versions",
        _versions(session, results),
        f"Found with dlprof {__version__}, {_prose(f'{finding.rule} {finding.name}')}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _code(text: str) -> str:
    return markdown.code(clean(without_names(text), LONGEST_CODE))


def _prose(text: str) -> str:
    return markdown.prose(clean(without_names(text), LONGEST))


def _block(text: str, language: str = "") -> str:
    return markdown.block(sanitised(without_names(text).expandtabs()), language)


def _facts(finding: FindingRecord, results: Sequence[Result]) -> str:
    """One paragraph: what happens, of which array, and what is expected instead."""
    told = _prose(finding.summary)
    if not results:
        return told
    case = results[0].case
    array = f"{case.dtype} {shape_text(case.shape)}, {case.layout} layout, on {case.device}"
    is_array = _prose(f"is a {case.producer} array ({array}), converted to {case.consumer}.")
    expectation = expected(finding, results[0])
    return f"{_code(case.source)} {is_array} {told} Expected: {expectation}"


def _other_calls(session: Session, finding: FindingRecord) -> list[str]:
    """The other calls of the finding, with the framework of their source if there are several."""
    cases = [session.results[index].case for index in finding.results]
    calls = list(dict.fromkeys((case.producer, case.code) for case in cases))
    several = len({producer for producer, _ in calls}) > 1
    return [
        _code(code) + (f" of {_prose(producer)}" if several else "") for producer, code in calls[1:]
    ]


def _alike(calls: Sequence[str]) -> str:
    more = len(calls) - MOST_CALLS
    lines = [f"- {call}" for call in calls[:MOST_CALLS]]
    lines += [f"- … and {more:,} more"] if more > 0 else []
    return "\n".join(["The same happens with:", "", *lines]) if lines else ""


def _output(ran: Ran | str, untimed: bool) -> str:
    if isinstance(ran, str):
        return f"The reproducer was not run: {_prose(ran)}."
    unknown = f"**Not reproduced.** The script gave no answer: {_prose(ran.verdict)}."
    # Times of a simulated device mean nothing.
    lines = [line for line in ran.output.splitlines() if not (untimed and TIMES.search(line))]
    parts = [
        ENDINGS.get(ran.verdict, unknown),
        _block("\n".join(lines) or "(no output)", "text"),
    ]
    if ran.verdict not in ENDINGS and ran.errors:
        parts += ["On stderr:", _block(ran.errors, "text")]
    return "\n\n".join(parts)


def _versions(session: Session, results: Sequence[Result]) -> str:
    """Frameworks, Python, system, processor, GPUs, and environment variables."""
    known = session.environment
    names = {name for one in results for name in (one.case.producer, one.case.consumer)}
    names |= {module for one in results if one.recipe for module in one.recipe.modules}
    on_device = any(one.case.device != "cpu" for one in results)
    variables = (known.variables or {}) if on_device else {}
    lines = [
        ", ".join(f"{name} {version}" for name, version in known.distributions(names)),
        f"{known.implementation or 'Python'} {known.python or '?'}",
        known.platform or "",
        f"{known.cpu or 'unknown processor'}, {known.cores or '?'} cores",
        f"{SIMULATED[:1].upper()}{SIMULATED[1:]}" if session.simulated else "",
        *(
            f"{gpu.name or 'GPU'}, driver {gpu.driver_version or '?'}"
            for gpu in (known.known_gpus or ())[:2]
        ),
        ", ".join(f"{name}={value}" for name, value in list(variables.items())[:MOST_VARIABLES]),
    ]
    return "\n".join(f"- {_prose(line)}" for line in lines if line)


def without_names(text: str) -> str:
    """Return ``text`` with ``~``, ``<user>`` and ``<host>`` for the names of this machine."""
    home, host = os.path.expanduser("~"), socket.gethostname()  # noqa: PTH111 - never raises
    user = os.environ.get("USER") or os.path.basename(home)  # noqa: PTH119
    words = {home: "~", host: "<host>", host.partition(".")[0]: "<host>", user: "<user>"}
    for name, word in words.items():
        if len(name) >= LEAST_LETTERS and name not in KEPT:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
    return text
