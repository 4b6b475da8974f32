"""A page for each rule, in Markdown: for ``dlprof explain`` and for the documentation."""

from __future__ import annotations

from importlib.resources import files

from dlprof.errors import UsageError
from dlprof.judge import BY_WORD, WRITTEN
from dlprof.text.clean import nearest

TOPICS = ("trace",)
"""Pages that are no rule's."""


def page(word: str) -> str:
    """The page of a rule's id or name, or of a topic. Raises :class:`UsageError` with the nearest
    one.
    """
    if word.lower() in TOPICS:
        return _read(word.lower())
    if word.lower() not in BY_WORD:
        hint = nearest(word, WRITTEN, "'dlprof explain' lists them")
        raise UsageError(f"there is no rule {word!r}: {hint}")
    rule = BY_WORD[word.lower()]
    first, _, rest = _read(rule.id).partition("\n")
    return f"# {rule.id} {rule.name}\n\n{first} Severity: {rule.severity_text}.\n{rest}"


def index(rule: str) -> str:
    """The first sentence of a rule's page: what it finds."""
    return _read(rule).partition("\n")[0]


def _read(name: str) -> str:
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
