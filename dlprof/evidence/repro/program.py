"""Put a script together: what it says, what it imports, what it does, how it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill

from dlprof.analysis import versions
from dlprof.analysis.known import mapping
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.effects import EFFECTS
from dlprof.evidence.repro.lines import WIDTH, block, folded, inside
from dlprof.evidence.repro.setup import bound, made, modules, names, needed, needed_names, setup_of
from dlprof.evidence.repro.subject import Subject, subject
from dlprof.session.environments import seen_from
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

SAFE = re.compile(r"[A-Za-z0-9_.,:/=+-]{1,80}")
"""Names and values of environment variables that may stand in a script."""
DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")
METADATA = "importlib.metadata.version"
MOST_LIBRARIES = 3

HEAD = '''\
"""{symptom}.

{details}
"""
'''
EXITS = "Exit code: 0 the problem is gone, 1 it is there, 2 it cannot tell."
TAIL = """\
if __name__ == "__main__":
    try:
        found = {call}
    except Exception as error:
        print(f"cannot tell: {{type(error).__name__}}: {{error}}")
        sys.exit(2)
    {say}print("the problem is there" if found else "the problem is gone")
    sys.exit(1 if found else 0)
"""
ALONE = {"call": "problem()", "say": ""}
WITH_CHILD = {
    "call": "convert() if sys.argv[1:] else problem()",
    "say": "if not sys.argv[1:]:\n        ",
}


@dataclass(frozen=True)
class Reproducer:
    """A script, and in one line what it shows."""

    symptom: str
    text: str


def reproducer(session: Session, finding: FindingRecord) -> Reproducer:
    """The script that shows ``finding``. Raises :class:`NoReproducer` where none can be made."""
    show = EFFECTS.get(finding.rule)
    if show is None:
        raise NoReproducer(f"this dlprof has no reproducer for {clean(finding.rule, 40)}")
    subjects = _subjects(session, finding)
    _check_own(subjects[0], finding)
    session = seen_from(session, finding.results)
    try:
        effect = show(subjects[0], subjects[1] if len(subjects) > 1 else None, finding)
        text = "\n".join(_parts(effect, subjects, session))
        compile(text, "<reproducer>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoReproducer(f"the session's source text is not Python: {error}") from None
    return Reproducer(effect.symptom, text)


OF_X = ("DLP001", "DLP002", "DLP003", "DLP011", "DLP015", "DLP020")
"""What puts another array or an object in the place of ``x``."""
MADE_ANEW = ("DLP011", "DLP020")
"""What makes the source again and again."""


VERSIONED = frozenset(
    ("cupy", "jax", "mxnet", "numba", "numpy", "onnxruntime", "pyarrow", "tensorflow", "torch")
)
"""Modules that have a ``__version__`` for certain."""
OWN_CODE = "code:"
"""How the source of probes begins that are made of a user's own text."""


def _is_own(session: Session) -> bool:
    files = session.request.get("probe_files")
    return isinstance(files, list | tuple) and any(str(one).startswith(OWN_CODE) for one in files)


def _check_own(one: Subject, finding: FindingRecord) -> None:
    """Raise :class:`NoReproducer` where a user's own setup makes the source, and what it makes
    cannot be exchanged, or made again.
    """
    named = one.result.case.source != "x" and finding.rule in OF_X
    if named or (one.is_own and finding.rule in MADE_ANEW):
        raise NoReproducer(
            "the source is made by a setup of your own, and the script would need others like it"
        )


def _subjects(session: Session, finding: FindingRecord) -> list[Subject]:
    """The finding's clearest case, and the one it is compared with."""
    indices = [*finding.results[:1], *(() if finding.against is None else (finding.against,))]
    if not finding.results or not all(0 <= index < len(session.results) for index in indices):
        raise NoReproducer("the finding names no result of the session")
    own = _is_own(session)
    return [replace(subject(session.results[index]), is_own=own) for index in indices]


