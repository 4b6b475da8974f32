"""A finding as one Python file that shows it by itself, or as a command that measures it again.

The file needs the frameworks of its case and the standard library. Its exit code says what it
found: 0 the problem is gone, 1 it is there, 2 it cannot tell. It is a pure function of a session:
nothing is run or imported to make it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import fill

from dlprof.errors import NoReproducer
from dlprof.judge import BY_ID
from dlprof.judge.rule import Rule
from dlprof.judge.script import Effect, Subject, subject
from dlprof.probes.base import DTYPES, LAYOUTS, ArraySpec
from dlprof.probes.builtin import BUILTIN
from dlprof.protocol.statement import OF_USER, UserCode
from dlprof.runner.axes import shape_text
from dlprof.runner.session import FindingRecord, Result, Session
from dlprof.text.source import (
    NOT_PYTHON,
    UNREADABLE,
    block,
    imported,
    inside,
    merged,
    needed,
    used_names,
)
from dlprof.worker.instruments.recipe import creates

MODULES = (
    *("ctypes", "gc", "locale", "multiprocessing", "os", "random", "re", "resource", "signal"),
    *("socket", "sys", "threading", "time", "warnings"),
)
IMPORTS = {
    **{module: f"import {module}" for module in MODULES},
    "Path": "from pathlib import Path",
    "Timer": "from timeit import Timer",
    "median": "from statistics import median",
    "perf_counter": "from time import perf_counter",
    "sleep": "from time import sleep",
}
"""Imports of the standard library for the names in templates."""
SAFE = re.compile(r"[A-Za-z0-9_.,:/=+-]{1,80}")
"""Names and values of environment variables that may stand in a script."""
WIDTH = 88
DEFAULTS = ("float32", "C")

SCRIPT = '''\
"""{symptom}.

{array}.
{versions}.
Exit code: 0 the problem is gone, 1 it is there, 2 it cannot tell.
"""

{imports}

{variables}
{functions}


if __name__ == "__main__":
    try:
        found = problem()
    except Exception as error:
        print(f"cannot tell: {{type(error).__name__}}: {{error}}")
        sys.exit(2)
    print("the problem is there" if found else "the problem is gone")
    sys.exit(1 if found else 0)
'''


@dataclass(frozen=True)
class Reproducer:
    """A script that shows what a ``call`` ``does`` with the array of a ``result``."""

    call: str
    does: str
    text: str
    result: Result


def reproducer(session: Session, finding: FindingRecord) -> Reproducer:
    """Return the script that shows a finding. Raises :class:`NoReproducer` if there is none."""
    rule = BY_ID[finding.rule]
    case = _subject(session, finding, rule)
    subjects = [case, case.against] if case.against else [case]
    effect = rule.effect(case)
    try:
        text = _script(effect, subjects, session)
        compile(text, "<reproducer>", "exec")
    except NOT_PYTHON as error:
        raise NoReproducer(f"{UNREADABLE}: {error}") from None
    return Reproducer(effect.call, effect.does, text, case.result)


def smaller(session: Session, finding: FindingRecord, longest: int) -> Reproducer | None:
    """Return the script with axes of at most the ``longest`` length.

    None if the array has no longer one or is one of the survey, if the finding is about times,
    which belong to a size, and if dlprof did not make the array.
    """
    rule, result = BY_ID[finding.rule], clearest(session, finding)
    case, recipe = result.case, result.recipe
    shape = tuple(min(longest, size) for size in case.shape)
    probes = {probe.name: probe for probe in BUILTIN}
    if rule.times or case.survey or _is_own(session) or case.producer not in probes:
        return None
    if recipe is None or shape == case.shape:
        return None
    spec = ArraySpec(shape, case.dtype, case.layout, case.device)
    create = creates(probes[case.producer](), spec)
    changes = {
        "case": case.model_copy(update={"shape": shape}),
        "recipe": recipe.model_copy(update={"create": create}),
    }
    results = [*session.results, result.model_copy(update=changes)]
    last = finding.model_copy(update={"results": [len(results) - 1], "against": None})
    with suppress(NoReproducer):  # it compares with another case, which has the measured size
        return reproducer(session.model_copy(update={"results": results}), last)
    return None


def _subject(session: Session, finding: FindingRecord, rule: Rule) -> Subject:
    """Return the finding's clearest case, with the case it is compared with."""
    is_own = _is_own(session) and not session.results[finding.results[0]].case.survey
    if is_own and rule.other_arrays:
        raise NoReproducer(
            "the source is made by a setup of your own, and the script would need others like it"
        )
    index = finding.against
    against = None if index is None else subject(session.results[index], finding, is_own)
    return subject(clearest(session, finding), finding, is_own, against)


