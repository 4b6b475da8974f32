"""One finding as a bug report in Markdown: what is wrong, how to see it, what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof._version import __version__
from dlprof.errors import NoReproducer
from dlprof.evidence.redaction import Markdown
from dlprof.evidence.reproducer import Reproducer, reproducer
from dlprof.evidence.script_run import Ran, run
from dlprof.plan.axes import shape_text
from dlprof.rules import expected
from dlprof.session.environment import typed
from dlprof.session.environments import seen_from
from dlprof.session.model import FindingRecord, Result, Session

NOT_RUN = "read the script first; --run runs it"
MOST_CALLS = 8
MOST_VARIABLES = 12
ENDINGS = {
    "there": "Exit code 1: the problem is there.",
    "gone": "**Not reproduced.** Exit code 0: the problem is gone.",
    "cannot tell": "**Not reproduced.** Exit code 2: the script cannot tell.",
}
ELSEWHERE = " The script was run in another interpreter than the measured one."


def written(
    session: Session,
    finding: FindingRecord,
    python: str | None,
    markdown: Markdown,
) -> str:
    """The ticket of a finding, with what its reproducer prints under ``python``.

    Source text in a session may come from anybody: without ``python`` it is not run.
    """
    session = seen_from(session, finding.results)
    try:
        script = reproducer(session, finding)
    except NoReproducer as reason:
        return ticket(session, finding, str(reason), "", markdown)
    if python is None:
        return ticket(session, finding, script, NOT_RUN, markdown)
    measured = (session.request.get("python"), session.environment.get("executable"))
    ran = run(script.text, python)
    return ticket(session, finding, script, ran, markdown, python not in measured)


def ticket(
    session: Session,
    finding: FindingRecord,
    script: Reproducer | str,
    ran: Ran | str,
    markdown: Markdown,
    elsewhere: bool = False,
) -> str:
    """Markdown to paste.

    ``script`` is the reproducer, or why there is none; ``ran`` how it ended, or why it was not run;
    ``elsewhere`` says that it ran in another interpreter than the measured one.
    """
    results = [session.results[i] for i in finding.results if 0 <= i < len(session.results)]
    parts = [
        f"# {_title(finding, script, results, markdown)}",
        _facts(finding, results, markdown),
        _other_calls(results, markdown),
        "## Reproducer",
        _script(script, markdown),
        *(["## Output", _output(ran, elsewhere, markdown)] if ran else []),
        "## Versions",
        _versions(session, results, markdown),
        f"Found with dlprof {__version__}, {markdown.prose(f'{finding.rule} {finding.name}', 60)}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(
    finding: FindingRecord, script: Reproducer | str, results: Sequence[Result], markdown: Markdown
) -> str:
    """One line that says what is wrong, its code in code spans."""
    said = script.symptom if isinstance(script, Reproducer) else finding.summary
    code = results[0].case.code if results else ""
    if not code or not said.startswith(code):
        return markdown.prose(said, 300)
    return f"{markdown.code(code)} {markdown.prose(said.removeprefix(code).strip(), 300)}"


def _facts(finding: FindingRecord, results: Sequence[Result], markdown: Markdown) -> str:
    """One paragraph: what happens, of which array, and what is expected instead."""
    told = markdown.prose(
        finding.summary if finding.summary.endswith(".") else f"{finding.summary}."
    )
    if not results:
        return told
    case = results[0].case
    array = f"{case.dtype} {shape_text(case.shape)}, {case.layout} layout, on {case.device}"
    is_array = f"is a {case.producer} array ({array}), converted to {case.consumer}."
    is_array = f"{markdown.code(case.source)} {markdown.prose(is_array, 300)}"
    return f"{is_array} {told} Expected: {expected(finding, results[0])}"


def _other_calls(results: Sequence[Result], markdown: Markdown) -> str:
    """The other calls of which the same was found, of arrays of several frameworks with these."""
    calls = dict.fromkeys((one.case.producer, one.case.code) for one in results)
    several = len({producer for producer, _ in calls}) > 1
    lines = [
        f"- {markdown.code(code)}" + (f" of {markdown.prose(producer, 40)}" if several else "")
        for producer, code in list(calls)[1:]
    ]
    more = len(lines) - MOST_CALLS
    lines = [*lines[:MOST_CALLS], *([f"- … and {more:,} more"] if more > 0 else [])]
    return "\n".join(["The same happens with:", "", *lines]) if lines else ""


def _script(script: Reproducer | str, markdown: Markdown) -> str:
    if isinstance(script, str):
        return f"**Not reproduced:** no script can be made: {markdown.prose(script, 300)}."
    return markdown.block(script.text.rstrip("\n"), "python")


def _output(ran: Ran | str, elsewhere: bool, markdown: Markdown) -> str:
    if isinstance(ran, str):
        return f"The reproducer was not run: {markdown.prose(ran, 300)}."
    unknown = f"**Not reproduced.** The script gave no answer: {markdown.prose(ran.verdict, 300)}."
    parts = [
        ENDINGS.get(ran.verdict, unknown) + (ELSEWHERE if elsewhere else ""),
        markdown.block(ran.output or "(no output)", "text"),
    ]
    if ran.verdict not in ENDINGS and ran.errors:
        parts += ["On stderr:", markdown.block(ran.errors, "text")]
    return "\n\n".join(parts)


def _versions(session: Session, results: Sequence[Result], markdown: Markdown) -> str:
    """Frameworks, Python, system, processor, GPUs, and environment variables."""
    known = typed(session.environment)
    names = {name for one in results for name in (one.case.producer, one.case.consumer)}
    names |= {module for one in results if one.recipe for module in one.recipe.modules}
    on_device = any(one.case.device != "cpu" for one in results)
    variables = (known.variables or {}) if on_device else {}
    lines = [
        ", ".join(f"{name} {version}" for name, version in known.distributions(names)),
        f"{known.implementation or 'Python'} {known.python or '?'}",
        known.platform or "",
        f"{known.cpu or 'unknown processor'}, {known.cores or '?'} cores",
        *(
            f"{gpu.name or 'GPU'}, driver {gpu.driver_version or '?'}"
            for gpu in (known.gpus or ())[:2]
        ),
        ", ".join(f"{name}={value}" for name, value in list(variables.items())[:MOST_VARIABLES]),
    ]
    return "\n".join(f"- {markdown.prose(line, 400)}" for line in lines if line)
