"""What a scenario asks, where its values come from, and what it expects: text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.analysis.case_view import mapping
from dlprof.session.model import Header
from dlprof.text.clean import clean

ORIGINS = {
    "file": "from the file",
    "command line": "from the command line",
    "default": "dlprof's own",
}


def heading(header: Header) -> str:
    """Title, question, sources, and every value with its origin."""
    scenario = mapping(header.request.get("scenario"))
    lines = [_text(scenario.get("title")), _text(scenario.get("question"))]
    lines += [f"source: {_text(source)}" for source in _list(scenario.get("sources"))]
    lines += [f"scenario: {_text(scenario.get('file'))}"]
    return "\n".join([*lines, *origin_lines(_list(scenario.get("origins")))]) + "\n"


def origin_lines(origins: Sequence[object]) -> list[str]:
    """One line for each origin: the keys and values that come from there."""
    found: dict[str, list[str]] = {}
    for entry in origins:
        if isinstance(entry, list | tuple) and len(entry) == 3:  # noqa: PLR2004 - key, value, origin
            key, value, origin = (_text(part) for part in entry)
            found.setdefault(origin, []).append(f"{key} {value}")
    return [
        f"{words}: {'; '.join(found[origin])}"
        for origin, words in ORIGINS.items()
        if origin in found
    ]


def expectations(header: Header) -> str:
    """Whether each expectation is met; empty where there are none."""
    return "".join(
        f"expected {clean(one.text)}: {clean(one.verdict)}"
        f"{f' ({clean(one.reason)})' if one.reason else ''}\n"
        for one in header.expectations
    )


def _text(thing: object) -> str:
    return clean(str(thing or ""))


def _list(thing: object) -> list[object]:
    return list(thing) if isinstance(thing, list | tuple) else []
