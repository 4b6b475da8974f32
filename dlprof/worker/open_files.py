"""How many file descriptors this process has open, and who left many more than he found.

A process may have some thousand of them. A conversion that leaves one open at each call takes them
from all cases that the process would serve after it.
"""

from __future__ import annotations

import errno
import os
import resource

MANY = 64
"""More than the frameworks' own threads, pipes and files that are opened once."""


def count() -> int:
    """Open descriptors; the limit where all are taken, so that not even this can be looked up."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone, and no object for each
    except OSError as refusal:
        if refusal.errno in (errno.EMFILE, errno.ENFILE):
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return 0


def left_open(before: int) -> int:
    """How many more are open than ``before``, where that is many; else none."""
    left = count() - before
    return left if left >= MANY else 0
