"""A gate that measured nothing, in the forms that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlprof.cli.github import tell
from dlprof.cli.place import below, documentation, place_of_file
from dlprof.reports.ci import gitlab, junit, of_refusal, sarif
from dlprof.reports.ci.of_refusal import Refusal

Writer = Callable[[Refusal, str, Path | None], str]


def _json(refusal: Refusal, _verb: str, _file: Path | None) -> str:
    return of_refusal.as_json(refusal)


def _markdown(refusal: Refusal, _verb: str, _file: Path | None) -> str:
    return of_refusal.markdown(refusal)


def _junit(refusal: Refusal, verb: str, _file: Path | None) -> str:
    return junit.render(f"dlprof {verb}", [of_refusal.check(refusal)])


def _sarif(refusal: Refusal, _verb: str, file: Path | None) -> str:
    remarks = [of_refusal.remark(refusal)]
    return sarif.render(remarks, place_of_file(file), False, documentation())


def _gitlab(refusal: Refusal, _verb: str, file: Path | None) -> str:
    return gitlab.render([of_refusal.remark(refusal)], place_of_file(file))


def github(refusal: Refusal, file: Path | None) -> None:
    """The annotation, and the summary of the step."""
    place = None if file is None else below(str(file))
    tell([of_refusal.remark(refusal)], of_refusal.markdown(refusal), place)


WRITERS: dict[str, Writer] = {
    "--json": _json,
    "--markdown": _markdown,
    "--junit": _junit,
    "--sarif": _sarif,
    "--gitlab": _gitlab,
}
