"""Fill the templates of reproducers with the source text of a case."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from dlprof.errors import NoReproducer
from dlprof.judge.thresholds import ALIGNED_BYTES
from dlprof.probes.base import CONTIGUOUS, Protocol
from dlprof.runner.axes import shape_text
from dlprof.runner.evidence import Evidence
from dlprof.runner.session import FindingRecord, Recipe, Result
from dlprof.text.source import block, plain

PLACEHOLDER = re.compile(r"<([a-z_]+)(?: of ([a-z]+))?>")
DIFFERING = "sum(a.tobytes() != b.tobytes() for a, b in zip(before.ravel(), after.ravel()))"
"""Counts the elements that differ between ``before`` and ``after``: NaN is equal to itself."""
PRODUCER_VARIABLES = ("x", "q", "held")
"""Variables of a script that hold arrays of the producer; all others hold results."""
CANNOT_BE_WRITTEN = ("readonly", "broadcast")
"""Layouts whose arrays their own framework refuses to write."""


@dataclass(frozen=True)
class Subject:
    """The case of a finding: its conversion, and how to make its source and read both arrays."""

    result: Result
    finding: FindingRecord
    recipe: Recipe
    code: str
    """The conversion of ``x``."""
    shape: tuple[int, ...]
    is_own: bool = False
    """Whether a setup of the user's own makes the source: its values may be NaN, or all ones."""
    against: Subject | None = None
    """The case that the finding compares with."""

    @property
    def other(self) -> Subject:
        """The case that the finding compares with. Raises :class:`NoReproducer` without one."""
        if self.against is None:
            raise NoReproducer("the finding does not say what it compares with: measure again")
        return self.against

    def filled(self, template: str, **texts: str) -> str:
        """``template`` with its placeholders filled in.

        ``<name>`` is one of ``texts``, or ``<code>``, or how many elements are ``<differing>``
        between ``before`` and ``after``. ``<create>`` makes ``x``, and ``<create of view>`` as
        where the result was a view. ``<convert of y>`` is the conversion into ``y`` and a wait for
        it, ``<function of f>`` a function that converts. ``<values of x>`` is an idiom of the
        producer's probe, and ``<values of y>`` one of the consumer's. ``<flat_values of y>`` has
        the form of the source's, which may be plain memory. A line whose placeholder has no text
        goes.
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
        if idiom == "create" and idiom not in texts:
            return self.create(name)
        if name is None:
            return {"differing": DIFFERING, "code": self.code, **texts}[idiom]
        if idiom == "convert":
            return block(f"{name} = {self.code}", self.idiom("wait", name))
        if idiom == "function":
            return self.filled(f"def {name}():\n    <convert of y>\n    return y\n")
        if idiom == "flat_values":
            values = self.idiom("values", name)
            return values if self.has("shape", "x") else f"({values}).ravel()"
        return self.idiom(idiom, name)

    def shown(self, does: str, template: str, **texts: str) -> Effect:
        """A script that shows what the conversion ``does``, by a template that is filled in."""
        return Effect(does, self.filled(template, **texts), self)

    def idiom(self, idiom: str, name: str) -> str:
        """Return the probe's text for ``idiom`` of the array called ``name``."""
        if not self.has(idiom, name):
            if idiom == "wait":  # a framework without such a text has nothing to wait for
                return ""
            case = self.result.case
            framework = case.producer if name in PRODUCER_VARIABLES else case.consumer
            raise NoReproducer(f"the probe of {framework} has no text for {idiom!r}")
        return plain(self._idioms(name)[idiom].replace("{x}", name))

    def has(self, idiom: str, name: str) -> bool:
        """Whether the probe has a text of this idiom for the array called ``name``."""
        return idiom in self._idioms(name)

    def _idioms(self, name: str) -> dict[str, str]:
        return self.recipe.source if name in PRODUCER_VARIABLES else self.recipe.result

    @property
    def array_text(self) -> str:
        """``float32 1024x1024 of torch``, with an unusual layout or device."""
        case = self.result.case
        layout = "" if case.layout == "C" else f", layout {case.layout}"
        device = "" if case.device == "cpu" else f", on {case.device}"
        return f"{case.dtype} {shape_text(self.shape)} of {case.producer}{layout}{device}"

    @property
    def writable(self) -> bool:
        """Whether the producer can write the source, and the write shows."""
        is_writable = not self.is_own and self.result.case.layout not in CANNOT_BE_WRITTEN
        return is_writable and self.has("write", "x")

    def with_array(self, evidence: Evidence) -> Subject:
        """Return the conversion of the array that an instrument made, if it has one."""
        shape, code = evidence.created_shape or self.shape, evidence.code or self.code
        return replace(self, shape=shape, code=code)

    def create(self, word: str | None = None) -> str:
        """Return text that makes ``x`` as in a process in which the result was ``word``.

        Contiguous arrays of some frameworks begin at any address. If that decides between view and
        copy, ``x`` has the alignment of the measured array.
        """
        ownership, look = self.result.ownership, self.result.alignment
        if word is None and ownership is not None and look is not None and look.says("dependent"):
            word = ownership.verdict
        layout = self.result.case.layout
        alignment = self._alignment(word)
        if alignment is not None and layout in CONTIGUOUS:
            layout = "aligned" if alignment >= ALIGNED_BYTES else "sliced"
        return self._create_text(layout, self.result.case.layout)

    def create_layout(self, layout: str) -> str:
        """Return text that makes ``x`` in another layout; a recipe leaves out its own layout."""
        original = self.result.case.layout
        return self._create_text(
            layout, original if layout == "aligned" and original != "sliced" else ""
        )

    def recreate(self, evidence: Evidence) -> str:
        """Return text that makes ``x`` as an instrument made it, else as the case did."""
        return self.create() if evidence.create is None else plain(evidence.create)

    def _alignment(self, word: str | None) -> float | None:
        evidence = self.result.ownership.first(word) if self.result.ownership and word else None
        if evidence is not None:
            plainest = max if word == "view" else min
            return plainest(evidence.alignments, default=None)
        places = self.result.alignment.evidence.places if self.result.alignment else ()
        return next((look.alignment_bytes for _, look in places if look.verdict == word), None)

    def _create_text(self, *layouts: str) -> str:
        texts = [self.recipe.create[name] for name in layouts if self.recipe.create.get(name)]
        if not texts:
            raise NoReproducer("the session does not say how the array was made")
        made = plain(texts[0])
        return "" if made == "x = x" else made  # a setup of the user's own has made it


