"""A gate that measured nothing, in the forms that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlprof.cli.github import tell
from dlprof.cli.place import below
from dlprof.reports.ci import junit, of_refusal
from dlprof.reports.ci.of_refusal import Refusal

Writer = Callable[[Refusal, str], str]


def _json(refusal: Refusal, _verb: str) -> str:
    return of_refusal.as_json(refusal)


def _markdown(refusal: Refusal, _verb: str) -> str:
    return of_refusal.markdown(refusal)


def _junit(refusal: Refusal, verb: str) -> str:
    return junit.render(f"dlprof {verb}", [of_refusal.check(refusal)])


def github(refusal: Refusal, file: Path | None) -> None:
    """The annotation, and the summary of the step."""
    place = None if file is None else below(str(file))
    tell([of_refusal.remark(refusal)], of_refusal.markdown(refusal), place)


WRITERS: dict[str, Writer] = {
    "--json": _json,
    "--markdown": _markdown,
    "--junit": _junit,
}
