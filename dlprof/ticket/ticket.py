"""A finding as a bug report in Markdown, with a reproducer and its output."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dlprof._version import __version__
from dlprof.errors import NoReproducer, UsageError
from dlprof.judge import BY_ID
from dlprof.runner.axes import shape_text
from dlprof.runner.session import SIMULATED, FindingRecord, Result, Session
from dlprof.runner.worker_client import child_environment, end
from dlprof.simulated.environment import variables
from dlprof.text import markdown
from dlprof.text.clean import clean, counted, sanitised
from dlprof.ticket.reproducer import (
    Reproducer,
    clearest,
    reproducer,
    smaller,
)

AXES = (3, 64)
"""The longest axes of the arrays that a ticket tries before the measured one."""
SUPERVISOR = Path(__file__).parents[1] / "worker" / "supervisor.py"
LIMIT_S = 180.0
MOST_LINES = 8
"""The last lines of the output that a ticket shows."""
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3"}
"""Variables that silence the logs of frameworks."""
COMMON_NAMES = frozenset(("root", "user", "ubuntu", "runner", "localhost"))
"""Names of users and hosts that are the same everywhere."""
LEAST_LETTERS = 3
LONGEST, LONGEST_CODE = 1500, 300
ANSWERS = {0: "gone", 1: "there", 2: "cannot tell"}
"""The answer of a reproducer by its exit code."""
ENDINGS = {
    "there": "Exit code 1: the problem is there.",
    "gone": "**Not reproduced.** Exit code 0: the problem is gone.",
    "cannot tell": "**Not reproduced.** Exit code 2: the script cannot tell.",
}


@dataclass(frozen=True)
class Ran:
    """The exit code of a script, None if it was stopped, and its last lines of each stream."""

    code: int | None
    output: str
    errors: str = ""

    @property
    def verdict(self) -> str:
        """Return ``there``, ``gone``, ``cannot tell``, or how else the script ended.

        An exit code counts only with the last line that a reproducer prints before it: a Python
        that fails to start ends with 1 as well.
        """
        if self.code is None:
            return "no end within the time limit"
        answer = ANSWERS.get(self.code, f"exit code {self.code}")
        line = f"the problem is {answer}"
        if self.code in (0, 1) and not self.output.endswith(line):
            return f"exit code {self.code} without {line!r}"
        return answer


def run(text: str, python: str, simulated: int = 0) -> Ran:
    """Run a script under ``python`` in an empty folder, and end all that it started.

    It has ``simulated`` CUDA devices, or those of the machine if that is 0. Raises
    :class:`UsageError` if the interpreter cannot be started, and :class:`Unmeasured` if the
    simulated driver cannot be built.
    """
    with (
        TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True) as folder,
        contextlib.ExitStack() as stack,
    ):
        script, *outputs = (Path(folder) / name for name in ("reproducer.py", "out", "err"))
        try:
            script.write_text(text, encoding="utf-8")
            out, err = (stack.enter_context(path.open("wb")) for path in outputs)
            process = subprocess.Popen(  # noqa: S603 - the interpreter that was measured
                [python, str(SUPERVISOR), str(script)],
                cwd=folder,
                env=child_environment(python, variables(simulated)) | QUIET,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"cannot start {python}: {error.strerror}") from None
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process)
        return Ran(code, *(_last_lines(path, folder) for path in outputs))


def _last_lines(path: Path, folder: str) -> str:
    """Return the last lines of an output, without the folder's path."""
    text = path.read_text(encoding="utf-8", errors="replace").replace(f"{folder}/", "")
    lines = text.rstrip().splitlines()[-MOST_LINES:]
    return "\n".join(line if len(line) <= LONGEST else "… (a long line)" for line in lines)


def written(session: Session, finding: FindingRecord, python: str | None) -> str:
    """Return the ticket of a finding, with the output of its reproducer under ``python``.

    Source text of a session may be hostile: without ``python`` it is not run.
    """
    script: Reproducer | str
    ran: Ran | None = None
    try:
        script = reproducer(session, finding)
        if python is not None:
            script, ran = _smallest(session, finding, script, python)
    except NoReproducer as reason:
        script = str(reason)
    return ticket(session, finding, script, ran)


