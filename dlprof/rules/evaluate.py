"""What the rules say of the results of a run.

A long sweep is judged in a process of its own: all results at once are what rules need, and what
the parent must not hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dlprof import rules
from dlprof.analysis import thresholds
from dlprof.analysis.case_view import mapping, number
from dlprof.errors import UsageError
from dlprof.session import model as sessions
from dlprof.session.slim import slim

MOST_HERE = 1000
"""Results that are judged in this process."""

Results = Callable[[], Iterable[sessions.Result]]


def judge(header: sessions.Header, results: Results, count: int) -> list[sessions.FindingRecord]:
    """Findings, worst first; ``results`` gives all ``count`` results, one at a time.

    Raises :class:`UsageError` where many cannot be judged: on a full disk, or for want of memory.
    """
    if count <= MOST_HERE:
        return find(results(), own_thresholds(header))
    try:
        with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
            path = Path(folder) / "session.json"
            sessions.write(path, header, results())
            # Not -m: it would find modules in the folder in which dlprof was started.
            command = [sys.executable, "-c", CHILD, "\n".join(sys.path), str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
    except OSError as error:
        raise UsageError(f"cannot judge so many results: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"the process that judges ended: exit code {error.returncode}") from None
    return [sessions.FindingRecord.model_validate(found) for found in json.loads(done.stdout)]


def own_thresholds(header: sessions.Header) -> dict[str, float]:
    """The thresholds that the session's scenario sets, as far as this version knows them."""
    scenario = header.request.get("scenario")
    given = scenario.get("thresholds") if isinstance(scenario, dict) else None
    found = {name: number(value) for name, value in mapping(given).items()}
    known = thresholds.named()
    return {name: value for name, value in found.items() if name in known and value is not None}


def find(
    results: Iterable[sessions.Result], own: Mapping[str, float] | None = None
) -> list[sessions.FindingRecord]:
    """What the rules claim about ``results``, worst first, as the session file holds it.

    ``own`` are thresholds of a scenario.
    """
    found = rules.findings((slim(result) for result in results), own)
    return [sessions.FindingRecord.model_validate(finding.as_dict()) for finding in found]


def judged(session: sessions.Session) -> sessions.Session:
    """The session with its findings; those of one that holds none are found now.

    It was written before there were rules, or it is innocent, and then none is found.
    """
    if session.findings:
        return session
    return session.model_copy(update={"findings": find(session.results, own_thresholds(session))})


CHILD = """\
import sys
sys.path[:] = sys.argv[1].split("\\n")
from dlprof.rules import evaluate
evaluate.main()
"""
"""What the process is told that judges: the places of modules are those of this one."""


def main() -> None:
    """Print the findings of the session file that is the last argument."""
    given = sessions.load(sys.argv[-1])
    claimed = find(given.results, own_thresholds(given))
    print(json.dumps([found.model_dump() for found in claimed]))  # noqa: T201 - the answer
