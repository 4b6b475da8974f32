"""A case of a session, as the source text of a script."""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.known import alignments, mapping, number, seen
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.lines import block, plain
from dlprof.plan.axes import shape_text
from dlprof.session.model import Recipe, Result
from dlprof.text.clean import HIDDEN

ALIGNED_BYTES = 64
CONTIGUOUS = ("C", "aligned", "sliced")
LONGEST_TEXT = 4000
NAMES_Y = re.compile(r"\by\b")
CANNOT_BE_WRITTEN = ("readonly", "broadcast")
"""Layouts whose arrays their own framework refuses to write."""


@dataclass(frozen=True)
class Subject:
    """One case: its conversion, how its source is made, how both sides are looked at."""

    result: Result
    recipe: Recipe
    own_code: str = ""
    """The conversion of an array of another shape, where the shape stands in it."""
    is_own: bool = False
    """Whether a setup of the user's own makes the source: its values may be NaN, or all ones."""
    own_shape: tuple[int, ...] | None = None
    """Of the array that an instrument made, where it was another than the case's."""

    @property
    def code(self) -> str:
        """The conversion of ``x``, exactly as in the session."""
        return self.own_code or self.result.case.code

    def as_made(self, evidence: Any) -> Subject:
        """The conversion of the array that :meth:`create_by` makes."""
        code, shape = (mapping(evidence).get(name) for name in ("code", "created_shape"))
        one = replace(self, own_shape=_shape(shape))
        if not isinstance(code, str):
            return one
        _check(code)
        _check_expression(code)
        return replace(one, own_code=code)

    @property
    def array_text(self) -> str:
        """``float32 1024x1024 of torch``, with what is unusual about it."""
        case = self.result.case
        layout = "" if case.layout == "C" else f", layout {case.layout}"
        device = "" if case.device == "cpu" else f", on {case.device}"
        shape = case.shape if self.own_shape is None else self.own_shape
        return f"{case.dtype} {shape_text(shape)} of {case.producer}{layout}{device}"

    def create(self, word: str | None = None) -> str:
        """Text that makes ``x`` as it was in a process in which the result was ``word``.

        Contiguous arrays of some frameworks begin at any address; where that tells a view from a
        copy, ``x`` is made at an address of the kind that was seen.
        """
        layout = self.result.case.layout
        alignment = self._alignment(word)
        if alignment is not None and layout in CONTIGUOUS:
            layout = "aligned" if alignment >= ALIGNED_BYTES else "sliced"
        texts = self.recipe.create
        return self._made(texts.get(layout, texts.get(self.result.case.layout)))

    def create_as_seen(self) -> str:
        """Text that makes ``x`` where the result is what it was, if its alignment decides on it."""
        owned, looked = self.result.ownership, self.result.alignment
        decides = owned is not None and looked is not None and looked.verdict == "dependent"
        return self.create(owned.verdict if decides and owned else None)

    def create_as(self, layout: str) -> str:
        """Text that makes ``x`` in another layout; a recipe leaves out what is that of its own."""
        texts = self.recipe.create
        own = self.result.case.layout if layout == "aligned" else ""
        own = "" if own == "sliced" else own
        return self._made(texts.get(layout, texts.get(own)))

    def create_by(self, evidence: Any) -> str:
        """Text that makes ``x`` as an instrument made it, else as the case did."""
        text = mapping(evidence).get("create")
        return plain(text) if isinstance(text, str) else self.create()

    def source(self, idiom: str, x: str = "x") -> str:
        """What the producer says for ``idiom``. Raises :class:`NoReproducer` if it says nothing."""
        return _said(self.recipe.source, idiom, x, self.result.case.producer)

    def converted(self, idiom: str, y: str = "y") -> str:
        """What the consumer says for ``idiom`` of a result."""
        return _said(self.recipe.result, idiom, y, self.result.case.consumer)

    def values_like_source(self, y: str = "y") -> str:
        """The values of a result in the form of the source's, which may be plain memory."""
        values = self.converted("values", y)
        return values if self.has("source", "shape") else f"({values}).ravel()"

    def differing(self, before: str, after: str) -> str:
        """An expression of how many values of two arrays differ, by their names."""
        if not self.is_own:
            return f"int(({before} != {after}).sum())"
        both_nan = f"({before} != {before}) & ({after} != {after})"
        return f"int((({before} != {after}) & ~({both_nan})).sum())"

    def has(self, side: str, idiom: str) -> bool:
        """Whether ``source`` or ``result`` knows an idiom."""
        return idiom in (self.recipe.source if side == "source" else self.recipe.result)

    @property
    def writable(self) -> bool:
        """Whether a write to the source shows, and the producer can be told to do it."""
        if self.is_own:
            return False
        return self.has("source", "write") and self.result.case.layout not in CANNOT_BE_WRITTEN

    def wait_for_source(self, x: str = "y") -> str:
        """A statement that waits for an array of the producer; empty if none is needed."""
        return self.source("wait", x) if self.has("source", "wait") else ""

    def wait_for_result(self, y: str = "y") -> str:
        """A statement that waits for a result; empty if none is needed."""
        return self.converted("wait", y) if self.has("result", "wait") else ""

    def convert(self, y: str = "y") -> str:
        """The conversion into the name ``y``, and a wait for it."""
        return block(f"{y} = {self.code}", self.wait_for_result(y))

    def discarded(self) -> str:
        """The conversion and a wait for it, with the result in ``y`` only if the wait needs it."""
        wait = self.wait_for_result()
        return block(f"y = {self.code}" if NAMES_Y.search(wait) else self.code, wait)

    def function(self, name: str, arguments: str = "") -> str:
        """A function that converts ``x``, waits for the result and returns it."""
        wait = self.wait_for_result()
        if not wait:
            return f"def {name}({arguments}):\n    return {self.code}"
        lines = [f"y = {self.code}", *wait.splitlines(), "return y"]
        return "\n".join((f"def {name}({arguments}):", *(f"    {line}" for line in lines)))

    def _alignment(self, word: str | None) -> float | None:
        found = [evidence for said, evidence in seen(self.result.ownership) if said == word]
        if found:
            # Of all processes the one in which it is plainest that it is one.
            plainest = max if word == "view" else min
            return plainest(alignments(found[0]), default=None)
        looked = self.result.alignment.evidence if self.result.alignment else {}
        tried = [mapping(looked.get(place)) for place in ("aligned", "sliced")]
        places = [place for place in tried if place.get("verdict") == word]
        return number(places[0].get("alignment_bytes")) if word and places else None

    def _made(self, text: str | None) -> str:
        if not text:
            raise NoReproducer("the session does not say how the array was made")
        made = plain(text)
        return "" if made == "x = x" else made  # a setup of the user's own has made it


