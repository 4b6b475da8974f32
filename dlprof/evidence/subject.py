"""A case of a session as source text: what the templates of scripts are filled with."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import mapping, seen
from dlprof.analysis.thresholds import ALIGNED_BYTES
from dlprof.errors import NoReproducer
from dlprof.evidence.source import block, parsed, plain
from dlprof.plan.axes import shape_text
from dlprof.probes.base import CONTIGUOUS
from dlprof.session.model import Recipe, Result
from dlprof.text.clean import HIDDEN

PLACEHOLDER = re.compile(r"<([a-z_]+)(?: of ([a-z]+))?>")
OF_PRODUCER = ("x", "q", "held")
"""Names of a script that hold arrays of the producer; all others hold results."""
OPTIONAL = ("wait",)
"""What a framework need not say: there is nothing to wait for then."""
CANNOT_BE_WRITTEN = ("readonly", "broadcast")
"""Layouts whose arrays their own framework refuses to write."""


@dataclass(frozen=True)
class Subject:
    """One case: its conversion, how its source is made, and how both sides are looked at."""

    result: Result
    recipe: Recipe
    code: str
    """The conversion of ``x``."""
    shape: tuple[int, ...]
    is_own: bool = False
    """Whether a setup of the user's own makes the source: its values may be NaN, or all ones."""

    def filled(self, template: str, **texts: str) -> str:
        """``template`` with its placeholders filled in.

        ``<name>`` is one of ``texts``, ``<code>`` the conversion, ``<convert of y>`` the conversion
        into ``y`` and a wait for it, ``<values of x>`` an idiom of the producer's probe, and
        ``<values of y>`` one of the consumer's. A line whose placeholder has no text goes.
        """
        lines = []
        for line in template.strip("\n").splitlines():
            filled = PLACEHOLDER.sub(lambda match: self._text(match, texts), line)
            margin = line[: len(line) - len(line.lstrip())]
            if filled.strip() or not line:
                lines.append(filled.replace("\n", f"\n{margin}"))
        return "\n".join(lines)

    def _text(self, match: re.Match[str], texts: dict[str, str]) -> str:
        idiom, name = match.groups()
        if name is None:
            return self.code if idiom == "code" else texts[idiom]
        if idiom == "convert":
            return block(f"{name} = {self.code}", self.said("wait", name))
        return self.said(idiom, name)

    def said(self, idiom: str, name: str) -> str:
        """What the probe of the framework says for ``idiom`` of the array called ``name``."""
        of_source = name in OF_PRODUCER
        said = self.recipe.source if of_source else self.recipe.result
        if idiom not in said:
            if idiom in OPTIONAL:
                return ""
            case = self.result.case
            framework = case.producer if of_source else case.consumer
            raise NoReproducer(f"the probe of {framework} has no text for {idiom!r}")
        return plain(said[idiom].replace("{x}", name))

    def has(self, idiom: str, name: str) -> bool:
        """Whether there is a text of this idiom for the array called ``name``."""
        return idiom in (self.recipe.source if name in OF_PRODUCER else self.recipe.result)

    @property
    def array_text(self) -> str:
        """``float32 1024x1024 of torch``, with what is unusual about it."""
        case = self.result.case
        layout = "" if case.layout == "C" else f", layout {case.layout}"
        device = "" if case.device == "cpu" else f", on {case.device}"
        return f"{case.dtype} {shape_text(self.shape)} of {case.producer}{layout}{device}"

    @property
    def writable(self) -> bool:
        """Whether a write to the source shows, and the producer can be told to do it."""
        can = not self.is_own and self.result.case.layout not in CANNOT_BE_WRITTEN
        return can and self.has("write", "x")

    def as_made(self, evidence: Any) -> Subject:
        """The conversion of the array that an instrument made, if it says which."""
        code, shape = (mapping(evidence).get(name) for name in ("code", "created_shape"))
        known = isinstance(shape, list) and all(type(length) is int for length in shape)
        one = replace(self, shape=tuple(shape)) if known and isinstance(shape, list) else self
        return replace(one, code=_expression(code)) if isinstance(code, str) else one

    def create(self, word: str | None = None) -> str:
        """Text that makes ``x`` as it was in a process in which the result was ``word``.

        Contiguous arrays of some frameworks begin at any address; where that tells a view from a
        copy, ``x`` is made at an address of the kind that was seen.
        """
        layout = self.result.case.layout
        alignment = self._alignment(word)
        if alignment is not None and layout in CONTIGUOUS:
            layout = "aligned" if alignment >= ALIGNED_BYTES else "sliced"
        return self._made(layout, self.result.case.layout)

    def create_as_seen(self) -> str:
        """Text that makes ``x`` where the result is what it was, if its alignment decides on it."""
        owned, looked = self.result.ownership, self.result.alignment
        decides = owned is not None and looked is not None and looked.verdict == "dependent"
        return self.create(owned.verdict if decides and owned else None)

    def create_as(self, layout: str) -> str:
        """Text that makes ``x`` in another layout; a recipe leaves out what is that of its own."""
        own = self.result.case.layout
        return self._made(layout, own if layout == "aligned" and own != "sliced" else "")

    def create_by(self, evidence: Any) -> str:
        """Text that makes ``x`` as an instrument made it, else as the case did."""
        text = mapping(evidence).get("create")
        return plain(text) if isinstance(text, str) else self.create()

    def _alignment(self, word: str | None) -> float | None:
        found = [evidence for said, evidence in seen(self.result.ownership) if said == word]
        if found:
            # Of all processes the one in which it is plainest that it is one.
            plainest = max if word == "view" else min
            return plainest(found[0].alignments, default=None)
        places = self.result.alignment.evidence.places if self.result.alignment else ()
        return next((look.alignment_bytes for _, look in places if look.verdict == word), None)

    def _made(self, *layouts: str) -> str:
        """By the text of the first of ``layouts`` that has one."""
        texts = [self.recipe.create[name] for name in layouts if self.recipe.create.get(name)]
        if not texts:
            raise NoReproducer("the session does not say how the array was made")
        made = plain(texts[0])
        return "" if made == "x = x" else made  # a setup of the user's own has made it


def subject(result: Result, is_own: bool = False) -> Subject:
    """Raises :class:`NoReproducer` where the session has no source text for the case."""
    recipe = result.recipe
    if recipe is None:
        raise NoReproducer(
            "the session holds no source text for this case: it was written by an older dlprof;"
            " measure again"
        )
    held = (recipe.create, recipe.source, recipe.result, recipe.queue)
    for text in (*recipe.setup, *(text for texts in held for text in texts.values())):
        _check(text)
    return Subject(result, recipe, _expression(result.case.code), result.case.shape, is_own)


def _expression(code: str) -> str:
    _check(code)
    parsed(code.strip(), "eval")
    return code


def _check(text: str) -> None:
    """Refuse text that hides something: a reader must see what a script does."""
    if any(unicodedata.category(character) in HIDDEN for character in text.replace("\n", "")):
        raise NoReproducer("the session's source text holds characters that cannot be shown")


@dataclass(frozen=True)
class Effect:
    """What a script shows: one line in words, and how.

    ``body`` is that of a function that returns whether the problem is there. With a ``child`` that
    function runs the conversion in a process of its own: it ends with exit code 0 where there is
    no problem. ``subject`` is the case with the array that is made.
    """

    symptom: str
    body: str
    subject: Subject
    child: str = ""
