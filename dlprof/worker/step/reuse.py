"""Reuse: does an output change when the next call is made?

An output is kept, its values noted, and the model is called again and again on another input, which
gives other values. ``overwritten`` says after how many calls the kept output had other values,
``kept`` that it had not after :data:`CALLS` calls. It is ``unknown`` where the model gives the
same output for the other input: then nothing could be seen.
"""

from __future__ import annotations

from typing import Any

from dlprof.worker.step.subject import Step

CALLS = 4


def measure(step: Step) -> dict[str, Any]:
    """A verdict, with the evidence ``after_calls`` and ``same_address`` (of the next output)."""
    other = step.another_input()
    look = step.steps.to_numpy
    kept = step.run()
    values = look(kept).tobytes()
    address = step.steps.pointer(kept)
    evidence: dict[str, Any] = {"calls": CALLS}
    for call in range(1, CALLS + 1):
        output = step.run(other)
        if call == 1:
            evidence["same_address"] = step.steps.pointer(output) == address
            if look(output).tobytes() == values:
                return _unknown("the model gives the same output for another input")
        if look(kept).tobytes() != values:
            return {"verdict": "overwritten", "evidence": {**evidence, "after_calls": call}}
    return {"verdict": "kept", "evidence": evidence}


def _unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}
