"""The limits of all rules, with their reasons. Times in ns, sizes in bytes.

Instruments have their own limits for verdicts.
"""

from __future__ import annotations

SLOW_RATIO = 2.0
"""A path is slow if it takes twice the time of another. Views repeat within 4 % from process to
process, but the faster of two nearly equal paths changes with every release."""

SLOW_GAP_NS = 1_000.0
"""...and at least 1 us more. Less is hidden by the call around it."""

LEAST_RATIO = 1.5
"""...and only if its fastest sample is still longer than the other's median by this ratio. Other
programs, page faults and scheduling only ever add time: a path that was fast once is not slow."""

FAR_RATIO = 10.0
"""Times that other programs disturbed still differ if all samples and the interval of the longer
lie this many times above the interval of the shorter."""

LEAST_PROCESSES = 3
"""Least number of processes that must agree on a ratio if the intervals overlap."""

COSTLY_GAP_NS = 10_000.0
"""A slow path is a warning from 10 us per call on, the time of a kernel launch or two; else it is
an info."""

EARLY_RATIO = 3.0
"""A result that is ready this many times later than the call was returned early. A wait for a
finished result costs as much as a cheap call, and is subtracted only roughly."""

EARLY_GAP_NS = 20_000.0
"""...and this much later: a thread that is woken up takes about 10 us."""

ALIGNED_BYTES = 64
"""No framework is known to need more than a cache line."""

AMPLIFIED_ARRAYS = 1.75
"""A peak of this many arrays counts as two. A copy needs one. The peak is the middle of two
repeats, so 1.5 means that only one of them needed two."""

LEAN_ARRAYS = 1.25
"""A path that needs no more than this needs one array; pages of other kinds add a few percent."""

LOOP_SHARE = 0.2
"""A conversion that takes a fifth of a loop is worth moving out of it. The interval of its
share, over processes that each compare their own two loops, must lie above zero."""
