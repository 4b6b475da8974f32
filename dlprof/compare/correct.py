"""Holm's correction (1979): the chance of one false alarm in a whole suite is at most the level.

Holm and not Bonferroni: as safe, and never less sensitive. Not Benjamini and Hochberg: they bound
the *share* of false alarms, and a gate fails by a single one. Holm needs no independence, and
cases measured in the same processes are not independent.
"""

from __future__ import annotations

import numpy as np

from dlprof.compare.ranks import Floats


def holm(p: Floats) -> Floats:
    """Corrected p-values: compare each with the level of the whole family.

    The family is the last axis; NaN counts in it and is never significant.
    """
    filled = np.where(np.isnan(p), 1.0, p)
    order = np.argsort(filled, axis=-1, kind="stable")
    count = p.shape[-1]
    stepped = np.take_along_axis(filled, order, axis=-1) * np.arange(count, 0, -1)
    corrected = np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0)
    found = np.empty_like(corrected)
    np.put_along_axis(found, order, corrected, axis=-1)
    return found