def subject(result: Result) -> Subject:
    """Raises :class:`NoReproducer` where the session has no source text for the case."""
    if result.recipe is None:
        raise NoReproducer(
            "the session holds no source text for this case: it was written by an older dlprof;"
            " measure again"
        )
    recipe = result.recipe
    for text in (result.case.code, *recipe.setup, *_texts(recipe)):
        _check(text)
    _check_expression(result.case.code)
    return Subject(result, recipe)


def _shape(told: Any) -> tuple[int, ...] | None:
    known = isinstance(told, list) and all(type(length) is int for length in told)
    return tuple(told) if known else None


def _texts(recipe: Recipe) -> list[str]:
    held = (recipe.create, recipe.source, recipe.result, recipe.queue)
    return [text for texts in held for text in texts.values()]


def _check(text: str) -> None:
    """Refuse what no probe says: text that hides something, or that is very long."""
    if len(text) > LONGEST_TEXT:
        raise NoReproducer("the session's source text is too long for a reproducer")
    if any(unicodedata.category(character) in HIDDEN for character in text.replace("\n", "")):
        raise NoReproducer("the session's source text holds characters that cannot be shown")


def _check_expression(code: str) -> None:
    try:
        ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoReproducer(f"the session's source text is not Python: {error}") from None


def _said(idioms: dict[str, str], idiom: str, name: str, framework: str) -> str:
    if idiom not in idioms:
        raise NoReproducer(f"the probe of {framework} has no text for {idiom!r}")
    return plain(idioms[idiom].replace("{x}", name))
