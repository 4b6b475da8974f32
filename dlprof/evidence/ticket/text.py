"""The ticket itself: a pure function of a session, a finding and what the reproducer printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dlprof._version import __version__
from dlprof.analysis.known import mapping, number
from dlprof.analysis.quantity import size_text
from dlprof.analysis.versions import used
from dlprof.errors import NoReproducer
from dlprof.evidence.repro import Reproducer
from dlprof.evidence.repro.lines import folded
from dlprof.evidence.repro.subject import subject
from dlprof.evidence.ticket.also import Also, told
from dlprof.evidence.ticket.expected import expected
from dlprof.evidence.ticket.markdown import code, fenced, prose, public
from dlprof.evidence.ticket.measured import how_sure, measured
from dlprof.evidence.ticket.run import Ran
from dlprof.rules.layout import NO_WAY_OUT
from dlprof.rules.pages import section
from dlprof.session.model import FindingRecord, Result, Session

LIMIT = 65_536
"""Characters of an issue or a comment on GitHub."""
MOST_OTHERS = 20
LONGEST_TITLE = 300

NEWLINE = "\n"

HOW_TO_RUN = "Save it as `reproducer.py` and run it; it needs the frameworks and nothing else."
NOT_RUN = "**The reproducer was not run**: {why}."
SHOWN = "It was run {where}, and shows the problem (exit code 1):"
ENDINGS = {
    "gone": "**Not reproduced.** When it was run {where}, the script did not show the problem"
    " (exit code 0). What stands below was measured by dlprof alone:",
    "cannot tell": "**Not reproduced.** Run {where}, the script could not tell (exit code 2):",
}


def ticket(
    session: Session,
    number: int,
    finding: FindingRecord,
    script: Reproducer | str,
    ran: Ran | str,
    also: Sequence[Also] = (),
) -> str:
    """Markdown to paste.

    ``script`` is the reproducer, or why there is none; ``ran`` what became of it, or why it was
    not run. ``also`` are the other calls of the finding.
    """
    results = [session.results[i] for i in finding.results if 0 <= i < len(session.results)]
    against = finding.against
    known = against is not None and 0 <= against < len(session.results)
    other = session.results[against] if known and against is not None else None
    parts = [
        f"# {title(finding, script, [*results, *([other] if other else [])], len(also))}",
        _what(finding, results),
        "## How to see it",
        _reproduction(script, ran),
        told(also),
        "## What was measured",
        measured(results, other, session),
        "## How sure this is",
        how_sure(finding, results, session),
        "## What is expected",
        expected(finding, results[0]) if results else "",
        "## What to do meanwhile",
        prose(finding.advice) if finding.advice else "dlprof has no advice.",
        memory(finding, results),
        "## Versions and hardware",
        environment(session, results),
        _foot(session, number),
    ]
    return fit("\n\n".join(part for part in parts if part) + "\n")


def title(
    finding: FindingRecord, script: Reproducer | str, results: Sequence[Result], more: int = 0
) -> str:
    """One line that says what is wrong, with the ``results``' code in code spans.

    ``more`` is the number of other calls of which the same was found.
    """
    said = public(script.symptom if isinstance(script, Reproducer) else finding.summary)
    codes = sorted({public(result.case.code) for result in results}, key=len, reverse=True)
    named = [re.escape(one) for one in codes if len(one) <= LONGEST_TITLE]
    parts = re.split(f"({'|'.join(named)})", said[:LONGEST_TITLE]) if named else [said]
    line = "".join(code(part) if part in codes else _spaced(part) for part in parts)
    calls = f", and {more} other call{'' if more == 1 else 's'}" if more else ""
    if not results:
        return line
    case = results[0].case
    return f"{line} ({prose(case.source, 40)} of {prose(case.producer, 60)}{calls})"


def _spaced(part: str) -> str:
    """Prose that keeps the blanks at its ends: code may stand beside them."""
    begin, end = part[: len(part) - len(part.lstrip(" "))], part[len(part.rstrip(" ")) :]
    return f"{begin}{prose(part.strip(' '), LONGEST_TITLE)}{end}" if part.strip() else part


def _what(finding: FindingRecord, results: Sequence[Result]) -> str:
    why = section(finding.rule, "Why it matters")
    where = ""
    if results:
        case = results[0].case
        array = f"{case.dtype} {'x'.join(map(str, case.shape)) or 'scalar'}"
        where = (
            f"{code(case.source)} is an array of {prose(case.producer, 60)} ({prose(array, 90)},"
            f" layout {prose(case.layout, 40)}, on {prose(case.device, 40)}), handed over to"
            f" {prose(case.consumer, 60)}. The call:\n\n{fenced(case.code, 'python')}"
        )
    return "\n\n".join(filter(None, (f"{prose(finding.summary)}.", where, why)))


def _reproduction(script: Reproducer | str, ran: Ran | str) -> str:
    if isinstance(script, str):
        return f"**Not reproduced:** no script could be made of it: {prose(script, 300)}."
    text = f"{HOW_TO_RUN}\n\n{fenced(script.text.rstrip(NEWLINE), 'python')}"
    if isinstance(ran, str):
        return f"{text}\n\n{NOT_RUN.format(why=prose(ran, 300))}"
    ending = f"**Not reproduced.** The script did not come to an answer ({prose(ran.verdict)}):"
    said = {"there": SHOWN, **ENDINGS}.get(ran.verdict, ending).replace("{where}", ran.where)
    shown = f"{text}\n\n{said}\n\n{fenced(ran.output or '(no output)', 'text')}"
    return f"{shown}\n\nOn stderr:\n\n{fenced(ran.errors, 'text')}" if ran.errors else shown


def _foot(session: Session, number: int) -> str:
    others = [
        f"- {index}. {prose(f'{other.severity} {other.rule} {other.name}: {other.summary}', 200)}"
        for index, other in enumerate(session.findings, 1)
        if index != number
    ]
    more = len(others) - MOST_OTHERS
    rest = [f"- … and {more:,} more"] if more > 0 else []
    made = f"Made by dlprof {__version__}, finding {number} of {len(session.findings)}"
    made += f", session of {prose(session.created, 40)}."
    if not others:
        return f"---\n\n{made}"
    listed = "\n".join([*others[:MOST_OTHERS], *rest])
    head = "<details><summary>Other findings of the same session</summary>"
    return f"---\n\n{made}\n\n{head}\n\n{listed}\n\n</details>"


def fit(text: str) -> str:
    """``text``, cut if it is longer than GitHub takes."""
    if len(text) <= LIMIT:
        return text
    end = "\n\n… (cut: GitHub takes no more)\n"
    return text[: LIMIT - len(end) - 8] + "\n```\n" + end


def memory(finding: FindingRecord, results: Sequence[Result]) -> str:
    """Markdown: how such an array is made where it is a view, if alignment decides and the
    producer's probe knows how; else empty, also where the view is advised against.
    """
    aligned = number(finding.evidence.get("view_alignment_bytes"))
    advised = finding.rule == "DLP017" and finding.advice != NO_WAY_OUT
    if not advised or aligned is None or not results:
        return ""
    try:
        made = folded(subject(results[0]).create_as("aligned"))
    except NoReproducer:
        return ""
    return f"Such an array, made by hand:\n\n{fenced(made, 'python')}"


MOST = 12


def environment(session: Session, results: Sequence[Result]) -> str:
    """A list: frameworks, Python, system, processor, memory, GPUs, environment variables."""
    known = mapping(session.environment)
    memory = number(known.get("memory_bytes"))
    lines = [
        _packages(known, results),
        f"{known.get('implementation', 'Python')} {known.get('python', '?')}",
        f"{known.get('platform', 'unknown system')}",
        f"{known.get('cpu', 'unknown processor')}, {known.get('cores', '?')} cores"
        + (f", {size_text(round(memory))} memory" if memory and memory > 0 else ""),
        _gpus(known),
        ", ".join(
            f"{name}={value}"
            for name, value in list(mapping(known.get("variables")).items())[:MOST]
        ),
    ]
    return "\n".join(f"- {prose(line, 400)}" for line in lines if line)


def _packages(known: Mapping[str, Any], results: Sequence[Result]) -> str:
    names = {name for result in results for name in (result.case.producer, result.case.consumer)}
    modules = {
        module for result in results if result.recipe for module in result.recipe.modules
    } | names
    return ", ".join(f"{name} {version}" for name, version in used(known, modules)[:MOST])


def _gpus(known: object) -> str:
    gpus = mapping(known).get("gpus")
    if not isinstance(gpus, list) or not gpus:
        return "no GPU was used" if not mapping(known).get("cuda_devices") else ""
    return ", ".join(
        f"{mapping(gpu).get('name', 'GPU')} (driver {mapping(gpu).get('driver_version', '?')})"
        for gpu in gpus[:MOST]
    )
