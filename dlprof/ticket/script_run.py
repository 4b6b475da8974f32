"""Run a reproducer in a child process, and keep what it printed."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.runner.files import temporary_folder
from dlprof.runner.worker_client import child_environment, end
from dlprof.simulated.environment import variables

SUPERVISOR = Path(__file__).parents[1] / "worker" / "supervisor.py"
LIMIT_S = 180.0
MOST_LINES = 8
LONGEST = 1000
ANSWERS = {0: "the problem is gone", 1: "the problem is there"}
MEANINGS = {0: "gone", 1: "there", 2: "cannot tell"}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3"}
"""What a framework logs is no output of the script."""


@dataclass(frozen=True)
class Ran:
    """How a script ended: its exit code, None where it was stopped. ``output`` and ``errors`` are
    the last lines of stdout and of stderr.
    """

    code: int | None
    output: str
    errors: str = ""

    @property
    def verdict(self) -> str:
        """``there``, ``gone``, ``cannot tell``, or how else it ended.

        An exit code counts only with the last line that a reproducer prints before it: a Python
        that fails to start ends with 1 as well.
        """
        if self.code is None:
            return "no end within the time limit"
        answer = ANSWERS.get(self.code)
        if answer is not None and not self.output.endswith(answer):
            return f"exit code {self.code} without {answer!r}"
        return MEANINGS.get(self.code, f"exit code {self.code}")


def run(text: str, python: str, simulated: int = 0) -> Ran:
    """Run the script ``text`` under ``python``, in an empty folder, and end all that it started.

    The script has so many ``simulated`` CUDA devices, or those of the machine. Raises
    :class:`UsageError` where the interpreter cannot be started, and :class:`MissingDevice` where
    the simulated driver cannot be built.
    """
    with temporary_folder("the script is run") as folder, contextlib.ExitStack() as stack:
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
    """Whole lines: half a name could not be recognized as private."""
    text = path.read_text(encoding="utf-8", errors="replace").replace(f"{folder}/", "")
    lines = text.rstrip().splitlines()[-MOST_LINES:]
    return "\n".join(line if len(line) <= LONGEST else "… (a long line)" for line in lines)
