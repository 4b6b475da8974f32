"""Names and phrases in the messages between parent and worker."""

from __future__ import annotations

import signal
from typing import Any

DIAGNOSIS = ("ordering", "alignment", "peak_memory", "early_write", "lifetime", "fork")
"""Instruments that may crash or hang although timing did not: they come after all times."""

AFTER_DROP = "lifetime after drop"
"""The stage that reads a result after its source is gone: a dangling result may end the worker."""
SOURCE_AFTER_DROP = "lifetime source after drop"
"""The stage that reads a source after its result is gone."""
OTHER_AFTER_DROP = "lifetime other result after drop"
"""The stage that reads a result after another result of its source is gone."""
AT_EXIT = "exit"
"""The stage in which the interpreter exits with results alive."""
SAME = "same"
"""A source that still has its values after its result is gone."""

ASKED_OTHERWISE = "other export"
"""The event of a handshake in which dlprof asks again, after a request was refused."""
REFUSED = "refused"
"""The part with the reason of a refusal, sent before steps that may end the process."""
IMPORTED_OTHERWISE = "other import"
"""The consumer's import of that export."""

NO_CUPTI = "cupti-python is not installed: pip install cupti-python"
"""The reason for no trace."""

FAULTY = "the probe is faulty"
FAILED_IN = "dlprof or a probe failed in"
"""Begins the reason of a case that says nothing about a framework."""

SAME_ERROR = 24
"""Characters that distinguish refusals of one path."""
OTHER_VALUES = "other values"
"""The answer for a plain array that is still converted after refusals."""

MISUSE = "driver"
"""The note with what the simulated driver reports of a conversion."""
NO_ARRAY = "the call leaves no array behind"
"""The reason why an instrument has nothing to look at."""

LONGEST = 2000


def words(error: BaseException) -> str:
    """Return the type and the message of an error, cut if it is very long."""
    kind = type(error).__name__
    text = str(error).strip()
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text):,} characters)"
    return f"{kind}: {text}" if text else kind


def ending(code: int) -> str:
    """Return ``ended with exit code 3`` or ``killed by SIGSEGV (Segmentation fault)``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name} ({signal.strsignal(-code) or 'unknown signal'})"


def verdict(word: str, evidence: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    """Return the answer of an instrument, with the ``reason`` in its evidence."""
    return {"verdict": word, "evidence": {**evidence, **({"reason": reason} if reason else {})}}


def unknown(reason: str) -> dict[str, Any]:
    """Return the answer of an instrument that cannot tell."""
    return verdict("unknown", {}, reason)


def no_trace(reason: str) -> dict[str, Any]:
    """Return the answer of the instrument *trace* that could record nothing."""
    return verdict("no trace", {}, reason)