def _parts(effect: Effect, subjects: Sequence[Subject], session: Session) -> list[str]:
    """Docstring, imports, environment, functions and ending."""
    body, child = (folded(needed_names(text)) for text in (effect.body, effect.child))
    if child:
        functions = [
            _function("convert", child, subjects, session),
            f"def problem():\n{inside(body)}",
        ]
    else:
        functions = [_function("problem", body, subjects, session)]
    given = {name for line in effect.imports for name in bound(line)}
    _check_names(given, setup_of(subjects), subjects)
    environment = [
        f'os.environ.setdefault("{name}", "{value}")' for name, value in _variables(session).items()
    ]
    wanted = {"import sys", *effect.imports, *(["import os"] if environment else [])}
    if any(METADATA in function for function in functions):
        wanted.add("import importlib.metadata")
    used = names(f"{body}\n{child}")
    imports = sorted(
        (line for line in wanted if line.startswith("import") or bound(line) & used),
        key=lambda line: (line.startswith("from"), line),
    )
    return [
        _head(effect, subjects, session),
        f"{block(*imports)}\n",
        *([f"{block(*environment)}\n"] if environment else []),
        *(f"\n{function.rstrip()}\n" for function in functions),
        "\n" + TAIL.format(**(WITH_CHILD if child else ALONE)),
    ]


def _head(effect: Effect, subjects: Sequence[Subject], session: Session) -> str:
    x = effect.array or subjects[0].array_text
    array = f"x: {x}. {_seen_with(session, subjects)}"
    details = "\n".join(fill(_in_docstring(line), WIDTH) for line in (array, EXITS))
    symptom = fill(_in_docstring(effect.symptom), WIDTH - 4)
    return HEAD.format(symptom=symptom, details=details)


def _in_docstring(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"', "'")


def _seen_with(session: Session, subjects: Sequence[Subject]) -> str:
    """``Seen with numpy 2.4.6, jax 0.10.2, Python 3.11.7.``"""
    modules_ = {name for one in subjects for name in one.recipe.modules}
    told = [f"{name} {version}" for name, version in versions.used(session.environment, modules_)]
    told.append(f"Python {session.environment.get('python', '?')}")
    return f"Seen with {', '.join(told)}."


def _function(name: str, body: str, subjects: Sequence[Subject], session: Session) -> str:
    """A function that imports what its body uses, tells the versions, and does it."""
    setup = setup_of(subjects)
    known = modules(setup, subjects)
    own = made(body) - {"x"}
    _check_names(own, setup, subjects)
    text = folded(needed(setup, (names(body) - own) | set(known.values())))
    told = [", ".join(_version(*one) for one in known.items())]
    told += [f'"{library}", {METADATA}("{library}")' for library in _libraries(session, known)]
    end = ", flush=True" if name == "convert" else ""  # it may die with what it had to say
    lines = block(*(folded(f"print({one}{end})") for one in told if one))
    return f"def {name}():\n" + inside(block(text, f"{lines}\n" if known else "", body))


def _check_names(own: set[str], setup: str, subjects: Sequence[Subject]) -> None:
    """Raise :class:`NoReproducer` where a conversion uses a name that the script gives away."""
    taken = own & bound(setup) & {name for one in subjects for name in names(one.code)}
    if taken:
        raise NoReproducer(
            f"the script has another use for {min(taken)!r}, a name of the conversion"
        )


def _version(module: str, alias: str) -> str:
    """Name and version of a module; parts of Python and of somebody's own may have none."""
    if module.partition(".")[0] in VERSIONED:
        return f'"{module}", {alias}.__version__'
    return f'"{module}", getattr({alias}, "__version__", "")'


def _libraries(session: Session, frameworks: Iterable[str]) -> list[str]:
    """The distributions that do the frameworks' work; such names as may stand in a script."""
    found = [
        name
        for framework in frameworks
        for name in versions.libraries_of(session.environment, framework)
    ]
    return [name for name in dict.fromkeys(found) if DISTRIBUTION.fullmatch(name)][:MOST_LIBRARIES]


def _variables(session: Session) -> dict[str, str]:
    """Environment variables that the probes ask for, as they were."""
    found: Mapping[str, str] = mapping(session.environment.get("variables"))
    return {
        name: value
        for name, value in found.items()
        if SAFE.fullmatch(str(name)) and SAFE.fullmatch(str(value))
    }