def _smallest(
    session: Session, finding: FindingRecord, script: Reproducer, python: str
) -> tuple[Reproducer, Ran]:
    """Run the script, at first with smaller arrays. Return the first that shows the problem."""
    for longest in AXES:
        small = smaller(session, finding, longest)
        if small is not None and small.text != script.text:
            ran = run(small.text, python, session.simulated)
            if ran.verdict == "there":
                return small, ran
    return script, run(script.text, python, session.simulated)


def ticket(
    session: Session, finding: FindingRecord, script: Reproducer | str, ran: Ran | None = None
) -> str:
    """Return Markdown to paste; ``script`` is the reproducer, or why there is none."""
    results = [session.results[index] for index in finding.results]
    measured = result = clearest(session, finding)
    calls = _other_calls(session, finding)
    title = _prose(finding.summary)
    shown = [f"**Not reproduced:** no script can be made: {_prose(str(script))}."]
    if isinstance(script, Reproducer):
        title, result = f"{_code(script.call)} {_prose(script.does)}", script.result
        shown = [
            _block(script.text.rstrip("\n"), "python"),
            "## Output",
            *_output(ran),
        ]
    more = f" (and {counted(len(calls), 'more path')})" if calls else ""
    parts = [
        f"# {title}{more}",
        _facts(session, finding, measured, result),
        "\n- ".join(["The same happens with:\n", *calls]) if calls else "",
        "## Reproducer",
        *shown,
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


def _facts(session: Session, finding: FindingRecord, measured: Result, result: Result) -> str:
    """Return one paragraph: the array, the problem, and the behavior that is expected instead.

    The array is that of ``result``; dlprof ``measured`` another one if that is smaller.
    """
    call = session.results[finding.results[0]].case.code
    summary = _prose(finding.summary).replace(_prose(call), _code(call), 1)
    if measured.case.shape != result.case.shape:
        summary = f"{summary} dlprof measured {shape_text(measured.case.shape)}."
    case = result.case
    array = f"{case.dtype} {shape_text(case.shape)}, {case.layout} layout, on {case.device}"
    is_array = _prose(f"is a {case.producer} array ({array}), converted to {case.consumer}.")
    expectation = BY_ID[finding.rule].expectation(result)
    return f"{_code(case.source)} {is_array} {summary} Expected: {expectation}"


def _other_calls(session: Session, finding: FindingRecord) -> list[str]:
    """Return the finding's other calls, with the producer if there are several."""
    cases = [session.results[index].case for index in finding.results]
    calls = list(dict.fromkeys((case.producer, case.code) for case in cases))
    several = len({producer for producer, _ in calls}) > 1
    return [
        _code(code) + (f" of {_prose(producer)}" if several else "") for producer, code in calls[1:]
    ]


def _output(ran: Ran | None) -> list[str]:
    if ran is None:
        return ["The reproducer was not run: add --run to include its output."]
    unknown = f"**Not reproduced.** The script gave no answer: {_prose(ran.verdict)}."
    parts = [ENDINGS.get(ran.verdict, unknown), _block(ran.output or "(no output)", "text")]
    has_errors = ran.verdict not in ENDINGS and ran.errors
    return [*parts, "On stderr:", _block(ran.errors, "text")] if has_errors else parts


def _versions(session: Session, results: Sequence[Result]) -> str:
    """Return frameworks, Python, system, processor and GPUs."""
    known = session.environment
    names = {name for result in results for name in (result.case.producer, result.case.consumer)}
    names |= {module for result in results if result.recipe for module in result.recipe.modules}
    lines = [
        ", ".join(f"{name} {version}" for name, version in known.distributions(names)),
        f"{known.implementation or 'Python'} {known.python or '?'}",
        known.platform or "",
        f"{known.cpu or 'unknown processor'}, {known.cores or '?'} cores",
        SIMULATED if session.simulated else "",
        *(
            f"{gpu.name or 'GPU'}, driver {gpu.driver_version or '?'}"
            for gpu in (known.known_gpus or ())[:2]
        ),
    ]
    return "\n".join(f"- {_prose(line)}" for line in lines if line)


def without_names(text: str) -> str:
    """Return ``text`` with ``~``, ``<user>`` and ``<host>`` for the names of this machine."""
    home, host = os.path.expanduser("~"), socket.gethostname()  # noqa: PTH111 - never raises
    user = os.environ.get("USER") or os.path.basename(home)  # noqa: PTH119
    words = {home: "~", host: "<host>", host.partition(".")[0]: "<host>", user: "<user>"}
    for name, word in words.items():
        if len(name) >= LEAST_LETTERS and name not in COMMON_NAMES:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
    return text
