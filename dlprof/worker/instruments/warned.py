"""Warnings: what does the conversion of an array say by Python's ``warnings``?

The filters are the user's, as in a script that holds the call. A framework that warns once in a
process repeats it meanwhile (``Probe.repeat_warnings``), so that each path tells by itself.

Verdicts: ``silent``, ``warns``. Evidence: ``texts``, such as ``UserWarning: …``, each once.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from dlprof.protocol.messages import verdict
from dlprof.worker.channel import Reply
from dlprof.worker.refusal import attempt
from dlprof.worker.subject import Subject

MOST, LONGEST = 3, 300
OF_SCRIPT = re.escape("<string>")
"""The module in which the text of a conversion runs: to a user it is ``__main__``."""


@contextmanager
def recorded(subject: Subject, reply: Reply) -> Iterator[None]:
    """Send the warnings of the conversion inside that a second one repeats, unless it raises."""
    with ExitStack() as stack:
        for probe in dict.fromkeys((subject.producer, subject.consumer)):
            stack.enter_context(probe.repeat_warnings())
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.filterwarnings("default", category=DeprecationWarning, module=OF_SCRIPT)
        yield
        first = [*caught]
        caught.clear()
        if first:  # a framework's first use may warn, whatever it converts
            warnings.simplefilter("always")
            attempt(subject.convert)
    places = {(one.category, one.filename, one.lineno) for one in caught}
    own = [one for one in first if (one.category, one.filename, one.lineno) in places]
    texts = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:LONGEST] for one in own)
    found = {"texts": list(texts)[:MOST]}
    reply.part("warnings", verdict("warns", found) if texts else verdict("silent", {}))