def subject(
    result: Result, finding: FindingRecord, is_own: bool = False, against: Subject | None = None
) -> Subject:
    """Raises :class:`NoReproducer` if the session has no source text for the case."""
    if result.case.protocol == Protocol.PROGRAM:
        raise NoReproducer("the program itself is the reproducer")
    if result.recipe is None:
        raise NoReproducer("the session holds no source text for this case: measure again")
    case = result.case
    return Subject(result, finding, result.recipe, case.code, case.shape, is_own, against)


@dataclass(frozen=True)
class Effect:
    """A script that shows what the conversion ``does``.

    ``body`` returns whether the problem is there. A ``child`` converts in a process of its own, and
    ends with exit code 0 if there is no problem. ``subject`` is the case with the array it makes.
    """

    does: str
    body: str
    subject: Subject
    child: str = ""

    @property
    def call(self) -> str:
        return self.subject.finding.subject or self.subject.code


Show = Callable[[Subject], Effect]
"""Makes the script of a finding from its clearest case."""


def shows(does: str, template: str, **texts: str) -> Show:
    """Show by a template that the conversion ``does`` this."""
    return lambda subject: subject.shown(does, template, **texts)


TIMED = """
def timed(function):
    calls, _ = Timer(function).autorange()
    return min(Timer(function).repeat(5, calls)) / calls * 1e6
"""
HYSTERESIS = 2
"""A script finds a longer time down to half of the rule's limit."""


LOOK = """
addresses = <address of x>, <address of y>
print("x is at %#x, y at %#x" % addresses)
"""
"""Compares the addresses: those of a view are the same."""
WRITE_SHOWS = """
<create of view>
<convert of y>
before = <values of y>
<write of x>
after = <values of y>
changed = <differing>
print(changed, "of", before.size, "values of y changed with a write to x")
return changed > 0
"""
"""Counts the values of a result that change with a write to its source."""
CHILD_LIMIT_S = 150
"""For a whole process, with its imports and the array."""
IN_CHILD = """
child = multiprocessing.Process(target=convert, daemon=True)
child.start()
child.join(<limit>)
print("the process that converted ended with exit code", child.exitcode)
if child.exitcode in (None, 1):
    raise RuntimeError("the process that converted did not come to an answer")
return child.exitcode != 0
"""


def child_effect(does: str, subject: Subject, child: str, limit_s: int = CHILD_LIMIT_S) -> Effect:
    """Return an effect whose conversion may end its process."""
    return Effect(does, subject.filled(IN_CHILD, limit=str(limit_s)), subject, child)