def clearest(session: Session, finding: FindingRecord) -> Result:
    """Return the smallest array of the first path; the first one where a time counts."""
    results = [session.results[at] for at in finding.results]
    if finding.against is not None or BY_ID[finding.rule].times:
        return results[0]
    place = results[0].case.code, results[0].case.dtype, "aligned"  # as the survey makes arrays
    small = [one for one in results if (one.case.code, one.case.dtype, one.case.layout) == place]
    sized = [one for one in small if math.prod(one.case.shape) > 1 and one.recipe]
    return min(sized, key=lambda one: math.prod(one.case.shape), default=results[0])


def _script(effect: Effect, subjects: Sequence[Subject], session: Session) -> str:
    setup = merged(text for subject in subjects for text in subject.recipe.setup)
    functions = [_function("problem", effect.body, setup, subjects)]
    if effect.child:  # its parent imports no framework
        problem = f"def problem():\n{inside(effect.body)}"
        functions = [_function("convert", effect.child, setup, subjects), problem]
    variables = _variables(session, subjects)
    names = used_names(f"{effect.body}\n{effect.child}") | {"sys", *(["os"] if variables else [])}
    imports = sorted(
        (line for name, line in IMPORTS.items() if name in names),
        key=lambda line: (line.startswith("from"), line),
    )
    modules = {name for subject in subjects for name in subject.recipe.modules}
    environment = session.environment
    versions = [" ".join(parts) for parts in environment.distributions(modules)]
    versions.append(f"Python {environment.python or '?'}")
    if session.simulated:
        versions.append("on a simulated CUDA device: order and copies are real, times are not")
    return SCRIPT.format(
        symptom=_docstring(f"{effect.call} {effect.does}", 4),
        array=_docstring(f"x: {effect.subject.array_text}"),
        versions=_docstring(f"Seen with {', '.join(versions)}"),
        imports="\n".join(imports),
        variables="".join(f"{line}\n" for line in variables),
        functions="\n\n\n".join(functions),
    )


def _docstring(text: str, before: int = 0) -> str:
    """Return text for a docstring."""
    return fill(" ".join(text.split()).replace("\\", "\\\\").replace('"', "'"), WIDTH - before)


def _function(name: str, body: str, setup: str, subjects: Sequence[Subject]) -> str:
    """Return a function that imports, prints the versions, and runs the body."""
    frameworks = {module for subject in subjects for module in subject.recipe.modules}
    modules = {module: alias for module, alias in imported(setup).items() if module in frameworks}
    imports = needed(setup, used_names(body) | set(modules.values()))
    shown = [f'"{name}", getattr({alias}, "__version__", "?")' for name, alias in modules.items()]
    flush = ["flush=True"] if name == "convert" else []  # it may die before it has written
    head = block(imports, f"print({', '.join((*shown, *flush))})" if shown else "")
    return f"def {name}():\n{inside(head)}\n\n{inside(body)}"


def _variables(session: Session, subjects: Sequence[Subject]) -> list[str]:
    """Return lines that set the environment variables of probes, which are all about GPUs."""
    if session.simulated or all(subject.result.case.device == "cpu" for subject in subjects):
        return []
    return [
        f'os.environ.setdefault("{name}", "{value}")'
        for name, value in (session.environment.variables or {}).items()
        if value and SAFE.fullmatch(name) and SAFE.fullmatch(value)
    ]


def pair_command(session: Session) -> str:
    """Return the command that measures every path for an array like the user's own.

    If the user's statement was refused, every path for that array itself. Empty for any other
    session, and if dlprof has no probe of the frameworks or no such array.
    """
    if not session.results or not _is_own(session):
        return ""
    case, known = session.results[0].case, {probe.name for probe in BUILTIN}
    python = [word for word in session.command if word.startswith("--python")] and [
        "--python",
        session.request.python,
    ]
    is_refused = {result.status for result in session.results} == {"unsupported"}
    if is_refused and case.is_statement and case.consumer in known and not session.simulated:
        own = UserCode.read(session.request.probe_files[0])[0]
        setup = [word for line in own.setup.splitlines() for word in ("--setup", line)]
        return shlex.join(["dlprof", "run", f"({own.source})", case.consumer, *setup, *python])
    is_made = case.dtype in DTYPES and case.layout in LAYOUTS and case.producer != case.consumer
    if not is_made or not {*case.pair} <= known:
        return ""
    simulated = f"simulated:{session.simulated}".removesuffix(":1")
    axes = {
        "--shape": shape_text(case.shape),
        "--dtype": case.dtype,
        "--layout": case.layout,
        "--device": simulated if session.simulated else case.device,
    }
    words = [word for option in axes.items() if option[1] not in DEFAULTS for word in option]
    return shlex.join(["dlprof", "run", *case.pair, *words, *python])


def _is_own(session: Session) -> bool:
    """Whether the session measured a conversion that the user wrote."""
    return any(file.startswith(OF_USER) for file in session.request.probe_files)
